//! A store that fails, and answers that nobody but the guard may read.

use std::sync::Arc;

use hapax_ledger::time::Span;
use hapax_store::vault::Vault;
use hapax_tower::Verdict;

use crate::server::{Server, guard};
use crate::watched::Fault;
use crate::world::{World, on_every_store};

on_every_store!(
    without_its_store_nothing_runs,
    a_claim_that_may_be_written_is_known_again,
    a_claim_that_stays_in_doubt_is_not_run,
    a_settlement_is_tried_again,
    an_answer_that_can_only_be_read_is_not_given_out,
    an_answer_that_cannot_be_stored_is_not_given_out,
    stored_answers_are_sealed,
);

async fn without_its_store_nothing_runs(world: World) {
    let server = Server::start(&world, guard(), async |_| "charged").await;
    world.keys.fail_claim(Fault::Down);
    let refused = server.charge("k", "").await;
    assert_eq!(refused.refusal(), (503, "store-unavailable".to_owned()));
    assert_eq!(refused.header("retry-after"), "2");
    assert_eq!(
        (server.runs(), server.verdicts()),
        (0, vec![Verdict::StoreDown])
    );
    assert_eq!(server.charge("k", "").await.body, "charged");
}

/// H1: a claim that nobody heard of is the claim of whoever asks for it again, and of nobody else. Its row may be seen before it is safe,
/// so it is extended before it runs.
async fn a_claim_that_may_be_written_is_known_again(world: World) {
    let server = Server::start(&world, guard(), async |_| "charged").await;
    for (nth, faults) in [
        vec![Fault::WrittenUnheard],
        vec![Fault::LostUnheard],
        vec![Fault::WrittenUnheard, Fault::Down, Fault::LostUnheard],
        vec![Fault::LostUnheard, Fault::WrittenUnheard],
    ]
    .into_iter()
    .enumerate()
    {
        let (key, extended) = (format!("k{nth}"), world.keys.extensions());
        for fault in &faults {
            world.keys.fail_claim(*fault);
        }
        let first = server.charge(&key, "").await;
        assert_eq!((first.status.as_u16(), first.is_replay()), (200, false));
        assert!(world.keys.extensions() > extended, "{faults:?}");
        assert!(server.charge(&key, "").await.is_replay(), "{faults:?}");
        assert_eq!(server.runs(), nth + 1);
    }
}

async fn a_claim_that_stays_in_doubt_is_not_run(world: World) {
    let guard = guard().lease(Span::from_secs(1));
    let server = Server::start(&world, guard, async |_| "charged").await;
    world.keys.fail_claim(Fault::WrittenUnheard);
    for _ in 0..20 {
        world.keys.fail_claim(Fault::Down);
    }
    let refused = server.charge("k", "").await;
    assert_eq!(refused.refusal(), (503, "store-unavailable".to_owned()));
    assert_eq!(server.runs(), 0);
}

async fn a_settlement_is_tried_again(world: World) {
    let server = Server::start(&world, guard(), async |_| "charged").await;
    for (key, fault) in [
        ("down", Fault::Down),
        ("written", Fault::WrittenUnheard),
        ("lost", Fault::LostUnheard),
    ] {
        world.keys.fail_settle(fault);
        let first = server.charge(key, "").await;
        assert_eq!(
            (first.status.as_u16(), &*first.body),
            (200, &b"charged"[..]),
            "{key}"
        );
        assert!(server.charge(key, "").await.is_replay(), "{key}");
    }
    assert_eq!(server.runs(), 3);
}

/// H3: a settlement in doubt is said again until that is heard. That its row is there proves nothing.
async fn an_answer_that_can_only_be_read_is_not_given_out(world: World) {
    let server = Server::start(&world, guard(), async |_| "charged").await;
    world.keys.fail_settle(Fault::WrittenUnheard);
    world.keys.fail_settle(Fault::Refused);
    let first = server.charge("k", "").await;
    assert_eq!(first.refusal(), (409, "outcome-unknown".to_owned()));
    assert!(server.charge("k", "").await.is_replay());
}

/// H1, H3: what was given out can be repeated, and what cannot be repeated is not given out.
async fn an_answer_that_cannot_be_stored_is_not_given_out(world: World) {
    let guard = guard().lease(Span::from_millis(100));
    let server = Server::start(&world, guard, async |_| "charged").await;
    world.keys.fail_settles(Some(Fault::Down));
    let first = server.charge("k", "").await;
    assert_eq!(first.refusal(), (503, "outcome-unknown".to_owned()));
    assert!(first.headers.contains_key("retry-after"));
    world.keys.fail_settles(None);
    let again = server.charge("k", "").await;
    assert_eq!(again.refusal(), (409, "in-progress".to_owned()));
    world.dial.set(hapax_store::conformance::sample::at(60));
    let again = server.charge("k", "").await;
    assert_eq!(again.refusal(), (409, "outcome-unknown".to_owned()));
    assert_eq!(server.runs(), 1);
}

/// J2.
async fn stored_answers_are_sealed(world: World) {
    let vault = Arc::new(Vault::new(&[[9; 32]]).expect("a key"));
    let server = Server::start(&world, guard().vault(vault), async |_| {
        ([("location", "/very/private")], "very private")
    })
    .await;
    server.charge("k", "").await;
    let again = server.charge("k", "").await;
    assert_eq!(
        (&*again.body, again.is_replay()),
        (&b"very private"[..], true)
    );
    let stored = world.keys.answers();
    assert_eq!(stored.len(), 1);
    for secret in [&b"very"[..], b"location"] {
        assert!(!stored[0].windows(secret.len()).any(|part| part == secret));
    }

    // Somebody without the vault's key can neither read it nor run it.
    let other = Server::start(&world, guard(), async |_| "other").await;
    let closed = other.charge("k", "").await;
    assert_eq!(closed.refusal(), (500, "answer-unreadable".to_owned()));
    assert_eq!(other.runs(), 0);
}

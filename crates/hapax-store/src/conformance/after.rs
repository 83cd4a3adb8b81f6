//! `after`: effects of one event that wait for each other.

use hapax_ledger::effect::{EffectState, Repeat, SkipReason};
use hapax_ledger::event::EventStatus;
use hapax_ledger::id::EventId;
use hapax_ledger::key::{BodyHash, KeyHash, KeyKind};
use hapax_ledger::order::Gate;
use hapax_ledger::retry::Next;
use hapax_ledger::time::Span;
use hapax_ledger::transition::{Resolution, Resolver};

use super::sample::{Dial, Subject, accept_one, at, detail};
use super::worker::{
    BROKEN, GIVEN_UP, LEASE, SETTLED, START, accept_effects, calling_for, claim, claim_one, done,
    effect_detail, ended, names, planned, rescued, resolve, serial, start_one,
};
use crate::nouns::{Born, Move, NewEffect, NewEvent, OnFailed, Receipted};

/// An effect in a lane of its own name that comes after these places.
fn follows(name: &str, after: &[u16]) -> NewEffect {
    NewEffect {
        after: after.to_vec(),
        lane: name.into(),
        ..planned(name, "1", Repeat::Keyed)
    }
}

async fn gates(store: &Subject, event: EventId) -> Vec<(String, Gate)> {
    let effects = detail(store, event).await.effects.into_iter();
    effects
        .map(|effect| (effect.name.to_string(), effect.gate))
        .collect()
}

/// What comes after waits until all that comes first is done, and its lane is named when it may go. Places may point forward.
pub async fn what_comes_after_waits_until_all_before_it_is_done(store: Subject, _dial: Dial) {
    let effects = vec![
        follows("last", &[1, 2]),
        follows("one", &[]),
        follows("two", &[]),
    ];
    let receipt = accept_effects(&store, "k", effects).await;
    let row = |name: &str, gate| (name.to_owned(), gate);
    assert_eq!(
        gates(&store, receipt.event).await,
        [
            row("last", Gate::Waiting),
            row("one", Gate::Open),
            row("two", Gate::Open)
        ]
    );
    let first = claim(&store).await;
    assert_eq!(first.len(), 2, "{first:?}");
    for effect in &first {
        assert_eq!(done(&store, effect, START).await, [""; 0]);
    }
    assert_eq!(done(&store, &first[0], SETTLED).await, [""; 0]);
    assert_eq!(claim(&store).await, []);
    assert_eq!(done(&store, &first[1], SETTLED).await, ["last"]);
    let last = start_one(&store).await;
    assert_eq!(&*last.name, "last");
    assert_eq!(done(&store, &last, SETTLED).await, [""; 0]);
    let event = detail(&store, receipt.event).await.event;
    assert_eq!(event.status, EventStatus::Completed);
}

/// Skipped for a reason is as good as done; a retry is not.
pub async fn a_skipped_one_lets_the_next_go_and_a_retry_does_not(store: Subject, dial: Dial) {
    accept_effects(&store, "k", vec![follows("a", &[]), follows("b", &[0])]).await;
    let effect = start_one(&store).await;
    let retry = ended(BROKEN, Next::At(Span::from_secs(5)));
    assert_eq!(done(&store, &effect, retry).await, [""; 0]);
    dial.set(at(5));
    let effect = claim_one(&store).await;
    let skip = Move::Skip(SkipReason::EndpointDeleted);
    assert_eq!(done(&store, &effect, skip).await, ["b"]);
    assert_eq!(&*claim_one(&store).await.name, "b");
}

/// D7: a dead predecessor leaves its dependents pending; revived and done, it lets them go.
pub async fn a_dead_one_blocks_what_comes_after_until_it_is_revived(store: Subject, dial: Dial) {
    let effects = vec![follows("a", &[]), follows("b", &[0])];
    let new = NewEvent {
        on_failed: OnFailed::Retry,
        ..calling_for("k", effects)
    };
    let receipt = accept_one(&store, "a", at(0), new.clone()).await;
    let effect = start_one(&store).await;
    assert_eq!(done(&store, &effect, GIVEN_UP).await, [""; 0]);
    assert_eq!(claim(&store).await, []);
    let event = detail(&store, receipt.event).await.event;
    assert_eq!(event.status, EventStatus::Dead);
    dial.set(at(9));
    let again = accept_one(&store, "a", at(9), new).await;
    assert_eq!(
        (again.sighting, names(again.revived)),
        (Receipted::Duplicate, vec!["a".to_owned()])
    );
    let effect = start_one(&store).await;
    assert_eq!(&*effect.name, "a");
    assert_eq!(done(&store, &effect, SETTLED).await, ["b"]);
    assert_eq!(&*claim_one(&store).await.name, "b");
}

/// The source's rule: `link` revives nothing, and a conflicting body never does.
pub async fn a_repeat_revives_only_where_it_may(store: Subject, _dial: Dial) {
    let linking = calling_for("k", vec![follows("a", &[])]);
    let retrying = NewEvent {
        on_failed: OnFailed::Retry,
        ..linking.clone()
    };
    let mut conflicting = retrying.clone();
    conflicting.compare_hash = BodyHash::of(b"another");
    accept_one(&store, "a", at(0), linking.clone()).await;
    // While nothing is dead there is nothing to revive.
    let early = accept_one(&store, "a", at(0), retrying.clone()).await;
    assert_eq!(names(early.revived), [""; 0]);
    let effect = start_one(&store).await;
    done(&store, &effect, GIVEN_UP).await;
    for repeat in [linking, conflicting] {
        let again = accept_one(&store, "a", at(1), repeat).await;
        assert_eq!(names(again.revived), [""; 0]);
        let state = effect_detail(&store, &effect).await.effect.record.state;
        assert_eq!(state, EffectState::Dead);
    }
    let again = accept_one(&store, "a", at(1), retrying).await;
    assert_eq!(names(again.revived), ["a"]);
    let record = claim_one(&store).await.record;
    assert_eq!((record.attempts, record.attempts_in_pass()), (1, 0));
}

/// D3: an uncertain one blocks what comes after; whoever resolves it lets it go.
pub async fn an_uncertain_one_blocks_what_comes_after_until_it_is_resolved(
    store: Subject,
    dial: Dial,
) {
    let once = NewEffect {
        repeat: Repeat::Once,
        ..follows("a", &[])
    };
    accept_effects(&store, "k", vec![once, follows("b", &[0])]).await;
    let effect = start_one(&store).await;
    dial.set(at(30));
    let freed = rescued(&store).await;
    assert_eq!(freed.effects.len(), 1);
    assert_eq!(freed.effects[0].record.state, EffectState::Uncertain);
    assert_eq!(names(freed.opened), [""; 0]);
    assert_eq!(claim(&store).await, []);
    let resolved = resolve(&store, effect.id, Resolution::Applied, Resolver::Person).await;
    assert_eq!(names(resolved.opened), ["b"]);
    assert_eq!(&*claim_one(&store).await.name, "b");
}

/// D6: what an event shares with an earlier one counts in its own plan, and the shared one keeps what was frozen with it.
pub async fn a_shared_effect_counts_for_both_events(store: Subject, _dial: Dial) {
    let shared = || follows("shared", &[]);
    accept_effects(&store, "one", vec![shared()]).await;
    let second = accept_effects(
        &store,
        "two",
        vec![
            follows("own", &[1]),
            // It exists, so what it would come after here means nothing.
            NewEffect {
                after: vec![0],
                ..shared()
            },
        ],
    )
    .await;
    let row = |name: &str, gate| (name.to_owned(), gate);
    assert_eq!(
        gates(&store, second.event).await,
        [row("own", Gate::Waiting), row("shared", Gate::Open)]
    );
    let effect = start_one(&store).await;
    assert_eq!(&*effect.name, "shared");
    assert_eq!(done(&store, &effect, SETTLED).await, ["own"]);
    // Where it is done already, nothing waits.
    let third = vec![
        shared(),
        NewEffect {
            key: "2".into(),
            key_hash: KeyHash::of(KeyKind::Effect, "own", "2"),
            ..follows("own", &[0])
        },
    ];
    accept_effects(&store, "three", third).await;
    assert_eq!(claim(&store).await.len(), 2);
}

/// D1: what may have to wait is not born claimed, whatever the plan says.
pub async fn what_waits_is_not_born_claimed(store: Subject, _dial: Dial) {
    let born = |effect: NewEffect| NewEffect {
        born: Some(Born {
            node: "here".into(),
            lease: LEASE,
        }),
        ..effect
    };
    let ordered = NewEffect {
        order: Some(serial("in_1")),
        ..follows("c", &[])
    };
    let effects = vec![
        born(follows("a", &[])),
        born(follows("b", &[0])),
        born(ordered),
    ];
    let receipt = accept_effects(&store, "k", effects).await;
    assert!(
        matches!(&receipt.claims[..], [Some(_), None, None]),
        "{:?}",
        receipt.claims
    );
    let Some(Some(claimed)) = receipt.claims.first() else {
        return;
    };
    assert_eq!(&*claim_one(&store).await.name, "c");
    assert_eq!(done(&store, &claimed.effect, SETTLED).await, ["b"]);
    assert_eq!(&*claim_one(&store).await.name, "b");
}

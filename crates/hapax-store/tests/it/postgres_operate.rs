//! Operators and the user's own code on PostgreSQL with more than one node: one record for each decision, one effect for each key,
//! and nobody in each other's way.

use std::collections::BTreeSet;
use std::sync::Arc;

use hapax_ledger::effect::{EffectState, Repeat};
use hapax_ledger::event::EventStatus;
use hapax_ledger::id::{EffectId, EventId, RawId, TokenId};
use hapax_ledger::key::{KeyHash, KeyKind};
use hapax_ledger::status::Hold;
use hapax_ledger::transition::Resolution;
use hapax_store::conformance::operator::{ada, asking, command, give, log};
use hapax_store::conformance::sample::{
    Dial, KEEP, Subject, accept_one, all, at, detail, event, reap_all, review,
};
use hapax_store::conformance::worker::{
    GIVEN_UP, LEASE, SETTLED, START, advance, calling_for, claim_as, planned, serial,
};
use hapax_store::nouns::{
    Before, Changed, Command, Commanded, Decision, NewEffect, NewEvent, OWN_SOURCE, OnFailed,
    OwnClaim, OwnClaimed, Role, Token, WhyNot,
};

use crate::database::{Database, with_database};
use crate::postgres::open_with;

async fn nodes(database: &Database) -> [Subject; 2] {
    [
        Arc::new(database.open().await),
        Arc::new(database.open().await),
    ]
}

fn own(key: &str, event: Option<EventId>) -> OwnClaim {
    OwnClaim {
        event,
        name: "mine".into(),
        key: key.into(),
        key_hash: KeyHash::of(KeyKind::Effect, "mine", key),
        repeat: Repeat::Keyed,
        actor: "shop".into(),
        lease: LEASE,
        at: at(0),
        keep: KEEP,
    }
}

/// E3, J1: a request that comes in by several nodes at once is carried out by one, and all of them say the same.
#[test]
fn nodes_that_get_one_request_carry_it_out_once() {
    with_database(|database| async move {
        let nodes = nodes(&database).await;
        let new = calling_for("k", vec![planned("e", "1", Repeat::Keyed)]);
        let id = accept_one(&nodes[0], "a", at(0), new).await.event;
        let racing = (0..30_usize).map(|n| {
            let node = nodes[n % 2].clone();
            let wanted = Command {
                by: asking(&format!("r{}", n % 3), 1),
                ..command(id, Decision::Retry)
            };
            async move { (n % 3, give(&node, wanted).await) }
        });
        let answers = all(racing).await;
        for request in 0..3 {
            let of_it = answers.iter().filter(|(which, _)| *which == request);
            let (mut done, mut said) = (0, BTreeSet::new());
            for (_, answer) in of_it {
                match answer {
                    Commanded::Done(first) => {
                        done += 1;
                        said.insert(first.answer.clone());
                    }
                    Commanded::Before(Before::Same(again)) => drop(said.insert(again.clone())),
                    other => panic!("{other:?}"),
                }
            }
            assert_eq!((done, said.len()), (1, 1));
        }
        assert_eq!(log(&nodes[1]).await.len(), 3);
        let runs = detail(&nodes[1], id).await.runs;
        let parents: BTreeSet<_> = runs.iter().map(|run| run.parent).collect();
        assert_eq!((runs.len(), parents.len()), (3, 3), "each follows another");
    });
}

fn token(n: u64, name: &str) -> Token {
    Token {
        id: TokenId(RawId::new(at(1), 0, n)),
        name: name.into(),
        role: Role::Viewer,
        app: None,
        hash: [7; 32],
        created_at: at(1),
        expires_at: None,
        last_used_at: None,
        revoked_at: None,
    }
}

/// J1: the log of nodes that write at once has no gap, and a name belongs to one token.
#[test]
fn nodes_that_change_the_catalogue_at_once_keep_one_chain() {
    with_database(|database| async move {
        let nodes = nodes(&database).await;
        let racing = (0..60_u64).map(|n| {
            let node = nodes[n as usize % 2].clone();
            let token = token(n, &format!("t{}", n % 20));
            async move {
                let made = node.create_token(token, ada(), "{}".to_owned()).await;
                made.expect("the store changes")
            }
        });
        let made = all(racing).await;
        let done = made.iter().filter(|one| **one == Changed::Done).count();
        let taken = made.iter().filter(|one| **one == Changed::NameTaken);
        assert_eq!((done, taken.count()), (20, 40));
        assert_eq!(log(&nodes[0]).await.len(), 20);
    });
}

/// C3, D6: of all that claim one effect of their own, on any node and for any event, one gets it.
#[test]
fn nodes_that_claim_an_effect_of_their_own_at_once_share_one() {
    with_database(|database| async move {
        let nodes = nodes(&database).await;
        let new = event("a", "k", "A");
        let id = accept_one(&nodes[0], "a", at(0), new).await.event;
        for round in 0..10 {
            let racing = (0..12_usize).map(|n| {
                let node = nodes[n % 2].clone();
                // Every third for an event that is there, and in some rounds none.
                let event = (n % 3 == 0 && round % 2 == 0).then_some(id);
                let claim = own(&round.to_string(), event);
                async move { node.claim_own(claim).await.expect("the store claims") }
            });
            let answers = all(racing).await;
            let claimed = answers
                .iter()
                .filter(|one| matches!(one, OwnClaimed::Claimed { .. }));
            assert_eq!(claimed.count(), 1, "{answers:?}");
            let waiting = answers
                .iter()
                .filter(|one| matches!(one, OwnClaimed::InFlight { .. }));
            assert_eq!(waiting.count(), 11);
        }
        let found = detail(&nodes[1], id).await;
        assert_eq!(found.effects.len(), 5);
        assert_eq!(found.event.status, EventStatus::InProgress);
        let client = database.client().await;
        let shared = client
            .query(
                "SELECT event, place FROM (
                     SELECT event, place FROM hapax.effect UNION ALL SELECT event, place FROM hapax.effect_link
                 ) p GROUP BY event, place HAVING count(*) > 1",
                &[],
            )
            .await
            .expect("the server answers");
        assert_eq!(shared.len(), 0, "no place is given twice");
        let repeats = client
            .query_one(
                "SELECT count(*) FROM hapax.delivery d JOIN hapax.event v ON v.id = d.event WHERE v.source = $1",
                &[&OWN_SOURCE],
            )
            .await
            .expect("the server answers");
        assert_eq!(repeats.get::<_, i64>(0), 0, "a claim is no delivery");
    });
}

/// B2, E1: of two that release an event at once, one plans it.
#[test]
fn nodes_that_release_an_event_at_once_plan_it_once() {
    with_database(|database| async move {
        let nodes = nodes(&database).await;
        for round in 0..10 {
            let new = NewEvent {
                review: Some(review()),
                ..event("a", &format!("k{round}"), "A")
            };
            let id = accept_one(&nodes[0], "a", at(0), new).await.event;
            let racing = (0..4_usize).map(|n| {
                let node = nodes[n % 2].clone();
                let name = format!("e{n}");
                let effects = vec![planned(&name, &format!("{round}"), Repeat::Keyed)];
                let wanted = command(id, Decision::Release { effects });
                async move { give(&node, wanted).await }
            });
            let answers = all(racing).await;
            let done = answers
                .iter()
                .filter(|one| matches!(one, Commanded::Done(_)));
            assert_eq!(done.count(), 1, "{answers:?}");
            let late = answers.iter().filter(|one| {
                let why = WhyNot::NotHeld;
                matches!(one, Commanded::Refused { why: found, .. } if *found == why)
            });
            assert_eq!(late.count(), 3);
            assert_eq!(detail(&nodes[1], id).await.effects.len(), 1);
        }
    });
}

/// Claims, starts and ends what is due; every third is given up.
async fn work(node: &Subject, name: usize) {
    let claimed = claim_as(node, &name.to_string(), 10, LEASE).await;
    for (n, effect) in claimed.iter().enumerate() {
        advance(node, effect, START).await;
        let end = if n % 3 == 0 { GIVEN_UP } else { SETTLED };
        advance(node, effect, end).await;
    }
}

fn shared(n: usize) -> Vec<NewEffect> {
    let effect = |e: usize| {
        let class = [Repeat::Converges, Repeat::Keyed, Repeat::Once][e % 3];
        let plain = planned(
            &format!("e{}", e % 3),
            &((n + e * 5) % 12).to_string(),
            class,
        );
        match e % 2 {
            0 => plain,
            _ => NewEffect {
                order: Some(serial(&format!("x{}", n % 3))),
                ..plain
            },
        }
    };
    (0..4).map(effect).collect()
}

fn decision(n: usize, effect: Option<EffectId>) -> Decision {
    match (n % 5, effect) {
        (0, _) => Decision::Retry,
        (1, _) => Decision::Replay {
            force: vec!["e0".to_owned(), "e1".to_owned()],
        },
        (2, _) => Decision::Reconcile {
            snapshot: "now".into(),
        },
        (3, Some(effect)) => Decision::Resolve {
            effect,
            resolution: Resolution::Skip,
        },
        _ => Decision::Dismiss,
    }
}

/// Decides something about an event, whatever may come of it.
async fn decide(node: &Subject, id: EventId, n: usize) {
    let found = node.event(id).await.expect("the store reads");
    let effect = found.and_then(|found| Some(found.effects.get(n % 4)?.id));
    let wanted = Command {
        only: (n / 5)
            .is_multiple_of(2)
            .then(|| vec![format!("e{}", n % 3)]),
        ..command(id, decision(n, effect))
    };
    give(node, wanted).await;
}

/// D7, E1, F1, J1: nodes that decide, work, accept, claim for themselves and reap at once neither deadlock nor leave an event behind
/// its effects or the log with a gap.
#[test]
fn nodes_that_decide_and_work_at_once_do_not_get_in_each_others_way() {
    with_database(|database| async move {
        let dial = Dial::default();
        let nodes = [
            open_with(&database, &dial).await,
            open_with(&database, &dial).await,
        ];
        let mut events = Vec::new();
        for n in 0..12 {
            let new = calling_for(&format!("k{n}"), shared(n));
            events.push(accept_one(&nodes[n % 2], "a", at(0), new).await.event);
        }
        let racing = (0..240_usize).map(|n| {
            let (node, id) = (nodes[n % 2].clone(), events[n * 7 % 12]);
            async move {
                match n % 8 {
                    0 | 1 => work(&node, n).await,
                    2..=4 => decide(&node, id, n / 8).await,
                    5 => {
                        let new = NewEvent {
                            on_failed: OnFailed::Retry,
                            ..calling_for(&format!("k{}", n % 16), shared(n % 16))
                        };
                        accept_one(&node, "a", at(0), new).await;
                    }
                    6 => {
                        let claim = own(&(n % 5).to_string(), Some(id));
                        node.claim_own(claim).await.expect("the store claims");
                    }
                    _ => drop(reap_all(&node, at(0) + KEEP.payload).await),
                }
            }
        });
        all(racing).await;
        for id in events {
            let found = detail(&nodes[1], id).await;
            let effects = found.effects.iter();
            let states = effects.map(|effect| (effect.record.state, effect.record.skip));
            let hold = match found.event.review {
                Some(_) => Hold::Review,
                None => Hold::Free,
            };
            assert_eq!(found.event.status, EventStatus::of_effects(states, hold));
            let claimed = found.effects.iter().filter(|effect| {
                effect.record.state == EffectState::Claimed && &*effect.name != "mine"
            });
            assert_eq!(claimed.count(), 0, "whoever claimed has settled");
        }
        log(&nodes[0]).await;
    });
}

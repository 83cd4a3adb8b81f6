//! Effects in PostgreSQL with more than one node: who may send, whose clock counts, and nobody in each other's way.

use std::collections::BTreeSet;
use std::sync::Arc;

use hapax_ledger::effect::Repeat;
use hapax_ledger::event::EventStatus;
use hapax_ledger::outcome::{Lost, Outcome};
use hapax_ledger::status::Hold;
use hapax_ledger::time::{Span, Time};
use hapax_ledger::transition::Rejected;
use hapax_store::StoreErrorKind;
use hapax_store::conformance::sample::{
    Dial, KEEP, Subject, accept_one, all, at, detail, reap_all,
};
use hapax_store::conformance::worker::{
    LEASE, OK, SETTLED, START, advance, calling_for, claim_as, done, planned, rescue,
};
use hapax_store::nouns::{Born, Effect, Move, Moved, NewEffect};

use crate::database::{Database, with_database};
use crate::postgres::open_with;

fn keyed(name: &str, key: &str) -> NewEffect {
    planned(name, key, Repeat::Keyed)
}

async fn nodes(database: &Database) -> [Subject; 2] {
    [
        Arc::new(database.open().await),
        Arc::new(database.open().await),
    ]
}

async fn claim(store: &Subject, node: &str, lease: Span) -> Vec<Effect> {
    claim_as(store, node, 40, lease).await
}

/// C3: nodes that race hold no effect together, and between them get all.
#[test]
fn nodes_that_race_for_effects_never_share_one() {
    with_database(|database| async move {
        let nodes = nodes(&database).await;
        for n in 0..4 {
            let effects = (0..40)
                .map(|key| keyed("e", &format!("{n}.{key}")))
                .collect();
            accept_one(
                &nodes[0],
                "a",
                at(0),
                calling_for(&format!("k{n}"), effects),
            )
            .await;
        }
        let racing = (0..6).map(|n| {
            let node = nodes[n % 2].clone();
            async move { claim(&node, &n.to_string(), LEASE).await }
        });
        let mut claimed: Vec<Effect> = all(racing).await.into_iter().flatten().collect();
        claimed.extend(claim(&nodes[0], "last", LEASE).await);
        let ids: BTreeSet<_> = claimed.iter().map(|effect| effect.id).collect();
        assert_eq!((claimed.len(), ids.len()), (160, 160));
    });
}

/// C1, C2: who takes over after a lease ran out has a higher fence, and the node that was paused changes nothing.
#[test]
fn a_paused_node_is_fenced_off_by_the_one_that_took_over() {
    with_database(|database| async move {
        let dial = Dial::default();
        let paused = open_with(&database, &dial).await;
        let other = open_with(&database, &dial).await;
        let receipt =
            accept_one(&paused, "a", at(0), calling_for("k", vec![keyed("e", "1")])).await;
        let [before] = claim(&paused, "paused", LEASE)
            .await
            .try_into()
            .expect("one effect");
        done(&paused, &before, START).await;
        dial.set(at(30));
        assert_eq!(rescue(&other).await, 1);
        let [after] = claim(&other, "other", LEASE)
            .await
            .try_into()
            .expect("one effect");
        assert!(after.record.fence > before.record.fence);
        done(&other, &after, START).await;
        let refused = Moved::Refused(Rejected::StaleFence);
        assert_eq!(advance(&paused, &before, SETTLED).await, refused);
        assert_eq!(
            advance(&paused, &before, Move::Extend(LEASE)).await,
            refused
        );
        assert_eq!(
            detail(&other, receipt.event).await.event.status,
            EventStatus::InProgress
        );
        done(&other, &after, SETTLED).await;
        assert_eq!(
            detail(&paused, receipt.event).await.event.status,
            EventStatus::Completed
        );
        let read = paused
            .effect(after.id)
            .await
            .expect("the store reads")
            .expect("it is there");
        let [first, second] = read.attempts.try_into().expect("two attempts");
        let lost = Outcome::Lost {
            why: Lost::LostLease,
        };
        assert_eq!(
            (&*first.node, first.outcome, first.late),
            ("paused", lost, Some((at(30), OK)))
        );
        assert_eq!(
            (&*second.node, second.outcome, second.late),
            ("other", OK, None)
        );
    });
}

/// C3: without a clock from a test, leases end by the database's.
#[test]
fn leases_end_by_the_databases_clock() {
    with_database(|database| async move {
        let [store, _] = nodes(&database).await;
        let born = NewEffect {
            born: Some(Born {
                node: "here".into(),
                lease: Span::from_hours(1),
            }),
            ..keyed("born", "1")
        };
        let receipt = accept_one(
            &store,
            "a",
            at(0),
            calling_for("k", vec![born, keyed("e", "1")]),
        )
        .await;
        let [Some(born), None] = &receipt.claims[..] else {
            panic!("{:?}", receipt.claims)
        };
        let client = database.client().await;
        let clock = "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::int8";
        let now = client
            .query_one(clock, &[])
            .await
            .expect("the server answers")
            .get::<_, i64>(0);
        let left = born.effect.record.lease_until.since(Time::from_micros(now));
        assert!(
            left > Span::from_secs(3_500) && left <= Span::from_hours(1),
            "{left:?}"
        );
        assert_eq!(claim(&store, "short", Span::from_micros(1)).await.len(), 1);
        assert_eq!(rescue(&store).await, 1, "only the short lease is over");
    });
}

/// D6: of two nodes that plan the same effect at once, one has it.
#[test]
fn an_effect_that_many_call_for_at_once_is_born_once() {
    with_database(|database| async move {
        let nodes = nodes(&database).await;
        let racing = (0..60).map(|n| {
            let node = nodes[n % 2].clone();
            async move {
                let born = NewEffect {
                    born: Some(Born {
                        node: n.to_string().into(),
                        lease: LEASE,
                    }),
                    ..keyed("e", &(n % 5).to_string())
                };
                accept_one(&node, "a", at(0), calling_for(&n.to_string(), vec![born])).await
            }
        });
        let receipts = all(racing).await;
        let claims = receipts
            .iter()
            .filter(|receipt| receipt.claims[0].is_some())
            .count();
        assert_eq!(claims, 5);
        for receipt in receipts {
            assert_eq!(
                detail(&nodes[0], receipt.event).await.event.status,
                EventStatus::InProgress
            );
        }
    });
}

/// Claims and settles until nothing is due.
async fn work(node: &Subject, name: usize) {
    loop {
        let claimed = claim(node, &name.to_string(), LEASE).await;
        if claimed.is_empty() {
            return;
        }
        let moving = claimed.into_iter().map(|effect| {
            let node = node.clone();
            async move {
                done(&node, &effect, START).await;
                done(&node, &effect, SETTLED).await;
            }
        });
        all(moving).await;
    }
}

/// B2, B5, D6, D7: nodes that plan, claim, settle and reap effects which many events share neither deadlock nor leave an event
/// behind its effects.
#[test]
fn nodes_that_share_effects_do_not_get_in_each_others_way() {
    with_database(|database| async move {
        let dial = Dial::default();
        let nodes = [
            open_with(&database, &dial).await,
            open_with(&database, &dial).await,
        ];
        let end = at(0) + KEEP.identity;
        let racing = (0..120_usize).map(|n| {
            let node = nodes[n % 2].clone();
            async move {
                match n % 6 {
                    0 => work(&node, n).await,
                    1 => drop(reap_all(&node, end).await),
                    _ => {
                        // Half of them old enough to be reaped once they are settled, and all in each other's effects.
                        let moment = if n % 4 < 2 { at(0) } else { at(60) };
                        let effects =
                            (0..6).map(|e| keyed("e", &((n * 7 + e * 5) % 30).to_string()));
                        let new = calling_for(&format!("k{}", n % 50), effects.collect());
                        return Some(accept_one(&node, "a", moment, new).await.event);
                    }
                }
                None
            }
        });
        let events = all(racing).await;
        work(&nodes[0], 0).await;
        for id in events.into_iter().flatten() {
            let found = nodes[1].event(id).await.expect("the store reads");
            let Some(detail) = found else { continue };
            let states = detail
                .effects
                .iter()
                .map(|effect| (effect.record.state, effect.record.skip));
            assert_eq!(
                detail.event.status,
                EventStatus::of_effects(states, Hold::Free)
            );
            assert_eq!(
                (detail.event.status, detail.effects.len()),
                (EventStatus::Completed, 6)
            );
        }
        let client = database.client().await;
        reap_all(&nodes[0], at(60) + KEEP.identity).await;
        for table in [
            "event",
            "identity",
            "payload",
            "effect",
            "queue",
            "effect_link",
            "attempt",
        ] {
            let count = format!("SELECT count(*) FROM hapax.{table}");
            let left = client
                .query_one(&count, &[])
                .await
                .expect("the server answers")
                .get::<_, i64>(0);
            assert_eq!(left, 0, "{table}");
        }
    });
}

/// A3 for effects: a settlement whose commit did not wait for its standby is unknown, and asking again tells.
#[test]
fn a_settlement_whose_commit_is_unknown_is_not_called_done() {
    with_database(|database| async move {
        let [store, _] = nodes(&database).await;
        let new = keyed("e", "1");
        accept_one(&store, "a", at(0), calling_for("k", vec![new])).await;
        let [effect] = claim(&store, "node", LEASE)
            .await
            .try_into()
            .expect("one effect");
        done(&store, &effect, START).await;
        let client = database.client().await;
        let warn = "CREATE FUNCTION warn() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
                RAISE WARNING 'canceling wait for synchronous replication due to user request'; RETURN NULL; END $$;
            CREATE CONSTRAINT TRIGGER warn AFTER INSERT ON hapax.attempt DEFERRABLE INITIALLY DEFERRED
                FOR EACH ROW EXECUTE FUNCTION warn()";
        client.batch_execute(warn).await.expect("the server obeys");
        let unknown = store.advance(effect.id, effect.record.fence, SETTLED).await;
        assert_eq!(
            unknown.expect_err("unknown").kind(),
            StoreErrorKind::CommitUnknown
        );
        let again = advance(&store, &effect, SETTLED).await;
        assert_eq!(again, Moved::Refused(Rejected::AlreadyDone));
    });
}

/// D7: an event that calls for an effect which another node is settling right now starts out where that leaves it, and does not
/// wait for ever for what has happened.
#[test]
fn an_effect_that_is_being_settled_is_waited_for_before_it_is_linked() {
    with_database(|database| async move {
        let [store, _] = nodes(&database).await;
        let shared = || vec![keyed("e", "1")];
        accept_one(&store, "a", at(0), calling_for("first", shared())).await;
        let other = database.client().await;
        let settle = "BEGIN; UPDATE hapax.queue SET state = 2";
        other.batch_execute(settle).await.expect("the server obeys");
        let accepting = tokio::spawn({
            let store = store.clone();
            async move { accept_one(&store, "a", at(0), calling_for("second", shared())).await }
        });
        let watcher = database.client().await;
        let waits = "SELECT count(*) FROM pg_stat_activity
            WHERE datname = current_database() AND application_name = 'hapax' AND wait_event_type = 'Lock'";
        let waiting = async || {
            let row = watcher.query_one(waits, &[]).await;
            row.expect("the server answers").get::<_, i64>(0) > 0
        };
        while !accepting.is_finished() && !waiting().await {
            tokio::task::yield_now().await;
        }
        other
            .batch_execute("COMMIT")
            .await
            .expect("the server obeys");
        let receipt = accepting.await.expect("the event is accepted");
        assert_eq!(
            detail(&store, receipt.event).await.event.status,
            EventStatus::Completed
        );
    });
}

/// Nodes that take the same keys of events and of effects at once wait for each other, but never in a circle.
#[test]
fn nodes_that_call_for_the_same_effects_at_once_do_not_deadlock() {
    with_database(|database| async move {
        let nodes = nodes(&database).await;
        for round in 0..10_usize {
            let racing = (0..200_usize).map(|n| {
                let node = nodes[n % 2].clone();
                async move {
                    // Which effects an event calls for, and so where they stand in a group, differs with who brings it.
                    let effect = (n * 7 + n % 2) % 40;
                    let new = calling_for(
                        &format!("{round}.{}", n / 2 % 60),
                        vec![keyed("e", &format!("{round}.{effect}"))],
                    );
                    accept_one(&node, "a", at(0), new).await
                }
            });
            all(racing).await;
        }
    });
}

//! Order in PostgreSQL with more than one node: whoever moves effects that wait for each other at the same time leaves none of
//! them waiting for ever, and nobody in a circle.

use std::sync::Arc;
use std::time::Duration;

use hapax_ledger::effect::Repeat;
use hapax_ledger::event::EventStatus;
use hapax_ledger::retry::Next;
use hapax_ledger::time::Span;
use hapax_store::conformance::sample::{
    KEEP, Subject, accept_one, all, arrival, at, detail, reap_all,
};
use hapax_store::conformance::worker::{
    BROKEN, GIVEN_UP, LEASE, SETTLED, START, advance, advanced, calling_for, claim_as, ended,
    planned, serial,
};
use hapax_store::nouns::{Effect, EffectCounts, Move, Moved, NewEffect, NewEvent, OnFailed};

use crate::database::{Database, with_database};

/// Nothing here takes so long unless something waits for ever.
const TOO_LONG: Duration = Duration::from_secs(120);

async fn nodes(database: &Database) -> [Subject; 2] {
    [
        Arc::new(database.open().await),
        Arc::new(database.open().await),
    ]
}

/// Carries out one claimed effect as far as its order lets it; every `retries`th attempt is to be made again at once.
async fn carry_out(node: &Subject, effect: &Effect, end: Move) {
    match advance(node, effect, START).await {
        Moved::Done(_) => {
            let moved = advance(node, effect, end).await;
            assert!(matches!(moved, Moved::Done(_)), "{moved:?}");
        }
        Moved::Waits(_) | Moved::Stale(_) | Moved::Review(_) => {}
        other => panic!("a claim of ours can be started: {other:?}"),
    }
}

/// How the `n`th attempt ends: mostly well, now and then with another to come.
fn an_end(n: usize) -> Move {
    match n % 4 {
        0 => ended(BROKEN, Next::At(Span::ZERO)),
        _ => SETTLED,
    }
}

async fn counts(node: &Subject) -> EffectCounts {
    node.effect_counts().await.expect("the store counts")
}

/// Works until nothing is pending and nothing is held.
async fn work(node: Subject, name: usize) {
    let mut n = name;
    loop {
        let claimed = claim_as(&node, &name.to_string(), 20, LEASE).await;
        let moving = claimed.into_iter().map(|effect| {
            n += 1;
            let (node, end) = (node.clone(), an_end(n));
            async move { carry_out(&node, &effect, end).await }
        });
        all(moving).await;
        let left = counts(&node).await;
        if (left.pending, left.claimed) == (0, 0) {
            return;
        }
    }
}

/// Has four workers on two nodes do all there is to do.
async fn work_to_the_end(nodes: &[Subject; 2]) {
    let working = all((0..4).map(|n| work(nodes[n % 2].clone(), n)));
    let done = tokio::time::timeout(TOO_LONG, working).await;
    if done.is_err() {
        panic!("something waits for ever: {:?}", counts(&nodes[0]).await);
    }
}

fn ordered(name: &str, key: &str, entity: &str, lane: &str) -> NewEffect {
    NewEffect {
        lane: lane.into(),
        order: Some(serial(entity)),
        ..planned(name, key, Repeat::Keyed)
    }
}

/// F1, F3: attempts of one entity never overlap and follow the order of acceptance, whichever nodes accept and work.
#[test]
fn attempts_of_one_entity_never_overlap() {
    with_database(|database| async move {
        let nodes = nodes(&database).await;
        let accepting = (0..60).map(|n| {
            let node = nodes[n % 2].clone();
            let (entity, lane) = (format!("x{}", n % 7), format!("l{}", n % 3));
            let new = vec![
                ordered("e", &n.to_string(), &entity, &lane),
                ordered("f", &n.to_string(), &entity, "f"),
            ];
            async move { accept_one(&node, "a", at(0), calling_for(&n.to_string(), new)).await }
        });
        let working = (0..4).map(|n| {
            let node = nodes[n % 2].clone();
            async move {
                let claimed = claim_as(&node, "early", 5, LEASE).await;
                for effect in claimed {
                    carry_out(&node, &effect, an_end(n)).await;
                }
            }
        });
        let (receipts, _) = tokio::join!(all(accepting), all(working));
        work_to_the_end(&nodes).await;
        for receipt in receipts {
            let status = detail(&nodes[0], receipt.event).await.event.status;
            assert_eq!(status, EventStatus::Completed);
        }
        let overlaps = "SELECT count(*), (SELECT count(DISTINCT effect) FROM hapax.attempt)
            FROM hapax.queue q JOIN hapax.attempt a ON a.effect = q.effect
            JOIN hapax.queue p ON p.chain = q.chain AND p.turn > q.turn JOIN hapax.attempt b ON b.effect = p.effect
            WHERE b.started_at < a.ended_at";
        let client = database.client().await;
        let row = client.query_one(overlaps, &[]).await;
        let row = row.expect("the server answers");
        assert_eq!((row.get::<_, i64>(0), row.get::<_, i64>(1)), (0, 120));
    });
}

/// D7: an effect that comes after others is claimable once the last of them is done, whichever nodes do them and at whatever
/// moment, also where events share them and where chains make them wait as well.
#[test]
fn what_comes_after_others_is_not_forgotten() {
    with_database(|database| async move {
        let nodes = nodes(&database).await;
        let accepting = (0..50).map(|n: usize| {
            let node = nodes[n % 2].clone();
            async move {
                let shared = |name: &str, of: usize| planned(name, &of.to_string(), Repeat::Keyed);
                let mut last = ordered("last", &n.to_string(), &(n % 4).to_string(), "last");
                last.after = vec![0, 1, 2];
                let mut middle = shared("middle", n);
                middle.after = vec![0];
                let effects = vec![shared("a", n % 20), shared("b", n % 15), middle, last];
                accept_one(&node, "a", at(0), calling_for(&n.to_string(), effects)).await
            }
        });
        let (receipts, ()) = tokio::join!(all(accepting), work(nodes[1].clone(), 9));
        work_to_the_end(&nodes).await;
        for receipt in receipts {
            let detail = detail(&nodes[0], receipt.event).await;
            assert_eq!(detail.event.status, EventStatus::Completed);
            assert_eq!(detail.effects.len(), 4);
        }
    });
}

/// An event whose repeat brings back what was given up: two effects of one entity, and one that comes after both.
fn stubborn(n: usize) -> NewEvent {
    let entity = (n % 3).to_string();
    let mut after = planned("after", &n.to_string(), Repeat::Keyed);
    after.after = vec![0, 1];
    let effects = vec![
        ordered("e", &n.to_string(), &entity, "e"),
        planned("shared", &(n % 5).to_string(), Repeat::Keyed),
        after,
    ];
    NewEvent {
        on_failed: OnFailed::Retry,
        ..calling_for(&n.to_string(), effects)
    }
}

/// B2, D7, F1: repeats that bring back what others are giving up at the same time lose nothing and nobody.
#[test]
fn repeats_that_revive_what_others_move_lose_nothing() {
    with_database(|database| async move {
        let nodes = nodes(&database).await;
        let busy = (0..80_usize).map(|n| {
            let node = nodes[n % 2].clone();
            async move {
                if n % 4 == 0 {
                    for effect in claim_as(&node, &n.to_string(), 3, LEASE).await {
                        carry_out(&node, &effect, GIVEN_UP).await;
                    }
                } else {
                    accept_one(&node, "a", at(0), stubborn(n % 12)).await;
                }
            }
        });
        all(busy).await;
        // Whatever is still given up comes back with one more repeat of each.
        for n in 0..12 {
            accept_one(&nodes[0], "a", at(0), stubborn(n)).await;
        }
        assert_eq!(counts(&nodes[0]).await.dead, 0);
        // A revived one that finds a later one of its entity already sent asks for a person; all else gets done.
        let working = all((0..4).map(|n| {
            let node = nodes[n % 2].clone();
            async move { while !claim_and_settle(&node).await.is_empty() {} }
        }));
        working.await;
        let client = database.client().await;
        let stuck = "SELECT count(*) FROM hapax.queue q WHERE state = 0 AND gate = 1 AND chain IS NOT NULL
            AND NOT EXISTS (SELECT FROM hapax.queue p WHERE p.chain = q.chain AND p.turn < q.turn AND p.state IN (0, 1, 3))";
        let row = client.query_one(stuck, &[]).await;
        let stuck = row.expect("the server answers").get::<_, i64>(0);
        assert_eq!(stuck, 0, "first in its chain, and waiting");
        let left = counts(&nodes[0]).await;
        assert_eq!((left.claimed, left.dead), (0, 0));
    });
}

async fn claim_and_settle(node: &Subject) -> Vec<Effect> {
    let claimed = claim_as(node, "node", 20, LEASE).await;
    for effect in &claimed {
        carry_out(node, effect, SETTLED).await;
    }
    claimed
}

/// Reaping an entity's last effect forgets the entity, and not before.
#[test]
fn a_chain_goes_with_the_last_of_its_effects() {
    with_database(|database| async move {
        let [store, _] = nodes(&database).await;
        for (n, seconds) in [(0, 0), (1, 0), (2, 60)] {
            let new = vec![ordered("e", &n.to_string(), "x", "e")];
            accept_one(&store, "a", at(seconds), calling_for(&n.to_string(), new)).await;
        }
        while !claim_and_settle(&store).await.is_empty() {}
        let client = database.client().await;
        let left = async || {
            let left = "SELECT (SELECT count(*) FROM hapax.effect), (SELECT sum(effects) FROM hapax.chain)";
            let row = client.query_one(left, &[]).await;
            let row = row.expect("the server answers");
            (row.get::<_, i64>(0), row.get::<_, Option<i64>>(1))
        };
        assert_eq!(left().await, (3, Some(3)));
        let keep = KEEP.identity;
        reap_all(&store, at(0) + keep).await;
        assert_eq!(left().await, (1, Some(1)));
        reap_all(&store, at(60) + keep).await;
        assert_eq!(left().await, (0, None));
    });
}

/// Waits until somebody in this database waits for a lock, unless the task has ended by then.
async fn is_blocked(database: &Database, task: &tokio::task::JoinHandle<()>) {
    let watcher = database.client().await;
    let waits = "SELECT count(*) FROM pg_stat_activity
        WHERE datname = current_database() AND application_name = 'hapax' AND wait_event_type = 'Lock'";
    loop {
        let row = watcher.query_one(waits, &[]).await;
        let waiting = row.expect("the server answers").get::<_, i64>(0) > 0;
        if waiting || task.is_finished() {
            return;
        }
        tokio::task::yield_now().await;
    }
}

/// D7: whoever settles what an effect waited for does not wait for its holder, and its holder opens the gate instead.
#[test]
fn a_gate_that_somebody_holds_is_opened_by_its_holder() {
    with_database(|database| async move {
        let [store, other] = nodes(&database).await;
        accept_one(&store, "a", at(0), calling_for("old", Vec::new())).await;
        let mut second = planned("second", "1", Repeat::Keyed);
        second.after = vec![0];
        let effects = vec![planned("first", "1", Repeat::Keyed), second.clone()];
        accept_one(&store, "a", at(1), calling_for("both", effects)).await;
        let [first] = claim_as(&store, "node", 9, LEASE)
            .await
            .try_into()
            .expect("one");
        assert!(matches!(
            advance(&store, &first, START).await,
            Moved::Done(_)
        ));
        // Somebody holds the first event, so that an arrival stops that extends it and has linked the second effect.
        let holder = database.client().await;
        let hold = "BEGIN; SELECT FROM hapax.event WHERE key = 'old' FOR UPDATE";
        holder.batch_execute(hold).await.expect("the server obeys");
        second.after = Vec::new();
        let late = at(0) + KEEP.identity - Span::from_secs(1);
        let events = vec![
            calling_for("links", vec![second]),
            calling_for("old", Vec::new()),
        ];
        let linking = tokio::spawn({
            let store = store.clone();
            async move {
                let linked = store.accept(arrival("a", late, events)).await;
                linked.expect("the store accepts");
            }
        });
        is_blocked(&database, &linking).await;
        let settled = advanced(&other, &first, SETTLED).await;
        assert!(matches!(settled.moved, Moved::Done(_)));
        assert!(settled.opened.is_empty(), "the gate is not ours to open");
        let free = holder.batch_execute("COMMIT").await;
        free.expect("the server obeys");
        linking.await.expect("the arrival is stored");
        let [second] = claim_as(&store, "node", 9, LEASE)
            .await
            .try_into()
            .expect("open");
        assert_eq!(&*second.name, "second");
    });
}

/// F1: an effect that is added to its chain while the one before it ends is not left waiting for what has happened.
#[test]
fn what_joins_a_chain_while_the_last_one_ends_gets_its_turn() {
    with_database(|database| async move {
        let [store, other] = nodes(&database).await;
        accept_one(&store, "a", at(0), calling_for("old", Vec::new())).await;
        let one = vec![ordered("e", "1", "x", "lane")];
        accept_one(&store, "a", at(1), calling_for("one", one)).await;
        let [first] = claim_as(&store, "node", 9, LEASE)
            .await
            .try_into()
            .expect("one");
        assert!(matches!(
            advance(&store, &first, START).await,
            Moved::Done(_)
        ));
        // Somebody holds an event that the arrival extends, so that it stops when it has joined the chain.
        let holder = database.client().await;
        let hold = "BEGIN; SELECT FROM hapax.event WHERE key = 'old' FOR UPDATE";
        holder.batch_execute(hold).await.expect("the server obeys");
        let late = at(0) + KEEP.identity - Span::from_secs(1);
        let events = vec![
            calling_for("two", vec![ordered("e", "2", "x", "lane")]),
            calling_for("old", Vec::new()),
        ];
        let joining = tokio::spawn({
            let store = store.clone();
            async move {
                let joined = store.accept(arrival("a", late, events)).await;
                joined.expect("the store accepts");
            }
        });
        is_blocked(&database, &joining).await;
        let settling = tokio::spawn(async move {
            let moved = advance(&other, &first, SETTLED).await;
            assert!(matches!(moved, Moved::Done(_)), "{moved:?}");
        });
        let both = "SELECT count(*) > 1 FROM pg_stat_activity
            WHERE datname = current_database() AND application_name = 'hapax' AND wait_event_type = 'Lock'";
        let watcher = database.client().await;
        while !settling.is_finished() {
            let row = watcher.query_one(both, &[]).await;
            if row.expect("the server answers").get(0) {
                break;
            }
        }
        let free = holder.batch_execute("COMMIT").await;
        free.expect("the server obeys");
        joining.await.expect("the arrival is stored");
        settling.await.expect("the effect is settled");
        let [second] = claim_as(&store, "node", 9, LEASE)
            .await
            .try_into()
            .expect("open");
        assert_eq!(second.key, "2");
    });
}

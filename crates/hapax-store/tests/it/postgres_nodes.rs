//! Nodes sharing out shards in PostgreSQL, and telling each other that there is something to do.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use hapax_ledger::time::Span;
use hapax_store::conformance::sample::{Dial, Subject, all, at};
use hapax_store::nouns::{Beat, Beaten, Stay, lane_shard};
use hapax_store::postgres::SHARDS;
use tokio::time::timeout;

use crate::database::{Database, with_database};
use crate::postgres::open_with;

/// How long a node is believed.
const LEASE: Span = Span::from_secs(10);
/// Nothing here takes so long unless it is broken.
const TOO_LONG: Duration = Duration::from_secs(30);

async fn beat_as(store: &Subject, node: &str, stay: Stay, let_go: Vec<u16>) -> Beaten {
    let beat = Beat {
        node: node.into(),
        lease: LEASE,
        let_go,
        stay,
    };
    store.beat(beat).await.expect("the store hears the beat")
}

async fn beat_letting_go(store: &Subject, node: &str, let_go: Vec<u16>) -> Beaten {
    beat_as(store, node, Stay::Stays, let_go).await
}

async fn beat(store: &Subject, node: &str) -> Beaten {
    beat_letting_go(store, node, Vec::new()).await
}

/// G6: a shard has one holder at a time, also if nodes come at once; and between them they hold all.
#[test]
fn nodes_that_come_at_once_share_no_shard() {
    with_database(|database| async move {
        let dial = Dial::default();
        let stores = [
            open_with(&database, &dial).await,
            open_with(&database, &dial).await,
        ];
        let racing = (0..5).map(|n| {
            let store = stores[n % 2].clone();
            async move { beat(&store, &n.to_string()).await.held }
        });
        let held = all(racing).await;
        let distinct: BTreeSet<u16> = held.iter().flatten().copied().collect();
        let given: usize = held.iter().map(Vec::len).sum();
        assert_eq!(given, distinct.len(), "{held:?}");
        assert_eq!(
            given,
            usize::from(SHARDS),
            "the first to come takes what it is given"
        );
    });
}

/// A node over its share is told so by the number of nodes, lets go, and the next one gets it: once around, all is even.
#[test]
fn shards_are_evened_out_as_nodes_come_and_go() {
    with_database(|database| async move {
        let dial = Dial::default();
        let store = open_with(&database, &dial).await;
        let first = beat(&store, "first").await;
        assert_eq!((first.nodes, first.held.len()), (1, 64));
        let second = beat(&store, "second").await;
        assert_eq!((second.nodes, second.held.len()), (2, 0));
        let first = beat_letting_go(&store, "first", first.held[32..].to_vec()).await;
        assert_eq!((first.nodes, first.held.len()), (2, 32));
        let second = beat(&store, "second").await;
        assert_eq!(second.held, (32..64).collect::<Vec<u16>>());
        // Who is not heard of any more loses all of it at the end of its lease, and not before.
        dial.set(at(0) + LEASE - Span::from_micros(1));
        assert_eq!(beat(&store, "first").await.held.len(), 32);
        dial.set(at(0) + LEASE);
        let first = beat(&store, "first").await;
        assert_eq!((first.nodes, first.held.len()), (1, 64));
        // Who says that it leaves is gone at once.
        store.leave("first").await.expect("the store lets it go");
        let third = beat(&store, "third").await;
        assert_eq!((third.nodes, third.held.len()), (1, 64));
    });
}

/// A node that stops hands its shards over one by one, and keeps those of which it still has something under way.
#[test]
fn a_node_that_leaves_gives_its_shards_away_as_they_become_idle() {
    with_database(|database| async move {
        let dial = Dial::default();
        let store = open_with(&database, &dial).await;
        let all: Vec<u16> = (0..SHARDS).collect();
        assert_eq!(beat(&store, "old").await.held, all);
        assert!(beat(&store, "new").await.held.is_empty());
        let old = beat_as(&store, "old", Stay::Leaves, all[1..].to_vec()).await;
        assert_eq!(old.held, [0]);
        let new = beat(&store, "new").await;
        assert_eq!((new.nodes, new.held), (1, all[1..].to_vec()));
        // What it keeps stays its own, beat by beat.
        dial.set(at(0) + LEASE - Span::from_micros(1));
        assert_eq!(beat_as(&store, "old", Stay::Leaves, vec![]).await.held, [0]);
        assert_eq!(beat(&store, "new").await.held, all[1..]);
        dial.set(at(0) + LEASE);
        assert_eq!(beat(&store, "new").await.held, all[1..]);
        assert!(
            beat_as(&store, "old", Stay::Leaves, vec![0])
                .await
                .held
                .is_empty()
        );
        assert_eq!(beat(&store, "new").await.held, all);
    });
}

async fn nodes(database: &Database) -> [Subject; 2] {
    [
        Arc::new(database.open().await),
        Arc::new(database.open().await),
    ]
}

/// Tells until the other has heard: hints may get lost, the first ones before anybody listens.
async fn told(teller: &Subject, listener: &Subject, lane: &str) -> Vec<u16> {
    let listening = listener.woken();
    let telling = async {
        let mut every = tokio::time::interval(Duration::from_millis(20));
        loop {
            every.tick().await;
            teller.wake(vec![lane.into()]).await;
        }
    };
    let heard = async {
        tokio::select! {
            heard = listening => heard,
            () = telling => Vec::new(),
        }
    };
    timeout(TOO_LONG, heard).await.expect("the hint is heard")
}

/// A hint names the shards of its lanes, and wakes others only.
#[test]
fn nodes_wake_each_other_and_not_themselves() {
    with_database(|database| async move {
        let [one, other] = nodes(&database).await;
        assert_eq!(told(&one, &other, "a").await, [lane_shard("a", SHARDS)]);
        assert_eq!(told(&other, &one, "b").await, [lane_shard("b", SHARDS)]);
        // Both listen now, and what one says last is heard by the other after all that was said before.
        let own = one.woken();
        one.wake(vec!["c".into()]).await;
        let heard = async {
            let mut heard = Vec::new();
            while !heard.contains(&lane_shard("c", SHARDS)) {
                heard = other.woken().await;
            }
        };
        tokio::select! {
            heard = timeout(TOO_LONG, heard) => heard.expect("the hint is heard"),
            heard = own => panic!("a node has woken itself: {heard:?}"),
        }
    });
}

/// A lost session is opened again, and whoever missed something looks everywhere once.
#[test]
fn listening_goes_on_after_its_session_was_lost() {
    with_database(|database| async move {
        let [one, other] = nodes(&database).await;
        told(&one, &other, "a").await;
        let end = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
            WHERE datname = $1 AND application_name = 'hapax' AND query LIKE 'LISTEN%'";
        let server = database.server_client().await;
        let ended = server.query(end, &[&database.name()]).await;
        assert_eq!(ended.expect("the server obeys").len(), 1);
        let everywhere: Vec<u16> = (0..SHARDS).collect();
        let mut heard = Vec::new();
        while heard != everywhere {
            heard = timeout(TOO_LONG, other.woken()).await.expect("it looks");
        }
        assert_eq!(told(&one, &other, "b").await, [lane_shard("b", SHARDS)]);
        one.close().await;
        other.close().await;
    });
}

//! Following the ledger, with ids that do not come in their order.

use std::sync::Arc;

use hapax::operate::follow::Follower;
use hapax_ledger::id::EventId;
use hapax_store::StoreError;
use hapax_store::conformance::database::with_database;
use hapax_store::conformance::sample::{Subject, accept, at};
use hapax_store::nouns::Event;

async fn take(store: &Subject, seconds: i64, key: &str) -> EventId {
    accept(store, at(seconds), key, key).await.event
}

fn ids(found: Result<Vec<Event>, StoreError>) -> Vec<EventId> {
    let found = found.expect("the store answers");
    found.iter().map(|event| event.id).collect()
}

/// An id carries the time at which its request came. A commit that took long is seen after later ones, and still told, once.
#[test]
fn what_becomes_visible_late_is_told_once() {
    with_database(|database| async move {
        let store: Subject = Arc::new(database.open().await);
        take(&store, -3_600, "old").await;
        let mut follower = Follower::from_now(store.clone()).await.expect("a follower");
        let second = take(&store, 9, "second").await;
        assert_eq!(ids(follower.look().await), [second]);
        let first = take(&store, 4, "first").await;
        assert_eq!(ids(follower.look().await), []);
        assert_eq!(ids(follower.look_back().await), [first]);
        assert_eq!(ids(follower.look_back().await), []);

        // Whoever begins between the two is told of what comes late, too.
        let mut newcomer = Follower::from_now(store.clone()).await.expect("a follower");
        let between = take(&store, 7, "between").await;
        let last = take(&store, 60, "last").await;
        assert_eq!(ids(newcomer.look_back().await), [between, last]);
        assert_eq!(ids(follower.look_back().await), [between, last]);

        // Far behind the window it is not live any more; the list has it.
        take(&store, 8, "late").await;
        assert_eq!(ids(follower.look_back().await), []);
        let mut again = Follower::after(store.clone(), between);
        assert_eq!(ids(again.look().await).last(), Some(&last));
    });
}

/// More than a page, from an empty ledger on.
#[test]
fn many_are_told_in_their_order() {
    with_database(|database| async move {
        let store: Subject = Arc::new(database.open().await);
        let mut follower = Follower::from_now(store.clone()).await.expect("a follower");
        let mut all = Vec::new();
        for n in 0..600 {
            all.push(take(&store, n, &n.to_string()).await);
        }
        assert_eq!(ids(follower.look_back().await), all);
        assert_eq!(ids(follower.look_back().await), []);
    });
}

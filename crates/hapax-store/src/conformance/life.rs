//! A store's own life: ready, known by its first token, counted.

use super::sample::{Subject, accept, at};

/// Promise 6: readiness is a commit.
pub async fn a_commit_goes_through(store: Subject) {
    store.ready().await.expect("the store is ready");
    store.ready().await.expect("the store is still ready");
}

/// J2: the hash that came first is the one that holds.
pub async fn the_first_admin_token_holds(store: Subject) {
    assert_eq!(
        store
            .keep_admin_token([1; 32])
            .await
            .expect("the store keeps it"),
        [1; 32]
    );
    assert_eq!(
        store
            .keep_admin_token([2; 32])
            .await
            .expect("the store answers"),
        [1; 32]
    );
}

/// B1: the cross-check finds nothing, and counts are not estimates.
pub async fn counts_are_exact_and_no_key_is_held_twice(store: Subject) {
    for n in 0..5 {
        accept(&store, at(n), &format!("k{}", n % 3), "A").await;
    }
    let stats = store.stats().await.expect("the store counts");
    assert_eq!((stats.events, stats.keys_twice), (3, 0));
}

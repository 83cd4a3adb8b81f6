//! Deleting what has expired.

use hapax_ledger::time::Span;

use super::sample::{
    KEEP, Subject, accept, accept_one, all, at, detail, event, reap_counted as reap_all, review,
};
use crate::nouns::{PayloadAnswer, Reaped, Receipted};

/// I1: first the bytes, with the event still there and its key still held; then all of it.
pub async fn bytes_go_first_and_the_identity_last(store: Subject) {
    let first = accept(&store, at(0), "k", "A").await.event;
    accept(&store, at(1), "k", "B").await;
    let early = at(0) + KEEP.payload - Span::from_micros(1);
    assert_eq!(reap_all(&store, early).await, Reaped::default());
    let bytes_due = at(0) + KEEP.payload;
    assert_eq!(
        reap_all(&store, bytes_due).await,
        Reaped {
            payloads: 1,
            ledgers: 0,
            identities: 0,
            keys: 0,
            more: false
        }
    );
    assert_eq!(
        store.payload(first).await.expect("the store reads"),
        PayloadAnswer::Reaped
    );
    assert_eq!(detail(&store, first).await.deliveries.len(), 2);
    assert_eq!(reap_all(&store, bytes_due).await, Reaped::default());
    let all_due = at(0) + KEEP.identity;
    assert_eq!(
        reap_all(&store, all_due - Span::from_micros(1)).await,
        Reaped::default()
    );
    assert_eq!(
        reap_all(&store, all_due).await,
        Reaped {
            payloads: 0,
            ledgers: 0,
            identities: 1,
            keys: 0,
            more: false
        }
    );
    assert_eq!(store.event(first).await.expect("the store reads"), None);
    assert_eq!(
        store.payload(first).await.expect("the store reads"),
        PayloadAnswer::NoEvent
    );
    assert_eq!(store.stats().await.expect("the store counts").events, 0);
}

/// I1: nothing non-terminal is reaped, neither its bytes nor itself.
pub async fn what_waits_for_a_person_is_never_reaped(store: Subject) {
    let mut new = event("a", "k", "A");
    new.review = Some(review());
    let waiting = accept_one(&store, "a", at(0), new).await.event;
    accept(&store, at(0), "k2", "A").await;
    let much_later = at(0) + KEEP.identity + Span::from_days(5_000);
    assert_eq!(
        reap_all(&store, much_later).await,
        Reaped {
            payloads: 1,
            ledgers: 0,
            identities: 1,
            keys: 0,
            more: false
        }
    );
    assert!(matches!(
        store.payload(waiting).await.expect("the store reads"),
        PayloadAnswer::Kept(_)
    ));
    assert_eq!(
        store
            .sighted("a", "k", much_later)
            .await
            .expect("the store reads"),
        Some(waiting)
    );
}

/// Small steps come to an end, and the end is that all is gone that should be and nothing else.
pub async fn steps_say_more_until_all_is_gone(store: Subject) {
    let many = 1_300;
    let racing = (0..many).map(|n| {
        let store = store.clone();
        async move {
            let mut new = event("a", &format!("k{n}"), "A");
            // Every fifth stays for another day.
            new.keep.identity = if n % 5 == 0 {
                Span::from_days(91)
            } else {
                KEEP.identity
            };
            accept_one(&store, "a", at(0), new).await
        }
    });
    all(racing).await;
    let due = at(0) + KEEP.identity;
    let reaped = reap_all(&store, due).await;
    assert_eq!(
        reaped,
        Reaped {
            payloads: many,
            ledgers: many / 5,
            identities: many - many / 5,
            keys: 0,
            more: false
        }
    );
    assert_eq!(
        store.stats().await.expect("the store counts").events,
        u64::from(many / 5)
    );
    assert_eq!(reap_all(&store, due).await, Reaped::default());
}

/// B1, I1: reaping an old event frees its key only if it still holds it.
pub async fn a_reaped_key_is_free_and_a_taken_one_is_not(store: Subject) {
    let free = accept(&store, at(0), "free", "A").await.event;
    let old = accept(&store, at(0), "taken", "A").await.event;
    let due = at(0) + KEEP.identity;
    let new = accept(&store, due, "taken", "A").await.event;
    assert_eq!(reap_all(&store, due).await.identities, 2);
    for gone in [free, old] {
        assert_eq!(store.event(gone).await.expect("the store reads"), None);
    }
    assert_eq!(
        store
            .sighted("a", "taken", due)
            .await
            .expect("the store reads"),
        Some(new)
    );
    let again = accept(&store, due, "taken", "A").await;
    assert_eq!((again.event, again.sighting), (new, Receipted::Duplicate));
    // Also by a clock that jumped back to when the old one held it.
    assert_eq!(
        accept(&store, at(1), "free", "A").await.sighting,
        Receipted::New
    );
}

/// B5: the identity outlives the payload.
pub async fn a_duplicate_is_known_after_its_bytes_are_gone(store: Subject) {
    let first = accept(&store, at(0), "k", "A").await;
    let later = at(0) + KEEP.payload + Span::from_days(1);
    assert_eq!(reap_all(&store, later).await.payloads, 1);
    assert_eq!(
        accept(&store, later, "k", "A").await.sighting,
        Receipted::Duplicate
    );
    assert_eq!(
        accept(&store, later, "k", "B").await.sighting,
        Receipted::Conflict
    );
    let detail = detail(&store, first.event).await;
    assert_eq!(
        (detail.event.duplicate_count, detail.event.conflict_count),
        (2, 1)
    );
    // A late conflict does not bring bytes back.
    assert_eq!(
        store.payload(first.event).await.expect("the store reads"),
        PayloadAnswer::Reaped
    );
}

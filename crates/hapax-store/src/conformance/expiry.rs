//! How long a key is held.

use hapax_ledger::time::{Span, Time};

use super::sample::{KEEP, Subject, accept, accept_one, at, detail, event, review};
use crate::nouns::Receipted;

fn end() -> Time {
    at(0) + KEEP.identity
}

fn just_before(time: Time) -> Time {
    time - Span::from_micros(1)
}

/// B5, I2: expired means expired at once.
pub async fn a_key_is_held_until_its_window_ends_and_not_a_moment_longer(store: Subject) {
    let first = accept(&store, at(0), "k", "A").await;
    assert_eq!(
        store
            .sighted("a", "k", just_before(end()))
            .await
            .expect("the store reads"),
        Some(first.event)
    );
    assert_eq!(
        store
            .sighted("a", "k", end())
            .await
            .expect("the store reads"),
        None
    );
}

/// B5, I2: nothing depends on the reaper having been there.
pub async fn an_expired_key_is_taken_again_before_anything_is_reaped(store: Subject) {
    let first = accept(&store, at(0), "k", "A").await;
    let second = accept(&store, end(), "k", "B").await;
    assert_eq!(second.sighting, Receipted::New);
    assert_ne!(second.event, first.event);
    assert_eq!(
        store
            .sighted("a", "k", end())
            .await
            .expect("the store reads"),
        Some(second.event)
    );
    // The new holder holds, by its own body and its own window.
    let third = accept(&store, end() + Span::from_days(1), "k", "B").await;
    assert_eq!(
        (third.event, third.sighting),
        (second.event, Receipted::Duplicate)
    );
    // The old one is still there to be read.
    assert_eq!(detail(&store, first.event).await.event.duplicate_count, 0);
    let stats = store.stats().await.expect("the store counts");
    assert_eq!((stats.events, stats.keys_twice), (2, 0));
}

/// B5: a key outlives the sender's retries, counted from the last sighting.
pub async fn a_late_sighting_keeps_the_key_through_the_retries_that_follow(store: Subject) {
    let first = accept(&store, at(0), "k", "A").await;
    let late = end() - Span::from_days(1);
    assert_eq!(
        accept(&store, late, "k", "A").await.sighting,
        Receipted::Duplicate
    );
    let new_end = late + KEEP.retry_window;
    assert_eq!(
        detail(&store, first.event).await.event.identity_expires_at,
        new_end
    );
    // A conflict is a sighting too.
    let later = just_before(new_end);
    assert_eq!(
        accept(&store, later, "k", "B").await.sighting,
        Receipted::Conflict
    );
    assert_eq!(
        detail(&store, first.event).await.event.identity_expires_at,
        later + KEEP.retry_window
    );
    assert_eq!(
        accept(&store, later + KEEP.retry_window, "k", "A")
            .await
            .sighting,
        Receipted::New
    );
}

/// I2: whatever the clock says later, an end that was promised stands.
pub async fn a_clock_that_jumps_back_brings_no_end_nearer(store: Subject) {
    let first = accept(&store, at(0), "k", "A").await;
    accept(&store, end() - Span::from_days(1), "k", "A").await;
    let promised = detail(&store, first.event).await.event.identity_expires_at;
    assert_eq!(
        accept(&store, at(-1_000_000), "k", "A").await.sighting,
        Receipted::Duplicate
    );
    assert_eq!(
        detail(&store, first.event).await.event.identity_expires_at,
        promised
    );
}

/// I1: nothing that is not settled lets go of its key.
pub async fn what_waits_for_a_person_never_expires(store: Subject) {
    let mut new = event("a", "k", "A");
    new.review = Some(review());
    let first = accept_one(&store, "a", at(0), new).await;
    let much_later = end() + Span::from_days(5_000);
    assert_eq!(
        store
            .sighted("a", "k", much_later)
            .await
            .expect("the store reads"),
        Some(first.event)
    );
    let again = accept(&store, much_later, "k", "A").await;
    assert_eq!(
        (again.event, again.sighting),
        (first.event, Receipted::Duplicate)
    );
}

/// B5: once a person has decided, the key must still outlive the retries that came meanwhile.
pub async fn what_waits_for_a_person_still_moves_its_end(store: Subject) {
    let mut new = event("a", "k", "A");
    new.review = Some(review());
    let first = accept_one(&store, "a", at(0), new).await;
    let late = end() + Span::from_days(10);
    accept(&store, late, "k", "A").await;
    assert_eq!(
        detail(&store, first.event).await.event.identity_expires_at,
        late + KEEP.retry_window
    );
}

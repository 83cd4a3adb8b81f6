//! Identities: the tombstones by which an event is known again, and how long they stand.

use crate::event::{EventStatus, words};
use crate::id::EventId;
use crate::key::BodyHash;
use crate::time::{Span, Time};

/// What is remembered of an event, longer than its payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The event that holds the key.
    pub event: EventId,
    /// What later bodies under the key are compared with.
    pub compare_hash: BodyHash,
    /// When the key was first seen.
    pub first_seen: Time,
    /// When it was last seen.
    pub last_seen: Time,
    /// From here on the key is free.
    pub expires_at: Time,
}

/// How long a source's identities stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Windows {
    /// From the first sighting (`retain.identity`).
    pub identity: Span,
    /// From the last sighting: as long as the provider may try again (`retry_window`).
    pub retry: Span,
}

/// The identity would be forgotten while the provider may still try again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the identity window ({identity}) is shorter than the retry window ({retry}): raise `retain.identity`"
)]
pub struct WindowTooShort {
    identity: Span,
    retry: Span,
}

/// Refuses windows that break promise 2: one event per key for at least the provider's whole retry window (B5).
pub fn check_windows(identity: Span, retry: Span) -> Result<Windows, WindowTooShort> {
    if identity < retry {
        return Err(WindowTooShort { identity, retry });
    }
    Ok(Windows { identity, retry })
}

/// When an identity ends: both its window since the first sighting and the retry window since the last are over (B5).
pub fn expiry(first_seen: Time, last_seen: Time, window: Span, retry_window: Span) -> Time {
    (first_seen + window).max(last_seen + retry_window)
}

/// When an effect key's tombstone may go: after the last of the identities linked to it (B5).
pub fn effect_key_expiry(linked: impl IntoIterator<Item = Time>) -> Option<Time> {
    linked.into_iter().max()
}

/// What the key of an arriving request means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sighting {
    /// Never seen: a new event.
    New,
    /// Known.
    Duplicate {
        /// The body differs: kept and shown, never an effect (B3).
        conflict: bool,
    },
    /// Known, but run out: a new event may take the key, whether or not the reaper has been here (I2).
    Expired,
}

/// Is a request new, given what is known under its key?
pub fn decide(existing: Option<&Identity>, compare_hash: BodyHash, now: Time) -> Sighting {
    match existing {
        None => Sighting::New,
        Some(identity) if now >= identity.expires_at => Sighting::Expired,
        Some(identity) => Sighting::Duplicate {
            conflict: identity.compare_hash != compare_hash,
        },
    }
}

impl Identity {
    /// A key's first sighting.
    pub fn first(event: EventId, compare_hash: BodyHash, now: Time, windows: Windows) -> Identity {
        Identity {
            event,
            compare_hash,
            first_seen: now,
            last_seen: now,
            expires_at: expiry(now, now, windows.identity, windows.retry),
        }
    }

    /// Another sighting. A clock that jumped back, or a window that was shortened, never brings the end nearer (I2).
    pub fn seen_again(&self, now: Time, windows: Windows) -> Identity {
        let last_seen = self.last_seen.max(now);
        let end = expiry(self.first_seen, last_seen, windows.identity, windows.retry);
        Identity {
            last_seen,
            expires_at: self.expires_at.max(end),
            ..*self
        }
    }
}

words!(
    /// What a duplicate of a failed event does: the source's `on_duplicate_of_failed`.
    OnDuplicateOfFailed {
        /// It is linked and shown.
        Link = 0, "link";
        /// It also retries what is missing.
        Retry = 1, "retry";
    }
);

/// What a duplicate does to the event it belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DuplicateRoute {
    /// Only linked.
    Link,
    /// Linked, and the event is retried under the usual verdict.
    Retry,
}

/// Routes a duplicate. Only a failed event can be woken by one; a conflict wakes nothing (B3), see [`Sighting`].
pub fn route_duplicate(status: EventStatus, rule: OnDuplicateOfFailed) -> DuplicateRoute {
    match (status, rule) {
        (EventStatus::Dead | EventStatus::NeedsReview, OnDuplicateOfFailed::Retry) => {
            DuplicateRoute::Retry
        }
        _ => DuplicateRoute::Link,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::RawId;
    use proptest::prelude::*;

    const WINDOWS: Windows = Windows {
        identity: Span::from_days(90),
        retry: Span::from_days(3),
    };

    fn identity() -> Identity {
        let event = EventId(RawId::new(Time::from_secs(0), 0, 1));
        Identity::first(event, BodyHash::of(b"A"), Time::from_secs(0), WINDOWS)
    }

    #[test]
    fn the_same_key_is_a_duplicate_until_it_runs_out() {
        let known = identity();
        let (a, b) = (BodyHash::of(b"A"), BodyHash::of(b"B"));
        let end = Time::from_secs(0) + Span::from_days(90);
        let before = end - Span::from_micros(1);
        assert_eq!(decide(None, a, before), Sighting::New);
        assert_eq!(
            decide(Some(&known), a, before),
            Sighting::Duplicate { conflict: false }
        );
        assert_eq!(
            decide(Some(&known), b, before),
            Sighting::Duplicate { conflict: true }
        );
        assert_eq!(decide(Some(&known), a, end), Sighting::Expired);
    }

    #[test]
    fn a_late_sighting_keeps_the_identity_through_the_retries_that_follow() {
        let late = Time::from_secs(0) + Span::from_days(89);
        let again = identity().seen_again(late, WINDOWS);
        assert_eq!(again.expires_at, late + Span::from_days(3));
    }

    #[test]
    fn a_window_shorter_than_the_retries_is_refused() {
        assert!(check_windows(Span::from_days(2), Span::from_days(3)).is_err());
        assert!(check_windows(Span::from_days(3), Span::from_days(3)).is_ok());
    }

    #[test]
    fn only_failed_events_are_woken_and_only_by_rule() {
        for status in EventStatus::ALL {
            let failed = matches!(status, EventStatus::Dead | EventStatus::NeedsReview);
            let woken =
                route_duplicate(*status, OnDuplicateOfFailed::Retry) == DuplicateRoute::Retry;
            assert_eq!(woken, failed, "{status}");
            assert_eq!(
                route_duplicate(*status, OnDuplicateOfFailed::Link),
                DuplicateRoute::Link
            );
        }
    }

    proptest! {
        /// B5, I2: seen in any order, by any clock, an identity stands at least its window and its retry window.
        #[test]
        fn the_end_never_comes_nearer(sightings in prop::collection::vec(-1_000_000i64..10_000_000, 1..20)) {
            let mut known = identity();
            for seconds in sightings {
                let now = Time::from_secs(seconds);
                let next = known.seen_again(now, WINDOWS);
                prop_assert!(next.expires_at >= known.expires_at);
                prop_assert!(next.expires_at >= now + WINDOWS.retry);
                prop_assert!(next.expires_at >= next.first_seen + WINDOWS.identity);
                known = next;
            }
        }
    }
}

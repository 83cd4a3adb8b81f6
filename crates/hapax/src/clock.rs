//! The only place that asks what time it is, and says it as people read it.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

use hapax_ledger::time::Time;

/// The time now, by the wall clock.
#[expect(clippy::disallowed_methods, reason = "the one door to the wall clock")]
pub fn now() -> Time {
    match SystemTime::now().duration_since(UNIX_EPOCH) {
        Ok(since) => Time::from_micros(i64::try_from(since.as_micros()).unwrap_or(i64::MAX)),
        // A clock before 1970 is a clock that is not set.
        Err(_) => Time::from_micros(0),
    }
}

/// A point to measure a length of time from; never jumps.
#[expect(
    clippy::disallowed_methods,
    reason = "the one door to the steady clock"
)]
pub fn tick() -> Instant {
    Instant::now()
}

/// How long ago that was.
#[expect(
    clippy::disallowed_methods,
    reason = "the one door to the steady clock"
)]
pub fn since(tick: Instant) -> std::time::Duration {
    tick.elapsed()
}

/// A clock that begins at the wall's time and never goes back: what an embedded store's leases end by.
pub fn steady() -> hapax_store::Clock {
    let (wall, start) = (now(), tick());
    std::sync::Arc::new(move || {
        let micros = i64::try_from(since(start).as_micros()).unwrap_or(i64::MAX);
        wall + hapax_ledger::time::Span::from_micros(micros)
    })
}

/// A time as people read it: RFC 3339 in UTC.
pub fn text(time: Time) -> String {
    jiff::Timestamp::from_microsecond(time.micros())
        .map_or_else(|_| "never".to_owned(), |time| time.to_string())
}

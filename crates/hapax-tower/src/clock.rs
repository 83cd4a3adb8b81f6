//! The only place that asks what time it is.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use hapax_ledger::time::{Span, Time};

/// The time now, by the wall clock.
#[expect(clippy::disallowed_methods, reason = "the one door to the wall clock")]
pub(crate) fn now() -> Time {
    match SystemTime::now().duration_since(UNIX_EPOCH) {
        Ok(since) => Time::from_micros(i64::try_from(since.as_micros()).unwrap_or(i64::MAX)),
        // A clock before 1970 is a clock that is not set.
        Err(_) => Time::from_micros(0),
    }
}

/// The time now, as no other caller in this process hears it: with the node's name it names a claim.
pub(crate) fn unique_now() -> Time {
    static LAST: AtomicI64 = AtomicI64::new(0);
    let now = now().micros();
    let later = |last: i64| now.max(last.saturating_add(1));
    let last = LAST.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |last| {
        Some(later(last))
    });
    Time::from_micros(later(last.unwrap_or_else(|last| last)))
}

/// A point to measure a length of time from; never jumps.
#[expect(
    clippy::disallowed_methods,
    reason = "the one door to the steady clock"
)]
pub(crate) fn tick() -> Instant {
    Instant::now()
}

/// How long ago that was.
#[expect(
    clippy::disallowed_methods,
    reason = "the one door to the steady clock"
)]
pub(crate) fn since(tick: Instant) -> Duration {
    tick.elapsed()
}

/// How long it is until then, by the wall clock; nothing if it is over.
pub(crate) fn until(time: Time) -> Duration {
    let micros = time.micros().saturating_sub(now().micros());
    Duration::from_micros(u64::try_from(micros).unwrap_or(0))
}

/// A length of time, as timers count it.
pub(crate) fn duration(span: Span) -> Duration {
    Duration::from_micros(u64::try_from(span.micros()).unwrap_or(0))
}

/// A clock that begins at the wall's time and never goes back: what a model or SQLite store wants its leases to end by.
pub fn steady() -> hapax_store::Clock {
    let (wall, start) = (now(), tick());
    Arc::new(move || {
        let micros = i64::try_from(since(start).as_micros()).unwrap_or(i64::MAX);
        wall + Span::from_micros(micros)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_time_is_heard_twice() {
        let hear = || {
            (0..10_000)
                .map(|_| unique_now().micros())
                .collect::<Vec<_>>()
        };
        let threads: Vec<_> = (0..4).map(|_| std::thread::spawn(hear)).collect();
        let heard = threads
            .into_iter()
            .flat_map(|thread| thread.join().expect("whole"));
        let mut heard: Vec<i64> = heard.collect();
        heard.sort_unstable();
        assert!(heard.windows(2).all(|pair| pair[0] < pair[1]));
    }
}

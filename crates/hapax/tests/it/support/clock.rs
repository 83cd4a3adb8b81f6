//! The clock of the fault suite. Nothing here waits: a deadline only says when to give up.

use std::time::{Duration, Instant, SystemTime};

/// Nothing that a test waits for takes so long unless it is broken.
pub(crate) const TOO_LONG: Duration = Duration::from_secs(30);

/// The time in unix microseconds, for signatures.
#[expect(
    clippy::disallowed_methods,
    reason = "the fault suite's one door to the wall clock"
)]
pub(crate) fn now_micros() -> i64 {
    let since = SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .expect("after 1970");
    i64::try_from(since.as_micros()).expect("before the year 294000")
}

/// A moment to measure from.
#[expect(
    clippy::disallowed_methods,
    reason = "the fault suite's one door to the steady clock"
)]
pub(crate) fn tick() -> Instant {
    Instant::now()
}

/// Asks again and again until there is an answer. `ask` is a whole request over a socket, which is what paces the loop; it
/// is never a look at a flag. Fails after `limit`.
#[track_caller]
pub(crate) fn until<T>(limit: Duration, what: &str, mut ask: impl FnMut() -> Option<T>) -> T {
    let start = tick();
    loop {
        if let Some(answer) = ask() {
            return answer;
        }
        assert!(tick() - start < limit, "not within {limit:?}: {what}");
    }
}

//! The only place in xtask that reads a clock.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// The monotonic clock.
#[expect(
    clippy::disallowed_methods,
    reason = "this file is the door to the clock"
)]
pub(crate) fn now() -> Instant {
    Instant::now()
}

/// Seconds since 1970, for what a person or a signature dates.
#[expect(
    clippy::disallowed_methods,
    reason = "this file is the door to the clock"
)]
pub(crate) fn unix_seconds() -> u64 {
    // A clock before 1970 is a broken machine; zero shows it as well as anything.
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default()
        .as_secs()
}

/// Time since it was started.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stopwatch(Instant);

impl Stopwatch {
    /// Starts now.
    pub(crate) fn start() -> Stopwatch {
        Stopwatch(now())
    }

    /// How long it has run.
    pub(crate) fn elapsed(self) -> Duration {
        now().saturating_duration_since(self.0)
    }
}

//! The only place that asks what time it is.

use std::time::Instant;

use chrono::{DateTime, Utc};

/// The time now, by the wall clock.
pub fn now() -> DateTime<Utc> {
    Utc::now()
}

/// A point to measure a length of time from.
pub fn tick() -> Instant {
    Instant::now()
}

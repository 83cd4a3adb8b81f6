//! A rate that holds: so many sends a second, with a second's worth to spare after a pause.
//!
//! A bucket of our own rather than a library's: the time comes in as an argument, as everywhere.

use std::time::{Duration, Instant};

/// Sends that may start now, refilled as time passes.
#[derive(Clone, Copy, Debug)]
pub struct Rate {
    per_second: u32,
    /// Sends that are left, in millionths.
    left: u64,
    counted_at: Instant,
}

const ONE: u64 = 1_000_000;

impl Rate {
    /// A full bucket.
    pub fn new(per_second: u32, now: Instant) -> Rate {
        Rate {
            per_second: per_second.max(1),
            left: u64::from(per_second.max(1)) * ONE,
            counted_at: now,
        }
    }

    /// How many sends may start now.
    pub fn room(&mut self, now: Instant) -> u32 {
        let passed = now.saturating_duration_since(self.counted_at);
        // A second fills the bucket; whatever is longer counts as one.
        let passed = passed.min(Duration::from_secs(1)).as_micros() as u64;
        self.left =
            (self.left + passed * u64::from(self.per_second)).min(u64::from(self.per_second) * ONE);
        self.counted_at = now;
        (self.left / ONE) as u32
    }

    /// One send starts. Only after [`Rate::room`] said that there is room for it.
    pub fn take(&mut self) {
        self.left = self.left.saturating_sub(ONE);
    }

    /// When the bucket is full again if nothing is sent: from then on it is like a new one.
    pub fn full_at(&self) -> Instant {
        let missing = (u64::from(self.per_second) * ONE).saturating_sub(self.left);
        self.counted_at + Duration::from_micros(missing.div_ceil(u64::from(self.per_second)))
    }

    /// When the next send may start, if none may now.
    pub fn next(&self) -> Instant {
        let missing = ONE.saturating_sub(self.left);
        self.counted_at + Duration::from_micros(missing.div_ceil(u64::from(self.per_second)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_than_the_rate_over_any_second_after_the_first() {
        let start = crate::clock::tick();
        let mut rate = Rate::new(10, start);
        assert_eq!(rate.room(start), 10);
        for _ in 0..10 {
            rate.take();
        }
        assert_eq!(rate.room(start), 0);
        assert_eq!(rate.next(), start + Duration::from_millis(100));
        assert_eq!(rate.room(start + Duration::from_millis(99)), 0);
        assert_eq!(rate.room(start + Duration::from_millis(100)), 1);
        assert_eq!(rate.room(start + Duration::from_secs(60)), 10);
    }
}

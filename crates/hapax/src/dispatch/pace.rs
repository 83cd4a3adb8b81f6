//! How many requests of a lane came back lately. No clock of its own.

use std::time::{Duration, Instant};

/// Requests are counted by stretches of this length.
const STRETCH: Duration = Duration::from_secs(1);

/// Counts what comes back, in the stretch that is going on and in the one before it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Pace {
    since: Option<Instant>,
    count: u32,
    before: u32,
}

impl Pace {
    /// A request came back.
    pub(super) fn note(&mut self, now: Instant) {
        match self.age(now) {
            Some(age) if age < STRETCH => {}
            Some(age) if age < 2 * STRETCH => {
                self.since = self.since.map(|since| since + STRETCH);
                (self.before, self.count) = (self.count, 0);
            }
            Some(_) | None => {
                self.since = Some(now);
                (self.before, self.count) = (0, 0);
            }
        }
        self.count = self.count.saturating_add(1);
    }

    /// How many came back in the last second, and in up to one more before that.
    pub(super) fn lately(&self, now: Instant) -> u32 {
        match self.age(now) {
            Some(age) if age < STRETCH => self.before.saturating_add(self.count),
            Some(age) if age < 2 * STRETCH => self.count,
            Some(_) | None => 0,
        }
    }

    fn age(&self, now: Instant) -> Option<Duration> {
        Some(now.saturating_duration_since(self.since?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_came_back_counts_for_a_second_and_not_for_ever() {
        let start = crate::clock::tick();
        let at = |ms| start + Duration::from_millis(ms);
        let mut pace = Pace::default();
        assert_eq!(pace.lately(at(0)), 0);
        for ms in [0, 500, 999] {
            pace.note(at(ms));
        }
        assert_eq!(pace.lately(at(999)), 3);
        assert_eq!(pace.lately(at(1_999)), 3, "it is a second old at most");
        assert_eq!(pace.lately(at(2_000)), 0);
        pace.note(at(1_500));
        assert_eq!(pace.lately(at(1_500)), 4);
        assert_eq!(pace.lately(at(2_000)), 1, "the first are two seconds old");
        pace.note(at(60_000));
        assert_eq!(pace.lately(at(60_000)), 1);
    }
}

//! What one thread counts in one round.

use std::collections::BTreeMap;
use std::time::Duration;

use super::histogram::Histogram;
use super::order::Round;

/// Status codes that the parser lets through are below this.
const STATUSES: usize = 600;

/// Different failures kept by name; the rest is counted together, so that a flood of them costs no memory.
const BROKEN_KINDS_MAX: usize = 8;

/// Counts of answers and failures.
#[derive(Clone, Debug)]
pub(super) struct Tally {
    statuses: Vec<u64>,
    broken: BTreeMap<String, u64>,
    latency: Histogram,
}

impl Default for Tally {
    fn default() -> Tally {
        Tally {
            statuses: vec![0; STATUSES],
            broken: BTreeMap::new(),
            latency: Histogram::default(),
        }
    }
}

impl Tally {
    /// Counts one answer.
    pub(super) fn answer(&mut self, status: u16, took: Duration) {
        self.statuses[usize::from(status)] += 1;
        self.latency
            .record(u64::try_from(took.as_micros()).unwrap_or(u64::MAX));
    }

    /// Counts one exchange that ended without an answer.
    pub(super) fn broken(&mut self, reason: String) {
        self.add_broken(reason, 1);
    }

    /// Adds what another thread counted in the same round.
    pub(super) fn merge(&mut self, other: Tally) {
        for (mine, theirs) in self.statuses.iter_mut().zip(other.statuses) {
            *mine += theirs;
        }
        for (reason, count) in other.broken {
            self.add_broken(reason, count);
        }
        self.latency.merge(&other.latency);
    }

    /// The round as it is reported.
    pub(super) fn round(self, length: Duration) -> Round {
        let by_code = (0_u16..).zip(self.statuses);
        Round {
            seconds: length.as_secs_f64(),
            statuses: by_code.filter(|(_, count)| *count > 0).collect(),
            broken: self.broken,
            p50_us: self.latency.percentile(50.0),
            p99_us: self.latency.percentile(99.0),
            max_us: self.latency.max(),
        }
    }

    fn add_broken(&mut self, reason: String, count: u64) {
        let known = self.broken.contains_key(&reason);
        let reason = if known || self.broken.len() < BROKEN_KINDS_MAX {
            reason
        } else {
            "other failures".to_owned()
        };
        *self.broken.entry(reason).or_default() += count;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_add_up_to_one_round() {
        let (mut left, mut right) = <(Tally, Tally)>::default();
        left.answer(200, Duration::from_micros(10));
        right.answer(200, Duration::from_micros(20));
        right.answer(503, Duration::from_micros(30));
        right.broken("reset".to_owned());
        left.merge(right);
        let round = left.round(Duration::from_secs(2));
        assert_eq!(round.statuses, BTreeMap::from([(200, 2), (503, 1)]));
        assert_eq!(round.broken, BTreeMap::from([("reset".to_owned(), 1)]));
        assert_eq!((round.p50_us, round.max_us), (20, 30));
        assert_eq!((round.answers(), round.rate()), (3, 1.5));
    }

    #[test]
    fn the_kinds_of_failure_are_bounded() {
        let mut tally = Tally::default();
        (0..100).for_each(|kind| tally.broken(format!("failure {kind}")));
        let round = tally.round(Duration::from_secs(1));
        assert_eq!(round.broken.len(), BROKEN_KINDS_MAX + 1);
        assert_eq!(round.broken.values().sum::<u64>(), 100);
    }
}

//! Latencies, counted in buckets that grow with the value: small, mergeable, at most 1.6 % off.

/// Each power of two is cut into 2^6 buckets, so a bucket is at most 1/64 of its value wide.
const PRECISION_BITS: u32 = 6;

/// Buckets for all of `u64`: 64 exact ones, then 64 for each of the 58 remaining powers of two.
const BUCKETS: usize = (64 - PRECISION_BITS as usize + 1) << PRECISION_BITS;

/// Counts of values in microseconds.
#[derive(Clone, Debug)]
pub(super) struct Histogram {
    counts: Vec<u64>,
    total: u64,
    max: u64,
}

impl Default for Histogram {
    fn default() -> Histogram {
        Histogram {
            counts: vec![0; BUCKETS],
            total: 0,
            max: 0,
        }
    }
}

impl Histogram {
    /// Counts one value.
    pub(super) fn record(&mut self, value_us: u64) {
        self.counts[bucket(value_us)] += 1;
        self.total += 1;
        self.max = self.max.max(value_us);
    }

    /// Adds what `other` counted.
    pub(super) fn merge(&mut self, other: &Histogram) {
        for (mine, theirs) in self.counts.iter_mut().zip(&other.counts) {
            *mine += theirs;
        }
        self.total += other.total;
        self.max = self.max.max(other.max);
    }

    /// The value that `percent` of the values do not exceed, rounded up to its bucket's end; zero if there are none.
    pub(super) fn percentile(&self, percent: f64) -> u64 {
        let rank = (self.total as f64 * percent / 100.0).ceil().max(1.0) as u64;
        let mut seen = 0;
        for (index, count) in self.counts.iter().enumerate() {
            seen += count;
            if seen >= rank {
                return bucket_end(index).min(self.max);
            }
        }
        self.max
    }

    /// The largest value, exactly.
    pub(super) fn max(&self) -> u64 {
        self.max
    }
}

/// The bucket of `value`: its leading bits, and how far they are shifted.
fn bucket(value: u64) -> usize {
    let magnitude = (u64::BITS - value.leading_zeros()).saturating_sub(PRECISION_BITS + 1);
    let leading = (value >> magnitude) as usize;
    ((magnitude as usize) << PRECISION_BITS) + leading
}

/// The largest value in a bucket.
fn bucket_end(index: usize) -> u64 {
    let magnitude = (index >> PRECISION_BITS).saturating_sub(1) as u32;
    let leading = (index - ((magnitude as usize) << PRECISION_BITS)) as u128;
    // In 128 bits: the end of the last bucket is one less than 2^64.
    (((leading + 1) << magnitude) - 1) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_lies_in_a_bucket_that_is_at_most_a_64th_wide() {
        let around_powers = (0..64).flat_map(|power| {
            let value = 1_u64 << power;
            [value.saturating_sub(1), value, value + 1, value + value / 3]
        });
        for value in around_powers.chain([0, u64::MAX]) {
            let index = bucket(value);
            let end = bucket_end(index);
            assert!(index < BUCKETS, "{value} has a bucket");
            assert!(end >= value, "{value} is not beyond its bucket");
            assert!(end - value <= value / 64, "{value} is near {end}");
            assert!(index == 0 || bucket_end(index - 1) < value, "{value}");
        }
    }

    #[test]
    fn small_values_are_exact() {
        let mut histogram = Histogram::default();
        (1..=100).for_each(|value| histogram.record(value));
        assert_eq!(histogram.percentile(50.0), 50);
        assert_eq!(histogram.percentile(99.0), 99);
        assert_eq!(histogram.percentile(100.0), 100);
        assert_eq!(histogram.max(), 100);
    }

    #[test]
    fn one_slow_answer_moves_the_maximum_only() {
        let mut histogram = Histogram::default();
        (0..999).for_each(|_| histogram.record(10));
        histogram.record(70_001);
        assert_eq!(histogram.percentile(99.0), 10);
        assert_eq!(histogram.max(), 70_001);
        assert_eq!(histogram.percentile(100.0), 70_001, "never above the max");
    }

    #[test]
    fn merging_is_the_same_as_counting_together() {
        let (mut left, mut right, mut both) = <(Histogram, Histogram, Histogram)>::default();
        for value in 0..10_000_u64 {
            let half = if value % 3 == 0 {
                &mut left
            } else {
                &mut right
            };
            half.record(value * 7);
            both.record(value * 7);
        }
        left.merge(&right);
        assert_eq!(left.counts, both.counts);
        assert_eq!((left.total, left.max), (both.total, both.max));
    }

    #[test]
    fn an_empty_histogram_answers_zero() {
        assert_eq!(Histogram::default().percentile(99.0), 0);
    }
}

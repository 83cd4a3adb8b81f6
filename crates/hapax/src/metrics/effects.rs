//! What is counted of effects, by lane. Lanes may be many, so only the first ones seen have a label of their own.

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use hapax_ledger::outcome::{Evidence, Outcome, classify};
use hapax_store::nouns::EffectCounts;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;

use super::lags::{Lag, Lags};

/// Lanes with a label of their own; all others share one.
const LANE_LABELS_MAX: usize = 200;
/// The label of the others.
const OTHER: &str = "other";

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct OutcomeLabels {
    lane: String,
    outcome: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct StateLabels {
    lane: String,
    state: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct StateLabel {
    state: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct LaneLabel {
    lane: String,
}

/// The metrics of effects.
pub struct EffectMetrics {
    lanes: Mutex<HashSet<String>>,
    lags: Lags,
    attempts: Family<OutcomeLabels, Counter>,
    settled: Family<StateLabels, Counter>,
    rescued: Family<LaneLabel, Counter>,
    probes: Family<OutcomeLabels, Counter>,
    effects: Family<StateLabel, Gauge>,
    attempts_per_effect: Histogram,
    dispatch_lag: Histogram,
    attempt_seconds: Histogram,
}

impl Default for EffectMetrics {
    fn default() -> EffectMetrics {
        EffectMetrics {
            lanes: Mutex::default(),
            lags: Lags::default(),
            attempts: Family::default(),
            settled: Family::default(),
            rescued: Family::default(),
            probes: Family::default(),
            effects: Family::default(),
            attempts_per_effect: Histogram::new([1.0, 2.0, 3.0, 5.0, 7.0, 10.0, 20.0, 64.0]),
            // 100 µs to about a day: from the fast path to the last entry of a schedule.
            dispatch_lag: Histogram::new(exponential_buckets(0.0001, 4.0, 15)),
            // 100 µs to 26 minutes, beyond the longest time-out.
            attempt_seconds: Histogram::new(exponential_buckets(0.0001, 3.0, 16)),
        }
    }
}

/// What an outcome is called in a label: few words, since every one is a series per lane.
fn word(outcome: Outcome) -> &'static str {
    match (classify(outcome), outcome) {
        (Evidence::Applied, _) => "applied",
        (Evidence::Refused { .. }, _) => "refused",
        (Evidence::NotApplied, _) => "not_sent",
        (Evidence::Ambiguous, Outcome::Answered { .. }) => "error",
        (Evidence::Ambiguous, _) => "lost",
    }
}

impl EffectMetrics {
    pub(super) fn register(&self, registry: &mut Registry) {
        registry.register(
            "effect_attempts",
            "Attempts at effects by lane and outcome",
            self.attempts.clone(),
        );
        registry.register(
            "effects_settled",
            "Effects that came to an end, or to a halt, by lane and state",
            self.settled.clone(),
        );
        registry.register(
            "effects_rescued",
            "Claims that ran out and were taken over",
            self.rescued.clone(),
        );
        registry.register(
            "effect_probes",
            "Probes of uncertain effects by answer",
            self.probes.clone(),
        );
        registry.register(
            "effects",
            "Effects that have not ended well, by state",
            self.effects.clone(),
        );
        registry.register(
            "attempts_per_effect",
            "Attempts that an effect took to be done or given up",
            self.attempts_per_effect.clone(),
        );
        registry.register(
            "dispatch_lag_seconds",
            "From when an effect was due to its attempt",
            self.dispatch_lag.clone(),
        );
        registry.register(
            "attempt_seconds",
            "How long attempts took",
            self.attempt_seconds.clone(),
        );
    }

    fn lane(&self, lane: &str) -> String {
        let mut lanes = self.lanes.lock().unwrap_or_else(PoisonError::into_inner);
        if lanes.contains(lane) {
            return lane.to_owned();
        }
        if lanes.len() == LANE_LABELS_MAX {
            return OTHER.to_owned();
        }
        lanes.insert(lane.to_owned());
        lane.to_owned()
    }

    /// An attempt ended.
    pub fn attempt(&self, lane: &str, outcome: Outcome, lag: Duration, took: Duration) {
        let labels = OutcomeLabels {
            lane: self.lane(lane),
            outcome: word(outcome),
        };
        self.lags.attempt(&labels.lane, lag);
        self.attempts.get_or_create(&labels).inc();
        self.dispatch_lag.observe(lag.as_secs_f64());
        self.attempt_seconds.observe(took.as_secs_f64());
    }

    /// How late attempts began, by lane, since this was last asked.
    pub fn take_lags(&self) -> HashMap<String, Lag> {
        self.lags.take()
    }

    /// An effect came to an end, or to a halt.
    pub fn settled(&self, lane: &str, state: &'static str, attempts: Option<u32>) {
        let lane = self.lane(lane);
        self.settled
            .get_or_create(&StateLabels { lane, state })
            .inc();
        if let Some(attempts) = attempts {
            self.attempts_per_effect.observe(f64::from(attempts));
        }
    }

    /// Effects of a lane that were done since start; lanes without a label of their own have one count together.
    pub fn done(&self, lane: &str) -> u64 {
        let labels = StateLabels {
            lane: self.lane(lane),
            state: "done",
        };
        self.settled.get_or_create(&labels).get()
    }

    /// A claim ran out and was taken over.
    pub fn rescued(&self, lane: &str) {
        let lane = self.lane(lane);
        self.rescued.get_or_create(&LaneLabel { lane }).inc();
    }

    /// A probe was asked.
    pub fn probed(&self, lane: &str, answer: &'static str) {
        let labels = OutcomeLabels {
            lane: self.lane(lane),
            outcome: answer,
        };
        self.probes.get_or_create(&labels).inc();
    }

    /// So many have not ended well.
    pub fn counted(&self, counts: EffectCounts) {
        let all = [
            ("pending", counts.pending),
            ("claimed", counts.claimed),
            ("uncertain", counts.uncertain),
            ("dead", counts.dead),
        ];
        for (state, count) in all {
            self.effects
                .get_or_create(&StateLabel { state })
                .set(i64::try_from(count).unwrap_or(i64::MAX));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MORE: usize = 100;

    /// Every metric by lane, with the labels that go along.
    const BY_LANE: [(&str, &str); 4] = [
        ("effect_attempts", ",outcome=\"applied\""),
        ("effects_settled", ",state=\"done\""),
        ("effects_rescued", ""),
        ("effect_probes", ",outcome=\"applied\""),
    ];

    fn count(metrics: &EffectMetrics, lane: &str) {
        let outcome = Outcome::Answered {
            status: 200,
            retry_after: None,
        };
        metrics.attempt(lane, outcome, Duration::ZERO, Duration::ZERO);
        metrics.settled(lane, "done", Some(1));
        metrics.rescued(lane);
        metrics.probed(lane, "applied");
    }

    #[test]
    fn lanes_beyond_the_first_ones_share_a_label() {
        let metrics = EffectMetrics::default();
        let mut all = Registry::default();
        metrics.register(&mut all);
        for n in 0..LANE_LABELS_MAX + MORE {
            count(&metrics, &format!("lane-{n}"));
        }
        // One that has its own label keeps it.
        count(&metrics, "lane-0");
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &all).expect("text");
        for (metric, more) in BY_LANE {
            let start = format!("{metric}_total{{");
            let series = text.lines().filter(|line| line.starts_with(&start));
            assert_eq!(series.count(), LANE_LABELS_MAX + 1, "{metric}");
            let last = LANE_LABELS_MAX - 1;
            for (lane, times) in [
                ("lane-0".to_owned(), 2),
                (format!("lane-{last}"), 1),
                (OTHER.to_owned(), MORE),
            ] {
                let line = format!("{start}lane=\"{lane}\"{more}}} {times}");
                assert!(text.lines().any(|found| found == line), "no {line}");
            }
        }
        let lags = metrics.take_lags();
        assert_eq!(lags.len(), LANE_LABELS_MAX + 1);
        assert_eq!(lags[OTHER].attempts, MORE as u64);
        assert_eq!(metrics.done("another"), MORE as u64);
    }
}

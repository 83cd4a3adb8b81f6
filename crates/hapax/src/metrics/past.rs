//! What was counted lately, for charts: one look every ten seconds for an hour, one every five minutes for a day. In memory, of this
//! node, since its start; whoever wants more has `/metrics` and a Prometheus.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hapax_ledger::time::{Span, Time};
use tokio::sync::watch;

use super::Metrics;
use crate::clock;

/// How often somebody looks.
pub const LOOK_EVERY: Duration = Duration::from_secs(10);
/// Looks of an hour.
const FINE_MAX: usize = 361;
/// How far looks are apart that are kept for a day.
const COARSE_EVERY: Span = Span::from_secs(300);
/// Looks of a day.
const COARSE_MAX: usize = 289;

/// What had been counted by a moment. All but the time only ever grows.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sample {
    /// When, in microseconds.
    pub at: i64,
    /// Deliveries: accepted, duplicates, kept for review, refused.
    pub deliveries: [f64; 4],
    /// Effects: done, dead, uncertain.
    pub settled: [f64; 3],
    /// Attempts: all, and those that were answered well.
    pub attempts: [f64; 2],
    /// Effects that ended, and the attempts that took.
    pub ended: [f64; 2],
    /// How long requests took: upper bounds in seconds, and how many took no longer.
    pub accept: Vec<(f64, f64)>,
    /// How late attempts began, in the same way.
    pub lag: Vec<(f64, f64)>,
}

impl Sample {
    /// Reads what `/metrics` says.
    pub fn read(text: &str, now: Time) -> Sample {
        let mut sample = Sample {
            at: now.micros(),
            ..Sample::default()
        };
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            let Some((name, value)) = line.rsplit_once(' ') else {
                continue;
            };
            if let Ok(value) = value.parse() {
                sample.add(name, value);
            }
        }
        sample
    }

    fn add(&mut self, name: &str, value: f64) {
        let (family, labels) = name.split_once('{').unwrap_or((name, ""));
        let word = |label: &str| label_of(labels, label).unwrap_or_default();
        let place = match family {
            "hapax_deliveries_total" => match word("outcome") {
                "accepted" => &mut self.deliveries[0],
                "duplicate" => &mut self.deliveries[1],
                "failed_validation" => &mut self.deliveries[2],
                _ => &mut self.deliveries[3],
            },
            "hapax_effects_settled_total" => match word("state") {
                "done" => &mut self.settled[0],
                "dead" => &mut self.settled[1],
                "uncertain" => &mut self.settled[2],
                _ => return,
            },
            "hapax_effect_attempts_total" => {
                if word("outcome") == "applied" {
                    self.attempts[1] += value;
                }
                &mut self.attempts[0]
            }
            "hapax_attempts_per_effect_count" => &mut self.ended[0],
            "hapax_attempts_per_effect_sum" => &mut self.ended[1],
            "hapax_accept_seconds_bucket" => return self.accept.push((bound(labels), value)),
            "hapax_dispatch_lag_seconds_bucket" => return self.lag.push((bound(labels), value)),
            _ => return,
        };
        *place += value;
    }
}

/// The value of a label. Our own values have no quotes in them but those of lanes and sources, which nothing here asks for.
pub fn label_of<'a>(labels: &'a str, label: &str) -> Option<&'a str> {
    let (_, rest) = labels.split_once(&format!("{label}=\""))?;
    rest.split_once('"').map(|(value, _)| value)
}

fn bound(labels: &str) -> f64 {
    let text = label_of(labels, "le").unwrap_or_default();
    text.parse().unwrap_or(f64::INFINITY)
}

/// Below which `share` of what was counted between two moments lies, in seconds. `None` if nothing was.
pub fn quantile(from: &[(f64, f64)], to: &[(f64, f64)], share: f64) -> Option<f64> {
    let before = |at: usize| from.get(at).map_or(0.0, |(_, count)| *count);
    let counts = to.iter().enumerate();
    let counts: Vec<(f64, f64)> = counts
        .map(|(at, (bound, count))| (*bound, count - before(at)))
        .collect();
    let all = counts.last().map(|(_, count)| *count)?;
    if all <= 0.0 {
        return None;
    }
    let found = counts.iter().find(|(_, count)| *count >= all * share);
    let mut finite = counts.iter().filter(|(bound, _)| bound.is_finite());
    let last = finite.next_back().map(|(bound, _)| *bound);
    found
        .map(|(bound, _)| *bound)
        .filter(|bound| bound.is_finite())
        .or(last)
}

/// What was counted lately.
#[derive(Debug, Default)]
pub struct Past(Mutex<Looks>);

#[derive(Debug, Default)]
struct Looks {
    fine: VecDeque<Sample>,
    coarse: VecDeque<Sample>,
}

impl Past {
    /// Keeps a look.
    pub fn keep(&self, sample: Sample) {
        let mut looks = self.lock();
        let last = looks.coarse.back().map(|last| last.at);
        if last.is_none_or(|last| sample.at >= last + COARSE_EVERY.micros()) {
            push(&mut looks.coarse, sample.clone(), COARSE_MAX);
        }
        push(&mut looks.fine, sample, FINE_MAX);
    }

    /// The looks of the last hour, the oldest first.
    pub fn hour(&self) -> Vec<Sample> {
        self.lock().fine.iter().cloned().collect()
    }

    /// The looks of the last day, the oldest first.
    pub fn day(&self) -> Vec<Sample> {
        self.lock().coarse.iter().cloned().collect()
    }

    fn lock(&self) -> MutexGuard<'_, Looks> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn push(looks: &mut VecDeque<Sample>, sample: Sample, max: usize) {
    if looks.len() == max {
        looks.pop_front();
    }
    looks.push_back(sample);
}

/// Looks until told to stop.
pub async fn run(metrics: Arc<Metrics>, mut stopping: watch::Receiver<bool>) {
    loop {
        let sample = Sample::read(&metrics.text(), clock::now());
        metrics.past.keep(sample);
        let stop = stopping.wait_for(|stop| *stop);
        if tokio::time::timeout(LOOK_EVERY, stop).await.is_ok() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_metrics_say_is_read() {
        let text = "# HELP x y\nhapax_deliveries_total{source=\"a\",outcome=\"accepted\"} 3\n\
            hapax_deliveries_total{source=\"b\",outcome=\"accepted\"} 4\nhapax_deliveries_total{source=\"b\",outcome=\"invalid\"} 1\n\
            hapax_effect_attempts_total{lane=\"l\",outcome=\"applied\"} 2\nhapax_effect_attempts_total{lane=\"l\",outcome=\"error\"} 5\n\
            hapax_accept_seconds_bucket{le=\"0.1\"} 1\nhapax_accept_seconds_bucket{le=\"+Inf\"} 2\n";
        let sample = Sample::read(text, Time::from_secs(1));
        assert_eq!(sample.deliveries, [7.0, 0.0, 0.0, 1.0]);
        assert_eq!(sample.attempts, [7.0, 2.0]);
        assert_eq!(sample.accept, [(0.1, 1.0), (f64::INFINITY, 2.0)]);
    }

    #[test]
    fn quantiles_are_of_what_came_in_between() {
        let from = [(0.1, 10.0), (1.0, 10.0), (f64::INFINITY, 10.0)];
        let to = [(0.1, 19.0), (1.0, 20.0), (f64::INFINITY, 20.0)];
        assert_eq!(quantile(&from, &to, 0.5), Some(0.1));
        assert_eq!(quantile(&from, &to, 0.99), Some(1.0));
        assert_eq!(quantile(&to, &to, 0.5), None);
    }

    #[test]
    fn looks_are_bounded() {
        let past = Past::default();
        for second in 0..100_000 {
            let sample = Sample {
                at: second * 10_000_000,
                ..Sample::default()
            };
            past.keep(sample);
        }
        assert_eq!(
            (past.hour().len(), past.day().len()),
            (FINE_MAX, COARSE_MAX)
        );
    }
}

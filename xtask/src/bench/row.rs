//! One measured row: several rounds, and the median that stands for them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::process::Usage;
use crate::load::Round;

/// A round with what the server used during it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Measured {
    /// What the clients saw.
    pub(super) round: Round,
    /// CPU time that the server spent in it.
    pub(super) cpu_ms: Option<u64>,
    /// The server's memory at its end.
    pub(super) rss_kib: Option<u64>,
}

impl Measured {
    /// A round between two looks at the server's process.
    pub(super) fn between(round: Round, before: Option<Usage>, after: Option<Usage>) -> Measured {
        let spent = before.zip(after);
        Measured {
            round,
            cpu_ms: spent.map(|(before, after)| after.cpu_ms.saturating_sub(before.cpu_ms)),
            rss_kib: after.map(|after| after.rss_kib),
        }
    }

    /// CPU time of the server per answer.
    pub(super) fn cpu_us_per_answer(&self) -> Option<f64> {
        let answers = self.round.answers();
        let cpu_ms = self.cpu_ms.filter(|_| answers > 0)?;
        Some(cpu_ms as f64 * 1000.0 / answers as f64)
    }
}

/// The value in the middle, the lower of two; `None` of none.
pub(super) fn median(values: impl Iterator<Item = f64>) -> Option<f64> {
    let mut sorted: Vec<f64> = values.collect();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len().saturating_sub(1) / 2).copied()
}

/// A row of a report.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Row {
    /// What was measured.
    pub(super) name: String,
    /// All rounds, in order; never empty.
    pub(super) rounds: Vec<Measured>,
}

impl Row {
    /// The round whose rate is the median: a real round, so that its other numbers belong to it.
    pub(super) fn median(&self) -> Option<&Measured> {
        let mut by_rate: Vec<&Measured> = self.rounds.iter().collect();
        by_rate.sort_by(|left, right| left.round.rate().total_cmp(&right.round.rate()));
        by_rate.get(by_rate.len().saturating_sub(1) / 2).copied()
    }

    /// Answers per second in the median round.
    pub(super) fn rate(&self) -> f64 {
        self.median().map_or(0.0, |median| median.round.rate())
    }

    /// Its rate as a share of another row's: the median over pairs of rounds, the first beside the first and so on, since those
    /// were taken closest together. `None` if there are none, or the other had no answers.
    pub(super) fn share_of(&self, ceiling: &Row) -> Option<f64> {
        let pairs = self.rounds.iter().zip(&ceiling.rounds);
        let shares = pairs.map(|(own, other)| own.round.rate() / other.round.rate());
        median(shares.filter(|share| share.is_finite()))
    }

    /// The median over all rounds of one of their times. A round without answers took longer than any; `None` if it is the median.
    pub(super) fn median_us(&self, pick: impl Fn(&Round) -> u64) -> Option<u64> {
        let time = |measured: &Measured| {
            let round = &measured.round;
            (round.answers() > 0).then(|| pick(round))
        };
        let mut all: Vec<Option<u64>> = self.rounds.iter().map(time).collect();
        all.sort_by_key(|time| time.unwrap_or(u64::MAX));
        all.get(all.len().saturating_sub(1) / 2).copied().flatten()
    }

    /// One of its times beside the same of another row's: the median over pairs of rounds, as for [`Row::share_of`]. A round without answers
    /// took longer than any; `None` if it is the median, or there is nothing to compare with.
    pub(super) fn times_of(&self, other: &Row, pick: impl Fn(&Round) -> u64) -> Option<f64> {
        let time = |measured: &Measured| {
            let round = &measured.round;
            (round.answers() > 0).then(|| pick(round) as f64)
        };
        let pairs = self.rounds.iter().zip(&other.rounds);
        let all = pairs.filter_map(|(own, other)| {
            let other = time(other).filter(|time| *time > 0.0)?;
            Some(time(own).map_or(f64::INFINITY, |own| own / other))
        });
        median(all).filter(|times| times.is_finite())
    }

    /// The most memory that the server held at the end of a round.
    pub(super) fn rss_kib_max(&self) -> Option<u64> {
        self.rounds
            .iter()
            .filter_map(|measured| measured.rss_kib)
            .max()
    }

    /// Distance between the fastest and the slowest round, as a share of the median.
    pub(super) fn spread(&self) -> Option<f64> {
        let rates = || self.rounds.iter().map(|measured| measured.round.rate());
        let slowest = rates().min_by(f64::total_cmp)?;
        let fastest = rates().max_by(f64::total_cmp)?;
        let median = self.rate();
        (median > 0.0).then(|| (fastest - slowest) / median)
    }

    /// What did not go as it should: answers other than 2xx, and exchanges without an answer, over all rounds.
    pub(super) fn troubles(&self) -> BTreeMap<String, u64> {
        let mut troubles = BTreeMap::new();
        for Measured { round, .. } in &self.rounds {
            let refused = round.statuses.iter().filter(|(code, _)| **code / 100 != 2);
            for (code, count) in refused {
                *troubles.entry(format!("status {code}")).or_default() += count;
            }
            for (reason, count) in &round.broken {
                *troubles.entry(reason.clone()).or_default() += count;
            }
        }
        troubles
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A row whose rounds lasted a second each and had these many answers.
    pub(in crate::bench) fn row(name: &str, answers: &[u64]) -> Row {
        let measured = |answers: &u64| Measured {
            round: Round {
                seconds: 1.0,
                statuses: BTreeMap::from([(200, *answers)]),
                p50_us: 90,
                p99_us: 1_500,
                max_us: 12_000,
                ..Round::default()
            },
            cpu_ms: Some(500),
            rss_kib: Some(2048),
        };
        Row {
            name: name.to_owned(),
            rounds: answers.iter().map(measured).collect(),
        }
    }

    #[test]
    fn the_median_round_stands_for_the_row() {
        let row = row("a", &[1000, 10, 900, 950, 5000]);
        assert_eq!(row.rate(), 950.0);
        assert_eq!(row.spread(), Some(4990.0 / 950.0));
        let median = row.median().expect("there are rounds");
        assert_eq!(median.cpu_us_per_answer(), Some(500_000.0 / 950.0));
    }

    #[test]
    fn a_share_is_the_median_over_rounds_that_were_taken_together() {
        let share = |own: &[u64], other: &[u64]| row("a", own).share_of(&row("b", other));
        assert_eq!(share(&[50, 10, 60], &[100, 20, 100]), Some(0.5));
        assert_eq!(share(&[50, 40], &[100, 100, 100]), Some(0.4));
        assert_eq!(share(&[50, 40, 30], &[100, 0, 100]), Some(0.3));
        assert_eq!(share(&[50], &[0]), None);
        assert_eq!(share(&[], &[]), None);
    }

    #[test]
    fn a_round_without_answers_is_the_slowest_and_not_the_fastest() {
        let p99 = |answers: &[u64]| row("a", answers).median_us(|round| round.p99_us);
        assert_eq!(p99(&[5, 0, 5]), Some(1_500));
        assert_eq!(p99(&[0, 5, 0]), None);
        assert_eq!(p99(&[]), None);
    }

    #[test]
    fn times_are_compared_within_pairs_and_nothing_is_never_fast() {
        let times = |own: &[u64], other: &[u64]| {
            let [own, other] = [own, other].map(|p99s| {
                let mut row = row("a", &vec![1; p99s.len()]);
                for (measured, p99) in row.rounds.iter_mut().zip(p99s) {
                    measured.round.p99_us = *p99;
                    if *p99 == 0 {
                        measured.round.statuses.clear();
                    }
                }
                row
            });
            own.times_of(&other, |round| round.p99_us)
        };
        assert_eq!(times(&[20, 300, 50], &[10, 100, 100]), Some(2.0));
        assert_eq!(times(&[0, 20, 0], &[10, 10, 10]), None);
        assert_eq!(times(&[0, 20, 30], &[10, 10, 10]), Some(3.0));
        assert_eq!(times(&[5, 20], &[0, 10]), Some(2.0));
        assert_eq!(times(&[5], &[0]), None);
        assert_eq!(times(&[], &[]), None);
    }

    #[test]
    fn a_row_without_answers_has_no_rate() {
        assert_eq!(row("a", &[0]).rate(), 0.0);
        assert_eq!(row("a", &[0]).spread(), None);
        assert_eq!(row("a", &[]).rate(), 0.0);
    }

    #[test]
    fn troubles_are_all_but_successes() {
        let mut row = row("a", &[5, 5]);
        row.rounds[0].round.statuses.insert(503, 2);
        row.rounds[1].round.statuses.insert(503, 1);
        row.rounds[1].round.broken.insert("reset".to_owned(), 4);
        let expected = [("reset".to_owned(), 4), ("status 503".to_owned(), 3)];
        assert_eq!(row.troubles(), BTreeMap::from(expected));
    }
}

//! `/`: what needs a person first, then how it goes.

use axum::extract::RawQuery;
use std::collections::BTreeMap;

use super::ask::Ask;
use super::shown::{self, Shown};
use crate::dashboard::overview::{self, Shown as Data};
use crate::metrics::past::{Sample, label_of};

/// Rows of each list of what waits.
const WAITING_SHOWN: usize = 5;
/// Lanes that are shown: those with the most failures.
const LANES_SHOWN: usize = 8;

/// The page.
pub async fn show(ask: Ask, RawQuery(query): RawQuery) -> Shown {
    let metrics = &ask.pages.api.metrics;
    let text = metrics.text();
    let day = query.is_some_and(|query| query.contains("span=day"));
    let mut samples = if day {
        metrics.past.day()
    } else {
        metrics.past.hour()
    };
    samples.push(Sample::read(&text, ask.looker.now));
    let first = |path: &str| format!("{path}&limit={WAITING_SHOWN}");
    let data = Data {
        alerts: ask.get("/alert").await?,
        sources: ask.get("/source").await?,
        waiting: [
            ask.get(&first("/event?status=needs_review")).await?,
            ask.get(&first("/effect?state=uncertain")).await?,
            ask.get(&first("/event?status=dead")).await?,
            ask.get(&first("/guard/key?state=unknown")).await?,
        ],
        samples,
        day,
        broken: ask.get("/lane").await?,
        lanes: lanes(&text),
    };
    shown::ok(&overview::page(&ask.looker, &data))
}

/// Attempts by lane, of lanes with failures, the worst first.
fn lanes(text: &str) -> Vec<(String, f64, f64)> {
    let mut lanes: BTreeMap<String, (f64, f64)> = BTreeMap::new();
    for line in text.lines() {
        let Some(rest) = line.strip_prefix("hapax_effect_attempts_total{") else {
            continue;
        };
        let Some((labels, value)) = rest.rsplit_once("} ") else {
            continue;
        };
        let (Some(lane), Ok(value)) = (label_of(labels, "lane"), value.parse::<f64>()) else {
            continue;
        };
        let counts = lanes.entry(lane.to_owned()).or_default();
        counts.0 += value;
        if label_of(labels, "outcome") != Some("applied") {
            counts.1 += value;
        }
    }
    let mut all: Vec<(String, f64, f64)> = lanes
        .into_iter()
        .map(|(lane, (all, failed))| (lane, all, failed))
        .filter(|(_, _, failed)| *failed > 0.0)
        .collect();
    all.sort_by(|one, other| other.2.total_cmp(&one.2));
    all.truncate(LANES_SHOWN);
    all
}

#[cfg(test)]
mod tests {
    use super::lanes;

    #[test]
    fn lanes_with_failures_are_found_the_worst_first() {
        let text = "hapax_effect_attempts_total{lane=\"a\",outcome=\"applied\"} 9\n\
            hapax_effect_attempts_total{lane=\"b\",outcome=\"error\"} 2\nhapax_effect_attempts_total{lane=\"b\",outcome=\"applied\"} 1\n\
            hapax_effect_attempts_total{lane=\"c\",outcome=\"lost\"} 5\n";
        let found = lanes(text);
        assert_eq!(
            found,
            [("c".to_owned(), 5.0, 5.0), ("b".to_owned(), 3.0, 2.0)]
        );
    }
}

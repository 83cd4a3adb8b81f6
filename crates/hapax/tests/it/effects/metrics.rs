//! What is counted of effects: each attempt and each end once, under the lane and the word that it belongs to.

use std::collections::BTreeMap;

use serde_json::json;

use super::scene::{Scene, effect, on_each_store};
use crate::support::clock::{TOO_LONG, until};
use crate::support::world::{Act, World};

const EVENTS: u64 = 3;

/// Lane, class, and how often each event's effect is attempted with which outcome; two attempts at most.
type Row = (&'static str, &'static str, &'static [(&'static str, u64)]);

const ATTEMPTS: [Row; 4] = [
    ("well", "keyed", &[("applied", 1)]),
    ("later", "keyed", &[("refused", 1), ("applied", 1)]),
    ("never", "keyed", &[("refused", 2)]),
    ("broken", "once", &[("error", 1)]),
];
/// How they end.
const ENDS: [(&str, &str); 4] = [
    ("well", "done"),
    ("later", "done"),
    ("never", "dead"),
    ("broken", "uncertain"),
];

/// A metric of `/metrics` by its labels, as far as something was counted.
fn counted(scene: &Scene, metric: &str) -> BTreeMap<String, u64> {
    let answer = scene.server.get("/metrics");
    let text = String::from_utf8_lossy(answer.body()).into_owned();
    let start = format!("hapax_{metric}_total{{");
    let lines = text.lines().filter_map(|line| {
        let (labels, count) = line.strip_prefix(start.as_str())?.split_once("} ")?;
        let count: u64 = count.parse().expect("a count");
        (count > 0).then(|| (labels.to_owned(), count))
    });
    lines.collect()
}

/// Attempts and ends are counted lane by lane: what one target refuses is not counted of another.
#[test]
fn attempts_and_ends_are_counted_by_lane() {
    on_each_store(|store| {
        let world = World::new(|seen| match (seen.target.as_str(), seen.before) {
            ("/later", 0) => Act::Answer(429),
            ("/never", _) => Act::Answer(422),
            ("/broken", _) => Act::Answer(500),
            _ => Act::Answer(200),
        });
        let effects = ATTEMPTS.map(|(lane, repeat, _)| {
            let more = format!("repeat = \"{repeat}\"\nretry = [\"0s\", \"0s\"]");
            effect(lane, &world.url(&format!("/{lane}")), &more)
        });
        let scene = Scene::new(store, &effects);
        for n in 0..EVENTS {
            scene.send(&format!("evt_{n}"), "t", &json!({}));
        }
        let settled = until(TOO_LONG, "all have ended and are counted", || {
            let settled = counted(&scene, "effects_settled");
            let all = settled.values().sum::<u64>() == EVENTS * ENDS.len() as u64;
            all.then_some(settled)
        });
        let ends = ENDS.map(|(lane, state)| {
            let labels = format!("lane=\"{lane}\",state=\"{state}\"");
            (labels, EVENTS)
        });
        assert_eq!(settled, BTreeMap::from(ends));
        let mut attempts = BTreeMap::new();
        for (lane, _, outcomes) in ATTEMPTS {
            for (outcome, each) in outcomes {
                let labels = format!("lane=\"{lane}\",outcome=\"{outcome}\"");
                attempts.insert(labels, each * EVENTS);
            }
        }
        assert_eq!(counted(&scene, "effect_attempts"), attempts);
    });
}

//! What follows from what was gathered. No store here: a table of events goes in, findings come out.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use hapax_ledger::event::{EventStatus, KeyOrigin};
use hapax_ledger::key::BodyHash;

use super::{EXAMPLES_MAX, Example, Expected, Finding, Gathered, Report, Sighted};

/// Judges a source's keys.
pub fn judge(source: &str, gathered: &Gathered, expected: &Expected) -> Report {
    let events = &gathered.events;
    let findings = [
        unstable(events),
        colliding(events, expected),
        varying(events, expected),
        fallen(events, expected),
        failed(events),
        late(events, expected),
        shared(events, expected),
    ];
    Report {
        source: source.to_owned(),
        looked_at: events.len(),
        more: gathered.more,
        findings: findings.into_iter().flatten().collect(),
    }
}

fn finding(
    kind: &'static str,
    what: impl Into<String>,
    advice: impl Into<String>,
    cases: Vec<Example>,
) -> Option<Finding> {
    (!cases.is_empty()).then(|| Finding {
        kind,
        count: cases.len(),
        what: what.into(),
        advice: advice.into(),
        examples: cases.into_iter().take(EXAMPLES_MAX).collect(),
    })
}

fn example<'a>(
    events: impl IntoIterator<Item = &'a Sighted>,
    detail: impl Into<String>,
) -> Example {
    let ids = events.into_iter().map(|event| event.id.to_string());
    Example {
        event_ids: ids.collect(),
        detail: detail.into(),
    }
}

/// The same bytes under different keys.
fn unstable(events: &[Sighted]) -> Option<Finding> {
    let mut by_body: HashMap<BodyHash, Vec<&Sighted>> = HashMap::new();
    for event in events {
        by_body.entry(event.body_hash).or_default().push(event);
    }
    let mut cases: Vec<Example> = Vec::new();
    for same in by_body.into_values() {
        let keys: BTreeSet<&str> = same.iter().map(|event| event.key.as_str()).collect();
        if keys.len() > 1 {
            let keys: Vec<&str> = keys.into_iter().collect();
            cases.push(example(same, format!("keys {}", keys.join(" and "))));
        }
    }
    cases.sort_by(|one, other| other.event_ids.cmp(&one.event_ids));
    finding(
        "unstable_key",
        "The same bytes came under different keys, so they became different events.",
        "The key holds something that changes between attempts, such as a delivery id or a time. Name stable fields in `key`.",
        cases,
    )
}

fn is_about_another_object(event: &Sighted, expected: &Expected) -> bool {
    let object = expected.object_field.as_deref();
    object.is_some_and(|object| event.differing.iter().any(|path| path == object))
}

/// The same key for different objects.
fn colliding(events: &[Sighted], expected: &Expected) -> Option<Finding> {
    let cases = events
        .iter()
        .filter(|event| is_about_another_object(event, expected));
    let cases = cases.map(|event| {
        let detail = format!("key {}: {} differ", event.key, event.differing.join(", "));
        example([event], detail)
    });
    finding(
        "colliding_key",
        "Different objects came under the same key: all but the first were taken for duplicates.",
        "The key is too coarse. Add the object's id to `key`, then promote the conflicts that were facts of their own.",
        cases.collect(),
    )
}

/// The same key with bodies that differ otherwise.
fn varying(events: &[Sighted], expected: &Expected) -> Option<Finding> {
    let varies =
        |event: &&Sighted| event.conflicts > 0 && !is_about_another_object(event, expected);
    let cases: Vec<&Sighted> = events.iter().filter(varies).collect();
    let mut paths: BTreeMap<&str, usize> = BTreeMap::new();
    for path in cases.iter().flat_map(|event| &event.differing) {
        *paths.entry(path).or_default() += 1;
    }
    let mut paths: Vec<(&str, usize)> = paths.into_iter().collect();
    paths.sort_by_key(|(path, count)| (std::cmp::Reverse(*count), *path));
    let named: Vec<String> = paths
        .iter()
        .take(EXAMPLES_MAX)
        .map(|(path, _)| format!("\"{path}\""))
        .collect();
    let advice = match named.is_empty() {
        true => "Look at the conflicting bodies; if the difference means nothing, name the fields in `volatile`.".to_owned(),
        false => format!(
            "If the difference means nothing, add volatile = [{}] to the source; if it does, the key is too coarse.",
            named.join(", ")
        ),
    };
    let examples = cases.iter().map(|event| {
        let differing = match event.differing.is_empty() {
            true => "the bodies differ".to_owned(),
            false => format!("{} differ", event.differing.join(", ")),
        };
        example([*event], format!("key {}: {differing}", event.key))
    });
    finding(
        "varying_body",
        "The same key came with different bodies.",
        advice,
        examples.collect(),
    )
}

/// Keys that fell down the ladder.
fn fallen(events: &[Sighted], expected: &Expected) -> Option<Finding> {
    let fell = events.iter().filter(|event| event.origin > expected.origin);
    let cases = fell.map(|event| {
        let detail = format!("its key is from the {} rung", event.origin);
        example([event], detail)
    });
    let advice = match expected.origin {
        KeyOrigin::Business => {
            "Fields that `key` names were missing. Name fields that every type has, or give those types a source of their own."
        }
        KeyOrigin::Provider | KeyOrigin::Composed => {
            "The field that the provider's preset takes the id from was missing or is not signed. Compare a body with the provider's documentation."
        }
        KeyOrigin::Body => "",
    };
    finding(
        "fallen_key",
        format!(
            "Keys were meant to come from the {} rung and did not.",
            expected.origin
        ),
        advice,
        cases.collect(),
    )
}

/// The sender keeps sending what failed here.
fn failed(events: &[Sighted]) -> Option<Finding> {
    let bouncing = events.iter().filter(|event| {
        let stuck = matches!(event.status, EventStatus::Dead | EventStatus::NeedsReview);
        stuck && event.duplicates > 0
    });
    let cases = bouncing.map(|event| {
        let detail = format!("{} and came {} times more", event.status, event.duplicates);
        example([event], detail)
    });
    finding(
        "repeat_of_failed",
        "Events that failed or wait for a person came again, and the repeats changed nothing.",
        "Resolve or retry them. If repeats should revive what was given up, set on_duplicate_of_failed = \"retry\".",
        cases.collect(),
    )
}

/// Deliveries later than the declared retry window.
fn late(events: &[Sighted], expected: &Expected) -> Option<Finding> {
    let days = expected.retry_window.secs_ceil() as f64 / 86_400.0;
    let cases = events.iter().filter_map(|event| {
        let after = event.last_at?.since(event.received_at);
        let late = after.micros() > expected.retry_window.micros();
        late.then(|| {
            let days = after.secs_ceil() as f64 / 86_400.0;
            example(
                [event],
                format!("came again {days:.1} days after the first time"),
            )
        })
    });
    finding(
        "late_delivery",
        format!("Repeats came later than the retry window of {days:.1} days."),
        "The provider tries for longer than declared, or somebody redelivered by hand. Raise `retry_window`, and `retain.identity` with it.",
        cases.collect(),
    )
}

/// Effects that were shared, perhaps by accident.
fn shared(events: &[Sighted], expected: &Expected) -> Option<Finding> {
    let mut cases = Vec::new();
    for event in events {
        for shared in &event.shared {
            let other_object = event.object_id != shared.object_id;
            let apart = event.received_at.since(shared.received_at).micros();
            let far = apart > expected.retry_window.micros();
            let why = match (other_object, far) {
                (true, _) => "their objects differ",
                (false, true) => "they came far apart in time",
                (false, false) => continue,
            };
            cases.push(Example {
                event_ids: vec![shared.first.to_string(), event.id.to_string()],
                detail: format!("share {} ({}), although {why}", shared.name, shared.key),
            });
        }
    }
    finding(
        "shared_effect",
        "Events that may have nothing to do with each other share an effect, so it was carried out once for both.",
        "If that was not meant, the effect's key is too coarse: add what tells the events apart.",
        cases,
    )
}

#[cfg(test)]
mod tests;

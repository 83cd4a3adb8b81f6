//! Effects as tables: where each stands, and what became of its attempts.

use hapax_ledger::key::wire_key;
use serde_json::{Value, json};

use super::answer::text;
use super::exit::Failure;
use super::rows::{self, Column, cell, members, table_of};
use super::table::Step;
use super::{effects_meaning, output};

/// The columns of a list. `nextOrLast` is made here, by [`row`].
const LIST: [Column; 8] = [
    ("id", "ID"),
    ("name", "NAME"),
    ("key", "KEY"),
    ("repeat", "CLASS"),
    ("state", "STATE"),
    ("attemptCount", "ATTEMPTS"),
    ("nextOrLast", "NEXT OR LAST"),
    ("eventId", "EVENT"),
];

/// How effects give way on a narrow terminal. The id stays whole: it is what is copied.
const STEPS: [Step; 7] = [
    Step::Drop("EVENT"),
    Step::Shrink("KEY", 12),
    Step::Drop("CLASS"),
    Step::Drop("KEY"),
    Step::Drop("ATTEMPTS"),
    Step::Shrink("NAME", 12),
    Step::Drop("NEXT OR LAST"),
];

/// The columns of an effect's attempts; those that say nothing are left out.
const ATTEMPTS: [Column; 8] = [
    ("forced", "GENERATION"),
    ("number", "ATTEMPT"),
    ("startedAt", "STARTED"),
    ("took", "TOOK"),
    ("outcome", "OUTCOME"),
    ("said", "SAID"),
    ("late", "SAID LATE"),
    ("node", "NODE"),
];

const ATTEMPT_STEPS: [Step; 4] = [
    Step::Drop("NODE"),
    Step::Shrink("SAID", 16),
    Step::Drop("GENERATION"),
    Step::Shrink("SAID LATE", 12),
];

/// A list of effects.
pub(super) fn list(page: &Value) -> Result<(), Failure> {
    let effects: Vec<Value> = members(&page["data"]).iter().map(row).collect();
    rows::list(page, "effects", table_of(&LIST, &effects), &STEPS)
}

/// The effects of one event, as a part of it.
pub(super) fn of_event(effects: &[Value]) -> Result<(), Failure> {
    let effects: Vec<Value> = effects.iter().map(row).collect();
    let all_but_event = &LIST[..LIST.len() - 1];
    rows::part("effects", all_but_event, &effects, &STEPS)
}

/// One effect with its attempts and the events that call for it.
pub(super) fn effect(effect: &Value) -> Result<(), Failure> {
    rows::facts(facts_of(effect))?;
    let attempts: Vec<Value> = members(&effect["attempts"]).iter().map(attempt).collect();
    let says = |(name, _): &Column| {
        attempts
            .iter()
            .any(|row| !cell(name, &row[name]).is_empty())
    };
    let columns: Vec<Column> = ATTEMPTS.into_iter().filter(says).collect();
    rows::part("attempts", &columns, &attempts, &ATTEMPT_STEPS)?;
    // One event is among the facts.
    let events = members(&effect["eventIds"]);
    if events.len() > 1 {
        let events: Vec<Value> = events.iter().map(|id| json!({ "id": id })).collect();
        rows::part("events that call for it", &[("id", "ID")], &events, &[])?;
    }
    if let Some(meaning) = effects_meaning::of(effect) {
        output::talk(&format!("\n{meaning}"));
    }
    Ok(())
}

/// The facts in the order in which somebody asks for them.
fn facts_of(effect: &Value) -> [(&'static str, String); 15] {
    let plain = |name: &str| text(&effect[name]);
    let generation = effect["generation"].as_u64().unwrap_or(1);
    let generation = u32::try_from(generation).unwrap_or(u32::MAX);
    let snapshot = effect["snapshot"].as_str();
    let next = match effect["gate"].as_str() {
        Some("open") => cell("nextAttemptAt", &effect["nextAttemptAt"]),
        _ => String::new(),
    };
    let lane = Some(plain("lane")).filter(|lane| *lane != plain("name"));
    [
        ("id", plain("id")),
        ("name", plain("name")),
        ("key", plain("key")),
        (
            "idempotency key",
            wire_key(&plain("name"), &plain("key"), generation),
        ),
        ("class", plain("repeat")),
        ("state", stands(effect)),
        ("event", plain("eventId")),
        ("entity", plain("entity")),
        ("lane", lane.unwrap_or_default()),
        (
            "generation",
            Some(generation)
                .filter(|n| *n > 1)
                .map_or_else(String::new, |n| n.to_string()),
        ),
        ("attempts", plain("attemptCount")),
        ("next attempt", next),
        ("last outcome", plain("lastOutcome")),
        ("last error", last_error(effect)),
        (
            "snapshot",
            snapshot.map_or_else(String::new, |text| {
                format!("{} bytes (--json has it)", text.len())
            }),
        ),
    ]
}

/// An effect as a row: with its next attempt, or what keeps it from one, or its last outcome.
fn row(effect: &Value) -> Value {
    let mut row = effect.clone();
    row["nextOrLast"] = match (effect["gate"].as_str(), &effect["skipReason"]) {
        (Some("open"), _) => cell("nextAttemptAt", &effect["nextAttemptAt"]).into(),
        (Some("waiting"), _) => "waits for others".into(),
        (Some("review"), _) => "waits for a person".into(),
        (_, Value::Null) => effect["lastOutcome"].clone(),
        (_, reason) => reason.clone(),
    };
    row
}

/// The state, with what it waits for or why it was skipped: `pending (waiting)`, `skipped (stale)`.
fn stands(effect: &Value) -> String {
    let state = text(&effect["state"]);
    let gate = effect["gate"].as_str().filter(|gate| *gate != "open");
    match gate.or(effect["skipReason"].as_str()) {
        Some(why) => format!("{state} ({why})"),
        None => state,
    }
}

/// What the latest attempt said, unless it all ended well.
fn last_error(effect: &Value) -> String {
    match effect["state"].as_str() {
        Some("done" | "skipped") | None => String::new(),
        Some(_) => members(&effect["attempts"])
            .last()
            .map_or_else(String::new, said),
    }
}

/// An attempt as a row.
fn attempt(attempt: &Value) -> Value {
    let mut row = attempt.clone();
    let late = text(&attempt["lateOutcome"]);
    row["forced"] = match attempt["generation"].as_u64() {
        Some(generation) if generation > 1 => generation.into(),
        _ => Value::Null,
    };
    row["took"] = took(&attempt["startedAt"], &attempt["endedAt"]).into();
    row["said"] = said(attempt).into();
    row["late"] = match late.is_empty() {
        true => Value::Null,
        false => format!("{late} at {}", cell("lateAt", &attempt["lateAt"])).into(),
    };
    row
}

/// What went wrong in words, or the first line of what the receiver said.
fn said(attempt: &Value) -> String {
    let error = text(&attempt["error"]);
    if !error.is_empty() {
        return error;
    }
    let response = text(&attempt["response"]);
    let lines = response.lines().map(str::trim);
    let first = lines.into_iter().find(|line| !line.is_empty());
    first.unwrap_or_default().to_owned()
}

/// `38 ms`, `2.4 s`, `130 s`.
fn took(from: &Value, to: &Value) -> String {
    let time = |value: &Value| value.as_str()?.parse::<jiff::Timestamp>().ok();
    let (Some(from), Some(to)) = (time(from), time(to)) else {
        return String::new();
    };
    match (to.as_microsecond() - from.as_microsecond()).max(0) / 1_000 {
        millis @ ..1_000 => format!("{millis} ms"),
        millis @ ..10_000 => format!("{}.{} s", millis / 1_000, millis % 1_000 / 100),
        millis => format!("{} s", millis / 1_000),
    }
}

#[cfg(test)]
mod tests;

//! Events as tables: what somebody at a terminal wants to see of the API's JSON.

use serde_json::Value;

use super::answer::text;
use super::effects_table;
use super::exit::Failure;
use super::rows::{self, Column, cell, members, table_of};
use super::table::Step;

/// The columns of a list.
const LIST: [Column; 7] = [
    ("id", "ID"),
    ("source", "SOURCE"),
    ("type", "TYPE"),
    ("key", "KEY"),
    ("status", "STATUS"),
    ("receivedAt", "RECEIVED"),
    ("deliveryCount", "SEEN"),
];

/// How a list gives way on a narrow terminal. The id stays whole: it is what is copied.
const LIST_STEPS: [Step; 6] = [
    Step::Shrink("KEY", 12),
    Step::Drop("SOURCE"),
    Step::Shrink("TYPE", 12),
    Step::Drop("RECEIVED"),
    Step::Drop("KEY"),
    Step::Drop("SEEN"),
];

const DELIVERIES: [Column; 8] = [
    ("at", "AT"),
    ("number", "N"),
    ("outcome", "OUTCOME"),
    ("conflict", "CONFLICT"),
    ("scheme", "SCHEME"),
    ("secretIndex", "SECRET"),
    ("signedAt", "SIGNED"),
    ("remote", "REMOTE"),
];

const DELIVERY_STEPS: [Step; 2] = [Step::Drop("SIGNED"), Step::Drop("SCHEME")];

const RUNS: [Column; 5] = [
    ("id", "ID"),
    ("kind", "KIND"),
    ("actor", "ACTOR"),
    ("reason", "REASON"),
    ("at", "AT"),
];

const TIMELINE: [Column; 4] = [
    ("at", "AT"),
    ("kind", "KIND"),
    ("actor", "WHO"),
    ("text", "WHAT"),
];

/// What happened to an event. On a terminal, sentences are cut to its width.
pub(super) fn timeline(told: &Value) -> Result<(), Failure> {
    let table = table_of(&TIMELINE, members(&told["data"]));
    rows::list(told, "entries", table, &[Step::Drop("WHO")])
}

/// A list of events.
pub(super) fn list(page: &Value) -> Result<(), Failure> {
    let table = table_of(&LIST, members(&page["data"]));
    rows::list(page, "events", table, &LIST_STEPS)
}

/// One event with all that hangs on it.
pub(super) fn event(event: &Value) -> Result<(), Failure> {
    rows::facts(facts_of(event))?;
    rows::part(
        "deliveries",
        &DELIVERIES,
        members(&event["deliveries"]),
        &DELIVERY_STEPS,
    )?;
    effects_table::of_event(members(&event["effects"]))?;
    rows::part("runs", &RUNS, members(&event["runs"]), &[])
}

/// The facts in the order in which somebody asks for them.
fn facts_of(event: &Value) -> [(&'static str, String); 14] {
    let plain = |name: &str| text(&event[name]);
    let key = match plain("keyOrigin") {
        origin if origin.is_empty() => plain("key"),
        origin => format!("{} ({origin})", plain("key")),
    };
    let error = [plain("lastErrorCode"), plain("lastErrorMessage")];
    let error: Vec<String> = error.into_iter().filter(|text| !text.is_empty()).collect();
    [
        ("id", plain("id")),
        ("source", plain("source")),
        ("type", plain("type")),
        ("status", plain("status")),
        ("key", key),
        ("provider event id", plain("providerEventId")),
        ("object", plain("objectId")),
        ("entity", plain("entity")),
        ("version", plain("version")),
        ("received", cell("receivedAt", &event["receivedAt"])),
        (
            "first processed",
            cell("firstProcessedAt", &event["firstProcessedAt"]),
        ),
        ("completed", cell("completedAt", &event["completedAt"])),
        ("deliveries", deliveries(event)),
        ("last error", error.join(": ")),
    ]
}

/// `3 (2 duplicates, 1 conflict)`.
fn deliveries(event: &Value) -> String {
    let counted = |name: &str, noun: &str| match event[name].as_u64() {
        None | Some(0) => None,
        Some(1) => Some(format!("1 {noun}")),
        Some(count) => Some(format!("{count} {noun}s")),
    };
    let kinds = [
        counted("duplicateCount", "duplicate"),
        counted("conflictCount", "conflict"),
    ];
    let kinds: Vec<String> = kinds.into_iter().flatten().collect();
    match kinds.is_empty() {
        true => text(&event["deliveryCount"]),
        false => format!("{} ({})", text(&event["deliveryCount"]), kinds.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_event_s_facts_in_the_order_of_the_questions() {
        let event = json!({
            "lastErrorMessage": "no key", "lastErrorCode": "H0210", "id": "evt_1", "key": "k", "keyOrigin": "body",
            "receivedAt": "2026-11-15T23:30:47.123456Z", "deliveryCount": 3, "duplicateCount": 2, "conflictCount": 1,
        });
        let facts = facts_of(&event).into_iter();
        let facts = facts.filter(|(_, fact)| !fact.is_empty());
        let lines: Vec<String> = facts.map(|(name, fact)| format!("{name}={fact}")).collect();
        assert_eq!(
            lines.join("; "),
            "id=evt_1; key=k (body); received=2026-11-15 23:30:47; deliveries=3 (2 duplicates, 1 conflict); last error=H0210: no key"
        );
    }
}

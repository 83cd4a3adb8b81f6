//! Events as tables: what somebody at a terminal wants to see of the API's JSON.

use comfy_table::ColumnConstraint;
use serde_json::{Value, json};

use super::answer::text;
use super::exit::Failure;
use super::output;

/// The facts of an event that come first; the rest follows as the API gives it.
const FIRST: [&str; 8] = [
    "id",
    "source",
    "type",
    "status",
    "lastErrorCode",
    "lastErrorMessage",
    "key",
    "keyOrigin",
];

/// The parts of an event that are lists, with the columns that fit a terminal.
const PARTS: [(&str, &[&str]); 3] = [
    (
        "deliveries",
        &[
            "at",
            "outcome",
            "scheme",
            "secretIndex",
            "signedAt",
            "conflict",
            "remote",
        ],
    ),
    (
        "effects",
        &[
            "id",
            "name",
            "key",
            "repeat",
            "state",
            "attemptCount",
            "lastOutcome",
        ],
    ),
    ("runs", &["id", "kind", "actor", "reason", "at"]),
];

/// A list of events.
pub(super) fn list(page: &Value) -> Result<(), Failure> {
    let rows = page["data"].as_array().map_or(&[][..], Vec::as_slice);
    if rows.is_empty() {
        output::talk("no events");
        return Ok(());
    }
    let columns = [
        "id",
        "source",
        "type",
        "key",
        "status",
        "receivedAt",
        "deliveryCount",
    ];
    output::data(&table_of(&columns, rows))?;
    if page["done"] == json!(false) {
        output::talk("there are more; --limit shows them");
    }
    Ok(())
}

/// One event with all that hangs on it.
pub(super) fn event(event: &Value) -> Result<(), Failure> {
    let mut facts = output::table(&[]);
    let fields = event.as_object().into_iter().flatten();
    let rest = fields
        .map(|(name, _)| name.as_str())
        .filter(|name| !FIRST.contains(name) && PARTS.iter().all(|(part, _)| part != name));
    for name in FIRST.into_iter().chain(rest) {
        if !event[name].is_null() {
            facts.add_row([name.to_owned(), text(&event[name])]);
        }
    }
    output::data(&output::trimmed(&mut facts))?;
    for (name, columns) in PARTS {
        let rows = event[name].as_array().map_or(&[][..], Vec::as_slice);
        if !rows.is_empty() {
            output::data(&format!("\n{name}\n{}", table_of(columns, rows)))?;
        }
    }
    Ok(())
}

fn table_of(columns: &[&str], rows: &[Value]) -> String {
    let heads: Vec<String> = columns.iter().map(|column| head(column)).collect();
    let heads: Vec<&str> = heads.iter().map(String::as_str).collect();
    let mut table = output::table(&heads);
    for row in rows {
        table.add_row(columns.iter().map(|column| cell(&row[column])));
    }
    // What is copied from a table must not be broken over lines.
    if let Some(first) = table.column_mut(0) {
        first.set_constraint(ColumnConstraint::ContentWidth);
    }
    output::trimmed(&mut table)
}

/// `secretIndex` as a head: `SECRET INDEX`.
fn head(column: &str) -> String {
    let mut head = String::new();
    for letter in column.chars() {
        if letter.is_ascii_uppercase() {
            head.push(' ');
        }
        head.push(letter.to_ascii_uppercase());
    }
    head
}

/// A value in few letters: a time without its fraction of a second.
fn cell(value: &Value) -> String {
    let text = text(value);
    let time: Option<jiff::Timestamp> = text.parse().ok();
    match time.and_then(|time| jiff::Timestamp::from_second(time.as_second()).ok()) {
        Some(time) => time.to_string(),
        None => text,
    }
}

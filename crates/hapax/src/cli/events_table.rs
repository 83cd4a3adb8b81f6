//! Events as tables: what somebody at a terminal wants to see of the API's JSON.

use serde_json::{Value, json};

use super::answer::text;
use super::exit::Failure;
use super::output;
use super::table::{Step, Table, cut};

/// The columns of a list: the field, and its head.
const LIST: [(&str, &str); 7] = [
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

/// The parts of an event that are lists, with their columns.
const PARTS: [(&str, &[(&str, &str)]); 3] = [
    (
        "deliveries",
        &[
            ("at", "AT"),
            ("outcome", "OUTCOME"),
            ("conflict", "CONFLICT"),
            ("scheme", "SCHEME"),
            ("secretIndex", "SECRET"),
            ("signedAt", "SIGNED"),
            ("remote", "REMOTE"),
        ],
    ),
    (
        "effects",
        &[
            ("id", "ID"),
            ("name", "NAME"),
            ("key", "KEY"),
            ("repeat", "REPEAT"),
            ("state", "STATE"),
            ("attemptCount", "ATTEMPTS"),
            ("lastOutcome", "LAST OUTCOME"),
        ],
    ),
    (
        "runs",
        &[
            ("id", "ID"),
            ("kind", "KIND"),
            ("actor", "ACTOR"),
            ("reason", "REASON"),
            ("at", "AT"),
        ],
    ),
];

/// So many rows of a part are shown from each end if it is longer than both together.
const PART_ROWS_END: usize = 10;
/// The characters of a hash that are enough to tell two apart: `sha256:935b0632` and the mark of the cut.
const HASH_CHARS: usize = 16;

/// A list of events.
pub(super) fn list(page: &Value) -> Result<(), Failure> {
    let rows = page["data"].as_array().map_or(&[][..], Vec::as_slice);
    if rows.is_empty() {
        output::talk("no events");
        return Ok(());
    }
    let width = output::width();
    let mut table = table_of(&LIST, rows);
    if width.is_some() {
        let hashes = table.rows.iter_mut().flatten();
        hashes
            .filter(|cell| cell.starts_with("sha256:"))
            .for_each(|cell| *cell = cut(cell, HASH_CHARS));
    }
    output::data(&table.render(width, &LIST_STEPS))?;
    if page["done"] == json!(false) {
        output::talk("there are more; --limit shows them");
    }
    Ok(())
}

/// One event with all that hangs on it.
pub(super) fn event(event: &Value) -> Result<(), Failure> {
    let mut facts = Table::default();
    for (name, fact) in facts_of(event) {
        if !fact.is_empty() {
            facts.rows.push(vec![name.to_owned(), fact]);
        }
    }
    // The facts are not cut: here is where the whole key is read.
    output::data(&facts.render(None, &[]))?;
    for (name, columns) in PARTS {
        let rows = event[name].as_array().map_or(&[][..], Vec::as_slice);
        if !rows.is_empty() {
            output::data(&format!("\n{name}\n{}", part(columns, rows)))?;
        }
    }
    Ok(())
}

/// The facts in the order in which somebody asks for them.
fn facts_of(event: &Value) -> [(&'static str, String); 13] {
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

/// A part in full, or both its ends if it is long.
fn part(columns: &[(&str, &'static str)], rows: &[Value]) -> String {
    let left_out = rows.len().saturating_sub(2 * PART_ROWS_END);
    if left_out == 0 {
        return table_of(columns, rows).render(output::width(), &[]);
    }
    // One table, so that both ends have the same widths.
    let ends: Vec<Value> = [&rows[..PART_ROWS_END], &rows[rows.len() - PART_ROWS_END..]].concat();
    let shown = table_of(columns, &ends).render(output::width(), &[]);
    let mut lines: Vec<String> = shown.lines().map(str::to_owned).collect();
    let gap = format!("… {left_out} more (--json has all)");
    lines.insert(1 + PART_ROWS_END, gap);
    lines.join("\n")
}

fn table_of(columns: &[(&str, &'static str)], rows: &[Value]) -> Table {
    let heads: Vec<&str> = columns.iter().map(|(_, head)| *head).collect();
    let mut table = Table::new(&heads);
    for row in rows {
        let cells = columns.iter().map(|(name, _)| cell(name, &row[name]));
        table.rows.push(cells.collect());
    }
    table
}

/// A value in few letters: a time in UTC without its fraction of a second, a flag as a mark.
fn cell(name: &str, value: &Value) -> String {
    match value {
        Value::Bool(true) => return "yes".to_owned(),
        Value::Bool(false) => return String::new(),
        _ => {}
    }
    let text = text(value);
    // A key may look like a time, and is shown as it is.
    let is_time = name == "at" || name.ends_with("At");
    match text.parse::<jiff::Timestamp>() {
        Ok(time) if is_time => time.strftime("%F %T").to_string(),
        _ => text,
    }
}

#[cfg(test)]
mod tests {
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

    #[test]
    fn of_many_deliveries_both_ends_are_shown() {
        let rows: Vec<Value> = (0..973)
            .map(|at| json!({"at": at, "conflict": at == 972}))
            .collect();
        let columns = [("at", "AT"), ("conflict", "CONFLICT")];
        let shown = part(&columns, &rows);
        let lines: Vec<&str> = shown.lines().collect();
        assert_eq!(lines.len(), 22);
        assert_eq!(lines[10..13], ["9", "… 953 more (--json has all)", "963"]);
        assert_eq!(lines[21], "972  yes");
        assert_eq!(part(&columns, &rows[..20]).lines().count(), 21);
    }
}

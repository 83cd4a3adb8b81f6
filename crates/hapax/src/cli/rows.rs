//! Rows of the API's JSON as tables: what somebody at a terminal wants to see of them.

use serde_json::{Value, json};

use super::answer::text;
use super::exit::Failure;
use super::output;
use super::table::{Step, Table, cut};

/// A column: the field, and its head.
pub(super) type Column = (&'static str, &'static str);

/// So many rows of a part are shown from each end if it is longer than both together.
const PART_ROWS_END: usize = 10;
/// The characters of a hash that are enough to tell two apart: `sha256:935b0632` and the mark of the cut.
const HASH_CHARS: usize = 16;

/// The members of a list; none if it is not there.
pub(super) fn members(list: &Value) -> &[Value] {
    list.as_array().map_or(&[], Vec::as_slice)
}

/// Writes a list of what is called `many`, and says whether there is more.
pub(super) fn list(
    page: &Value,
    many: &str,
    mut table: Table,
    steps: &[Step],
) -> Result<(), Failure> {
    if table.rows.is_empty() {
        output::talk(&format!("no {many}"));
        return Ok(());
    }
    let width = output::width();
    if width.is_some() {
        let hashes = table.rows.iter_mut().flatten();
        hashes
            .filter(|cell| cell.starts_with("sha256:"))
            .for_each(|cell| *cell = cut(cell, HASH_CHARS));
    }
    output::data(&table.render(width, steps))?;
    if page["done"] == json!(false) {
        output::talk("there are more; --limit shows them");
    }
    Ok(())
}

/// Writes facts, one per line. They are not cut: here is where the whole key is read.
pub(super) fn facts(
    facts: impl IntoIterator<Item = (&'static str, String)>,
) -> Result<(), Failure> {
    let mut table = Table::default();
    for (name, fact) in facts {
        if !fact.is_empty() {
            table.rows.push(vec![name.to_owned(), fact]);
        }
    }
    output::data(&table.render(None, &[]))
}

/// Writes a part under its name: in full, or both its ends if it is long. Nothing if it is empty.
pub(super) fn part(
    name: &str,
    columns: &[Column],
    rows: &[Value],
    steps: &[Step],
) -> Result<(), Failure> {
    match rows.is_empty() {
        true => Ok(()),
        false => {
            let shown = ends(columns, rows, output::width(), steps);
            output::data(&format!("\n{name}\n{shown}"))
        }
    }
}

fn ends(columns: &[Column], rows: &[Value], width: Option<usize>, steps: &[Step]) -> String {
    let left_out = rows.len().saturating_sub(2 * PART_ROWS_END);
    if left_out == 0 {
        return table_of(columns, rows).render(width, steps);
    }
    // One table, so that both ends have the same widths.
    let ends: Vec<Value> = [&rows[..PART_ROWS_END], &rows[rows.len() - PART_ROWS_END..]].concat();
    let shown = table_of(columns, &ends).render(width, steps);
    let mut lines: Vec<String> = shown.lines().map(str::to_owned).collect();
    let gap = format!("… {left_out} more (--json has all)");
    lines.insert(1 + PART_ROWS_END, gap);
    lines.join("\n")
}

/// Rows under the heads of these columns.
pub(super) fn table_of(columns: &[Column], rows: &[Value]) -> Table {
    let heads: Vec<&str> = columns.iter().map(|(_, head)| *head).collect();
    let mut table = Table::new(&heads);
    for row in rows {
        let cells = columns.iter().map(|(name, _)| cell(name, &row[name]));
        table.rows.push(cells.collect());
    }
    table
}

/// A value in few letters: a time in UTC without its fraction of a second, a flag as a mark.
pub(super) fn cell(name: &str, value: &Value) -> String {
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
    fn of_many_rows_both_ends_are_shown() {
        let rows: Vec<Value> = (0..973)
            .map(|at| json!({"at": at, "conflict": at == 972}))
            .collect();
        let columns = [("at", "AT"), ("conflict", "CONFLICT")];
        let shown = ends(&columns, &rows, None, &[]);
        let lines: Vec<&str> = shown.lines().collect();
        assert_eq!(lines.len(), 22);
        assert_eq!(lines[10..13], ["9", "… 953 more (--json has all)", "963"]);
        assert_eq!(lines[21], "972  yes");
        let all = ends(&columns, &rows[..20], None, &[]);
        assert_eq!(all.lines().count(), 21);
    }
}

//! Where words go: data to stdout, talk to stderr, colour only to a terminal, tables as wide as it is.

use std::io::{self, ErrorKind, Write};

use comfy_table::{ContentArrangement, Table};

use super::exit::{Exit, Failure};

/// The width of a table if nobody says how wide the terminal is.
const WIDTH_DEFAULT: u16 = 100;
/// Below this a table is unreadable, however narrow the terminal.
const WIDTH_MIN: u16 = 40;

/// Writes data.
pub(super) fn data(text: &str) -> Result<(), Failure> {
    write_line(&mut anstream::stdout().lock(), text)
}

/// Writes data as JSON.
pub(super) fn json(value: &serde_json::Value) -> Result<(), Failure> {
    data(&format!("{value:#}"))
}

/// Writes talk. If even stderr is gone, nobody is left to tell.
pub(super) fn talk(text: &str) {
    let _ = writeln!(anstream::stderr().lock(), "{text}");
}

fn write_line(out: &mut impl Write, text: &str) -> Result<(), Failure> {
    match writeln!(out, "{text}").and_then(|()| out.flush()) {
        Ok(()) => Ok(()),
        // `hapax events list | head`: the reader has enough.
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        Err(error) => Err(unwritable(&error)),
    }
}

fn unwritable(error: &io::Error) -> Failure {
    let text = format!("the output cannot be written: {error}");
    Failure::new(
        Exit::Failed,
        "H0406",
        text,
        "look at where stdout goes, and whether there is space",
    )
}

/// An empty table with a head, as wide as the terminal.
pub(super) fn table(head: &[&str]) -> Table {
    let mut table = Table::new();
    table
        .load_style(comfy_table::presets::NOTHING)
        .set_content_arrangement(ContentArrangement::Dynamic)
        .set_width(width());
    if !head.is_empty() {
        table.set_header(head);
    }
    table
}

/// A table as text, two spaces between columns and none at the ends of lines.
pub(super) fn trimmed(table: &mut Table) -> String {
    table.column_iter_mut().for_each(|column| {
        column.set_padding((0, 2));
    });
    let lines: Vec<String> = table
        .lines()
        .map(|line| line.trim_end().to_owned())
        .collect();
    lines.join("\n")
}

fn width() -> u16 {
    let columns = std::env::var("COLUMNS")
        .ok()
        .and_then(|text| text.parse().ok());
    let terminal = || terminal_size::terminal_size().map(|(width, _)| width.0);
    columns
        .or_else(terminal)
        .unwrap_or(WIDTH_DEFAULT)
        .max(WIDTH_MIN)
}

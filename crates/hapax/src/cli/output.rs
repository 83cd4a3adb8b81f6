//! Where words go: data to stdout, talk to stderr, colour only to a terminal, lines as wide as it is.

use std::io::{self, ErrorKind, IsTerminal, Write};

use super::exit::{Exit, Failure};

/// The width of a terminal that does not say how wide it is.
const WIDTH_DEFAULT: usize = 100;
/// Below this a table is unreadable, however narrow the terminal.
const WIDTH_MIN: usize = 40;

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

/// How wide a line of data may be; nothing if no person reads it, so that `grep` and `awk` see all of it.
pub(super) fn width() -> Option<usize> {
    if !io::stdout().is_terminal() {
        return None;
    }
    let columns = std::env::var("COLUMNS")
        .ok()
        .and_then(|text| text.parse().ok());
    let terminal = || terminal_size::terminal_size().map(|(width, _)| width.0.into());
    let width = columns.or_else(terminal).unwrap_or(WIDTH_DEFAULT);
    Some(width.max(WIDTH_MIN))
}

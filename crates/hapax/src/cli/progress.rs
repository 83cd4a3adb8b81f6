//! A line that says how far something is, drawn over itself. Only a person at a terminal sees it.

use std::io::{IsTerminal, Write};

/// Cells of a bar.
const CELLS: u64 = 24;

/// A bar with a total, or a count without one.
pub(super) struct Bar {
    what: &'static str,
    shown: bool,
}

impl Bar {
    /// Of something that is being done.
    pub(super) fn new(what: &'static str) -> Bar {
        Bar {
            what,
            shown: std::io::stderr().is_terminal(),
        }
    }

    /// So much of it is done.
    pub(super) fn at(&self, done: u64, total: Option<u64>) {
        self.draw(&line(self.what, done, total));
    }

    /// Does anybody see it?
    pub(super) fn is_shown(&self) -> bool {
        self.shown
    }

    /// This line instead of the one before.
    pub(super) fn draw(&self, line: &str) {
        if self.shown {
            let mut stderr = anstream::stderr().lock();
            let _ = write!(stderr, "\r\x1b[2K{line}");
            let _ = stderr.flush();
        }
    }

    /// It is over, and the line stays.
    pub(super) fn keep(&self) {
        if self.shown {
            let _ = writeln!(anstream::stderr().lock());
        }
    }

    /// It is over, well or not: the line goes.
    pub(super) fn end(&self) {
        self.draw("");
    }
}

/// `copying  [######..................]  25%  512 of 2048`
pub(super) fn line(what: &str, done: u64, total: Option<u64>) -> String {
    let Some(total) = total.filter(|total| *total > 0) else {
        return format!("{what}  {done}");
    };
    let done = done.min(total);
    let full = (u128::from(done) * u128::from(CELLS) / u128::from(total)) as usize;
    let percent = u128::from(done) * 100 / u128::from(total);
    let bar: String = (0..CELLS as usize)
        .map(|cell| if cell < full { '#' } else { '.' })
        .collect();
    format!("{what}  [{bar}]  {percent}%  {done} of {total}")
}

#[cfg(test)]
mod tests {
    use super::line;

    #[test]
    fn how_far_in_one_line() {
        let half = line("copying", 512, Some(1_024));
        assert_eq!(
            half,
            "copying  [############............]  50%  512 of 1024"
        );
        assert_eq!(line("copying", 7, None), "copying  7");
        assert!(line("x", u64::MAX, Some(u64::MAX)).contains("100%"));
        assert!(line("x", 9, Some(3)).ends_with("100%  3 of 3"));
    }
}

//! Tables of one line per row: whole where a program reads, cut to the width where a person does.

/// What stands where something was cut off.
const CUT: char = '…';
/// Between two columns.
const GAP: &str = "  ";

/// How a table gets narrower, step by step, until it fits.
#[derive(Clone, Copy, Debug)]
pub(super) enum Step {
    /// The column of this head may go down to so many characters.
    Shrink(&'static str, usize),
    /// The column of this head goes.
    Drop(&'static str),
}

/// Rows under heads.
#[derive(Debug, Default)]
pub(super) struct Table {
    /// Empty if there are no heads to show.
    pub(super) heads: Vec<&'static str>,
    pub(super) rows: Vec<Vec<String>>,
}

impl Table {
    pub(super) fn new(heads: &[&'static str]) -> Table {
        Table {
            heads: heads.to_vec(),
            rows: Vec::new(),
        }
    }

    /// The table as text. Without a width nothing is cut.
    pub(super) fn render(mut self, width: Option<usize>, steps: &[Step]) -> String {
        if !self.heads.is_empty() {
            let heads = self.heads.iter().map(|head| (*head).to_owned());
            self.rows.insert(0, heads.collect());
        }
        for cell in self.rows.iter_mut().flatten() {
            *cell = one_line(cell);
        }
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let mut widths: Vec<Option<usize>> = (0..columns).map(|at| Some(self.widest(at))).collect();
        if let Some(width) = width {
            for step in steps {
                self.narrow(&mut widths, *step, width);
            }
        }
        let lines = self.rows.iter().map(|row| line(row, &widths));
        let lines = lines.map(|line| match width {
            Some(width) => cut(&line, width),
            None => line,
        });
        lines.collect::<Vec<_>>().join("\n")
    }

    fn widest(&self, column: usize) -> usize {
        let cells = self.rows.iter().filter_map(|row| row.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    }

    /// Takes a step, if it is still too wide.
    fn narrow(&self, widths: &mut [Option<usize>], step: Step, width: usize) {
        let shown = widths.iter().flatten();
        let total = shown.clone().sum::<usize>() + shown.count().saturating_sub(1) * GAP.len();
        let excess = total.saturating_sub(width);
        let (Step::Shrink(name, _) | Step::Drop(name)) = step;
        let Some(column) = self.heads.iter().position(|head| *head == name) else {
            return;
        };
        if excess > 0 {
            widths[column] = match (step, widths[column]) {
                (Step::Shrink(_, least), Some(have)) => {
                    Some(have.saturating_sub(excess).max(least.min(have)))
                }
                (Step::Drop(_), _) | (_, None) => None,
            };
        }
    }
}

/// A row, every cell as wide as its column; a column without a width is not shown.
fn line(row: &[String], widths: &[Option<usize>]) -> String {
    let cells = row.iter().zip(widths);
    let cells = cells.filter_map(|(cell, width)| {
        let width = (*width)?;
        Some(format!("{:width$}", cut(cell, width)))
    });
    let line = cells.collect::<Vec<_>>().join(GAP);
    line.trim_end().to_owned()
}

/// A text in at most so many characters.
pub(super) fn cut(text: &str, chars_max: usize) -> String {
    match text.char_indices().nth(chars_max) {
        None => text.to_owned(),
        Some(_) => {
            let kept = text.chars().take(chars_max.saturating_sub(1));
            kept.chain((chars_max > 0).then_some(CUT)).collect()
        }
    }
}

/// A key comes from outside: whatever is in it, it takes one line and does nothing to the terminal.
pub(super) fn one_line(text: &str) -> String {
    let plain = |letter: char| if letter.is_control() { ' ' } else { letter };
    text.chars().map(plain).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const STEPS: [Step; 2] = [Step::Shrink("KEY", 4), Step::Drop("SOURCE")];

    fn table() -> Table {
        let mut table = Table::new(&["ID", "SOURCE", "KEY", "SEEN"]);
        let row = |cells: [&str; 4]| cells.map(str::to_owned).to_vec();
        table.rows.push(row(["e1", "demo", "a long\nkey", "1"]));
        table.rows.push(row(["e2", "demo", "ä", ""]));
        table
    }

    #[test]
    fn a_table_gets_narrower_by_its_steps() {
        for (width, want) in [
            (
                None,
                "ID  SOURCE  KEY         SEEN\ne1  demo    a long key  1\ne2  demo    ä",
            ),
            (
                Some(28),
                "ID  SOURCE  KEY         SEEN\ne1  demo    a long key  1\ne2  demo    ä",
            ),
            (
                Some(25),
                "ID  SOURCE  KEY      SEEN\ne1  demo    a long…  1\ne2  demo    ä",
            ),
            (Some(20), "ID  KEY   SEEN\ne1  a l…  1\ne2  ä"),
            (Some(10), "ID  KEY  …\ne1  a l… …\ne2  ä"),
        ] {
            assert_eq!(table().render(width, &STEPS), want, "{width:?}");
        }
    }
}

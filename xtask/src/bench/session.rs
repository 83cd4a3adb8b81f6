//! One run of a bench: rows are taken one after the other, then reported together.

use anyhow::ensure;
use indicatif::{ProgressBar, ProgressStyle};

use super::Load;
use super::process;
use super::report::Report;
use super::row::{Measured, Row};
use super::server::Server;
use crate::load::{Generator, Order, Signal};

/// A bench in progress.
#[derive(Debug)]
pub(super) struct Session {
    name: String,
    load: Load,
    rows: Vec<Row>,
}

impl Session {
    /// A bench called `name`, the name of its file of results, under this load.
    pub(super) fn new(name: &str, load: &Load) -> Session {
        Session {
            name: name.to_owned(),
            load: load.clone(),
            rows: Vec::new(),
        }
    }

    /// Takes rows by turns, a round of each at a time, so that a row and its ceiling see the same machine: what else goes on there
    /// comes and goes within minutes. `turn` is handed the load of one turn.
    pub(super) fn by_turns(
        &mut self,
        mut turn: impl FnMut(&mut Session, &Load) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        let one = Load {
            rounds: 1,
            ..self.load.clone()
        };
        (0..self.load.rounds).try_for_each(|_| turn(self, &one))
    }

    /// Takes the row `name`, or more rounds of it: carries out `order`, which must be addressed to `server`.
    pub(super) fn measure(
        &mut self,
        name: &str,
        order: &Order,
        server: &Server,
    ) -> anyhow::Result<()> {
        ensure!(
            order.address == server.address(),
            "the order is for another server"
        );
        let generator = Generator::start(order)?;
        self.take(&[name], generator, server.pid())
    }

    /// Takes the rows `names` from a program that measures itself: it reports each round once for each of them.
    pub(super) fn measure_itself(
        &mut self,
        names: &[&str],
        program: Generator,
    ) -> anyhow::Result<()> {
        let pid = program.pid();
        self.take(names, program, pid)
    }

    fn take(
        &mut self,
        names: &[&str],
        mut generator: Generator,
        measured_pid: u32,
    ) -> anyhow::Result<()> {
        let bar = progress(&names.join(", "));
        let mut before = None;
        let mut rounds: Vec<Vec<Measured>> = vec![Vec::new(); names.len()];
        let mut turns = (0..names.len()).cycle();
        while let Some(signal) = generator.next_signal()? {
            let after = process::usage(measured_pid);
            if let Signal::Round(round) = signal {
                bar.set_message(format!("{:.0}/s", round.rate()));
                // What a process used is nobody's in particular where it measures several things by turns.
                let shared = names.len() > 1;
                let (before, after) = match shared {
                    true => (None, None),
                    false => (before, after),
                };
                let turn = turns.next().unwrap_or_default();
                rounds[turn].push(Measured::between(round, before, after));
            }
            before = after;
            bar.inc(1);
        }
        bar.finish_and_clear();
        for (name, rounds) in names.iter().zip(rounds) {
            self.keep(name, rounds);
        }
        Ok(())
    }

    fn keep(&mut self, name: &str, rounds: Vec<Measured>) {
        match self.rows.iter_mut().find(|row| row.name == name) {
            Some(row) => row.rounds.extend(rounds),
            None => self.rows.push(Row {
                name: name.to_owned(),
                rounds,
            }),
        }
    }

    /// The row `name`, if it was taken.
    pub(super) fn row(&self, name: &str) -> Option<&Row> {
        self.rows.iter().find(|row| row.name == name)
    }

    /// How many rounds of a row were taken.
    pub(super) fn rounds(&self, name: &str) -> usize {
        self.row(name).map_or(0, |row| row.rounds.len())
    }

    /// Prints the table with ratios to the row `ceiling`, and keeps the results for the next run to compare with.
    pub(super) fn finish(self, ceiling: &str) -> anyhow::Result<()> {
        let report = Report::new(self.name, self.load, self.rows);
        let previous = report.previous();
        println!("{}", report.table(ceiling, previous.as_ref()));
        for line in report.troubles() {
            println!("{line}");
        }
        println!("Kept in {}.", report.keep()?.display());
        Ok(())
    }
}

/// Counts rounds, the warm-up included; how many a program makes is its own affair.
fn progress(name: &str) -> ProgressBar {
    let bar = ProgressBar::new_spinner();
    if let Ok(style) = ProgressStyle::with_template("{prefix:<24} {spinner} {pos} {msg}") {
        bar.set_style(style);
    }
    bar.set_prefix(name.to_owned());
    bar.set_message("warming up");
    bar
}

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

    /// Takes the row `name`: carries out `order`, which must be addressed to `server`.
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
        self.take(&[name], order.rounds, generator, server.pid())
    }

    /// Takes the rows `names` from a program that measures itself: it reports each round once for each of them.
    pub(super) fn measure_itself(
        &mut self,
        names: &[&str],
        program: Generator,
    ) -> anyhow::Result<()> {
        let pid = program.pid();
        self.take(names, self.load.rounds, program, pid)
    }

    fn take(
        &mut self,
        names: &[&str],
        count: u32,
        mut generator: Generator,
        measured_pid: u32,
    ) -> anyhow::Result<()> {
        let bar = progress(&names.join(", "), count * names.len() as u32);
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
        let rows = names.iter().zip(rounds).map(|(name, rounds)| Row {
            name: (*name).to_owned(),
            rounds,
        });
        self.rows.extend(rows);
        Ok(())
    }

    /// The row `name`, if it was taken.
    pub(super) fn row(&self, name: &str) -> Option<&Row> {
        self.rows.iter().find(|row| row.name == name)
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

fn progress(name: &str, rounds: u32) -> ProgressBar {
    let bar = ProgressBar::new(u64::from(rounds) + 1);
    if let Ok(style) = ProgressStyle::with_template("{prefix:<24} {bar:30} {pos}/{len} {msg}") {
        bar.set_style(style);
    }
    bar.set_prefix(name.to_owned());
    bar.set_message("warming up");
    bar
}

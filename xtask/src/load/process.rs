//! The bench's side of the generator's process.

use std::io::{BufRead, BufReader, Lines};
use std::process::{Child, ChildStdout, Command, Stdio};

use anyhow::{Context, bail};
use serde::Serialize;

use super::order::{Order, Signal};

/// A running generator, or another program that takes an order and reports rounds as it does. Dropping it ends the process.
#[derive(Debug)]
pub(crate) struct Generator {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Generator {
    /// Starts a process that carries out `order`.
    pub(crate) fn start(order: &Order) -> anyhow::Result<Generator> {
        let program = std::env::current_exe().context("xtask does not find itself")?;
        Generator::start_program(Command::new(program).arg("load"), order)
    }

    /// Starts another program that carries out `order`.
    pub(crate) fn start_program(
        command: &mut Command,
        order: &impl Serialize,
    ) -> anyhow::Result<Generator> {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .context("could not start the load generator")?;
        let stdin = child.stdin.take().context("stdin was piped")?;
        let stdout = child.stdout.take().context("stdout was piped")?;
        let generator = Generator {
            child,
            lines: BufReader::new(stdout).lines(),
        };
        serde_json::to_writer(stdin, order).context("the load generator took no order")?;
        Ok(generator)
    }

    /// Its process.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Waits for the next signal; `None` when the order is done.
    pub(crate) fn next_signal(&mut self) -> anyhow::Result<Option<Signal>> {
        if let Some(line) = self.lines.next() {
            let line = line.context("the load generator's output broke off")?;
            let signal = serde_json::from_str(&line)
                .with_context(|| format!("the load generator said {line:?}"))?;
            return Ok(Some(signal));
        }
        let status = self.child.wait().context("the load generator is lost")?;
        if !status.success() {
            bail!("the load generator ended with {status}");
        }
        Ok(None)
    }
}

impl Drop for Generator {
    fn drop(&mut self) {
        // Both fail only if it has ended already, which is what is wanted.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

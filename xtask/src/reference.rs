//! `cargo xt reference`: the pages that the program writes itself. The tests that compare them write them, if told to.

use std::process::{Command, ExitCode};

use anyhow::Context;

use crate::workspace;

/// What the tests look for.
const WRITE: [&str; 2] = ["HAPAX_WRITE_REFERENCE", "HAPAX_WRITE_GUIDE"];
/// The tests that write.
const TESTS: &str = "test(/^reference::/) or test(every_page_is_what_the_program_does)";

/// Writes them all.
pub(crate) fn run() -> anyhow::Result<ExitCode> {
    let mut command = Command::new("cargo");
    command
        .args(["nextest", "run", "-p", "hapax", "-E", TESTS])
        .current_dir(workspace::root())
        .envs(WRITE.map(|name| (name, "1")));
    let status = command.status().context("could not start cargo nextest")?;
    Ok(workspace::exit_code(status))
}

//! The command line of `cargo xt`.

use std::process::ExitCode;

use anyhow::Context;
use clap::{Parser, Subcommand};

use crate::steps::Steps;
use crate::{
    bench, check, ci, explore, load, pages, postgres, reference, schema, sdk, test, tidy, workspace,
};

/// Automation for working on Hapax.
#[derive(Debug, Parser)]
#[command(name = "cargo xt", bin_name = "cargo xt")]
pub(crate) struct Xt {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Format, clippy, tidy and documentation, all with warnings as errors.
    Check,
    /// All tests, with a throw-away PostgreSQL if one is installed.
    Test(test::Args),
    /// The random tests with new seeds, again and again, with a throw-away PostgreSQL if one is installed.
    Explore(explore::Args),
    /// The description of the API against a served instance, with generated requests.
    Schema(schema::Args),
    /// A served instance, driven with the Svix SDKs for Python, JavaScript and Rust.
    Sdk,
    /// The web pages of a served instance, driven in Chromium.
    Pages,
    /// Writes docs/reference and the outputs in docs/guide anew, from what the program says.
    Reference,
    /// The absences of ARCHITECTURE.md, checked on the text of the repository.
    Tidy,
    /// A measurement. Prints and keeps numbers, never fails because of them.
    Bench(bench::Args),
    /// What ./test runs: check, all tests with PostgreSQL, the description of the API, the SDKs, and the pages.
    Ci(ci::Args),
    /// A command with a throw-away PostgreSQL in HAPAX_TEST_POSTGRES: `cargo xt pg -- CMD ARGS`.
    Pg {
        /// The command and its arguments.
        #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
        command: Vec<String>,
    },
    /// The load generator; reads its order as JSON from stdin.
    #[command(hide = true)]
    Load,
    /// The server that `bench ceiling` measures; ends when its stdin is closed.
    #[command(hide = true)]
    CeilingServer {
        /// The loopback port to listen on.
        #[arg(long)]
        port: u16,
    },
}

/// Carries out one command line.
pub(crate) fn run(xt: Xt) -> anyhow::Result<ExitCode> {
    match xt.command {
        Command::Check => {
            let mut steps = Steps::start();
            check::all(&mut steps);
            Ok(steps.finish())
        }
        Command::Test(args) => test::run(&args),
        Command::Explore(args) => explore::run(&args),
        Command::Schema(args) => Ok(schema::run(&args)),
        Command::Sdk => Ok(sdk::run()),
        Command::Pages => Ok(pages::run()),
        Command::Reference => reference::run(),
        Command::Tidy => {
            tidy::run(&workspace::root())?;
            Ok(ExitCode::SUCCESS)
        }
        Command::Bench(args) => bench::run(&args),
        Command::Ci(args) => ci::run(&args),
        Command::Pg { command } => with_postgres(&command),
        Command::Load => {
            load::serve_order()?;
            Ok(ExitCode::SUCCESS)
        }
        Command::CeilingServer { port } => {
            bench::ceiling_server::run(port)?;
            Ok(ExitCode::SUCCESS)
        }
    }
}

fn with_postgres(command: &[String]) -> anyhow::Result<ExitCode> {
    let server = postgres::ThrowAway::start()?;
    let (program, arguments) = command.split_first().context("no command given")?;
    let status = std::process::Command::new(program)
        .args(arguments)
        .env(postgres::URL_VARIABLE, server.url())
        .status()
        .with_context(|| format!("could not start {program}"))?;
    // Dropped here, not by `exit`: the server stops before we do.
    drop(server);
    Ok(workspace::exit_code(status))
}

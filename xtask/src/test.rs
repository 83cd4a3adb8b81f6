//! `cargo xt test`: all tests, with nextest where it is installed.

use std::env;
use std::process::{Command, ExitCode};

use crate::postgres::{self, ThrowAway};
use crate::steps::Steps;
use crate::workspace::{cargo, succeed, succeeds_quietly};

/// What `cargo xt test` takes.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Do not start PostgreSQL; tests that need it say that they were skipped.
    #[arg(long)]
    no_postgres: bool,
    /// Handed on to the test runner: parts of test names. Documentation tests run only without them.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    filters: Vec<String>,
}

/// Runs `cargo xt test`.
pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let mut steps = Steps::start();
    let given = env::var(postgres::URL_VARIABLE).ok();
    if args.no_postgres || given.is_some() {
        all(&mut steps, &args.filters, given.as_deref());
    } else if ThrowAway::installed() {
        let server = steps.attempt("start PostgreSQL", ThrowAway::start);
        let url = server.as_ref().map(ThrowAway::url);
        all(&mut steps, &args.filters, url);
    } else {
        println!("PostgreSQL is not installed: its tests will say that they were skipped.");
        all(&mut steps, &args.filters, None);
    }
    Ok(steps.finish())
}

/// All tests of the workspace, each kind a step; those of PostgreSQL at `postgres`, if given.
pub(crate) fn all(steps: &mut Steps, filters: &[String], postgres: Option<&str>) {
    let nextest = succeeds_quietly(&mut cargo(["nextest", "--version"]));
    let mut tests = if nextest {
        cargo(["nextest", "run", "--workspace", "--all-features"])
    } else {
        // Without `--all-targets`, so that documentation tests are among them.
        cargo(["test", "--workspace", "--all-features"])
    };
    tests.args(filters);
    steps.run("tests", || succeed(at(&mut tests, postgres)));
    if nextest && filters.is_empty() {
        let mut doctests = cargo(["test", "--workspace", "--all-features", "--doc", "--quiet"]);
        steps.run("documentation tests", || {
            succeed(at(&mut doctests, postgres))
        });
    }
}

fn at<'a>(command: &'a mut Command, postgres: Option<&str>) -> &'a mut Command {
    match postgres {
        Some(url) => command.env(postgres::URL_VARIABLE, url),
        None => command.env_remove(postgres::URL_VARIABLE),
    }
}

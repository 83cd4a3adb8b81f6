//! `cargo xt bench NAME`: measurements that print a table and keep their numbers, and never fail because of them.
//!
//! A bench starts its server ([`server`]), takes one or more rows with a [`session::Session`] (each row one order to
//! the load generator: warm-up, several rounds, the median counts), and finishes with a [`report`] that
//! compares every row with a ceiling taken in the same run and with the previous run on this machine.
//! A new bench: a file here, a variant of [`Name`], an arm in [`run`].

mod ceiling;
pub(crate) mod ceiling_server;
mod dispatch;
mod guard;
mod intake;
mod outbox;
mod process;
mod report;
mod row;
mod server;
mod session;

use std::path::PathBuf;
use std::process::ExitCode;

use serde::{Deserialize, Serialize};

use crate::workspace;

/// What `cargo xt bench` takes.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// What to measure.
    name: Name,
    /// What a large store holds before it is measured: events, effects that wait, or attempts (0: no large store).
    /// 5 million events for `intake`, 1 million effects for `dispatch`, 10 million attempts for `outbox` unless told.
    #[arg(long)]
    fill: Option<u64>,
    #[command(flatten)]
    load: Load,
}

/// The benches there are.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Name {
    /// The load generator against a server that does nothing: what this machine could reach at most.
    Ceiling,
    /// Durable acks per second at `/in/{source}`, as a share of the same server that stores nothing.
    Intake,
    /// Effects a second from accept to done, as a share of the bare sender; how long one takes; lanes that are down.
    Dispatch,
    /// Guarded requests a second, first ones and replays, as a share of the same proxy that passes them; how much longer one takes.
    Guard,
    /// Messages a second, as a share of the intake's ceiling; deliveries a second, as a share of the bare sender; endpoints that
    /// are bad, and what the others notice of them; statistics beside many attempts.
    Outbox,
}

impl Name {
    /// What a large store holds unless told.
    fn fill(self) -> u64 {
        match self {
            Name::Ceiling | Name::Guard => 0,
            Name::Intake => 5_000_000,
            Name::Dispatch => 1_000_000,
            Name::Outbox => 10_000_000,
        }
    }
}

/// How much load, for how long.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, clap::Args)]
pub(crate) struct Load {
    /// Connections, each with one request in flight.
    #[arg(long, default_value_t = 64)]
    pub(crate) connections: u32,
    /// Threads of the load generator.
    #[arg(long, default_value_t = 1)]
    pub(crate) threads: u32,
    /// Rounds that are counted; the median is the result.
    #[arg(long, default_value_t = 5)]
    pub(crate) rounds: u32,
    /// Length of a round in milliseconds.
    #[arg(long, default_value_t = 2000)]
    pub(crate) round_ms: u64,
    /// Time before the first round in milliseconds.
    #[arg(long, default_value_t = 1000)]
    pub(crate) warmup_ms: u64,
    /// Length of a request's body.
    #[arg(long, default_value_t = 1024)]
    pub(crate) body_bytes: usize,
    /// See [`Args::fill`].
    #[arg(skip)]
    pub(crate) fill: u64,
    /// Leave PostgreSQL out.
    #[arg(long)]
    pub(crate) no_postgres: bool,
}

/// Runs `cargo xt bench`.
pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    if cfg!(debug_assertions) {
        return rerun_in_release();
    }
    let load = Load {
        fill: args.fill.unwrap_or(args.name.fill()),
        ..args.load.clone()
    };
    match args.name {
        Name::Ceiling => ceiling::run(&load)?,
        Name::Intake => intake::run(&load)?,
        Name::Dispatch => dispatch::run(&load)?,
        Name::Guard => guard::run(&load)?,
        Name::Outbox => outbox::run(&load)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// `cargo xt` is a debug build, quick to make; a debug build of the generator would measure mostly itself.
fn rerun_in_release() -> anyhow::Result<ExitCode> {
    println!("Building the load generator in release mode.");
    let mut again = workspace::cargo(["run", "--quiet", "--release", "--package", "xtask", "--"]);
    let status = again.args(std::env::args_os().skip(1)).status()?;
    Ok(workspace::exit_code(status))
}

/// Builds the program itself.
fn build_program() -> anyhow::Result<PathBuf> {
    let build = ["build", "--quiet", "--release", "--package", "hapax"];
    workspace::succeed(workspace::cargo(build).args(["--bin", "hapax"]))?;
    Ok(workspace::target().join("release/hapax"))
}

/// Builds a program of the bench that needs what is measured: an example of the crate `hapax`.
fn build_example(name: &str) -> anyhow::Result<PathBuf> {
    let build = ["build", "--quiet", "--release", "--package", "hapax"];
    workspace::succeed(workspace::cargo(build).args(["--example", name]))?;
    Ok(workspace::target().join("release/examples").join(name))
}

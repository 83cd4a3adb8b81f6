//! `cargo xt explore`: the random tests with new seeds, again and again.
//!
//! `cargo test` draws the same inputs every time (`PROPTEST_RNG_SEED` in `.cargo/config.toml`), so that it fails because of a
//! change and never because of chance. New inputs are looked for here.

use std::process::{Command, ExitCode};
use std::time::Duration;

use anyhow::bail;

use crate::clock::Stopwatch;
use crate::entropy;
use crate::postgres::{self, ThrowAway};
use crate::workspace::cargo;

/// Random inputs of one test in one round: few enough for the slowest, so that no round is ended for its length.
const CASES_PER_ROUND: &str = "64";

/// What `cargo xt explore` takes.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Go on for so many minutes; the round under way is finished.
    #[arg(long, default_value_t = 10)]
    minutes: u64,
    /// One round with this seed, to see a failure again.
    #[arg(long)]
    seed: Option<u64>,
    /// Parts of test names.
    #[arg(default_value = "agrees_with_the_model")]
    filters: Vec<String>,
}

/// Runs rounds until the time is over or one fails.
pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let server = match ThrowAway::installed() {
        true => Some(ThrowAway::start()?),
        false => None,
    };
    let limit = Duration::from_secs(args.minutes * 60);
    let began = Stopwatch::start();
    for round in 1_u64.. {
        let seed = args.seed.map_or_else(entropy::seed, Ok)?;
        println!("round {round}, seed {seed}");
        let mut tests = cargo(["nextest", "run", "--workspace", "--all-features"]);
        tests.args(&args.filters);
        if !succeeds(&mut tests, seed, server.as_ref())? {
            bail!("seed {seed} failed; see it again with `cargo xt explore --seed {seed}`");
        }
        if args.seed.is_some() || began.elapsed() >= limit {
            break;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn succeeds(tests: &mut Command, seed: u64, server: Option<&ThrowAway>) -> anyhow::Result<bool> {
    tests
        .env("PROPTEST_RNG_SEED", seed.to_string())
        .env("PROPTEST_CASES", CASES_PER_ROUND);
    if let Some(server) = server {
        tests.env(postgres::URL_VARIABLE, server.url());
    }
    Ok(tests.status()?.success())
}

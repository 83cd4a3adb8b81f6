//! `hapax demo`: a real server, and a world around it that misbehaves.
//!
//! - `stage`: starts the server (`server`) and the world, plays, and ends
//! - `rounds`: one customer after the other; `provider` and `company` are who acts
//! - `world`: what the server speaks to: `services`, `consumer`, `charges`
//! - `deed`: the world's own log; `ledger`: the other side; `judge`: where they differ
//! - `site`: the folder; `lots`: chance that can be had again; `words`, `tell`, `summary`: what the user reads
//!
//! **Invariant**: the judge believes neither side: the world's log is written by the world before it answers, and the ledger is read
//! through its API. Everything is on this machine: the demo connects to nothing but its own listeners.

mod charges;
mod company;
mod consumer;
mod deed;
mod judge;
mod ledger;
mod lots;
mod provider;
mod rounds;
mod server;
mod services;
mod site;
mod stage;
mod summary;
mod tell;
mod words;
mod world;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use hapax_ledger::time::Span;

use super::exit::{Exit, Failure};
use site::Site;

/// The shortest and the longest that `--for` may be.
const FOR_MIN: Span = Span::from_secs(1);
const FOR_MAX: Span = Span::from_days(1);

/// See it work: a server, and a world that misbehaves
///
/// A server on embedded SQLite, a provider that sends things twice, late, forged and out of order, services that time out, break and hang
/// up after the work, a customer's flaky endpoint, and an impatient client of an API behind the guard. Everything is on this machine.
/// Runs until Ctrl-C. With --for it ends by itself: it waits until everything has come to rest, holds the world's own log against the
/// ledger, and exits 0 only if they agree.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// End after so long, with a summary: 20s, 5m
    #[arg(long = "for", value_name = "LENGTH")]
    length: Option<String>,
    /// Keep ledger, config and logs here, and go on with what is there [default: a temporary folder]
    #[arg(long, value_name = "FOLDER")]
    dir: Option<PathBuf>,
    /// The server's port on 127.0.0.1; 0 is any that is free
    #[arg(long, value_name = "PORT", default_value_t = 8080)]
    port: u16,
    /// What chance follows from [default: drawn, or that of the folder]
    #[arg(long, value_name = "NUMBER")]
    seed: Option<u64>,
    /// For the test of the demo itself: one mail goes out again behind the ledger's back, and the judge has to find it.
    #[arg(long, hide = true)]
    plant_repeat: bool,
}

pub(super) fn run(args: &Args) -> Result<Exit, Failure> {
    let length = args.length.as_deref().map(length).transpose()?;
    let site = Arc::new(Site::open(args.dir.as_deref())?);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build();
    let runtime = runtime.map_err(|error| {
        let text = format!("the demo cannot start: {error}");
        let help = "the machine may be out of files or memory";
        Failure::new(Exit::Failed, "H0406", text, help)
    })?;
    runtime.block_on(stage::play(args, length, &site))
}

fn length(text: &str) -> Result<Duration, Failure> {
    let span = text.parse::<Span>().ok();
    let span = span.filter(|span| (FOR_MIN..=FOR_MAX).contains(span));
    let micros = span.and_then(|span| u64::try_from(span.micros()).ok());
    micros.map(Duration::from_micros).ok_or_else(|| {
        let text = format!("--for `{text}` is no length of time that the demo can run for");
        Failure::new(
            Exit::Usage,
            "H0408",
            text,
            "write 1s to 1d, such as 20s or 5m",
        )
    })
}

/// A list that the demo's own server did not give.
fn not_a_list(path: &str, status: u16) -> Failure {
    let text = format!("the demo's own server answered {status} to {path}");
    let help = "server.log in the demo's folder says why";
    Failure::new(Exit::Failed, "H0410", text, help)
}

//! `hapax health`: does a server answer, and can it commit? For health checks of containers, which have no other client.

use super::client::{Client, block_on};
use super::exit::{Exit, Failure};
use super::output;

/// Ask whether the server can commit: 0 if so, 1 if not, 5 if it does not answer
///
/// It asks `GET /readyz` of the server that HAPAX_URL names; no token is needed.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Only ask whether the process answers (`GET /healthz`)
    #[arg(long)]
    alive: bool,
}

pub(super) fn run(args: &Args) -> Result<Exit, Failure> {
    let client = Client::from_env()?;
    let path = if args.alive { "/healthz" } else { "/readyz" };
    let answer = block_on(client.get(path))?;
    if answer.is_good() {
        output::talk("ready");
        return Ok(Exit::Ok);
    }
    let text = format!("{} answers {} to {path}", client.base(), answer.status);
    let help = "the server's log says what is in its way";
    Err(Failure::new(Exit::Failed, "H0417", text, help))
}

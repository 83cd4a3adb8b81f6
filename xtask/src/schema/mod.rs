//! `cargo xt schema`: asks a served instance all kinds of questions, and holds the answers against the description that it serves.
//!
//! The questions come from schemathesis (Python, in a folder of its own under `target`): for each operation, requests as
//! the description allows them, and requests that it does not.
//!
//! - [`venv`]: schemathesis itself
//! - [`site`]: the server and its sample events

pub(crate) mod site;
mod venv;

use std::process::{Command, ExitCode};

use site::Site;

use crate::steps::Steps;

/// Requests that are generated for each operation. With 50 a run takes well under a minute.
const EXAMPLES: u32 = 50;
const EXAMPLES_QUICK: u32 = 3;

/// A server that has not answered by then hangs, and that is a finding too.
const REQUEST_TIMEOUT_SECONDS: &str = "20";

/// What schemathesis may not read: requests go to loopback, and to nobody else.
const PROXIES: [&str; 6] = [
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "http_proxy",
    "https_proxy",
    "all_proxy",
];

/// What `cargo xt schema` takes.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// A few requests for each operation, in seconds.
    #[arg(long)]
    quick: bool,
}

/// Runs `cargo xt schema`.
pub(crate) fn run(args: &Args) -> ExitCode {
    let mut steps = Steps::start();
    let thoroughness = match args.quick {
        true => Thoroughness::Quick,
        false => Thoroughness::Full,
    };
    all(&mut steps, thoroughness);
    steps.finish()
}

/// How many questions are asked.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Thoroughness {
    /// A few.
    Quick,
    /// All kinds.
    Full,
}

/// The description against the server, in two steps.
pub(crate) fn all(steps: &mut Steps, thoroughness: Thoroughness) {
    let Some(program) = steps.attempt("get schemathesis", venv::ready) else {
        return;
    };
    steps.run("description of the API", || {
        let site = Site::start("")?;
        let mut schemathesis = Command::new(program);
        site.configure(&mut schemathesis)?;
        site.watch(ask(&mut schemathesis, thoroughness))
    });
}

/// The questions. Deterministic: the same ones each time, as far as the ids that the server gives allow.
fn ask(schemathesis: &mut Command, thoroughness: Thoroughness) -> &mut Command {
    let (examples, phases) = match thoroughness {
        Thoroughness::Quick => (EXAMPLES_QUICK, "examples,fuzzing"),
        Thoroughness::Full => (EXAMPLES, "examples,coverage,fuzzing,stateful"),
    };
    for proxy in PROXIES {
        schemathesis.env_remove(proxy);
    }
    schemathesis
        .env("NO_PROXY", "*")
        .args(["--max-examples", &examples.to_string()])
        .args(["--phases", phases])
        .args(["--request-timeout", REQUEST_TIMEOUT_SECONDS])
        .args(["--generation-deterministic", "--no-color"])
        // Where most requests are refused on purpose, as here, warnings about refused requests are noise.
        .args(["--warnings", "off"])
}

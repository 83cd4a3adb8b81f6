//! `cargo xt sdk`: drives a served instance with the Svix SDKs for Python, JavaScript and Rust, as their users do.
//!
//! The SDKs come from their registries, at the versions that `tests/sdk` names, into folders of their own under `target`. Each check
//! starts a sink, prints what it has seen, and fails at the first thing that is not as its SDK expects it.

mod tools;

use std::process::{Command, ExitCode};

use crate::schema::site::Site;
use crate::steps::Steps;
use crate::workspace;

/// What the server's config has beside the usual: sinks are on this machine.
const CONFIG: &str = "\n[outbox]\nallow_subnets = [\"127.0.0.1/32\"]\n";

/// Runs `cargo xt sdk`.
pub(crate) fn run() -> ExitCode {
    let mut steps = Steps::start();
    all(&mut steps);
    steps.finish()
}

/// Each SDK is two steps: to get it, and to drive the server with it.
pub(crate) fn all(steps: &mut Steps) {
    let folder = workspace::root().join("tests/sdk");
    if let Some(python) = steps.attempt("get the SDK for Python", tools::python) {
        steps.run("SDK for Python", || {
            drive(Command::new(&python).arg(folder.join("python/check.py")))
        });
        let example = workspace::root().join("examples/consumer/consumer.py");
        steps.run("the example of a consumer", || {
            let check = folder.join("python/consumer.py");
            drive(Command::new(&python).arg(check).arg(example))
        });
    }
    if let Some(check) = steps.attempt("get the SDK for JavaScript", tools::javascript) {
        steps.run("SDK for JavaScript", || {
            drive(Command::new("node").arg(check))
        });
    }
    if let Some(check) = steps.attempt("get the SDK for Rust", tools::rust) {
        steps.run("SDK for Rust", || drive(&mut Command::new(check)));
    }
}

fn drive(check: &mut Command) -> anyhow::Result<()> {
    let site = Site::start(CONFIG)?;
    site.point(check);
    site.watch(check)
}

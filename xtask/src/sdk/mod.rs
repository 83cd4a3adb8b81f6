//! `cargo xt sdk`: drives a served instance with the Svix SDKs for Python, JavaScript and Rust, as their users do.
//!
//! The SDKs come from their registries, at the versions that `tests/sdk` names, into folders of their own under `target`. Each check
//! starts a sink, prints what it has seen, and fails at the first thing that is not as its SDK expects it. On SQLite each has a server
//! of its own; on PostgreSQL they ask one after the other, as users of one installation do.

mod tools;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

use crate::postgres::ThrowAway;
use crate::schema::site::Site;
use crate::steps::Steps;
use crate::workspace;

/// What the server's config has beside the usual: sinks are on this machine, and what fails is tried once, so that there are dead letters.
const CONFIG: &str = "\n[outbox]\nallow_subnets = [\"127.0.0.1/32\"]\nretry = [\"0s\"]\n";

/// Runs `cargo xt sdk`.
pub(crate) fn run() -> ExitCode {
    let mut steps = Steps::start();
    all(&mut steps);
    steps.finish()
}

/// Gets each SDK once, and drives servers on both stores with it.
pub(crate) fn all(steps: &mut Steps) {
    let checks = checks(steps);
    for check in &checks {
        steps.run(check.name, || check.drive(&Site::start(CONFIG)?));
    }
    if ThrowAway::installed() {
        on_postgres(steps, &checks);
    } else {
        println!("PostgreSQL is not installed: no server was driven on it.");
    }
}

/// What asks a server, and ends well if the answers are as they should be.
struct Check {
    name: &'static str,
    program: OsString,
    arguments: Vec<PathBuf>,
}

impl Check {
    fn drive(&self, site: &Site) -> anyhow::Result<()> {
        let mut command = Command::new(&self.program);
        command.args(&self.arguments);
        site.point(&mut command);
        site.watch(&mut command)
    }
}

/// The checks whose SDK could be had.
fn checks(steps: &mut Steps) -> Vec<Check> {
    let folder = workspace::root().join("tests/sdk");
    let python = steps.attempt("get the SDK for Python", tools::python);
    let javascript = steps.attempt("get the SDK for JavaScript", tools::javascript);
    let rust = steps.attempt("get the SDK for Rust", || {
        Ok((tools::rust()?, tools::rust_source()?))
    });
    let mut checks = Vec::new();
    if let Some(python) = &python {
        let mut add = |name, arguments| {
            let program = python.clone().into();
            checks.push(Check {
                name,
                program,
                arguments,
            });
        };
        add("SDK for Python", vec![folder.join("python/check.py")]);
        let example = workspace::root().join("examples/consumer/consumer.py");
        let consumer = vec![folder.join("python/consumer.py"), example];
        add("the example of a consumer", consumer);
        if let (Some(_), Some((_, rust))) = (&javascript, &rust) {
            let sources = [tools::javascript_source(), rust.clone()];
            let mut arguments = vec![folder.join("python/paths.py")];
            arguments.extend(sources);
            add("every path of the SDKs", arguments);
        }
    }
    checks.extend(javascript.map(|check| Check {
        name: "SDK for JavaScript",
        program: "node".into(),
        arguments: vec![check],
    }));
    checks.extend(rust.map(|(check, _)| Check {
        name: "SDK for Rust",
        program: check.into(),
        arguments: Vec::new(),
    }));
    checks
}

fn on_postgres(steps: &mut Steps, checks: &[Check]) {
    let started = steps.attempt("start a server on PostgreSQL", || {
        let postgres = ThrowAway::start()?;
        let site = Site::on_postgres(postgres.url(), CONFIG)?;
        Ok((postgres, site))
    });
    // Declared in this order, so that the server ends before its database.
    let Some((_postgres, site)) = started else {
        return;
    };
    for check in checks {
        let name = format!("{}, PostgreSQL", check.name);
        steps.run(&name, || check.drive(&site));
    }
}

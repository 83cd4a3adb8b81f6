//! `cargo xt pages`: drives the web pages of a served instance in a real Chromium, as people do.
//!
//! Playwright and axe come from npm at the versions that `tests/pages` names, into a folder under `target`; Chromium is the system's.
//! Screenshots of every page are left in `target/pages/shots`.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

use anyhow::Context;

use crate::schema::site::Site;
use crate::steps::Steps;
use crate::{loopback, workspace};

const PACKAGES: &str = include_str!("../../../tests/pages/package.json");
/// What stands in `tests/pages` beside it.
const FILES: [&str; 4] = ["check.mjs", "decide.mjs", "portal.mjs", "world.mjs"];

/// Runs `cargo xt pages`.
pub(crate) fn run() -> ExitCode {
    let mut steps = Steps::start();
    all(&mut steps);
    steps.finish()
}

/// Two steps: to get what drives the browser, and to drive it.
pub(crate) fn all(steps: &mut Steps) {
    if let Some(folder) = steps.attempt("get Playwright", playwright) {
        steps.run("pages in Chromium", || drive(&folder));
    }
}

fn drive(folder: &std::path::Path) -> anyhow::Result<()> {
    let sink = loopback::free_address()?;
    let guard = loopback::free_address()?;
    let site = Site::start(&config(&sink.to_string(), &guard.to_string()))?;
    let mut check = Command::new("node");
    check
        .arg(folder.join("check.mjs"))
        .env("HAPAX_SINK_PORT", sink.port().to_string())
        .env("HAPAX_GUARD_PORT", guard.port().to_string())
        .env("HAPAX_SHOTS", folder.join("shots"));
    site.point(&mut check);
    site.watch(&mut check)
}

/// Effects that the check's own sink gets: one that it can break and mend, one of which nobody knows what became. A guard in front
/// of the sink, and consumers' endpoints on this machine.
fn config(sink: &str, guard: &str) -> String {
    format!(
        r#"
[[effect]]
name = "activate"
source = "demo"
types = ["order.*"]
url = "http://{sink}/activate"
retry = ["0s"]

[[effect]]
name = "charge"
source = "demo"
types = ["charge.*"]
url = "http://{sink}/silent"
repeat = "once"
retry = ["0s"]

[[guard]]
name = "payments"
listen = "{guard}"
upstream = "http://{sink}"
principal = "header.x-caller"

[outbox]
allow_subnets = ["127.0.0.0/8"]
retry = ["0s"]
"#
    )
}

/// A folder with Playwright and the check: modules are looked for from where a file is.
fn playwright() -> anyhow::Result<PathBuf> {
    let folder = workspace::target().join("pages");
    fs::create_dir_all(&folder).with_context(|| format!("could not create {folder:?}"))?;
    let source = workspace::root().join("tests/pages");
    let stamp = folder.join("installed.txt");
    if fs::read_to_string(&stamp).ok().as_deref() != Some(PACKAGES) {
        fs::copy(source.join("package.json"), folder.join("package.json"))?;
        let mut install = Command::new("npm");
        install
            .args(["install", "--silent", "--no-audit", "--no-fund"])
            .current_dir(&folder);
        workspace::succeed(&mut install)?;
        // Written last, so that a folder with it is complete.
        fs::write(&stamp, PACKAGES)?;
    }
    for name in FILES {
        fs::copy(source.join(name), folder.join(name))?;
    }
    Ok(folder)
}

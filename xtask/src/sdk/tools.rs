//! The SDKs, each in a folder of its own under `target`.

use std::path::PathBuf;
use std::process::Command;
use std::{env, fs};

use anyhow::Context;

use crate::workspace;

const PYTHON: &str = include_str!("../../../tests/sdk/python/requirements.txt");
const JAVASCRIPT: &str = include_str!("../../../tests/sdk/js/package.json");

fn folder(name: &str) -> anyhow::Result<PathBuf> {
    let folder = workspace::target().join("sdk").join(name);
    fs::create_dir_all(&folder).with_context(|| format!("could not create {folder:?}"))?;
    Ok(folder)
}

/// Is this what was installed last? The stamp is written last, so that a folder with this text is complete.
fn is_installed(folder: &std::path::Path, wanted: &str) -> bool {
    fs::read_to_string(folder.join("installed.txt")).is_ok_and(|text| text == wanted)
}

/// An interpreter that has the SDK.
pub(super) fn python() -> anyhow::Result<PathBuf> {
    let folder = folder("python")?;
    let program = folder.join("bin/python");
    if is_installed(&folder, PYTHON) {
        return Ok(program);
    }
    let mut create = Command::new("python3");
    workspace::succeed(create.args(["-m", "venv", "--clear"]).arg(&folder))?;
    let wanted = workspace::root().join("tests/sdk/python/requirements.txt");
    let mut install = Command::new(&program);
    install
        .args([
            "-m",
            "pip",
            "install",
            "--quiet",
            "--disable-pip-version-check",
        ])
        .arg("--requirement")
        .arg(wanted);
    workspace::succeed(&mut install)?;
    fs::write(folder.join("installed.txt"), PYTHON)?;
    Ok(program)
}

/// The check, beside the SDK: modules are looked for from where a file is.
pub(super) fn javascript() -> anyhow::Result<PathBuf> {
    let folder = folder("js")?;
    let source = workspace::root().join("tests/sdk/js");
    if !is_installed(&folder, JAVASCRIPT) {
        fs::copy(source.join("package.json"), folder.join("package.json"))?;
        let mut install = Command::new("npm");
        install
            .args(["install", "--silent", "--no-audit", "--no-fund"])
            .current_dir(&folder);
        workspace::succeed(&mut install)?;
        fs::write(folder.join("installed.txt"), JAVASCRIPT)?;
    }
    let check = folder.join("check.mjs");
    fs::copy(source.join("check.mjs"), &check)?;
    Ok(check)
}

/// The check, built.
pub(super) fn rust() -> anyhow::Result<PathBuf> {
    let folder = folder("rust")?;
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut build = Command::new(cargo);
    build
        .args(["build", "--quiet", "--locked", "--manifest-path"])
        .arg(workspace::root().join("tests/sdk/rust/Cargo.toml"))
        .env("CARGO_TARGET_DIR", &folder);
    workspace::succeed(&mut build)?;
    Ok(folder.join("debug/hapax-sdk-check"))
}

//! The SDKs, each in a folder of its own under `target`.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::Context;
use serde_json::Value;

use crate::workspace;

const PYTHON: &str = include_str!("../../../tests/sdk/python/requirements.txt");
/// The check for Rust, a package of its own.
const RUST: &str = "tests/sdk/rust/Cargo.toml";
const JAVASCRIPT: &str = include_str!("../../../tests/sdk/js/package.json");
/// What stands beside it: the first is the check, the others its parts.
const JAVASCRIPT_FILES: [&str; 6] = [
    "check.mjs",
    "again.mjs",
    "catalogue.mjs",
    "messages.mjs",
    "people.mjs",
    "scene.mjs",
];

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
    for name in JAVASCRIPT_FILES {
        fs::copy(source.join(name), folder.join(name))?;
    }
    Ok(folder.join(JAVASCRIPT_FILES[0]))
}

/// The source of the SDK for JavaScript, once it is installed.
pub(super) fn javascript_source() -> PathBuf {
    workspace::target().join("sdk/js/node_modules/svix")
}

/// The check, built.
pub(super) fn rust() -> anyhow::Result<PathBuf> {
    let folder = folder("rust")?;
    let mut build = workspace::cargo(["build", "--quiet", "--locked", "--manifest-path"]);
    build
        .arg(workspace::root().join(RUST))
        .env("CARGO_TARGET_DIR", &folder);
    workspace::succeed(&mut build)?;
    Ok(folder.join("debug/hapax-sdk-check"))
}

/// The source of the SDK for Rust: where cargo keeps it.
pub(super) fn rust_source() -> anyhow::Result<PathBuf> {
    let mut ask = workspace::cargo([
        "metadata",
        "--locked",
        "--format-version",
        "1",
        "--manifest-path",
    ]);
    let told = ask.arg(workspace::root().join(RUST)).output()?;
    let told: Value =
        serde_json::from_slice(&told.stdout).context("cargo metadata says nothing")?;
    let mut packages = told["packages"].as_array().into_iter().flatten();
    let sdk = packages.find(|package| package["name"] == "svix");
    let manifest = sdk.and_then(|sdk| sdk["manifest_path"].as_str());
    let manifest = manifest.context("the check for Rust has no SDK")?;
    Ok(PathBuf::from(manifest).with_file_name("src"))
}

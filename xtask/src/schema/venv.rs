//! Schemathesis, installed from PyPI into a folder of its own, at the versions that `requirements.txt` names.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::Context;

use crate::workspace;

const REQUIREMENTS: &str = include_str!("requirements.txt");

/// The program, installed first if it is missing or another version.
pub(super) fn ready() -> anyhow::Result<PathBuf> {
    let folder = workspace::target().join("schemathesis");
    let program = folder.join("bin/schemathesis");
    // Written last, so that a folder with this text is complete.
    let stamp = folder.join("installed.txt");
    if program.is_file() && fs::read_to_string(&stamp).is_ok_and(|text| text == REQUIREMENTS) {
        return Ok(program);
    }
    fs::create_dir_all(&folder).with_context(|| format!("could not create {folder:?}"))?;
    let mut create = Command::new("python3");
    workspace::succeed(create.args(["-m", "venv", "--clear"]).arg(&folder))?;
    let wanted = folder.join("requirements.txt");
    fs::write(&wanted, REQUIREMENTS)?;
    let mut install = Command::new(folder.join("bin/python"));
    install
        .args([
            "-m",
            "pip",
            "install",
            "--quiet",
            "--disable-pip-version-check",
        ])
        .args(["--no-deps", "--requirement"])
        .arg(&wanted);
    workspace::succeed(&mut install)?;
    fs::write(&stamp, REQUIREMENTS)?;
    Ok(program)
}

//! Schemathesis, installed from PyPI into a folder of its own, at the versions that `requirements.txt` names.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context;

use crate::workspace;

const REQUIREMENTS: &str = include_str!("requirements.txt");
/// Written last, so that a folder with the right text in it is complete.
const STAMP: &str = "installed.txt";

/// The program, installed first if it is missing or another version.
pub(super) fn ready() -> anyhow::Result<PathBuf> {
    let folder = workspace::target().join("schemathesis");
    let program = program(&folder);
    if is_installed(&folder) {
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
    fs::write(folder.join(STAMP), stamp(&folder))?;
    anyhow::ensure!(
        is_installed(&folder),
        "{} was installed and does not run",
        program.display()
    );
    Ok(program)
}

fn program(folder: &Path) -> PathBuf {
    folder.join("bin/schemathesis")
}

/// What was installed, and where: a script of such a folder names its interpreter by its whole path, so that it does not move along.
fn stamp(folder: &Path) -> String {
    format!("{}\n{REQUIREMENTS}", folder.display())
}

/// Is it complete, in its place, and does it run?
fn is_installed(folder: &Path) -> bool {
    let stamped = fs::read_to_string(folder.join(STAMP)).is_ok_and(|text| text == stamp(folder));
    let runs = || Command::new(program(folder)).arg("--version").output();
    stamped && runs().is_ok_and(|ran| ran.status.success())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn install(folder: &Path, script: &str) {
        fs::create_dir_all(folder.join("bin")).expect("a folder");
        fs::write(program(folder), script).expect("written");
        let mode = fs::Permissions::from_mode(0o755);
        fs::set_permissions(program(folder), mode).expect("made to run");
        fs::write(folder.join(STAMP), stamp(folder)).expect("written");
    }

    #[test]
    fn what_moved_is_gone_or_does_not_run_is_installed_again() {
        let root = tempfile::tempdir().expect("a folder");
        let folder = root.path().join("here");
        install(&folder, "#!/bin/sh\nexit 0\n");
        assert!(is_installed(&folder));
        let moved = root.path().join("there");
        fs::rename(&folder, &moved).expect("moved");
        assert!(!is_installed(&moved), "its interpreter is where it was");
        install(&moved, "#!/bin/sh\nexit 1\n");
        assert!(!is_installed(&moved), "it does not run");
        install(&moved, "#!/nowhere/bin/python\n");
        assert!(!is_installed(&moved), "its interpreter is gone");
        fs::remove_file(program(&moved)).expect("removed");
        assert!(!is_installed(&moved), "it is gone itself");
    }
}

//! Where the repository is, and how commands are run in it.

use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, ExitStatus, Stdio};

use anyhow::{Context, bail};

/// The repository's folder.
pub(crate) fn root() -> PathBuf {
    // Cargo sets the variable for `cargo run`; without it, where xtask was built is the best guess.
    let xtask = env::var_os("CARGO_MANIFEST_DIR")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from);
    xtask.parent().map_or(xtask.clone(), Path::to_path_buf)
}

/// Cargo's folder for what it builds, where our own results may lie too.
pub(crate) fn target() -> PathBuf {
    env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from)
}

/// `cargo` with `arguments`, in the repository's folder.
pub(crate) fn cargo<const N: usize>(arguments: [&str; N]) -> Command {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(arguments).current_dir(root());
    command
}

/// Runs `command`; any other end than success is an error that names it.
pub(crate) fn succeed(command: &mut Command) -> anyhow::Result<()> {
    let status = command
        .status()
        .with_context(|| format!("could not start {}", words(command)))?;
    if !status.success() {
        bail!("{} ended with {status}", words(command));
    }
    Ok(())
}

/// Does `command` exist and succeed? Its output is thrown away.
pub(crate) fn succeeds_quietly(command: &mut Command) -> bool {
    command
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

/// The exit code that hands a child's end on: its own code, or 1 if a signal ended it.
pub(crate) fn exit_code(status: ExitStatus) -> ExitCode {
    let code = status.code().and_then(|code| u8::try_from(code).ok());
    ExitCode::from(code.unwrap_or(1))
}

fn words(command: &Command) -> String {
    let program = Path::new(command.get_program());
    let name = program.file_name().unwrap_or(command.get_program());
    let arguments = command.get_args();
    let words: Vec<_> = std::iter::once(name)
        .chain(arguments)
        .map(|word| word.to_string_lossy())
        .collect();
    format!("`{}`", words.join(" "))
}

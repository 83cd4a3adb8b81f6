//! The program as a user runs it.

use std::path::Path;
use std::process::{Command, Output};

/// The program in a folder, with none of the tester's own settings.
pub(crate) fn hapax(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hapax"));
    command.current_dir(folder);
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("HAPAX_") {
            command.env_remove(name);
        }
    }
    command.env_remove("COLUMNS");
    command
}

/// Runs the program to its end.
pub(crate) fn run(folder: &Path, args: &[&str]) -> Ran {
    Ran::of(hapax(folder).args(args))
}

/// How a run ended.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) exit: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Ran {
    pub(crate) fn of(command: &mut Command) -> Ran {
        let Output {
            status,
            stdout,
            stderr,
        } = command.output().expect("the program runs");
        Ran {
            exit: status.code().expect("it was not killed"),
            stdout: String::from_utf8(stdout).expect("text"),
            stderr: String::from_utf8(stderr).expect("text"),
        }
    }

    /// Stdout as JSON.
    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.stdout).expect("JSON on stdout")
    }

    #[track_caller]
    pub(crate) fn expect_exit(self, exit: i32) -> Ran {
        assert_eq!(self.exit, exit, "{self:#?}");
        self
    }
}

/// A new folder with these files.
pub(crate) fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, text) in files {
        std::fs::write(folder.path().join(name), text).expect("written");
    }
    folder
}

//! A folder with a config, in which servers are started one after the other.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::sender::SECRET;
use super::server::{Server, TOKEN};
use crate::program::hapax;

/// The folder, its config, and what its servers find in their environment.
#[derive(Debug)]
pub(crate) struct Site {
    folder: tempfile::TempDir,
    environment: Vec<(String, String)>,
}

impl Site {
    /// A site that keeps its ledger in SQLite.
    pub(crate) fn sqlite() -> Site {
        Site::with("sqlite:data/hapax.db", "")
    }

    /// A site with this `store`, and `more` as part of its config.
    pub(crate) fn with(store: &str, more: &str) -> Site {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::create_dir(folder.path().join("data")).expect("a folder");
        let site = Site {
            folder,
            environment: Vec::new(),
        };
        site.configure(&config(store, more));
        site
    }

    /// Sets what its servers find in their environment.
    pub(crate) fn set(&mut self, name: &str, value: impl Into<String>) {
        self.environment.push((name.to_owned(), value.into()));
    }

    pub(crate) fn configure(&self, config: &str) {
        std::fs::write(self.path().join("hapax.toml"), config).expect("written");
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    /// The folder of the store's files.
    pub(crate) fn data(&self) -> PathBuf {
        self.path().join("data")
    }

    pub(crate) fn start(&self) -> Server {
        Server::start(&mut self.command())
    }

    /// The command that starts a server here.
    pub(crate) fn command(&self) -> Command {
        let mut command = hapax(self.path());
        command
            .arg("serve")
            .stdin(Stdio::null())
            .stdout(Stdio::null());
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        command
    }
}

/// A config with one source, `billing`.
pub(crate) fn config(store: &str, more: &str) -> String {
    format!(
        "listen = \"127.0.0.1:0\"\nstore = \"{store}\"\n[admin]\ntoken = \"{TOKEN}\"\n{more}\n{}",
        source("billing")
    )
}

/// One `[[source]]`.
pub(crate) fn source(name: &str) -> String {
    format!("[[source]]\nname = \"{name}\"\nprovider = \"stripe\"\nsecrets = \"{SECRET}\"\n")
}

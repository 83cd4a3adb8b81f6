//! The repository's text files, read once.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;

use super::lex::Source;

/// Larger files are not written by hand.
const FILE_BYTES_MAX: u64 = 2 * 1024 * 1024;

/// All text files under a folder.
#[derive(Debug)]
pub(super) struct Tree {
    root: PathBuf,
    files: Vec<File>,
}

/// A text file.
#[derive(Debug)]
pub(super) struct File {
    /// From the repository's folder, with slashes.
    pub(super) path: String,
    /// Its content.
    pub(super) text: String,
    /// Its parts; empty if it is not Rust.
    pub(super) source: Source,
}

impl Tree {
    /// Reads what is under `root`, apart from what cargo, git or npm put there.
    pub(super) fn load(root: &Path) -> anyhow::Result<Tree> {
        let mut tree = Tree {
            root: root.to_owned(),
            files: Vec::new(),
        };
        tree.read_folder(root)?;
        tree.files.sort_by(|left, right| left.path.cmp(&right.path));
        Ok(tree)
    }

    /// All files, ordered by path.
    pub(super) fn files(&self) -> impl Iterator<Item = &File> {
        self.files.iter()
    }

    /// Rust files whose path starts with `folder`.
    pub(super) fn rust<'a>(&'a self, folder: &'a str) -> impl Iterator<Item = &'a File> {
        let under = move |file: &&File| file.path.starts_with(folder) && file.path.ends_with(".rs");
        self.files.iter().filter(under)
    }

    /// The file at `path`.
    pub(super) fn file(&self, path: &str) -> Option<&File> {
        self.files.iter().find(|file| file.path == path)
    }

    /// Is there such a file, or, if `path` ends with a slash, a file in such a folder?
    pub(super) fn holds(&self, path: &str) -> bool {
        let is_folder = path.ends_with('/');
        self.files
            .iter()
            .any(|file| file.path == path || is_folder && file.path.starts_with(path))
    }

    /// Does a file or folder exist there, text or not?
    pub(super) fn exists(&self, path: &Path) -> bool {
        self.root.join(path).exists()
    }

    fn read_folder(&mut self, folder: &Path) -> anyhow::Result<()> {
        let entries =
            fs::read_dir(folder).with_context(|| format!("could not read {}", folder.display()))?;
        for entry in entries {
            let entry = entry?;
            let kind = entry.file_type()?;
            let name = entry.file_name();
            if kind.is_dir() && !is_generated(&name.to_string_lossy()) {
                self.read_folder(&entry.path())?;
            } else if kind.is_file() && entry.metadata()?.len() <= FILE_BYTES_MAX {
                self.read_file(&entry.path());
            }
        }
        Ok(())
    }

    /// Adds a file, unless it is not text.
    fn read_file(&mut self, path: &Path) {
        let (Ok(text), Ok(relative)) = (fs::read_to_string(path), path.strip_prefix(&self.root))
        else {
            return;
        };
        let path = relative.to_string_lossy().replace('\\', "/");
        let source = if path.ends_with(".rs") {
            Source::read(&text)
        } else {
            Source::default()
        };
        self.files.push(File { path, text, source });
    }
}

fn is_generated(folder: &str) -> bool {
    folder == ".git"
        || folder == "node_modules"
        || folder == "target"
        || folder.starts_with("target-")
}

impl File {
    /// The last part of the path.
    pub(super) fn name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or(&self.path)
    }

    /// Is all of it test code, by its place?
    pub(super) fn is_test(&self) -> bool {
        let folders = ["/tests/", "/benches/", "/conformance/"];
        self.name() == "tests.rs" || folders.iter().any(|folder| self.path.contains(folder))
    }

    /// Is this line test code, by the file's place or by a test module?
    pub(super) fn is_test_at(&self, line: usize) -> bool {
        self.is_test() || self.source.in_test(line)
    }

    /// Lines of the program itself, tests left out, with one of `patterns` in their code; and which one it is.
    pub(super) fn program_lines_with<'a>(
        &'a self,
        patterns: &'a [&'a str],
    ) -> impl Iterator<Item = (usize, &'a str)> {
        patterns.iter().flat_map(move |pattern| {
            let lines = self.source.lines_with(pattern);
            let program = lines.filter(|line| !self.is_test_at(*line));
            program.map(move |line| (line, *pattern))
        })
    }

    /// All lines, with their numbers.
    pub(super) fn lines(&self) -> impl Iterator<Item = (usize, &str)> {
        (1..).zip(self.text.lines())
    }
}

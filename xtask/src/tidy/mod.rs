//! `cargo xt tidy`: what must not be in the repository, checked on its text.
//!
//! ARCHITECTURE.md says which parts know nothing of which others. Each such absence is one function from a [`Tree`] to
//! findings, tested on a planted violation. Exceptions stand in [`allowed`], each with its reason.

mod allowed;
mod dependencies;
mod doors;
mod error_pages;
mod impurity;
mod lengths;
mod lex;
mod links;
mod machine_paths;
mod mod_docs;
mod outbound;
mod sleeps;
mod sql;
mod status_codes;
mod tree;
mod twins;
mod unfinished;

use std::fmt;
use std::path::Path;

use anyhow::bail;

use tree::Tree;

/// A check: its name, as the list of exceptions knows it, and the function.
struct Check {
    name: &'static str,
    run: fn(&Tree) -> Vec<Finding>,
}

const CHECKS: [Check; 15] = [
    check("sql", sql::outside_the_store),
    check("arrays", sql::arrays_side_by_side),
    check("dependencies", dependencies::forbidden),
    check("doors", doors::importing_each_other),
    check("status-codes", status_codes::outside_http),
    check("impurity", impurity::outside_its_files),
    check("outbound", outbound::outside_the_sender),
    check("sleeps", sleeps::in_tests),
    check("lengths", lengths::over_the_limit),
    check("unfinished", unfinished::left_behind),
    check("machine-paths", machine_paths::in_any_file),
    check("mod-docs", mod_docs::missing),
    check("twins", twins::without_their_other),
    check("links", links::broken),
    check("error-pages", error_pages::missing),
];

const fn check(name: &'static str, run: fn(&Tree) -> Vec<Finding>) -> Check {
    Check { name, run }
}

/// Something that a check does not like.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Finding {
    /// The file, from the repository's folder.
    path: String,
    /// The line, from 1.
    line: usize,
    /// What is wrong, and what to do instead.
    message: String,
    weight: Weight,
}

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Weight {
    /// The check fails.
    Failure,
    /// It is printed, no more.
    Note,
}

impl Finding {
    fn failure(path: &str, line: usize, message: impl Into<String>) -> Finding {
        Finding {
            path: path.to_owned(),
            line,
            message: message.into(),
            weight: Weight::Failure,
        }
    }

    fn note(path: &str, line: usize, message: impl Into<String>) -> Finding {
        Finding {
            weight: Weight::Note,
            ..Finding::failure(path, line, message)
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Finding {
            path,
            line,
            message,
            weight,
        } = self;
        let note = match weight {
            Weight::Failure => "",
            Weight::Note => "note: ",
        };
        write!(f, "{path}:{line}: {note}{message}")
    }
}

/// Runs all checks on the repository at `root` and prints what they found.
pub(crate) fn run(root: &Path) -> anyhow::Result<()> {
    let tree = Tree::load(root)?;
    let findings = findings(&tree);
    for (check, finding) in &findings {
        println!("{finding} [{check}]");
    }
    let is_failure = |(_, finding): &&(&str, Finding)| finding.weight == Weight::Failure;
    match findings.iter().filter(is_failure).count() {
        0 => Ok(()),
        1 => bail!("one thing is not tidy"),
        count => bail!("{count} things are not tidy"),
    }
}

/// What all checks found, without the exceptions; an exception that nothing needs is a finding too.
fn findings(tree: &Tree) -> Vec<(&'static str, Finding)> {
    let found = CHECKS.iter().flat_map(|check| {
        let findings = (check.run)(tree);
        findings.into_iter().map(|finding| (check.name, finding))
    });
    allowed::filter(allowed::ALLOWED, tree, found.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A tree of files in a temporary folder, as the checks see it. The folder goes with the first value.
    pub(super) fn planted(files: &[(&str, &str)]) -> (tempfile::TempDir, Tree) {
        let folder = tempfile::tempdir().expect("a temporary folder");
        for (path, text) in files {
            let path = folder.path().join(path);
            let parent = path.parent().expect("a file is in a folder");
            std::fs::create_dir_all(parent).expect("a new folder");
            std::fs::write(&path, text).expect("a new file");
        }
        let tree = Tree::load(folder.path()).expect("it is readable");
        (folder, tree)
    }

    /// Where `check` finds something in these files, as `path:line`.
    pub(super) fn places(check: fn(&Tree) -> Vec<Finding>, files: &[(&str, &str)]) -> Vec<String> {
        let (_folder, tree) = planted(files);
        let place = |finding: Finding| format!("{}:{}", finding.path, finding.line);
        let mut places: Vec<_> = check(&tree).into_iter().map(place).collect();
        places.sort();
        places
    }

    #[test]
    fn every_check_has_a_name_of_its_own() {
        let mut names: Vec<_> = CHECKS.iter().map(|check| check.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), CHECKS.len());
    }

    #[test]
    fn a_planted_violation_fails_the_whole_run() {
        let (folder, _) = planted(&[("crates/hapax/src/main.rs", "fn main() { todo!() }\n")]);
        assert!(run(folder.path()).is_err());
        let (folder, _) = planted(&[("crates/hapax/src/main.rs", "fn main() {}\n")]);
        assert!(run(folder.path()).is_ok());
    }
}

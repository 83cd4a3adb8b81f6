//! `cargo xt check`: everything that can be said about the code without running it.

use crate::steps::Steps;
use crate::{tidy, workspace};

/// All checks, each a step.
pub(crate) fn all(steps: &mut Steps) {
    steps.run("format", || {
        workspace::succeed(&mut workspace::cargo(["fmt", "--all", "--check"]))
    });
    steps.run("tidy", || tidy::run(&workspace::root()));
    steps.run("clippy", || {
        workspace::succeed(&mut workspace::cargo([
            "clippy",
            "--quiet",
            "--workspace",
            "--all-targets",
            "--all-features",
            "--",
            "-D",
            "warnings",
        ]))
    });
    steps.run("documentation", || {
        let mut doc = workspace::cargo([
            "doc",
            "--quiet",
            "--workspace",
            "--no-deps",
            "--all-features",
        ]);
        workspace::succeed(doc.env("RUSTDOCFLAGS", "-D warnings"))
    });
}

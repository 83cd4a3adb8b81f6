//! The programs of `examples/`.

use std::path::{Path, PathBuf};
use std::process::Command;

/// An example's program. `cargo test` and nextest build it with the tests; if only one test was built, it is built now.
pub(crate) fn example(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_BIN_EXE_hapax"))
        .parent()
        .expect("the build's folder");
    let program = folder.join("examples").join(name);
    if !program.exists() {
        let built = Command::new(env!("CARGO"))
            .args(["build", "--quiet", "--package", "hapax", "--example", name])
            .status();
        assert!(built.expect("cargo runs").success(), "the example builds");
    }
    program
}

/// A file of `examples/`.
pub(crate) fn example_file(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../examples")
        .join(path)
}

//! The clock and randomness: only `clock.rs` and `entropy.rs` touch them, and the pure crates have neither.
//!
//! Clippy forbids the calls by type (clippy.toml); this is the same by text, for names that clippy does not know yet.
//! In tests clippy alone decides: it asks for a reason at each place.

use super::Finding;
use super::tree::Tree;

const CLOCK: [&str; 6] = [
    "SystemTime::now",
    "Instant::now",
    "Timestamp::now",
    "Zoned::now",
    "Utc::now",
    "Local::now",
];

const RANDOMNESS: [&str; 9] = [
    "getrandom::",
    "rand::",
    "fastrand::",
    "thread_rng",
    "OsRng",
    "SysRng",
    "Uuid::new_v4",
    "Uuid::now_v7",
    "SystemRandom",
];

/// Crates in which no file name helps.
const PURE: [&str; 2] = ["crates/hapax-ledger/", "crates/hapax-verify/"];

/// Uses of clock and randomness in other files.
pub(super) fn outside_its_files(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in tree.rust("").filter(|file| file.path.contains("src/")) {
        let pure = PURE.iter().any(|folder| file.path.starts_with(folder));
        for (door, patterns) in [("clock.rs", &CLOCK[..]), ("entropy.rs", &RANDOMNESS[..])] {
            if file.name() == door && !pure {
                continue;
            }
            for (line, pattern) in file.program_lines_with(patterns) {
                let message = format!("{pattern} belongs in {door}: take the value as an argument");
                findings.push(Finding::failure(&file.path, line, message));
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::super::tests::places;
    use super::*;

    #[test]
    fn reading_the_clock_elsewhere_is_found() {
        let text = "fn f() { let now = Instant::now(); }\n";
        let files = [
            ("crates/hapax/src/clock.rs", text),
            ("crates/hapax/src/entropy.rs", text),
            ("crates/hapax-ledger/src/clock.rs", text),
            ("crates/hapax/tests/it/main.rs", text),
        ];
        let expected = [
            "crates/hapax-ledger/src/clock.rs:1",
            "crates/hapax/src/entropy.rs:1",
        ];
        assert_eq!(places(outside_its_files, &files), expected);
    }

    #[test]
    fn drawing_randomness_elsewhere_is_found() {
        let files = [
            (
                "crates/hapax/src/entropy.rs",
                "fn f() { getrandom::fill(b) }\n",
            ),
            (
                "crates/hapax/src/id.rs",
                "fn f() {\n    getrandom::fill(b)\n}\n",
            ),
            ("crates/hapax/src/operand.rs", "fn f() { operand::get() }\n"),
        ];
        assert_eq!(
            places(outside_its_files, &files),
            ["crates/hapax/src/id.rs:2"]
        );
    }
}

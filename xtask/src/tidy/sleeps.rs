//! Tests call `step` and never sleep: a test that waits for time is slow on good days and wrong on bad ones.

use super::Finding;
use super::tree::Tree;

/// Calls of `sleep` in test code, by whatever path.
pub(super) fn in_tests(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in tree.rust("") {
        let lines = ["sleep(", "sleep_until(", "sleep_ms("]
            .into_iter()
            .flat_map(|pattern| file.source.lines_with(pattern));
        for line in lines.filter(|line| file.is_test_at(*line)) {
            let message = "a test never sleeps: call `step`, or wait for what should happen";
            findings.push(Finding::failure(&file.path, line, message));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::super::tests::places;
    use super::*;

    #[test]
    fn a_sleeping_test_is_found() {
        let files = [
            ("crates/a/tests/it/main.rs", "\nthread::sleep(x);\n"),
            (
                "crates/a/src/run.rs",
                "fn f() { tokio::time::sleep(x) }\n#[cfg(test)]\nmod tests {\n    fn g() { sleep(x) }\n}\n",
            ),
            ("crates/a/src/conformance/claim.rs", "time::sleep_until(x)"),
        ];
        let expected = [
            "crates/a/src/conformance/claim.rs:1",
            "crates/a/src/run.rs:4",
            "crates/a/tests/it/main.rs:2",
        ];
        assert_eq!(places(in_tests, &files), expected);
    }
}

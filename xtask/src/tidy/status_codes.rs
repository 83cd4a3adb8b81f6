//! Only `http/` knows status codes: the rest of the program speaks in verdicts.

use super::Finding;
use super::tree::Tree;

const PROGRAM: &str = "crates/hapax/src/";
const HTTP: [&str; 2] = ["crates/hapax/src/http/", "crates/hapax/src/http.rs"];

/// Uses of `StatusCode` outside of `http/`.
pub(super) fn outside_http(tree: &Tree) -> Vec<Finding> {
    let elsewhere = tree
        .rust(PROGRAM)
        .filter(|file| !HTTP.iter().any(|http| file.path.starts_with(http)));
    let mut findings = Vec::new();
    for file in elsewhere {
        for (line, _) in file.program_lines_with(&["StatusCode"]) {
            let message = "only http/ knows status codes: return a verdict, or a plain u16 that another server sent";
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
    fn a_status_code_outside_http_is_found() {
        let files = [
            (
                "crates/hapax/src/http/problem.rs",
                "use http::StatusCode;\n",
            ),
            (
                "crates/hapax/src/guard/step.rs",
                "// StatusCode\nuse http::StatusCode;\n",
            ),
            (
                "crates/hapax/src/cli/client.rs",
                "#[cfg(test)]\nmod tests {\n    use http::StatusCode;\n}\n",
            ),
        ];
        assert_eq!(
            places(outside_http, &files),
            ["crates/hapax/src/guard/step.rs:2"]
        );
    }
}

//! Every error has a code and a page: `hapax explain H0204` and docs/errors/H0204.md.

use std::collections::BTreeSet;

use super::Finding;
use super::lex::in_name;
use super::tree::Tree;

/// Digits of a code, after its `H`.
const DIGITS: usize = 4;

/// Codes in the program that have no page; each is named once, where it first appears.
pub(super) fn missing(tree: &Tree) -> Vec<Finding> {
    let mut seen = BTreeSet::new();
    let mut findings = Vec::new();
    for file in tree.rust("crates/hapax/src/") {
        for (line, text) in file.lines().filter(|(line, _)| !file.is_test_at(*line)) {
            for code in codes(text) {
                let page = format!("docs/errors/{code}.md");
                if seen.insert(code.to_owned()) && tree.file(&page).is_none() {
                    let message = format!("{code} has no page: write {page}");
                    findings.push(Finding::failure(&file.path, line, message));
                }
            }
        }
    }
    findings
}

fn codes(text: &str) -> impl Iterator<Item = &str> {
    text.match_indices('H').filter_map(|(start, _)| {
        let code = text.get(start..start + 1 + DIGITS)?;
        let before = text[..start].chars().next_back();
        let after = text[start + code.len()..].chars().next();
        let whole = !before.is_some_and(in_name) && !after.is_some_and(in_name);
        let digits = code[1..].chars().all(|c| c.is_ascii_digit());
        (whole && digits).then_some(code)
    })
}

#[cfg(test)]
mod tests {
    use super::super::tests::places;
    use super::*;

    #[test]
    fn a_code_without_a_page_is_found_once() {
        let files = [
            ("docs/errors/H0204.md", "# H0204"),
            (
                "crates/hapax/src/error.rs",
                "const A: &str = \"H0204\";\nconst B: &str = \"H0300\"; // H0300\nconst C: &str = \"H03000 XH0301\";\n",
            ),
            (
                "crates/hapax/src/other.rs",
                "// see H0300\n#[cfg(test)]\nmod tests { /* H9999 */ }\n",
            ),
        ];
        assert_eq!(places(missing, &files), ["crates/hapax/src/error.rs:2"]);
    }
}

//! Nothing is left for later in the code: what is not done is an issue, not a comment.

use super::Finding;
use super::lex::in_name;
use super::tree::Tree;

const MACROS: [&str; 2] = ["todo!", "unimplemented!"];
const MARKS: [&str; 2] = ["TODO", "FIXME"];

/// Macros that stand for missing code, and marks in comments and in files that are not Rust.
pub(super) fn left_behind(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in tree.files() {
        for pattern in MACROS {
            for line in file.source.lines_with(pattern) {
                let message = format!("{pattern} is not finished code");
                findings.push(Finding::failure(&file.path, line, message));
            }
        }
        let mut add = |line: usize, text: &str| {
            if let Some(mark) = MARKS.iter().find(|mark| has_word(text, mark)) {
                let message = format!("{mark}: finish it, or open an issue");
                findings.push(Finding::failure(&file.path, line, message));
            }
        };
        if file.path.ends_with(".rs") {
            for (start, comment) in &file.source.comments {
                for (line, text) in (*start..).zip(comment.lines()) {
                    add(line, text);
                }
            }
        } else {
            for (line, text) in file.lines() {
                add(line, text);
            }
        }
    }
    findings
}

fn has_word(text: &str, word: &str) -> bool {
    text.match_indices(word).any(|(start, _)| {
        let before = text[..start].chars().next_back();
        let after = text[start + word.len()..].chars().next();
        !before.is_some_and(in_name) && !after.is_some_and(in_name)
    })
}

#[cfg(test)]
mod tests {
    use super::super::tests::places;
    use super::*;

    #[test]
    fn unfinished_work_is_found() {
        let marked = format!("fn f() {{}}\n/* one\n{}: two */\n", MARKS[0]);
        let script = format!("# {} later\nMASTODONT\n", MARKS[1]);
        let files = [
            ("crates/a/src/lib.rs", "fn f() {\n    todo!()\n}\n"),
            ("crates/a/src/b.rs", marked.as_str()),
            ("crates/a/src/c.rs", "const WORD: &str = \"TODO\";\n"),
            ("script", script.as_str()),
        ];
        let expected = ["crates/a/src/b.rs:3", "crates/a/src/lib.rs:2", "script:1"];
        assert_eq!(places(left_behind, &files), expected);
    }
}

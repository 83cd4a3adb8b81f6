//! Inbox and outbox do not import each other: they meet in the store.

use super::Finding;
use super::lex::in_name;
use super::tree::Tree;

const DOORS: [(&str, &str); 2] = [("inbox", "outbox"), ("outbox", "inbox")];

/// Paths from one door's module into the other's.
pub(super) fn importing_each_other(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (own, other) in DOORS {
        let folder = format!("crates/hapax/src/{own}");
        let is_own = |path: &str| {
            let rest = path.strip_prefix(&folder);
            rest.is_some_and(|rest| rest.starts_with('/') || rest == ".rs")
        };
        for file in tree.rust(&folder).filter(|file| is_own(&file.path)) {
            for line in path_lines(&file.source.code, other) {
                let message = format!("{own} must not know {other}: they meet in the store");
                findings.push(Finding::failure(&file.path, line, message));
            }
        }
    }
    findings
}

/// Lines where `module` is part of a path or named in a `use`; a field or variable of that name is neither.
fn path_lines(code: &str, module: &str) -> Vec<usize> {
    let is_path = |(start, _): &(usize, &str)| {
        let (before, after) = (&code[..*start], &code[start + module.len()..]);
        let whole = !before.ends_with(in_name) && !after.starts_with(in_name);
        let statement = before
            .rsplit([';', '}'])
            .next()
            .unwrap_or(before)
            .trim_start();
        let statement = statement.strip_prefix("pub ").unwrap_or(statement);
        let joined = before.ends_with("::") || after.starts_with("::");
        whole && (joined || statement.starts_with("use "))
    };
    code.match_indices(module)
        .filter(is_path)
        .map(|(start, _)| 1 + code[..start].matches('\n').count())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::tests::places;
    use super::*;

    #[test]
    fn an_import_of_the_other_door_is_found() {
        let files = [
            (
                "crates/hapax/src/inbox/mod.rs",
                "//! Not like outbox::x.\nuse crate::store::{\n    a,\n    outbox,\n};\nfn f() { crate::outbox::g(config.outbox) }\n",
            ),
            (
                "crates/hapax/src/inbox/b.rs",
                "fn f(outbox: u8) -> u8 { outbox }\n",
            ),
            ("crates/hapax/src/outbox.rs", "use super::inbox;\n"),
            ("crates/hapax/src/serve.rs", "use crate::{inbox, outbox};\n"),
        ];
        let expected = [
            "crates/hapax/src/inbox/mod.rs:4",
            "crates/hapax/src/inbox/mod.rs:6",
            "crates/hapax/src/outbox.rs:1",
        ];
        assert_eq!(places(importing_each_other, &files), expected);
    }
}

//! No file names a folder of the machine that someone wrote it on.

use super::Finding;
use super::tree::Tree;

/// Starts of paths that exist on one machine only. The last two need a name after them.
const STARTS: [&str; 4] = ["/work/", "/root/", "/home/", "/Users/"];

/// Absolute paths in any text file.
pub(super) fn in_any_file(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in tree.files() {
        for (line, text) in file.lines() {
            if let Some(start) = STARTS.iter().find(|start| has_path(text, start)) {
                let message = format!("a path of someone's machine ({start}...)");
                findings.push(Finding::failure(&file.path, line, message));
            }
        }
    }
    findings
}

/// Is there a path that begins with `start`? Not if it goes on from a name: `docs/work/` and `x.org/home/` are others.
fn has_path(text: &str, start: &str) -> bool {
    text.match_indices(start).any(|(at, _)| {
        let before = text[..at].chars().next_back();
        let after = text[at + start.len()..].chars().next();
        let goes_on = before.is_some_and(|c| c.is_alphanumeric() || "._-~}/$*)".contains(c));
        !goes_on && after.is_some_and(|c| c.is_alphanumeric() || c == '.')
    })
}

#[cfg(test)]
mod tests {
    use super::super::tests::places;
    use super::*;

    #[test]
    fn a_path_of_someones_machine_is_found() {
        let files = [
            (
                "a.md",
                "See [it](docs/work/x.md) and https://x.org/home/y.\n",
            ),
            ("b.toml", "\npath = \"/home/ann/x\"\n"),
            ("crates/a/src/lib.rs", "// in /root/.cargo\n"),
            ("script", "cd /work/main\n"),
        ];
        let expected = ["b.toml:2", "crates/a/src/lib.rs:1", "script:1"];
        assert_eq!(places(in_any_file, &files), expected);
    }
}

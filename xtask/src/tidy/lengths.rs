//! Files stay short enough to be read in one go.

use super::Finding;
use super::tree::Tree;

/// A source file longer than this holds more than one subject.
const SOURCE_LINES_MAX: usize = 500;

/// From here on it is worth a thought.
const SOURCE_LINES_THINK: usize = 400;

/// Pages with a limit of their own.
const PAGES: [(&str, usize); 2] = [("README.md", 100), ("ARCHITECTURE.md", 200)];

/// Files that are too long; those that soon will be are noted.
pub(super) fn over_the_limit(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in tree.rust("").filter(|file| file.path.contains("src/")) {
        let lines = file.lines().count();
        if lines > SOURCE_LINES_MAX {
            let message = format!("{lines} lines, at most {SOURCE_LINES_MAX}: split it by subject");
            findings.push(Finding::failure(&file.path, lines, message));
        } else if lines > SOURCE_LINES_THINK {
            let message = format!("{lines} lines: is it still one subject?");
            findings.push(Finding::note(&file.path, lines, message));
        }
    }
    for (page, max) in PAGES {
        let lines = tree.file(page).map_or(0, |file| file.lines().count());
        if lines > max {
            let message = format!("{lines} lines, at most {max}");
            findings.push(Finding::failure(page, lines, message));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::super::Weight;
    use super::super::tests::planted;
    use super::*;

    #[test]
    fn long_files_are_found_and_rather_long_ones_noted() {
        let lines = |count| "//\n".repeat(count);
        let files = [
            ("ARCHITECTURE.md", lines(200)),
            ("README.md", lines(101)),
            ("crates/a/src/fine.rs", lines(400)),
            ("crates/a/src/long.rs", lines(501)),
            ("crates/a/src/near.rs", lines(401)),
        ];
        let files = files.each_ref().map(|(path, text)| (*path, text.as_str()));
        let (_folder, tree) = planted(&files);
        let found: Vec<_> = over_the_limit(&tree)
            .into_iter()
            .map(|finding| (finding.path, finding.weight))
            .collect();
        let expected = [
            ("crates/a/src/long.rs".to_owned(), Weight::Failure),
            ("crates/a/src/near.rs".to_owned(), Weight::Note),
            ("README.md".to_owned(), Weight::Failure),
        ];
        assert_eq!(found, expected);
    }
}

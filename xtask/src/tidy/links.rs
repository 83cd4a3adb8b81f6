//! Every relative link on a page leads somewhere.

use std::path::{Component, Path, PathBuf};

use super::Finding;
use super::tree::Tree;

/// Links to files that are not there.
pub(super) fn broken(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in tree.files().filter(|file| file.path.ends_with(".md")) {
        let folder = Path::new(&file.path).parent().unwrap_or(Path::new(""));
        for (line, target) in targets(&file.text) {
            if let Some(path) = relative(&target) {
                let leads = within(folder, path).is_some_and(|path| tree.exists(&path));
                if !leads {
                    let message = format!("the link to {target} leads nowhere");
                    findings.push(Finding::failure(&file.path, line, message));
                }
            }
        }
    }
    findings
}

/// Targets of `[text](target)` and `[name]: target`, outside of code.
fn targets(text: &str) -> Vec<(usize, String)> {
    let mut targets = Vec::new();
    let mut fenced = false;
    for (number, line) in (1..).zip(text.lines()) {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        } else if !fenced {
            let line = without_code(line);
            let definition = line.trim_start().strip_prefix('[');
            let definition = definition.and_then(|rest| rest.split_once("]: "));
            let inline = line
                .split("](")
                .skip(1)
                .filter_map(|rest| rest.split(')').next());
            let all = inline.chain(definition.map(|(_, target)| target.trim()));
            targets.extend(all.map(|target| (number, target.to_owned())));
        }
    }
    targets
}

/// A line without what stands between backticks.
fn without_code(line: &str) -> String {
    line.split('`').step_by(2).collect::<Vec<_>>().join("``")
}

/// The path of a link to a file; `None` for addresses and for places on the same page.
fn relative(target: &str) -> Option<&str> {
    let target = target.split(' ').next()?;
    let path = target.split(['#', '?']).next()?;
    let is_address = target.contains("://") || target.starts_with("mailto:");
    (!is_address && !path.is_empty()).then_some(path)
}

/// `path` from `folder`, without dots; `None` if it leaves the repository.
fn within(folder: &Path, path: &str) -> Option<PathBuf> {
    let joined = match path.strip_prefix('/') {
        Some(from_root) => PathBuf::from(from_root),
        None => folder.join(path),
    };
    let mut clean = PathBuf::new();
    for component in joined.components() {
        match component {
            Component::Normal(name) => clean.push(name),
            Component::ParentDir => clean.pop().then_some(())?,
            Component::CurDir | Component::RootDir | Component::Prefix(_) => {}
        }
    }
    Some(clean)
}

#[cfg(test)]
mod tests {
    use super::super::tests::places;
    use super::*;

    #[test]
    fn a_link_that_leads_nowhere_is_found() {
        let page = "[a](b.md#x) [b](../README.md) [c](https://x.org/y) [d](#e)\n\
                    `[not](a-link.md)` [gone](gone.md) [out](../../x)\n\
                    ```\n[not](this.md)\n```\n[ref]: missing.png\n[folder](./)\n";
        let files = [
            ("README.md", "[page](docs/page.md \"A page\")"),
            ("docs/b.md", ""),
            ("docs/page.md", page),
        ];
        let expected = ["docs/page.md:2", "docs/page.md:2", "docs/page.md:6"];
        assert_eq!(places(broken, &files), expected);
    }
}

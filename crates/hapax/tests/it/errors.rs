//! Every error has a code and a page.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::program::run;

fn crate_folder() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        match path.is_dir() {
            true => files.extend(self::files(&path)),
            false => files.push(path),
        }
    }
    files
}

/// Codes in quotes: `"H0101"`.
fn codes(text: &str) -> impl Iterator<Item = &str> {
    text.split('"').filter(|word| {
        let digits = word.strip_prefix('H').unwrap_or_default();
        digits.len() == 4 && digits.bytes().all(|byte| byte.is_ascii_digit())
    })
}

fn pages() -> BTreeSet<String> {
    let folder = crate_folder().join("../../docs/errors");
    let name = |path: PathBuf| {
        path.file_stem()
            .expect("a name")
            .to_str()
            .expect("text")
            .to_owned()
    };
    let mut pages: BTreeSet<String> = files(&folder).into_iter().map(name).collect();
    assert!(pages.remove("README"), "the index is there");
    pages
}

#[test]
fn every_code_in_the_source_has_a_page_and_every_page_is_listed() {
    let mut used = BTreeSet::new();
    for path in files(&crate_folder().join("src")) {
        let text = std::fs::read_to_string(&path).expect("text");
        used.extend(codes(&text).map(str::to_owned));
    }
    let pages = pages();
    let missing: Vec<_> = used.difference(&pages).collect();
    assert!(missing.is_empty(), "no page in docs/errors for {missing:?}");

    let listed = run(crate_folder(), &["explain", "--json"])
        .expect_exit(0)
        .json();
    let listed = listed.as_array().expect("a list").iter();
    let listed: BTreeSet<String> = listed
        .map(|page| page["code"].as_str().expect("a code").to_owned())
        .collect();
    assert_eq!(
        listed, pages,
        "cli/pages.rs and docs/errors have the same pages"
    );
}

#[test]
fn the_index_lists_every_page_with_its_title() {
    let folder = crate_folder().join("../../docs/errors");
    let index = std::fs::read_to_string(folder.join("README.md")).expect("text");
    let listed: Vec<&str> = index
        .lines()
        .filter(|line| line.starts_with("- "))
        .collect();
    let pages = run(crate_folder(), &["explain"]).expect_exit(0).stdout;
    let want = pages.lines().map(|line| {
        let (code, title) = line.split_once("  ").expect("a code and a title");
        format!("- [{code}]({code}.md): {title}")
    });
    assert_eq!(listed, want.collect::<Vec<_>>());
}

#[test]
fn every_page_says_what_happened_why_and_what_to_do() {
    for code in pages() {
        let page = run(crate_folder(), &["explain", &code])
            .expect_exit(0)
            .stdout;
        let headings: Vec<&str> = page.lines().filter(|line| line.starts_with('#')).collect();
        let title = format!("# {code}: ");
        assert!(headings[0].starts_with(&title), "{code}: {headings:?}");
        assert_eq!(
            headings[1..],
            ["## What happened", "## Why", "## What to do next"],
            "{code}"
        );
        assert!(!page.contains("exactly once"), "{code}");
    }
}

#[test]
fn an_unknown_code_names_the_nearest() {
    let ran = run(crate_folder(), &["explain", "H0266"]).expect_exit(4);
    assert!(
        ran.stderr.contains("there is no error code `H0266`"),
        "{}",
        ran.stderr
    );
    assert!(ran.stderr.contains("the nearest is H02"), "{}", ran.stderr);
    for short in ["h0204", "h204", "204"] {
        let ran = run(crate_folder(), &["explain", short]).expect_exit(0);
        assert!(ran.stdout.starts_with("# H0204: "), "{short}");
    }
}

//! The pages of `docs/guide`: what stands in them is what the program does.
//!
//! - [`page`]: a page as text, files and a terminal session
//! - [`terminal`]: a terminal in which a session is run
//! - [`words`]: ids and times, which differ from run to run
//!
//! `HAPAX_WRITE_GUIDE=1 cargo nextest run -p hapax guide` writes the outputs into the pages.

mod page;
mod terminal;
mod words;

use std::path::Path;

use page::Page;
use terminal::Terminal;

/// Set, pages are written instead of compared.
const WRITE: &str = "HAPAX_WRITE_GUIDE";

#[test]
fn after_an_incident() {
    check("after-an-incident.md");
}

#[test]
fn guard_an_api() {
    check("guard-an-api.md");
}

#[test]
fn retention_and_erasure() {
    check("retention-and-erasure.md");
}

#[test]
fn secrets() {
    check("secrets.md");
}

/// Runs the session of a page from its first command to its last.
#[track_caller]
fn check(name: &str) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guide");
    let path = folder.join(name);
    let text = std::fs::read_to_string(&path).expect("a page");
    let page = Page::parse(&text);
    let mut terminal = Terminal::open(&page.files());
    let now = page.with_outputs(|command| terminal.run(command));
    if std::env::var_os(WRITE).is_some() {
        std::fs::write(&path, now).expect("written");
        return;
    }
    for (number, (page, program)) in text.lines().zip(now.lines()).enumerate() {
        let line = number + 1;
        assert_eq!(
            page, program,
            "{name}, line {line}; {WRITE}=1 writes the page anew"
        );
    }
    assert_eq!(text, now, "{name}; {WRITE}=1 writes the page anew");
}

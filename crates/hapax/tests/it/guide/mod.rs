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

use std::path::{Path, PathBuf};

use hapax_store::conformance::database::with_database;

use page::Page;
use terminal::Terminal;

/// Set, pages are written instead of compared.
const WRITE: &str = "HAPAX_WRITE_GUIDE";

/// What a page writes for a database; it is a real one here, or the page is skipped.
const DATABASE: &str = "postgres://hapax@db.internal/hapax";

/// A new page is run without a word here: every page of the folder is.
#[test]
fn every_page_is_what_the_program_does() {
    let mut pages: Vec<PathBuf> = std::fs::read_dir(folder())
        .expect("the guide")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "md"))
        .collect();
    pages.sort();
    let threads = pages.into_iter().map(|path| {
        let name = path.file_stem().and_then(|stem| stem.to_str());
        let name = name.expect("a name").to_owned();
        std::thread::Builder::new()
            .name(name)
            .spawn(move || check(&path))
            .expect("a thread")
    });
    let threads: Vec<_> = threads.collect();
    let failed = threads.into_iter().filter_map(|thread| {
        let name = thread.thread().name().unwrap_or_default().to_owned();
        thread.join().is_err().then_some(name)
    });
    let failed: Vec<String> = failed.collect();
    assert!(failed.is_empty(), "not as the program does it: {failed:?}");
}

/// A page that says something else than the program is found, and so is a command that does not work.
#[test]
fn a_broken_command_is_noticed() {
    let text = std::fs::read_to_string(folder().join("start.md")).expect("a page");
    let broken = text.replacen("$ hapax events list", "$ hapax events lost", 1);
    assert_ne!(broken, text, "the page has such a command");
    assert_ne!(run(&broken), broken);
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guide")
}

/// The page with what the program says.
fn run(text: &str) -> String {
    let page = Page::parse(text);
    let mut terminal = Terminal::open(&page.files());
    page.with_outputs(|command| terminal.run(command))
}

/// Runs the session of a page from its first command to its last.
fn check(path: &Path) {
    let text = std::fs::read_to_string(path).expect("a page");
    if !text.contains(DATABASE) {
        compare(path, &text, &run(&text));
        return;
    }
    let path = path.to_owned();
    with_database(move |database| async move {
        let url = database.url();
        let work = tokio::task::spawn_blocking(move || {
            let now = run(&text.replace(DATABASE, &url)).replace(&url, DATABASE);
            compare(&path, &text, &now);
        });
        work.await.expect("the page is what the program does");
    });
}

#[track_caller]
fn compare(path: &Path, text: &str, now: &str) {
    if std::env::var_os(WRITE).is_some() {
        std::fs::write(path, now).expect("written");
        return;
    }
    let name = path.display();
    for (number, (page, program)) in text.lines().zip(now.lines()).enumerate() {
        let line = number + 1;
        assert_eq!(
            page, program,
            "{name}, line {line}; {WRITE}=1 writes the page anew"
        );
    }
    assert_eq!(text, now, "{name}; {WRITE}=1 writes the page anew");
}

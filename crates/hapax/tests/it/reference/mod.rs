//! The pages of `docs/reference`: made from what the program says of itself, and compared with what is written.
//!
//! - `config`: fields as the program names them, with what `config.txt` says of each
//! - `cli`: the help of every command
//! - `metrics`: as they are registered; `served`: the description of the API, as a server gives it
//! - `providers`: the presets, as they are data
//!
//! `cargo xt reference` writes them.

mod cli;
mod config;
mod metrics;
mod providers;
mod served;

use std::path::Path;

/// Set, pages are written instead of compared.
const WRITE: &str = "HAPAX_WRITE_REFERENCE";

/// Compares a page with what it should be, or writes it.
#[track_caller]
fn check(name: &str, now: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../docs/reference")
        .join(name);
    if std::env::var_os(WRITE).is_some() {
        std::fs::write(&path, now).expect("written");
        return;
    }
    let text = std::fs::read_to_string(&path).unwrap_or_default();
    for (number, (page, program)) in text.lines().zip(now.lines()).enumerate() {
        let line = number + 1;
        assert_eq!(
            page, program,
            "docs/reference/{name}, line {line}, is stale: `cargo xt reference` writes it anew"
        );
    }
    assert_eq!(
        text, now,
        "docs/reference/{name} is stale: `cargo xt reference` writes it anew"
    );
}

/// Text in a cell of a table.
fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('\n', " ")
}

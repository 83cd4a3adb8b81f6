//! `config.md`: the fields that the program knows, in its own words for them, with what `config.txt` says of each. A field without a line
//! there, and a line without a field, fail the test.

use std::collections::BTreeMap;

use super::{cell, check};
use crate::program::{folder, run};

/// What is said of each field: `table.field | default | meaning`.
const MEANINGS: &str = include_str!("config.txt");
/// The scheme of a custom source, whose fields are described where they are read.
const SCHEME: &str = include_str!("../../../../hapax-verify/src/spec.rs");
/// A field that nobody has: for it the program lists those that there are.
const NOBODY: &str = "zzzzzz";

/// Each table, a config in which it has a field too many, and where the program says that it is.
const TABLES: [(&str, &str, &str); 12] = [
    ("", "zzzzzz = 1", "at the top level"),
    ("admin", "[admin]\nzzzzzz = 1", "in [admin]"),
    ("limits", "[limits]\nzzzzzz = 1", "in [limits]"),
    ("alerts", "[alerts]\nzzzzzz = 1", "in [alerts]"),
    ("outbox", "[outbox]\nzzzzzz = 1", "in [outbox]"),
    ("portal", "[portal]\nzzzzzz = 1", "in [portal]"),
    ("source", "[[source]]\nzzzzzz = 1", "in [[source]]"),
    (
        "source.retain",
        "[[source]]\nretain = { zzzzzz = 1 }",
        "in retain",
    ),
    (
        "source.order",
        "[[source]]\norder = { zzzzzz = 1 }",
        "in order",
    ),
    (
        "source.reconcile",
        "[[source]]\nreconcile = { zzzzzz = 1 }",
        "in reconcile",
    ),
    ("effect", "[[effect]]\nzzzzzz = 1", "in [[effect]]"),
    (
        "guard",
        "[[guard]]\nzzzzzz = 1\ntls = { cert = \"a\", key = \"b\" }",
        "in [[guard]]",
    ),
];

#[test]
fn settings_are_described_as_they_are() {
    let mut meanings = meanings();
    let mut page = "# Configuration\n\nMade by `cargo xt reference` from the fields that the program knows. Unknown fields are errors. Any \
                    string may be `env:NAME` or `file:PATH`. Durations are `200ms`, `10s`, `5m`, `72h`, `30d`; sizes `1MiB`. SIGHUP reads \
                    the file again; a bad one is refused. `hapax check` says what is wrong with a file, and `hapax init` writes one to \
                    begin with.\n"
        .to_owned();
    for (table, config, place) in TABLES {
        page.push_str(&format!(
            "\n## {}\n\n| field | default | meaning |\n|---|---|---|\n",
            title(table)
        ));
        for field in fields(config, place) {
            let name = match table {
                "" => field.clone(),
                table => format!("{table}.{field}"),
            };
            let (default, meaning) = meanings
                .remove(&name)
                .unwrap_or_else(|| panic!("config.txt says nothing of {name}"));
            page.push_str(&format!("| `{field}` | {default} | {} |\n", cell(&meaning)));
        }
    }
    assert!(
        meanings.is_empty(),
        "config.txt describes what is not there: {:?}",
        meanings.keys()
    );
    page.push_str(
        "\n## [source.verify]\n\nFor `provider = \"custom\"`.\n\n| field | meaning |\n|---|---|\n",
    );
    for (field, meaning) in scheme() {
        page.push_str(&format!("| `{field}` | {} |\n", cell(&meaning)));
    }
    check("config.md", &page);
}

fn title(table: &str) -> String {
    match table {
        "" => "At the top".to_owned(),
        "source" | "effect" | "guard" => format!("[[{table}]]"),
        table => format!("[{table}]"),
    }
}

/// The fields of a table, as the program lists them.
fn fields(config: &str, place: &str) -> Vec<String> {
    let folder = folder(&[("hapax.toml", config)]);
    let said = run(folder.path(), &["check", "--json"])
        .expect_exit(1)
        .json();
    let problems = said["problems"].as_array().expect("problems").iter();
    let text = format!("unknown field `{NOBODY}` {place}");
    let problem = problems
        .clone()
        .find(|problem| problem["text"] == text.as_str());
    let problem = problem.unwrap_or_else(|| panic!("`{text}` is not in {said:#}"));
    let remedy = problem["remedy"].as_str().expect("a remedy");
    let list = remedy
        .strip_prefix("the fields here are: ")
        .expect("a list");
    list.split(", ").map(str::to_owned).collect()
}

fn meanings() -> BTreeMap<String, (String, String)> {
    let lines = MEANINGS.lines().filter(|line| !line.is_empty());
    let parsed = lines.map(|line| {
        let mut parts = line.splitn(3, '|').map(|part| part.trim().to_owned());
        let mut part = || {
            parts
                .next()
                .unwrap_or_else(|| panic!("three parts in `{line}`"))
        };
        (part(), (part(), part()))
    });
    parsed.collect()
}

/// Fields of the scheme, with the words that stand above each.
fn scheme() -> Vec<(String, String)> {
    let body = SCHEME
        .split("pub struct SchemeSpec {")
        .nth(1)
        .expect("the table");
    let body = body.split("\n}").next().expect("its end");
    let (mut fields, mut words) = (Vec::new(), Vec::new());
    for line in body.lines().map(str::trim) {
        if let Some(text) = line.strip_prefix("/// ") {
            words.push(text);
        } else if let Some(field) = line.strip_prefix("pub ") {
            let name = field.split(':').next().expect("a name");
            fields.push((name.to_owned(), words.join(" ")));
            words.clear();
        }
    }
    fields
}

//! SQL stands in hapax-store only, and there turns arrays into rows the cheap way.

use super::Finding;
use super::tree::Tree;

const STORE: &str = "crates/hapax-store/";

/// First words of a statement, each with a word that must come right after it; empty: any word. `DELETE` alone is
/// also a method of HTTP, and "select a source" is English: hence the second word, and hence capital letters only
/// where any word will do.
const STATEMENTS: [(&str, &[&str]); 11] = [
    ("INSERT", &["INTO", "OR"]),
    ("DELETE", &["FROM"]),
    (
        "CREATE",
        &[
            "TABLE", "INDEX", "UNIQUE", "VIEW", "TRIGGER", "SCHEMA", "DATABASE", "ROLE", "TEMP",
            "FUNCTION",
        ],
    ),
    ("ALTER", &["TABLE", "INDEX", "DATABASE", "ROLE", "SYSTEM"]),
    (
        "DROP",
        &["TABLE", "INDEX", "VIEW", "TRIGGER", "SCHEMA", "DATABASE"],
    ),
    (
        "BEGIN",
        &["IMMEDIATE", "EXCLUSIVE", "DEFERRED", "TRANSACTION"],
    ),
    ("SELECT", &["*", "1", "COUNT(*)", "DISTINCT"]),
    ("TRUNCATE", &["TABLE"]),
    ("ATTACH", &["DATABASE"]),
    ("PRAGMA", &[]),
    ("VACUUM", &[]),
];

/// Recognised by one word in capital letters, whatever follows.
const CAPITALS: [&str; 10] = [
    "SELECT",
    "UPDATE",
    "WITH",
    "BEGIN",
    "COMMIT",
    "ROLLBACK",
    "SAVEPOINT",
    "PRAGMA",
    "VACUUM",
    "LISTEN",
];

/// String literals that are statements, and files of SQL, anywhere else.
pub(super) fn outside_the_store(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in tree.files().filter(|file| !file.path.starts_with(STORE)) {
        if file.path.ends_with(".sql") {
            findings.push(Finding::failure(
                &file.path,
                1,
                "SQL outside of hapax-store",
            ));
        }
        for (line, text) in &file.source.strings {
            if is_statement(text) {
                let message = "SQL outside of hapax-store: give the store a method for it";
                findings.push(Finding::failure(&file.path, *line, message));
            }
        }
    }
    findings
}

/// Statements in which one `unnest` takes several arrays.
pub(super) fn arrays_side_by_side(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in tree.files().filter(|file| file.path.starts_with(STORE)) {
        for (line, text) in &file.source.strings {
            if takes_several_arrays(text) {
                let message = "one unnest of several arrays: unnest each in the select list, which costs a fraction of it (postgres/columns.rs)";
                findings.push(Finding::failure(&file.path, *line, message));
            }
        }
    }
    findings
}

fn takes_several_arrays(text: &str) -> bool {
    let calls = text.split("unnest(").skip(1);
    calls
        .filter_map(|call| call.split_once(')'))
        .any(|(arguments, _)| arguments.contains(','))
}

fn is_statement(text: &str) -> bool {
    let mut words = text.split_whitespace();
    let Some(first) = words.next() else {
        return false;
    };
    let first = first.trim_end_matches(';');
    let second = words.next();
    if CAPITALS.contains(&first) && (second.is_some() || text.trim_end().ends_with(';')) {
        return true;
    }
    let second = second.unwrap_or_default().to_ascii_uppercase();
    STATEMENTS.iter().any(|(word, next)| {
        let follows = next.contains(&second.trim_end_matches(';'));
        word.eq_ignore_ascii_case(first) && follows
    })
}

#[cfg(test)]
mod tests {
    use super::super::tests::places;
    use super::*;

    #[test]
    fn statements_are_told_from_english_and_http() {
        let statements = [
            "SELECT id FROM event",
            "  select * from event",
            "insert into event values (1)",
            "DELETE FROM event",
            "UPDATE event SET a = 1",
            "BEGIN IMMEDIATE",
            "COMMIT;",
            "PRAGMA journal_mode = WAL",
            "create table t (a)",
        ];
        for text in statements {
            assert!(is_statement(text), "{text}");
        }
        let others = [
            "DELETE",
            "DELETE /api/v1/app/a",
            "UPDATE",
            "select a source from the list",
            "with a reason",
            "Update the endpoint",
            "create an endpoint",
            "begin",
            "",
        ];
        for text in others {
            assert!(!is_statement(text), "{text}");
        }
    }

    #[test]
    fn arrays_become_rows_one_by_one() {
        let files = [
            (
                "crates/hapax-store/src/a.rs",
                "f(\"SELECT unnest($1::int2[]), unnest($2::uuid[])\")",
            ),
            (
                "crates/hapax-store/src/b.rs",
                "f(\"FROM unnest($1::int2[]) AS k, t\")",
            ),
            (
                "crates/hapax-store/src/c.rs",
                "f(\"FROM unnest($1::int2[], $2::uuid[]) AS k\")",
            ),
        ];
        let expected = ["crates/hapax-store/src/c.rs:1"];
        assert_eq!(places(arrays_side_by_side, &files), expected);
    }

    #[test]
    fn sql_is_found_outside_of_the_store() {
        let statement = "\nconst A: &str = \"SELECT 1\"; // \"SELECT 2\"\n";
        let files = [
            ("crates/hapax-store/src/sqlite/accept.rs", statement),
            ("crates/hapax/src/inbox/accept.rs", statement),
            ("crates/hapax/src/schema.sql", "-- empty"),
            ("crates/hapax/tests/it/main.rs", "f(r#\"PRAGMA x\"#)"),
        ];
        let expected = [
            "crates/hapax/src/inbox/accept.rs:2",
            "crates/hapax/src/schema.sql:1",
            "crates/hapax/tests/it/main.rs:1",
        ];
        assert_eq!(places(outside_the_store, &files), expected);
    }
}

//! How SQLite gets at the rows of every list: along an index or the table's own order, without a sort of what it finds.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use rusqlite::Connection;
use rusqlite::trace::{TraceEvent, TraceEventCodes};

use super::{DiskLimits, Options, SqliteStore};
use crate::conformance::lists::every_list;
use crate::conformance::sample::{Subject, accept, at, still_clock};

/// Every statement that a reading connection of this process has run.
static SEEN: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());

/// Takes down what a reading connection runs.
pub(super) fn listen(db: &mut Connection) {
    let note = |event: TraceEvent<'_>| {
        if let TraceEvent::Stmt(statement, _) = event {
            let mut seen = SEEN.lock().unwrap_or_else(PoisonError::into_inner);
            seen.insert(statement.sql().into_owned());
        }
    };
    db.trace_v2(TraceEventCodes::SQLITE_TRACE_STMT, Some(note))
        .expect("the connection is open");
}

/// What may be gone through as a whole: a table that people fill by hand, what another step has found already, and indexes that
/// hold nothing but what is asked for (what is held is as much as lanes send at once).
const SMALL: [&str; 6] = [
    "SCAN replay",
    "SCAN (subquery",
    "SCAN CONSTANT ROW",
    "INDEX effect_held",
    "INDEX guard_key_running",
    "INDEX guard_key_unknown",
];

/// May a plan have this step?
fn is_fine(statement: &str, step: &str) -> bool {
    if step.contains("TEMP B-TREE") {
        // The effects of one event are as many as its plan has.
        return statement.contains("effect_held") || statement.contains("UNION");
    }
    !step.starts_with("SCAN") || SMALL.iter().any(|small| step.contains(small))
}

#[test]
fn no_list_reads_or_sorts_a_whole_table() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("hapax.db");
    let options = Options {
        nonce: [7; 16],
        clock: still_clock(),
        disk: DiskLimits {
            free_bytes_min: 0,
            ballast_bytes: 0,
        },
    };
    let runtime = tokio::runtime::Runtime::new().expect("a runtime starts");
    runtime.block_on(async {
        let store: Subject = Arc::new(SqliteStore::open(&path, options).expect("the store opens"));
        for n in 0..9 {
            accept(&store, at(n), &format!("k{n}"), "A").await;
        }
        every_list(&store).await;
        store.close().await;
    });
    let db = Connection::open(&path).expect("the file opens");
    let seen = SEEN.lock().expect("no test panicked holding it");
    let mut wrong = Vec::new();
    let mut plans = 0;
    for statement in seen
        .iter()
        .filter(|statement| statement.starts_with("SELECT"))
    {
        let mut explain = db
            .prepare(&format!("EXPLAIN QUERY PLAN {statement}"))
            .expect("SQLite knows the statement");
        let mut steps = explain.raw_query();
        while let Some(step) = steps.next().expect("SQLite explains") {
            let step: String = step.get(3).expect("a step has words");
            plans += 1;
            if !is_fine(statement, &step) {
                wrong.push(format!("{step}\n    in {statement}"));
            }
        }
    }
    assert!(plans > 20, "{plans} steps were seen");
    assert_eq!(wrong, Vec::<String>::new());
}

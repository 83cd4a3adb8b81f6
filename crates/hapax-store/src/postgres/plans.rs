//! How PostgreSQL gets at the rows of every list: along an index, without a sort of what it finds.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio_postgres::{Client, Error};

use super::pool::Param;
use crate::conformance::database::with_database;
use crate::conformance::lists::every_list;
use crate::conformance::sample::{Subject, accept, at};

/// Plans of all reading statements since somebody asked for them, by statement. One text may have several: each is planned for its values.
static SEEN: Mutex<Option<BTreeMap<String, &'static str>>> = Mutex::new(None);

/// Takes down how a statement would be run with these values, if somebody wants to know.
pub(super) async fn note(
    client: &Client,
    sql: &'static str,
    params: &[Param<'_>],
) -> Result<(), Error> {
    let wanted = SEEN
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .is_some();
    if !wanted || !sql.trim_start().starts_with("SELECT") {
        return Ok(());
    }
    let rows = client
        .query_typed(&format!("EXPLAIN (COSTS OFF) {sql}"), params)
        .await?;
    let lines: Vec<String> = rows.iter().map(|row| row.get(0)).collect();
    let mut seen = SEEN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(seen) = seen.as_mut() {
        seen.insert(lines.join("\n"), sql);
    }
    Ok(())
}

/// What is wrong with a plan.
fn fault(plan: &str, sql: &str) -> Option<&'static str> {
    // A table that people fill by hand: a page shows all of it.
    if sql.contains("FROM hapax.replay") {
        return None;
    }
    if plan.contains("Seq Scan") {
        return Some("reads a whole table");
    }
    // The effects of one event are as many as its plan has, and rows that are named are those of a page.
    let few = sql.contains("UNION") || sql.contains("unnest(");
    if plan.contains("Sort") && !few {
        return Some("sorts");
    }
    let is_scan = |line: &&str| line.contains("Scan") && line.contains(" using ");
    let scans = plan.lines().filter(is_scan).count();
    let conditions = plan.lines().filter(|line| line.contains("Index Cond:"));
    // An index that holds nothing but what is asked for is counted as a whole.
    let whole = plan.contains("using queue_");
    (scans > conditions.count() && !whole).then_some("reads a whole index")
}

#[test]
fn no_list_reads_or_sorts_a_whole_table() {
    with_database(|database| async move {
        let client = database.client().await;
        // So few rows are read as a whole, if that is not forbidden: what then is left without an index has none.
        for setting in [
            "enable_seqscan",
            "enable_bitmapscan",
            "enable_hashjoin",
            "enable_mergejoin",
        ] {
            let sql = format!("ALTER DATABASE {} SET {setting} = off", database.name());
            client.batch_execute(&sql).await.expect("the server obeys");
        }
        let store: Subject = Arc::new(database.open().await);
        for n in 0..9 {
            accept(&store, at(n), &format!("k{n}"), "A").await;
        }
        *SEEN.lock().expect("nobody panicked holding it") = Some(BTreeMap::new());
        every_list(&store).await;
        let seen = SEEN.lock().expect("nobody panicked holding it").take();
        store.close().await;
        let seen = seen.unwrap_or_default();
        assert!(seen.len() > 20, "{} plans were seen", seen.len());
        let wrong = seen
            .iter()
            .filter_map(|(plan, sql)| Some(format!("{}\n{plan}\nof {sql}", fault(plan, sql)?)));
        let wrong: Vec<String> = wrong.collect();
        assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
    });
}

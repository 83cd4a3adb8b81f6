//! Bytes that go at once because somebody said so, and all that was said about them.

use hapax_ledger::time::Time;
use rusqlite::params;

use super::writer::Tx;
use super::{effect, reap, sql_error};
use crate::error::StoreError;

/// Of the event itself, each with its row.
const OF_EVENT: [&str; 3] = [
    "DELETE FROM payload WHERE seq = ?1",
    "UPDATE run SET snapshot = NULL WHERE event = ?1 AND snapshot IS NOT NULL",
    "UPDATE delivery SET body = NULL WHERE seq = ?1 AND body IS NOT NULL",
];

/// Of an effect that it calls for.
const OF_EFFECT: [&str; 3] = [
    "DELETE FROM snapshot WHERE effect = ?1",
    "UPDATE attempt SET excerpt = NULL, error = NULL WHERE effect = ?1",
    "UPDATE effect SET last_excerpt = NULL, last_error = NULL WHERE seq = ?1",
];

/// Erases what an event brought. Its row, its keys and how its effects ended stay.
pub(super) fn erase(tx: &Tx<'_>, event: i64) -> Result<(), StoreError> {
    let [payload, runs, delivery] = OF_EVENT;
    write(tx, payload, event)?;
    write(tx, runs, event)?;
    for row in reap::deliveries(tx, event)? {
        write(tx, delivery, row)?;
    }
    for held in effect::of_event(tx.db, event)? {
        for statement in OF_EFFECT {
            write(tx, statement, held.row)?;
        }
    }
    // From now on no other body under its key is kept either.
    tx.db
        .prepare_cached("UPDATE event SET payload_until = ?2 WHERE seq = ?1")
        .and_then(|mut update| update.execute(params![event, Time::MIN.micros()]))
        .map_err(sql_error)?;
    Ok(())
}

fn write(tx: &Tx<'_>, statement: &str, row: i64) -> Result<(), StoreError> {
    tx.db
        .prepare_cached(statement)
        .and_then(|mut write| write.execute([row]))
        .map_err(sql_error)?;
    Ok(())
}

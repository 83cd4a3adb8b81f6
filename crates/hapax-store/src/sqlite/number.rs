//! The numbers of messages: per application and key, in the order in which they are accepted, without a gap. A key's count goes with
//! the last message that it was given to, so that there are never more counts than messages; a message after that is number 1.

use hapax_ledger::id::AppId;
use rusqlite::{Connection, params};

use super::sql_error;
use crate::error::StoreError;

/// The next one of a key.
pub(super) fn next(db: &Connection, app: AppId, key: &str) -> Result<i64, StoreError> {
    db.prepare_cached(
        "INSERT INTO number (app, key, last) VALUES (?1, ?2, 1)
         ON CONFLICT (app, key) DO UPDATE SET last = last + 1 RETURNING last",
    )
    .and_then(|mut next| next.query_row(params![app.bytes(), key], |row| row.get(0)))
    .map_err(sql_error)
}

/// A message is forgotten: if it was the last one of its key, so is the count.
pub(super) fn forget(db: &Connection, app: AppId, row: i64) -> Result<(), StoreError> {
    db.prepare_cached(
        "DELETE FROM number WHERE app = ?1 AND (key, last) IN (
             SELECT coalesce(ordering_key, sequence_key), sequence FROM message
             WHERE app = ?1 AND seq = ?2 AND sequence IS NOT NULL
         )",
    )
    .and_then(|mut delete| delete.execute(params![app.bytes(), row]))
    .map_err(sql_error)?;
    Ok(())
}

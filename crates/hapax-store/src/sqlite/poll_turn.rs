//! Turns of messages that were to be sent later: given by the writer when their time has come, each behind all that were given before.

use hapax_ledger::id::AppId;
use hapax_ledger::time::Time;
use rusqlite::{Connection, OptionalExtension, params};

use super::sql_error;
use crate::error::StoreError;
use crate::polling::{self, Given, TURNS_PER_STEP};

/// Are there messages whose time has come, and that have no turn?
pub(super) fn any(db: &Connection, app: AppId, now: Time) -> Result<bool, StoreError> {
    db.prepare_cached(
        "SELECT EXISTS (SELECT 1 FROM message INDEXED BY message_later
             WHERE deliver_at IS NOT NULL AND turn IS NULL AND app = ?1 AND deliver_at <= ?2)",
    )
    .and_then(|mut read| read.query_row(params![app.bytes(), now.micros()], |row| row.get(0)))
    .map_err(sql_error)
}

/// Gives turns to some of them, those that should have gone first first.
pub(super) fn give(db: &Connection, app: AppId, now: Time) -> Result<Given, StoreError> {
    let due: Vec<(i64, i64)> = db
        .prepare_cached(
            "SELECT seq, deliver_at FROM message INDEXED BY message_later
             WHERE deliver_at IS NOT NULL AND turn IS NULL AND app = ?1 AND deliver_at <= ?2
             ORDER BY deliver_at, seq LIMIT ?3",
        )
        .and_then(|mut read| {
            let named = params![app.bytes(), now.micros(), TURNS_PER_STEP as i64];
            let rows = read.query_map(named, |row| Ok((row.get(0)?, row.get(1)?)))?;
            rows.collect()
        })
        .map_err(sql_error)?;
    let last: Option<i64> = db
        .prepare_cached("SELECT last FROM turn WHERE app = ?1")
        .and_then(|mut read| read.query_row([app.bytes()], |row| row.get(0)).optional())
        .map_err(sql_error)?;
    let mut last = last.unwrap_or(0);
    let given = Given::of(due.len());
    for (row, deliver_at) in due {
        last = polling::turn(last, deliver_at);
        db.prepare_cached("UPDATE message SET turn = ?3 WHERE app = ?1 AND seq = ?2")
            .and_then(|mut update| update.execute(params![app.bytes(), row, last]))
            .map_err(sql_error)?;
    }
    db.prepare_cached(
        "INSERT INTO turn (app, last) VALUES (?1, ?2) ON CONFLICT (app) DO UPDATE SET last = excluded.last",
    )
    .and_then(|mut update| update.execute(params![app.bytes(), last]))
    .map_err(sql_error)?;
    Ok(given)
}

/// The application is forgotten.
pub(super) fn forget(db: &Connection, app: [u8; 16]) -> Result<(), StoreError> {
    db.prepare_cached("DELETE FROM turn WHERE app = ?1")
        .and_then(|mut delete| delete.execute([app]))
        .map_err(sql_error)?;
    Ok(())
}

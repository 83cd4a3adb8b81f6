//! Forgets guarded keys that are free, a little at a time, once events have been gone through.

use hapax_ledger::time::Time;
use rusqlite::{Connection, params};

use super::key::{self, KeyRow, key_columns, to_key};
use super::writer::Tx;
use super::{reap, sql_error};
use crate::error::StoreError;
use crate::nouns::Reaped;

/// Rows looked at in one step: a few milliseconds of the writer's time.
const ROWS_PER_STEP: usize = 500;

/// One step. It goes on where the last one stopped and says `more` until it has been once around.
pub(super) fn step(tx: &mut Tx<'_>, now: Time) -> Result<Reaped, StoreError> {
    let reaped = match tx.group.key_reaper_goes_on_after() {
        None => reap::step(tx, now)?,
        Some(_) => Reaped::default(),
    };
    if reaped.more {
        return Ok(reaped);
    }
    let after = tx.group.key_reaper_goes_on_after().unwrap_or(0);
    // A key ends by the store's clock, and by no other that may be ahead of it (I2).
    let (keys, next) = reap_keys(tx, after, now.min(tx.now))?;
    tx.group.key_reaper_stopped_at(next);
    Ok(Reaped {
        keys: keys.keys,
        more: keys.more,
        ..reaped
    })
}

/// Counts the keys that all steps of a round would forget.
pub(super) fn due(db: &Connection, now: Time) -> Result<u32, StoreError> {
    db.prepare_cached(
        "SELECT count(*) FROM guard_key WHERE state NOT IN (0, 3) AND expires_at + grace <= ?1",
    )
    .and_then(|mut read| read.query_row([now.micros()], |row| row.get(0)))
    .map_err(sql_error)
}

/// One step of forgetting keys that are free; it goes on after `after`. Says where the next one does, if there is more.
fn reap_keys(tx: &mut Tx<'_>, after: i64, now: Time) -> Result<(Reaped, Option<i64>), StoreError> {
    let looked_at: Vec<KeyRow> = tx
        .db
        .prepare_cached(key_columns!("WHERE k.seq > ?1 ORDER BY k.seq LIMIT ?2"))
        .and_then(|mut read| {
            read.query_map(params![after, ROWS_PER_STEP as i64], to_key)?
                .collect()
        })
        .map_err(sql_error)?;
    let mut reaped = Reaped::default();
    for row in looked_at.iter().filter(|row| row.key.record.is_over(now)) {
        let number = key::row_of(row.key.shown.id);
        key::delete(tx.db, number)?;
        remember_reaped(tx.db, number)?;
        tx.group.forget(row.hash, number);
        reaped.keys += 1;
    }
    reaped.more = looked_at.len() == ROWS_PER_STEP;
    let last = looked_at.last().filter(|_| reaped.more);
    Ok((reaped, last.map(|row| key::row_of(row.key.shown.id))))
}

fn remember_reaped(db: &Connection, row: i64) -> Result<(), StoreError> {
    db.prepare_cached(
        "INSERT INTO guard_reaped (one, last) VALUES (1, ?1)
         ON CONFLICT (one) DO UPDATE SET last = max(last, excluded.last)",
    )
    .and_then(|mut write| write.execute([row]))
    .map_err(sql_error)?;
    Ok(())
}

/// The highest number that a key has or had.
pub(super) fn last_row(db: &Connection) -> Result<i64, StoreError> {
    db.query_row(
        "SELECT max(coalesce((SELECT max(seq) FROM guard_key), 0), coalesce((SELECT last FROM guard_reaped), 0))",
        [],
        |row| row.get(0),
    )
    .map_err(sql_error)
}

//! Guarded keys as rows.

use bytes::Bytes;
use hapax_ledger::fingerprint::Fingerprint;
use hapax_ledger::guard::{GuardRecord, GuardState};
use hapax_ledger::id::{KeyId, RawId};
use hapax_ledger::key::KeyHash;
use hapax_ledger::lease::Fence;
use hapax_ledger::time::{Span, Time};
use rusqlite::{Connection, OptionalExtension, Row, params};

use super::sql_error;
use crate::error::StoreError;
use crate::guarded::Guarded;
use crate::nouns::KeyRecord;

/// The columns of [`to_key`], in its order. One text, so that those who read keys cannot drift apart.
macro_rules! key_columns {
    ($rest:literal) => {
        concat!(
            "SELECT k.seq, k.first_at, k.guard, k.principal, k.method, k.path, k.key, k.node, k.runs, k.started_at, k.ended_at,
                 k.status, k.error, k.state, k.fingerprint, k.fence, k.lease_until, k.expires_at, k.grace, k.key_hash
             FROM guard_key k ",
            $rest
        )
    };
}
pub(super) use key_columns;

/// When a run ended that has not; as long in its row as any time. See `schema.sql`.
const NOT_ENDED: i64 = i64::MIN;
/// The status of an answer that is not there; as long in its row as any status.
const NO_STATUS: i16 = i16::MIN;

/// When a run ended, as its row has it.
pub(super) fn ended_at(at: Option<Time>) -> i64 {
    at.map_or(NOT_ENDED, Time::micros)
}

/// The status of its answer, as its row has it.
pub(super) fn status(status: Option<u16>) -> i16 {
    status
        .and_then(|status| i16::try_from(status).ok())
        .unwrap_or(NO_STATUS)
}

/// A row with the hash that it is found by.
pub(super) struct KeyRow {
    pub(super) key: Guarded,
    pub(super) hash: KeyHash,
}

pub(super) fn key_id(first_at: Time, row: i64) -> KeyId {
    KeyId(RawId::new(first_at, 0, row as u64))
}

/// The row of an id, if the id is one of ours.
pub(super) fn row_of(id: KeyId) -> i64 {
    id.0.row() as i64
}

pub(super) fn to_key(row: &Row<'_>) -> rusqlite::Result<KeyRow> {
    let first_at = Time::from_micros(row.get(1)?);
    let (ended_at, status): (i64, i16) = (row.get(10)?, row.get(11)?);
    let fence: i64 = row.get(15)?;
    let record = GuardRecord {
        // A state that nobody knows never runs again by itself.
        state: GuardState::from_code(row.get(13)?).unwrap_or(GuardState::Unknown),
        fingerprint: Fingerprint::from_bytes(row.get(14)?),
        fence: Fence::from_u64(fence as u64),
        lease_until: Time::from_micros(row.get(16)?),
        expires_at: Time::from_micros(row.get(17)?),
        grace: Span::from_micros(row.get(18)?),
    };
    let shown = KeyRecord {
        id: key_id(first_at, row.get(0)?),
        guard: row.get(2)?,
        principal: row.get(3)?,
        method: row.get(4)?,
        path: row.get(5)?,
        key: row.get(6)?,
        state: record.state,
        runs: row.get(8)?,
        fence: record.fence,
        node: row.get(7)?,
        first_at,
        started_at: Time::from_micros(row.get(9)?),
        ended_at: (ended_at != NOT_ENDED).then(|| Time::from_micros(ended_at)),
        status: u16::try_from(status).ok(),
        error: row.get(12)?,
        expires_at: record.expires_at,
    };
    Ok(KeyRow {
        key: Guarded { shown, record },
        hash: KeyHash::from_bytes(row.get(19)?),
    })
}

/// The key in a row.
pub(super) fn read(db: &Connection, row: i64) -> Result<Option<KeyRow>, StoreError> {
    db.prepare_cached(key_columns!("WHERE k.seq = ?1"))
        .and_then(|mut read| read.query_row([row], to_key).optional())
        .map_err(sql_error)
}

/// The key of an id. A row number alone does not make an id: the time has to be the row's too.
pub(super) fn of_id(db: &Connection, id: KeyId) -> Result<Option<Guarded>, StoreError> {
    let found = read(db, row_of(id))?.map(|row| row.key);
    Ok(found.filter(|key| key.shown.id == id))
}

/// A new key.
pub(super) fn insert(db: &Connection, key: &Guarded, hash: KeyHash) -> Result<(), StoreError> {
    let (shown, record) = (&key.shown, &key.record);
    db.prepare_cached(
        "INSERT INTO guard_key (seq, first_at, guard, principal, method, path, key, key_hash, node, runs, started_at, state,
             fingerprint, fence, lease_until, expires_at, grace, ended_at, status)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19)",
    )
    .and_then(|mut insert| {
        insert.execute(params![
            row_of(shown.id),
            shown.first_at.micros(),
            shown.guard,
            shown.principal,
            shown.method,
            shown.path,
            shown.key,
            hash.bytes(),
            shown.node,
            shown.runs,
            shown.started_at.micros(),
            record.state.code(),
            record.fingerprint.bytes(),
            record.fence.as_u64() as i64,
            record.lease_until.micros(),
            record.expires_at.micros(),
            record.grace.micros(),
            ended_at(shown.ended_at),
            status(shown.status),
        ])
    })
    .map_err(sql_error)?;
    Ok(())
}

/// The key runs once more: all that a run brings along is new, and the answer of the one before is gone.
pub(super) fn run_again(db: &Connection, key: &Guarded) -> Result<(), StoreError> {
    let (shown, record) = (&key.shown, &key.record);
    db.prepare_cached(
        "UPDATE guard_key SET guard = ?2, principal = ?3, method = ?4, path = ?5, key = ?6, node = ?7, runs = ?8,
             started_at = ?9, fingerprint = ?10, fence = ?11, grace = ?12
         WHERE seq = ?1",
    )
    .and_then(|mut update| {
        update.execute(params![
            row_of(shown.id),
            shown.guard,
            shown.principal,
            shown.method,
            shown.path,
            shown.key,
            shown.node,
            shown.runs,
            shown.started_at.micros(),
            record.fingerprint.bytes(),
            record.fence.as_u64() as i64,
            record.grace.micros(),
        ])
    })
    .map_err(sql_error)?;
    delete_answer(db, row_of(shown.id))?;
    update(db, key)
}

/// Where the key stands now.
pub(super) fn update(db: &Connection, key: &Guarded) -> Result<(), StoreError> {
    let (shown, record) = (&key.shown, &key.record);
    db.prepare_cached(
        "UPDATE guard_key SET state = ?2, lease_until = ?3, expires_at = ?4, ended_at = ?5, status = ?6, error = ?7
         WHERE seq = ?1",
    )
    .and_then(|mut update| {
        update.execute(params![
            row_of(shown.id),
            record.state.code(),
            record.lease_until.micros(),
            record.expires_at.micros(),
            ended_at(shown.ended_at),
            status(shown.status),
            shown.error,
        ])
    })
    .map_err(sql_error)?;
    Ok(())
}

/// What is kept of a key's answer.
pub(super) fn answer(db: &Connection, row: i64) -> Result<Option<Bytes>, StoreError> {
    let answer: Option<Vec<u8>> = db
        .prepare_cached("SELECT answer FROM guard_answer WHERE seq = ?1")
        .and_then(|mut read| read.query_row([row], |row| row.get(0)).optional())
        .map_err(sql_error)?;
    Ok(answer.map(Bytes::from))
}

/// Keeps an answer. An outcome that was unknown may have left none, and never one of another run.
pub(super) fn keep_answer(db: &Connection, row: i64, answer: &[u8]) -> Result<(), StoreError> {
    db.prepare_cached("INSERT OR REPLACE INTO guard_answer (seq, answer) VALUES (?1, ?2)")
        .and_then(|mut insert| insert.execute(params![row, answer]))
        .map_err(sql_error)?;
    Ok(())
}

fn delete_answer(db: &Connection, row: i64) -> Result<(), StoreError> {
    db.prepare_cached("DELETE FROM guard_answer WHERE seq = ?1")
        .and_then(|mut delete| delete.execute([row]))
        .map_err(sql_error)?;
    Ok(())
}

/// Deletes a key and its answer.
pub(super) fn delete(db: &Connection, row: i64) -> Result<(), StoreError> {
    delete_answer(db, row)?;
    db.prepare_cached("DELETE FROM guard_key WHERE seq = ?1")
        .and_then(|mut delete| delete.execute([row]))
        .map_err(sql_error)?;
    Ok(())
}

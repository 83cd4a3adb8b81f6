//! What is kept of attempts: how each ended, what was said, and the snapshot that goes along.

use std::sync::Arc;

use bytes::Bytes;
use hapax_ledger::effect::Repeat;
use hapax_ledger::lease::Fence;
use hapax_ledger::outcome::Outcome;
use hapax_ledger::time::Time;
use rusqlite::{Connection, OptionalExtension, Row, params};

use super::effect::Held;
use super::sql_error;
use super::writer::Tx;
use crate::error::StoreError;
use crate::nouns::{Attempt, Said, Settlement};
use crate::outcome_code::OutcomeCode;

/// An attempt that has ended.
pub(super) struct Ended {
    pub(super) fence: Fence,
    pub(super) generation: u32,
    pub(super) number: u32,
    pub(super) node: Arc<str>,
    pub(super) started_at: Time,
    pub(super) ended_at: Time,
    pub(super) code: OutcomeCode,
    pub(super) said: Said,
}

/// The attempt under way has ended: the next write of its effect has it, and the one before it gets a row of its own.
pub(super) fn end(
    tx: &Tx<'_>,
    held: &mut Held,
    outcome: Outcome,
    said: Said,
) -> Result<(), StoreError> {
    if held.effect.last.is_some() {
        set_aside(tx.db, held.row)?;
    }
    let record = held.effect.record;
    held.ended = Some(Ended {
        fence: record.fence,
        generation: record.generation,
        number: record.attempts,
        node: held.node.clone().unwrap_or_else(|| "".into()),
        started_at: held.started_at.unwrap_or(tx.now),
        ended_at: tx.now,
        code: OutcomeCode::of(outcome),
        said,
    });
    held.started_at = None;
    held.effect.last = Some(outcome);
    Ok(())
}

/// The latest attempt that has ended gets a row of its own.
fn set_aside(db: &Connection, effect: i64) -> Result<(), StoreError> {
    db.prepare_cached(
        "INSERT INTO attempt (effect, fence, generation, number, node, started_at, ended_at, outcome, detail,
             retry_after, excerpt, body_bytes, error, late_at, late_outcome, late_detail)
         SELECT seq, last_fence, last_generation, last_number, last_node, last_started_at, last_ended_at, last_outcome,
             last_detail, last_retry_after, last_excerpt, last_body_bytes, last_error, last_late_at, last_late_outcome,
             last_late_detail
         FROM effect WHERE seq = ?1 AND last_fence IS NOT NULL",
    )
    .and_then(|mut insert| insert.execute([effect]))
    .map_err(sql_error)?;
    Ok(())
}

/// What a worker says that was fenced off (C2). What the ledger has from it already is no news: it did not hear that its word came
/// through, and says it again.
pub(super) fn keep_late(
    tx: &Tx<'_>,
    effect: i64,
    fence: Fence,
    settlement: &Settlement,
) -> Result<(), StoreError> {
    let code = OutcomeCode::of(settlement.outcome);
    let places = [
        "UPDATE effect SET last_late_at = ?3, last_late_outcome = ?4, last_late_detail = ?5
         WHERE seq = ?1 AND last_fence = ?2 AND last_late_at IS NULL
             AND NOT (last_outcome = ?4 AND last_detail = ?5 AND last_error IS ?6)",
        "UPDATE attempt SET late_at = ?3, late_outcome = ?4, late_detail = ?5
         WHERE effect = ?1 AND fence = ?2 AND late_at IS NULL
             AND NOT (outcome = ?4 AND detail = ?5 AND error IS ?6)",
    ];
    for update in places {
        tx.db
            .prepare_cached(update)
            .and_then(|mut update| {
                update.execute(params![
                    effect,
                    fence.as_u64() as i64,
                    tx.now.micros(),
                    code.kind,
                    code.detail,
                    settlement.said.error
                ])
            })
            .map_err(sql_error)?;
    }
    Ok(())
}

/// The ended attempts of an effect, oldest first.
pub(super) fn of_effect(db: &Connection, effect: i64) -> Result<Vec<Attempt>, StoreError> {
    db.prepare_cached(
        "SELECT generation, number, fence, node, started_at, ended_at, outcome, detail, retry_after,
             late_at, late_outcome, late_detail, excerpt, body_bytes, error
         FROM attempt WHERE effect = ?1
         UNION ALL
         SELECT last_generation, last_number, last_fence, last_node, last_started_at, last_ended_at, last_outcome,
             last_detail, last_retry_after, last_late_at, last_late_outcome, last_late_detail, last_excerpt,
             last_body_bytes, last_error
         FROM effect WHERE seq = ?1 AND last_fence IS NOT NULL
         ORDER BY 3",
    )
    .and_then(|mut read| read.query_map([effect], to_attempt)?.collect())
    .map_err(sql_error)
}

fn to_attempt(row: &Row<'_>) -> rusqlite::Result<Attempt> {
    let ended = OutcomeCode {
        kind: row.get(6)?,
        detail: row.get(7)?,
        retry_after: row.get(8)?,
    };
    let late_at: Option<i64> = row.get(9)?;
    let late = OutcomeCode {
        kind: row.get::<_, Option<i16>>(10)?.unwrap_or(-1),
        detail: row.get::<_, Option<i16>>(11)?.unwrap_or(-1),
        retry_after: None,
    };
    let excerpt: Option<Vec<u8>> = row.get(12)?;
    let body_bytes: Option<i64> = row.get(13)?;
    Ok(Attempt {
        generation: row.get(0)?,
        number: row.get(1)?,
        fence: Fence::from_u64(row.get::<_, i64>(2)? as u64),
        node: row.get(3)?,
        started_at: Time::from_micros(row.get(4)?),
        ended_at: Time::from_micros(row.get(5)?),
        outcome: ended.outcome(),
        late: late_at.map(|at| (Time::from_micros(at), late.outcome())),
        said: Said {
            excerpt: excerpt.map(Bytes::from),
            body_bytes: body_bytes.map(|bytes| bytes as u64),
            error: row.get(14)?,
        },
    })
}

/// The snapshot that went along with an earlier attempt.
pub(super) fn snapshot(db: &Connection, effect: i64) -> Result<Option<Bytes>, StoreError> {
    let body: Option<Vec<u8>> = db
        .prepare_cached("SELECT body FROM snapshot WHERE effect = ?1")
        .and_then(|mut read| read.query_row([effect], |row| row.get(0)).optional())
        .map_err(sql_error)?;
    Ok(body.map(Bytes::from))
}

/// Keeps a snapshot instead of an earlier one, whatever the effect's class.
pub(super) fn replace_snapshot(
    db: &Connection,
    effect: i64,
    snapshot: &Bytes,
) -> Result<(), StoreError> {
    db.prepare_cached(
        "INSERT INTO snapshot (effect, body) VALUES (?1, ?2)
         ON CONFLICT (effect) DO UPDATE SET body = excluded.body",
    )
    .and_then(|mut insert| insert.execute(params![effect, &snapshot[..]]))
    .map_err(sql_error)?;
    Ok(())
}

/// Keeps a snapshot. The first one stays, unless the effect sets a state that a newer one describes better.
pub(super) fn keep_snapshot(
    db: &Connection,
    held: &Held,
    snapshot: &Bytes,
) -> Result<(), StoreError> {
    if held.effect.record.repeat == Repeat::Converges {
        return replace_snapshot(db, held.row, snapshot);
    }
    db.prepare_cached(
        "INSERT INTO snapshot (effect, body) VALUES (?1, ?2) ON CONFLICT (effect) DO NOTHING",
    )
    .and_then(|mut insert| insert.execute(params![held.row, &snapshot[..]]))
    .map_err(sql_error)?;
    Ok(())
}

//! Effects as rows: reading them, and writing what the ledger decided.

use std::sync::Arc;

use hapax_ledger::effect::{EffectRecord, EffectState, Repeat, SkipReason};
use hapax_ledger::id::{EffectId, RawId};
use hapax_ledger::lease::Fence;
use hapax_ledger::order::{Gate, PlannedOrder};
use hapax_ledger::outcome::Outcome;
use hapax_ledger::time::Time;
use rusqlite::{Connection, OptionalExtension, Row, ToSql, params_from_iter};

use super::accept::event_id;
use super::attempt::Ended;
use super::sql_error;
use crate::error::StoreError;
use crate::nouns::Effect;
use crate::order_code::life_step;
use crate::outcome_code::OutcomeCode;

/// Bits of an effect's row number that count within its event.
pub(super) const PLACE_BITS: u32 = 16;

/// The bits themselves.
pub(super) const PLACE_MAX: i64 = (1 << PLACE_BITS) - 1;

/// The columns of [`to_held`], in its order.
macro_rules! effect_columns {
    ($rest:literal) => {
        concat!(
            "SELECT seq, at, name, key, lane, attempts_max, repeat, state, generation, attempts, pass_from, fence,
                 lease_until, next_at, started, ambiguous, skip, node, started_at, gate, after,
                 last_outcome, last_detail, last_retry_after,
                 chain, entity, serial, version, life_step, snapshot, review, ended_by, released
             FROM effect ",
            $rest
        )
    };
}
pub(super) use effect_columns;

/// An effect with what only the store needs to know of it.
pub(super) struct Held {
    pub(super) row: i64,
    /// When the event came that called for it first.
    pub(super) at: Time,
    pub(super) effect: Effect,
    pub(super) attempts_max: u32,
    pub(super) node: Option<Arc<str>>,
    pub(super) started_at: Option<Time>,
    /// The rows of what comes first.
    pub(super) after: Vec<i64>,
    pub(super) place: Option<InChain>,
    /// The attempt that has just ended and is not written yet.
    pub(super) ended: Option<Ended>,
    /// It is known to be all that its event calls for, and no other event calls for it.
    pub(super) alone: bool,
}

/// What of an effect's order only the store needs to know.
pub(super) struct InChain {
    pub(super) chain: [u8; 16],
    /// The type that had ended the entity before the effect was accepted.
    pub(super) ended_by: Option<String>,
}

impl Held {
    /// Can others make it wait?
    pub(super) fn may_wait(&self) -> bool {
        !self.after.is_empty() || self.place.is_some()
    }
}

pub(super) fn to_held(row: &Row<'_>) -> rusqlite::Result<Held> {
    let seq: i64 = row.get(0)?;
    let at = Time::from_micros(row.get(1)?);
    let started_at: Option<i64> = row.get(18)?;
    let after: Option<Vec<u8>> = row.get(20)?;
    let (order, place) = to_order(row)?.unzip();
    let effect = Effect {
        id: effect_id(at, seq),
        event: event_id(at, seq >> PLACE_BITS),
        name: row.get(2)?,
        key: row.get(3)?,
        lane: row.get(4)?,
        record: to_record(row)?,
        // What cannot be read is not claimed.
        gate: Gate::from_code(row.get(19)?).unwrap_or(Gate::Review),
        order,
        // Unordered effects have nobody's leave and need none.
        released: row.get::<_, Option<bool>>(32)?.unwrap_or_default(),
        last: to_last(row)?,
    };
    Ok(Held {
        row: seq,
        at,
        effect,
        attempts_max: row.get(5)?,
        node: row.get(17)?,
        started_at: started_at.map(Time::from_micros),
        after: after.as_deref().map(unpack_rows).unwrap_or_default(),
        place,
        ended: None,
        alone: false,
    })
}

fn to_record(row: &Row<'_>) -> rusqlite::Result<EffectRecord> {
    let skip: Option<u8> = row.get(16)?;
    Ok(EffectRecord {
        // What cannot be read counts as the strictest there is.
        repeat: Repeat::from_code(row.get(6)?).unwrap_or(Repeat::Once),
        state: EffectState::from_code(row.get(7)?).unwrap_or(EffectState::Uncertain),
        generation: row.get(8)?,
        attempts: row.get(9)?,
        pass_from: row.get(10)?,
        fence: Fence::from_u64(row.get::<_, i64>(11)? as u64),
        lease_until: Time::from_micros(row.get(12)?),
        next_attempt_at: Time::from_micros(row.get(13)?),
        started: row.get(14)?,
        ambiguous: row.get(15)?,
        skip: skip.and_then(SkipReason::from_code),
    })
}

fn to_last(row: &Row<'_>) -> rusqlite::Result<Option<Outcome>> {
    let (Some(kind), Some(detail)) = (row.get(21)?, row.get(22)?) else {
        return Ok(None);
    };
    let code = OutcomeCode {
        kind,
        detail,
        retry_after: row.get(23)?,
    };
    Ok(Some(code.outcome()))
}

fn to_order(row: &Row<'_>) -> rusqlite::Result<Option<(PlannedOrder, InChain)>> {
    let Some(chain) = row.get(24)? else {
        return Ok(None);
    };
    let order = PlannedOrder {
        entity: row.get(25)?,
        serial: row.get(26)?,
        version: row.get(27)?,
        life_step: life_step(row.get(28)?),
        snapshot: row.get(29)?,
        review: row.get(30)?,
    };
    let place = InChain {
        chain,
        ended_by: row.get(31)?,
    };
    Ok(Some((order, place)))
}

/// The id of an effect row.
pub(super) fn effect_id(at: Time, row: i64) -> EffectId {
    EffectId(RawId::new(at, 0, row as u64))
}

/// Row numbers as one value.
pub(super) fn pack_rows(rows: &[i64]) -> Vec<u8> {
    rows.iter().flat_map(|row| row.to_be_bytes()).collect()
}

fn unpack_rows(bytes: &[u8]) -> Vec<i64> {
    let (rows, _) = bytes.as_chunks::<8>();
    rows.iter().copied().map(i64::from_be_bytes).collect()
}

/// The effect of this row.
pub(super) fn read(db: &Connection, row: i64) -> Result<Option<Held>, StoreError> {
    db.prepare_cached(effect_columns!("WHERE seq = ?1"))
        .and_then(|mut read| read.query_row([row], to_held).optional())
        .map_err(sql_error)
}

/// The effect of this id. A row number alone does not make an id: the time has to be the row's too.
pub(super) fn find(db: &Connection, id: EffectId) -> Result<Option<Held>, StoreError> {
    let held = read(db, id.0.row() as i64)?;
    Ok(held.filter(|held| held.effect.id == id))
}

/// The effects of an event: its own in plan order, then those it shares with an earlier event.
pub(super) fn of_event(db: &Connection, event: i64) -> Result<Vec<Held>, StoreError> {
    let first = event << PLACE_BITS;
    let last = first | PLACE_MAX;
    // Its own in plan order first, then those it shares, each found by a plain search.
    let mut all: Vec<Held> = db
        .prepare_cached(effect_columns!("WHERE seq BETWEEN ?1 AND ?2 ORDER BY seq"))
        .and_then(|mut read| read.query_map([first, last], to_held)?.collect())
        .map_err(sql_error)?;
    let shared: Vec<i64> = db
        .prepare_cached("SELECT effect FROM effect_link WHERE event = ?1 ORDER BY effect")
        .and_then(|mut find| find.query_map([event], |row| row.get(0))?.collect())
        .map_err(sql_error)?;
    for row in shared
        .into_iter()
        .filter(|row| !(first..=last).contains(row))
    {
        all.extend(read(db, row)?);
    }
    Ok(all)
}

/// What is written of an effect whenever it moves.
macro_rules! update_effect {
    ($more:literal) => {
        concat!(
            "UPDATE effect SET repeat = ?2, state = ?3, generation = ?4, attempts = ?5, pass_from = ?6, fence = ?7,
                 lease_until = ?8, next_at = ?9, started = ?10, ambiguous = ?11, skip = ?12, node = ?13,
                 started_at = ?14, gate = ?15 ",
            $more,
            " WHERE seq = ?1"
        )
    };
}

/// Writes an effect as it is now, who holds it, and the attempt that has just ended.
pub(super) fn write(db: &Connection, held: &mut Held) -> Result<(), StoreError> {
    let ended = held.ended.take();
    let record = &held.effect.record;
    let moved: [&dyn ToSql; 15] = [
        &held.row,
        &record.repeat.code(),
        &record.state.code(),
        &record.generation,
        &record.attempts,
        &record.pass_from,
        &(record.fence.as_u64() as i64),
        &record.lease_until.micros(),
        &record.next_attempt_at.micros(),
        &record.started,
        &record.ambiguous,
        &record.skip.map(SkipReason::code),
        &held.node,
        &held.started_at.map(Time::micros),
        &held.effect.gate.code(),
    ];
    match ended {
        None => db
            .prepare_cached(update_effect!(""))
            .and_then(|mut update| update.execute(moved)),
        Some(ended) => db
            .prepare_cached(update_effect!(
                ", last_fence = ?16, last_generation = ?17, last_number = ?18, last_node = ?19, last_started_at = ?20,
                 last_ended_at = ?21, last_outcome = ?22, last_detail = ?23, last_retry_after = ?24, last_excerpt = ?25,
                 last_body_bytes = ?26, last_error = ?27, last_late_at = NULL, last_late_outcome = NULL,
                 last_late_detail = NULL"
            ))
            .and_then(|mut update| {
                let ended: [&dyn ToSql; 12] = [
                    &(ended.fence.as_u64() as i64),
                    &ended.generation,
                    &ended.number,
                    &ended.node,
                    &ended.started_at.micros(),
                    &ended.ended_at.micros(),
                    &ended.code.kind,
                    &ended.code.detail,
                    &ended.code.retry_after,
                    &ended.said.excerpt.as_deref(),
                    &ended.said.body_bytes.map(|bytes| bytes as i64),
                    &ended.said.error,
                ];
                update.execute(params_from_iter(moved.into_iter().chain(ended)))
            }),
    }
    .map_err(sql_error)?;
    Ok(())
}

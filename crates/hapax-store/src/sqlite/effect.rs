//! Effects as rows: planning them at accept, reading them, writing what the ledger decided.

use std::sync::Arc;

use hapax_ledger::claim::born_started;
use hapax_ledger::effect::{EffectRecord, EffectState, Repeat, SkipReason};
use hapax_ledger::event::EventStatus;
use hapax_ledger::id::{EffectId, RawId};
use hapax_ledger::lease::Fence;
use hapax_ledger::status::Hold;
use hapax_ledger::time::Time;
use rusqlite::{Connection, OptionalExtension, Row, params};

use super::accept::event_id;
use super::sql_error;
use super::writer::Tx;
use crate::error::{StoreError, StoreErrorKind};
use crate::nouns::{Attempt, Claimed, EFFECTS_PER_EVENT_MAX, Effect, NewEffect};
use crate::outcome_code::OutcomeCode;

/// Bits of an effect's row number that count within its event.
pub(super) const PLACE_BITS: u32 = 16;

/// The columns of [`to_held`], in its order.
macro_rules! effect_columns {
    ($rest:literal) => {
        concat!(
            "SELECT seq, at, name, key, lane, attempts_max, repeat, state, generation, attempts, pass_from, fence,
                 lease_until, next_at, started, ambiguous, skip, node, started_at
             FROM effect ",
            $rest
        )
    };
}
pub(super) use effect_columns;

/// An effect with what only the store needs to know of it.
pub(super) struct Held {
    pub(super) row: i64,
    pub(super) effect: Effect,
    pub(super) attempts_max: u32,
    pub(super) node: Option<Arc<str>>,
    pub(super) started_at: Option<Time>,
}

pub(super) fn to_held(row: &Row<'_>) -> rusqlite::Result<Held> {
    let seq: i64 = row.get(0)?;
    let at = Time::from_micros(row.get(1)?);
    let skip: Option<u8> = row.get(16)?;
    let started_at: Option<i64> = row.get(18)?;
    let record = EffectRecord {
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
    };
    let effect = Effect {
        id: EffectId(RawId::new(at, 0, seq as u64)),
        event: event_id(at, seq >> PLACE_BITS),
        name: row.get(2)?,
        key: row.get(3)?,
        lane: row.get(4)?,
        record,
    };
    Ok(Held {
        row: seq,
        effect,
        attempts_max: row.get(5)?,
        node: row.get(17)?,
        started_at: started_at.map(Time::from_micros),
    })
}

/// The effect of this row.
pub(super) fn read(db: &Connection, row: i64) -> Result<Option<Held>, StoreError> {
    db.prepare_cached(effect_columns!("WHERE seq = ?1"))
        .and_then(|mut read| read.query_row([row], to_held).optional())
        .map_err(sql_error)
}

/// The effects of an event: its own in plan order, then those it shares with an earlier event.
pub(super) fn of_event(db: &Connection, event: i64) -> Result<Vec<Held>, StoreError> {
    let first = event << PLACE_BITS;
    let last = first | ((1 << PLACE_BITS) - 1);
    db.prepare_cached(effect_columns!(
        "WHERE seq BETWEEN ?1 AND ?2 OR seq IN (SELECT effect FROM effect_link WHERE event = ?3) ORDER BY seq >= ?1 DESC, seq"
    ))
    .and_then(|mut read| read.query_map([first, last, event], to_held)?.collect())
    .map_err(sql_error)
}

/// Plans the effects of a new event: each is inserted, or linked where its key exists already (D6).
pub(super) fn plan(
    tx: &mut Tx<'_>,
    at: Time,
    event: i64,
    effects: &[NewEffect],
) -> Result<Vec<Option<Claimed>>, StoreError> {
    if effects.len() > EFFECTS_PER_EVENT_MAX {
        return Err(StoreError::new(
            StoreErrorKind::Unavailable,
            "an event calls for more effects than fit",
        ));
    }
    let mut claims = Vec::with_capacity(effects.len());
    for (place, new) in effects.iter().enumerate() {
        let known = tx
            .group
            .find(tx.index, new.key_hash)?
            .map(|row| read(tx.db, row))
            .transpose()?
            .flatten();
        match known.filter(|known| known.effect.name == new.name && known.effect.key == new.key) {
            Some(known) => {
                link(tx.db, known.row, event)?;
                claims.push(None);
            }
            None => claims.push(insert(tx, at, (event << PLACE_BITS) | place as i64, new)?),
        }
    }
    Ok(claims)
}

fn link(db: &Connection, effect: i64, event: i64) -> Result<(), StoreError> {
    db.prepare_cached(
        "INSERT INTO effect_link (effect, event) VALUES (?1, ?2) ON CONFLICT DO NOTHING",
    )
    .and_then(|mut insert| insert.execute([effect, event]))
    .map_err(sql_error)?;
    Ok(())
}

fn insert(
    tx: &mut Tx<'_>,
    at: Time,
    row: i64,
    new: &NewEffect,
) -> Result<Option<Claimed>, StoreError> {
    let planned = EffectRecord::planned(new.repeat, new.not_before);
    let now = tx.now;
    let born = new.born.as_ref().and_then(|born| {
        born_started(&planned, now, tx.group.epoch(), born.lease)
            .map(|record| (record, born.node.clone()))
    });
    let (record, node) = born
        .clone()
        .map_or((planned, None), |(record, node)| (record, Some(node)));
    let held = Held {
        row,
        effect: Effect {
            id: EffectId(RawId::new(at, 0, row as u64)),
            event: event_id(at, row >> PLACE_BITS),
            name: new.name.clone(),
            key: new.key.clone(),
            lane: new.lane.clone(),
            record,
        },
        attempts_max: new.attempts_max,
        started_at: node.as_ref().map(|_| now),
        node,
    };
    tx.db
        .prepare_cached(
            "INSERT INTO effect (seq, at, name, key, key_hash, lane, attempts_max, repeat, state, generation, attempts,
                 pass_from, fence, lease_until, next_at, started, ambiguous, skip, node, started_at)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, 1, ?10, 0, ?11, ?12, ?13, ?14, 0, NULL, ?15, ?16)",
        )
        .and_then(|mut insert| {
            insert.execute(params![
                row,
                at.micros(),
                new.name,
                new.key,
                new.key_hash.bytes(),
                new.lane,
                new.attempts_max,
                record.repeat.code(),
                record.state.code(),
                record.attempts,
                record.fence.as_u64() as i64,
                record.lease_until.micros(),
                record.next_attempt_at.micros(),
                record.started,
                held.node,
                held.started_at.map(Time::micros),
            ])
        })
        .map_err(sql_error)?;
    tx.group.take(new.key_hash, row);
    Ok(born.map(|_| Claimed {
        effect: held.effect,
    }))
}

/// Writes what the ledger decided, and who holds it.
pub(super) fn write(db: &Connection, held: &Held, record: &EffectRecord) -> Result<(), StoreError> {
    db.prepare_cached(
        "UPDATE effect SET repeat = ?2, state = ?3, generation = ?4, attempts = ?5, pass_from = ?6, fence = ?7,
             lease_until = ?8, next_at = ?9, started = ?10, ambiguous = ?11, skip = ?12, node = ?13, started_at = ?14
         WHERE seq = ?1",
    )
    .and_then(|mut update| {
        update.execute(params![
            held.row,
            record.repeat.code(),
            record.state.code(),
            record.generation,
            record.attempts,
            record.pass_from,
            record.fence.as_u64() as i64,
            record.lease_until.micros(),
            record.next_attempt_at.micros(),
            record.started,
            record.ambiguous,
            record.skip.map(SkipReason::code),
            held.node,
            held.started_at.map(Time::micros),
        ])
    })
    .map_err(sql_error)?;
    Ok(())
}

/// Brings the status of every event that calls for the effect level with its effects (D7).
pub(super) fn touch_events(db: &Connection, effect: i64) -> Result<(), StoreError> {
    let mut events = vec![effect >> PLACE_BITS];
    let linked: Vec<i64> = db
        .prepare_cached("SELECT event FROM effect_link WHERE effect = ?1")
        .and_then(|mut read| read.query_map([effect], |row| row.get(0))?.collect())
        .map_err(sql_error)?;
    events.extend(linked);
    for event in events {
        set_status(db, event)?;
    }
    Ok(())
}

/// The status of an event from its effects, as it is now.
pub(super) fn set_status(db: &Connection, event: i64) -> Result<EventStatus, StoreError> {
    let effects = of_event(db, event)?;
    let states = effects
        .iter()
        .map(|held| (held.effect.record.state, held.effect.record.skip));
    let status = EventStatus::of_effects(states, Hold::Free);
    // An event that waits for a person does so whatever its effects say.
    db.prepare_cached(
        "UPDATE event SET status = ?2 WHERE seq = ?1 AND review_code IS NULL AND status <> ?2",
    )
    .and_then(|mut update| update.execute(params![event, status.code()]))
    .map_err(sql_error)?;
    Ok(status)
}

/// The ended attempts of an effect, oldest first.
pub(super) fn attempts(db: &Connection, effect: i64) -> Result<Vec<Attempt>, StoreError> {
    db.prepare_cached(
        "SELECT generation, number, fence, node, started_at, ended_at, outcome, detail, retry_after,
             late_at, late_outcome, late_detail
         FROM attempt WHERE effect = ?1 ORDER BY fence",
    )
    .and_then(|mut read| {
        let rows = read.query_map([effect], |row| {
            let late_at: Option<i64> = row.get(9)?;
            let late = OutcomeCode {
                kind: row.get::<_, Option<i16>>(10)?.unwrap_or(-1),
                detail: row.get::<_, Option<i16>>(11)?.unwrap_or(-1),
                retry_after: None,
            };
            Ok(Attempt {
                generation: row.get(0)?,
                number: row.get(1)?,
                fence: Fence::from_u64(row.get::<_, i64>(2)? as u64),
                node: row.get(3)?,
                started_at: Time::from_micros(row.get(4)?),
                ended_at: Time::from_micros(row.get(5)?),
                outcome: OutcomeCode { kind: row.get(6)?, detail: row.get(7)?, retry_after: row.get(8)? }.outcome(),
                late: late_at.map(|at| (Time::from_micros(at), late.outcome())),
            })
        })?;
        rows.collect()
    })
    .map_err(sql_error)
}

//! Gates: which effects others keep from being claimed. A pending effect's gate is always what the ledger makes of the rest;
//! here it is brought level after each change, where somebody waits for what changed.

use std::collections::BTreeSet;
use std::sync::Arc;

use hapax_ledger::effect::EffectState;
use hapax_ledger::event::EventStatus;
use hapax_ledger::order::{self, ChainPlace, Gate};
use hapax_ledger::status::Hold;
use rusqlite::{Connection, OptionalExtension, params};

use super::effect::{self, Held, PLACE_BITS};
use super::{chain, fan_out, sql_error};
use crate::error::StoreError;

/// Lanes in which a gate opened.
pub(super) type Opened = BTreeSet<Arc<str>>;

/// The gate of an effect that nobody holds. What it comes after and is gone had ended long ago.
pub(super) fn of(db: &Connection, held: &Held) -> Result<Gate, StoreError> {
    let mut states = Vec::with_capacity(held.after.len());
    for row in &held.after {
        states.extend(state_of(db, *row)?);
    }
    let place = match (&held.effect.order, &held.place) {
        (Some(order), Some(place)) if order.serial => match chain::waits(db, held, place)? {
            true => ChainPlace::Behind,
            false => ChainPlace::First,
        },
        _ => ChainPlace::Free,
    };
    Ok(order::gate(held.effect.gate, states, place))
}

fn state_of(db: &Connection, row: i64) -> Result<Option<EffectState>, StoreError> {
    let code: Option<u8> = db
        .prepare_cached("SELECT state FROM effect WHERE seq = ?1")
        .and_then(|mut read| read.query_row([row], |row| row.get(0)).optional())
        .map_err(sql_error)?;
    Ok(code.map(|code| EffectState::from_code(code).unwrap_or(EffectState::Uncertain)))
}

/// Writes an effect's gate.
pub(super) fn set(db: &Connection, row: i64, gate: Gate) -> Result<(), StoreError> {
    db.prepare_cached("UPDATE effect SET gate = ?2 WHERE seq = ?1 AND gate <> ?2")
        .and_then(|mut update| update.execute(params![row, gate.code()]))
        .map_err(sql_error)?;
    Ok(())
}

/// An effect's state has changed: brings the gates of those that wait for it level, and the status of the events that call for
/// it (D7).
pub(super) fn state_changed(
    db: &Connection,
    held: &Held,
    before: EffectState,
    opened: &mut Opened,
) -> Result<(), StoreError> {
    let first = held.row >> PLACE_BITS;
    if held.alone {
        write_status(db, first, status(std::slice::from_ref(held)))?;
        return settle_chain(db, held, before, opened);
    }
    for event in calling(db, held.row, first)? {
        let effects = effect::of_event(db, event)?;
        set_status(db, event, status(&effects))?;
        for other in &effects {
            if other.after.contains(&held.row) {
                settle(db, other, opened)?;
            }
        }
    }
    settle_chain(db, held, before, opened)
}

/// The events that call for an effect, this one first.
pub(super) fn calling(db: &Connection, effect: i64, first: i64) -> Result<Vec<i64>, StoreError> {
    let linked: rusqlite::Result<Vec<i64>> = db
        .prepare_cached("SELECT event FROM effect_link WHERE effect = ?1 AND event <> ?2")
        .and_then(|mut read| read.query_map([effect, first], |row| row.get(0))?.collect());
    let mut events = vec![first];
    events.extend(linked.map_err(sql_error)?);
    Ok(events)
}

/// The next one of its chain may go once this one has ended, and waits again if this one came back. While this one was held, an earlier
/// one may have come back.
pub(super) fn settle_chain(
    db: &Connection,
    held: &Held,
    before: EffectState,
    opened: &mut Opened,
) -> Result<(), StoreError> {
    let Some(place) = &held.place else {
        return Ok(());
    };
    let next = match (is_live(before), is_live(held.effect.record.state)) {
        (true, false) => chain::first_after(db, place, i64::MIN)?,
        (false, true) => chain::first_after(db, place, held.row)?,
        (true, true) if before == EffectState::Claimed => {
            chain::first_after(db, place, i64::MIN)?.filter(|first| first.row < held.row)
        }
        (true, true) | (false, false) => None,
    };
    match next {
        Some(next) => settle(db, &next, opened),
        None => Ok(()),
    }
}

/// Brings one gate level. One that somebody holds is not closed any more.
fn settle(db: &Connection, held: &Held, opened: &mut Opened) -> Result<(), StoreError> {
    if held.effect.record.state != EffectState::Pending {
        return Ok(());
    }
    let gate = of(db, held)?;
    if gate != held.effect.gate {
        set(db, held.row, gate)?;
        if gate == Gate::Open {
            opened.insert(held.effect.lane.clone());
        }
    }
    Ok(())
}

/// Has an effect that stands there not ended?
pub(super) const fn is_live(state: EffectState) -> bool {
    match state {
        EffectState::Pending | EffectState::Claimed | EffectState::Uncertain => true,
        EffectState::Done | EffectState::Dead | EffectState::Skipped => false,
    }
}

/// Brings an event's status level with its effects.
pub(super) fn settle_status(db: &Connection, event: i64) -> Result<(), StoreError> {
    let effects = effect::of_event(db, event)?;
    set_status(db, event, status(&effects))
}

/// Where an event stands that has these effects and waits for no person (D7).
fn status(effects: &[Held]) -> EventStatus {
    let records = effects.iter().map(|held| &held.effect.record);
    EventStatus::of_effects(
        records.map(|record| (record.state, record.skip)),
        Hold::Free,
    )
}

/// Writes an event's status; one that waits for a person does so whatever its effects say, and what is still to be made waits like
/// any other.
pub(super) fn set_status(
    db: &Connection,
    event: i64,
    status: EventStatus,
) -> Result<(), StoreError> {
    let status = match status < EventStatus::Pending && fan_out::to_come(db, event)? > 0 {
        true => EventStatus::Pending,
        false => status,
    };
    write_status(db, event, status)
}

fn write_status(db: &Connection, event: i64, status: EventStatus) -> Result<(), StoreError> {
    db.prepare_cached(
        "UPDATE event SET status = ?2 WHERE seq = ?1 AND review_code IS NULL AND status <> ?2",
    )
    .and_then(|mut update| update.execute(params![event, status.code()]))
    .map_err(sql_error)?;
    Ok(())
}

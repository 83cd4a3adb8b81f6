//! Planning: the effects of a new event become rows, or links to rows that are there.

use hapax_ledger::claim::born_started;
use hapax_ledger::effect::{EffectRecord, EffectState, SkipReason};
use hapax_ledger::id::EventId;
use hapax_ledger::order::Gate;
use hapax_ledger::time::Time;
use rusqlite::{Connection, params};

use super::accept::event_id;
use super::effect::{self, Held, InChain, PLACE_BITS, PLACE_MAX, effect_id};
use super::writer::Tx;
use super::{advance, chain, delivery_key, gate, sql_error};
use crate::error::{StoreError, StoreErrorKind};
use crate::nouns::{Claimed, EFFECTS_PER_EVENT_MAX, Effect, NewEffect, NewEvent, is_endpoint_name};
use crate::order_code::life_code;

/// The event that effects are planned for.
#[derive(Clone, Copy)]
pub(super) struct Planning<'a> {
    at: Time,
    row: i64,
    event_type: Option<&'a str>,
    effects: &'a [NewEffect],
    from: From,
    /// One effect is all that the event calls for.
    alone: bool,
}

/// Where in its event a plan begins.
#[derive(Clone, Copy, PartialEq, Eq)]
enum From {
    /// With the event: what is planned now is all there is.
    Birth,
    /// The event was there before: at the next free place.
    Place(i64),
}

impl<'a> Planning<'a> {
    /// An event that is new itself.
    pub(super) fn of_new(
        at: Time,
        row: i64,
        event: &'a NewEvent,
        more_follow: bool,
    ) -> Planning<'a> {
        Planning {
            at,
            row,
            event_type: event.event_type.as_deref(),
            effects: &event.effects,
            from: From::Birth,
            alone: event.effects.len() == 1 && !more_follow,
        }
    }
}

/// The effects of a new event.
#[derive(Default)]
pub(super) struct Planned {
    /// For each, the claim under which it was born.
    pub(super) claims: Vec<Option<Claimed>>,
    /// Where each stands.
    pub(super) states: Vec<(EffectState, Option<SkipReason>)>,
}

/// Plans the effects of a new event: each is inserted, or linked where its key exists already (D6).
pub(super) fn plan(tx: &mut Tx<'_>, planning: Planning<'_>) -> Result<Planned, StoreError> {
    let effects = planning.effects;
    let first = match planning.from {
        From::Birth => 0,
        From::Place(place) => place,
    };
    if effects.len() + first as usize > EFFECTS_PER_EVENT_MAX {
        return Err(StoreError::new(
            StoreErrorKind::Unavailable,
            "an event calls for more effects than fit",
        ));
    }
    let mut planned = Planned::default();
    let mut rows = Vec::with_capacity(effects.len());
    let mut following = Vec::new();
    for (place, new) in effects.iter().enumerate() {
        match known(tx, planning, new)? {
            Some(known) => {
                if known.row >> PLACE_BITS != planning.row {
                    link(tx.db, known.row, planning.row)?;
                    tx.group.under_way.is_shared(known.row);
                }
                rows.push(known.row);
                planned.claims.push(None);
                let record = known.effect.record;
                planned.states.push((record.state, record.skip));
            }
            None => {
                let row = (planning.row << PLACE_BITS) | (first + place as i64);
                rows.push(row);
                let claim = insert(tx, planning, row, new)?;
                let state = match claim {
                    Some(_) => EffectState::Claimed,
                    None => EffectState::Pending,
                };
                planned.claims.push(claim);
                planned.states.push((state, None));
                if !new.after.is_empty() {
                    following.push((row, new));
                }
            }
        }
    }
    // What comes first may stand later in the plan, so all have to be there before any can be named.
    for (row, new) in following {
        let after = new.after.iter();
        let named = after.filter_map(|place| rows.get(usize::from(*place)).copied());
        comes_after(tx.db, row, named.collect())?;
    }
    Ok(planned)
}

/// Plans effects for an event that was there before them, and brings its status level.
pub(super) fn join(
    tx: &mut Tx<'_>,
    event: EventId,
    effects: &[NewEffect],
) -> Result<(), StoreError> {
    let row = event.0.row() as i64;
    let before = effect::of_event(tx.db, row)?;
    let own = before.iter().filter(|held| held.row >> PLACE_BITS == row);
    let last = own.map(|held| held.row & PLACE_MAX).max();
    tx.group.census.forget(row);
    // None of them is all that its event calls for any more.
    for held in &before {
        tx.group.under_way.is_shared(held.row);
    }
    let (at, event_type): (i64, Option<String>) = tx
        .db
        .prepare_cached("SELECT at, type FROM event WHERE seq = ?1")
        .and_then(|mut read| read.query_row([row], |row| Ok((row.get(0)?, row.get(1)?))))
        .map_err(sql_error)?;
    let planning = Planning {
        at: Time::from_micros(at),
        row,
        event_type: event_type.as_deref(),
        effects,
        from: From::Place(last.map_or(0, |last| last + 1)),
        alone: false,
    };
    plan(tx, planning)?;
    gate::settle_status(tx.db, row)
}

/// The effect of this name and key, if it is there.
fn known(tx: &Tx<'_>, planning: Planning<'_>, new: &NewEffect) -> Result<Option<Held>, StoreError> {
    let row = match (is_endpoint_name(&new.name), planning.from) {
        (false, _) => tx.group.find(tx.index, new.key_hash)?,
        (true, From::Birth) => tx.group.taken(new.key_hash),
        (true, From::Place(_)) => delivery_key::find(tx, planning.row, new)?,
    };
    let held = row.map(|row| effect::read(tx.db, row)).transpose()?;
    Ok(held
        .flatten()
        .filter(|held| held.effect.name == new.name && held.effect.key == new.key))
}

fn link(db: &Connection, effect: i64, event: i64) -> Result<(), StoreError> {
    db.prepare_cached(
        "INSERT INTO effect_link (effect, event) VALUES (?1, ?2) ON CONFLICT DO NOTHING",
    )
    .and_then(|mut insert| insert.execute([effect, event]))
    .map_err(sql_error)?;
    Ok(())
}

/// Says what an effect comes after, now that all of it is there, and sets its gate.
fn comes_after(db: &Connection, row: i64, after: Vec<i64>) -> Result<(), StoreError> {
    db.prepare_cached("UPDATE effect SET after = ?2 WHERE seq = ?1")
        .and_then(|mut update| update.execute(params![row, effect::pack_rows(&after)]))
        .map_err(sql_error)?;
    let Some(held) = effect::read(db, row)? else {
        return Ok(());
    };
    gate::set(db, row, gate::of(db, &held)?)
}

fn insert(
    tx: &mut Tx<'_>,
    planning: Planning<'_>,
    row: i64,
    new: &NewEffect,
) -> Result<Option<Claimed>, StoreError> {
    let now = tx.now;
    let planned = EffectRecord::planned(new.repeat, now + new.wait);
    let may_wait = !new.after.is_empty() || new.order.is_some();
    let born = new.born.as_ref().filter(|_| !may_wait).and_then(|born| {
        born_started(&planned, now, tx.group.epoch(), born.lease)
            .map(|record| (record, born.node.clone()))
    });
    let is_born = born.is_some();
    let (record, node) = born.map_or((planned, None), |(record, node)| (record, Some(node)));
    let event_type = planning.event_type.unwrap_or_default();
    let place = match &new.order {
        None => None,
        Some(order) => Some(chain::join(tx.db, &new.name, order, event_type)?),
    };
    let mut held = Held {
        row,
        at: planning.at,
        effect: Effect {
            id: effect_id(planning.at, row),
            event: event_id(planning.at, planning.row),
            name: new.name.clone(),
            key: new.key.clone(),
            lane: new.lane.clone(),
            record,
            gate: Gate::Open,
            order: new.order.clone(),
            released: false,
            last: None,
        },
        attempts_max: new.attempts_max,
        started_at: node.as_ref().map(|_| now),
        node,
        after: Vec::new(),
        place,
        ended: None,
        alone: planning.alone,
    };
    if may_wait {
        // What comes after others gets its gate when all of the plan is there.
        held.effect.gate = match new.after.is_empty() {
            true => gate::of(tx.db, &held)?,
            false => Gate::Waiting,
        };
    }
    let joined = match planning.from {
        From::Birth => None,
        From::Place(_) => Some(tx.group.give_joined()),
    };
    write_new(tx.db, &held, new, joined)?;
    match is_endpoint_name(&new.name) {
        true => tx.group.wrote_row(),
        false => tx.group.take(new.key_hash, row),
    }
    let claim = is_born.then(|| Claimed {
        effect: held.effect.clone(),
        snapshot: None,
    });
    advance::remember(tx, held);
    Ok(claim)
}

fn write_new(
    db: &Connection,
    held: &Held,
    new: &NewEffect,
    joined: Option<i64>,
) -> Result<(), StoreError> {
    let record = &held.effect.record;
    let order = held.effect.order.as_ref();
    let place: Option<&InChain> = held.place.as_ref();
    db.prepare_cached(
        "INSERT INTO effect (seq, at, name, key, key_hash, lane, attempts_max, repeat, state, generation, attempts,
             pass_from, fence, lease_until, next_at, started, ambiguous, skip, node, started_at, gate,
             chain, entity, serial, version, life_step, snapshot, review, ended_by, released, joined)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, 1, ?10, 0, ?11, ?12, ?13, ?14, 0, NULL, ?15, ?16, ?17,
             ?18, ?19, ?20, ?21, ?22, ?23, ?24, ?25, ?26, ?27)",
    )
    .and_then(|mut insert| {
        insert.execute(params![
            held.row,
            held.at.micros(),
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
            held.effect.gate.code(),
            place.map(|place| place.chain),
            order.map(|order| order.entity.as_str()),
            order.map(|order| order.serial),
            order.and_then(|order| order.version.as_deref()),
            order.map(|order| life_code(order.life_step)),
            order.map(|order| order.snapshot),
            order.map(|order| order.review),
            place.and_then(|place| place.ended_by.as_deref()),
            place.map(|_| held.effect.released),
            joined,
        ])
    })
    .map_err(sql_error)?;
    Ok(())
}

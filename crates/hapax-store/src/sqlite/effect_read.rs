//! Effects as they are read: details, lists, counts, lanes with something to do, and what requests are made of.

use std::sync::Arc;

use bytes::Bytes;
use hapax_ledger::effect::EffectState;
use hapax_ledger::id::{EffectId, EventId};
use hapax_ledger::time::Time;
use rusqlite::{Connection, OptionalExtension, params};

use super::accept::event_id;
use super::effect::{self, PLACE_BITS, effect_columns, to_held};
use super::read::ROWS_LOOKED_AT_MAX;
use super::{attempt, message, sql_error};
use crate::error::StoreError;
use crate::nouns::{
    Effect, EffectCounts, EffectDetail, EffectFilter, LANES_PER_LOOK_MAX, LaneDue, Listed,
    PAGE_MAX, Page, PageFrom, Parcel,
};
use crate::walk::{Walk, Way};

/// One effect with its attempts.
pub(super) fn detail(db: &Connection, id: EffectId) -> Result<Option<EffectDetail>, StoreError> {
    // One picture: an attempt that has ended beside an effect that is still claimed would be a riddle.
    let db = &db.unchecked_transaction().map_err(sql_error)?;
    let Some(held) = effect::find(db, id)? else {
        return Ok(None);
    };
    Ok(Some(EffectDetail {
        attempts: attempt::of_effect(db, held.row)?,
        events: events(db, held.row)?,
        snapshot: attempt::snapshot(db, held.row)?,
        effect: held.effect,
    }))
}

/// The events that call for an effect, as far as they are known: the one that called for it first, then the others in the order in
/// which they came. One that was planned late may have come before.
fn events(db: &Connection, effect: i64) -> Result<Vec<EventId>, StoreError> {
    db.prepare_cached(
        "SELECT at, seq FROM event
         WHERE seq = ?1 OR seq IN (SELECT event FROM effect_link WHERE effect = ?2)
         ORDER BY seq <> ?1, seq",
    )
    .and_then(|mut read| {
        let rows = read.query_map([effect >> PLACE_BITS, effect], |row| {
            Ok(event_id(Time::from_micros(row.get(0)?), row.get(1)?))
        })?;
        rows.collect()
    })
    .map_err(sql_error)
}

/// Is anything held beyond its lease?
pub(super) fn any_overdue(db: &Connection, now: Time) -> Result<bool, StoreError> {
    db.prepare_cached(
        "SELECT EXISTS (SELECT 1 FROM effect INDEXED BY effect_held WHERE state = 1 AND lease_until <= ?1)",
    )
    .and_then(|mut read| read.query_row([now.micros()], |row| row.get(0)))
    .map_err(sql_error)
}

/// Lanes with something claimable, by name. From lane to lane on the index: its cost is one seek for each.
pub(super) fn due(db: &Connection, after: Option<&str>) -> Result<Vec<LaneDue>, StoreError> {
    let mut first = db
        .prepare_cached(
            "SELECT lane, next_at FROM effect INDEXED BY effect_due
             WHERE state = 0 AND gate = 0 ORDER BY lane, next_at LIMIT 1",
        )
        .map_err(sql_error)?;
    let mut next = db
        .prepare_cached(
            "SELECT lane, next_at FROM effect INDEXED BY effect_due
             WHERE state = 0 AND gate = 0 AND lane > ?1 ORDER BY lane, next_at LIMIT 1",
        )
        .map_err(sql_error)?;
    let to_due = |row: &rusqlite::Row<'_>| {
        Ok(LaneDue {
            lane: row.get(0)?,
            at: Time::from_micros(row.get(1)?),
        })
    };
    let mut lanes: Vec<LaneDue> = Vec::new();
    while lanes.len() < LANES_PER_LOOK_MAX as usize {
        let found = match lanes.last().map(|last| &*last.lane).or(after) {
            None => first.query_row([], to_due),
            Some(lane) => next.query_row([lane], to_due),
        };
        match found.optional().map_err(sql_error)? {
            Some(due) => lanes.push(due),
            None => break,
        }
    }
    Ok(lanes)
}

/// How many effects have not ended well.
pub(super) fn counts(db: &Connection) -> Result<EffectCounts, StoreError> {
    let count = |state: EffectState| -> Result<u64, StoreError> {
        let rows: i64 = db
            .prepare_cached(
                "SELECT count(*) FROM effect INDEXED BY effect_unended
                 WHERE (state = 0 OR state = 3 OR state = 4) AND state = ?1",
            )
            .and_then(|mut read| read.query_row([state.code()], |row| row.get(0)))
            .map_err(sql_error)?;
        Ok(rows as u64)
    };
    let claimed: i64 = db
        .prepare_cached("SELECT count(*) FROM effect INDEXED BY effect_held WHERE state = 1")
        .and_then(|mut read| read.query_row([], |row| row.get(0)))
        .map_err(sql_error)?;
    Ok(EffectCounts {
        pending: count(EffectState::Pending)?,
        claimed: claimed as u64,
        uncertain: count(EffectState::Uncertain)?,
        dead: count(EffectState::Dead)?,
    })
}

/// What the requests of these events' effects are made of.
pub(super) fn parcels(
    db: &Connection,
    events: &[EventId],
) -> Result<Vec<Option<Parcel>>, StoreError> {
    let mut read = db
        .prepare_cached(
            "SELECT e.at, e.source, e.type, e.key, p.content_type, p.body, e.provider_event_id, e.object_id
             FROM event e JOIN payload p ON p.seq = e.seq WHERE e.seq = ?1",
        )
        .map_err(sql_error)?;
    let mut parcels = Vec::with_capacity(events.len());
    for id in events {
        let row = id.0.row() as i64;
        let found = read.query_row([row], |read| {
            let body: Vec<u8> = read.get(5)?;
            let named: Option<String> = read.get(6)?;
            let parcel = Parcel {
                source: read.get(1)?,
                event_type: read.get(2)?,
                key: read.get(3)?,
                object_id: read.get(7)?,
                received_at: Time::from_micros(read.get(0)?),
                content_type: read.get(4)?,
                body: Bytes::from(body),
                about: None,
            };
            Ok((parcel, named))
        });
        let found = found.optional().map_err(sql_error)?;
        // A row number alone does not make an id: the time has to be the row's too.
        let found = found.filter(|(parcel, _)| event_id(parcel.received_at, row) == *id);
        parcels.push(match found {
            None => None,
            Some((parcel, named)) => Some(Parcel {
                about: message::about(db, &parcel.source, row, named.as_deref())?,
                ..parcel
            }),
        });
    }
    Ok(parcels)
}

/// A page of effects, newest first.
pub(super) fn effects(
    db: &Connection,
    filter: &EffectFilter,
    page: Page<EffectId>,
) -> Result<Listed<Effect, EffectId>, StoreError> {
    let limit = page.limit.clamp(1, PAGE_MAX) as usize;
    let from = match page.from {
        PageFrom::Newest => (Way::Older, i64::MAX),
        PageFrom::OlderThan(id) => (Way::Older, id.0.row() as i64),
        PageFrom::NewerThan(id) => (Way::Newer, id.0.row() as i64),
    };
    walk(db, filter, from, limit)
}

/// What is few is found by its index, whatever else there is. All take the same parameters, so the last names one it does not need.
fn older_statement(filter: &EffectFilter) -> &'static str {
    match filter.state {
        Some(EffectState::Pending | EffectState::Uncertain | EffectState::Dead) => {
            effect_columns!(
                "INDEXED BY effect_unended WHERE (state = 0 OR state = 3 OR state = 4) AND state = ?3 AND seq < ?1
                 ORDER BY seq DESC LIMIT ?2"
            )
        }
        Some(EffectState::Claimed) => effect_columns!(
            "INDEXED BY effect_held WHERE state = 1 AND state = ?3 AND seq < ?1 ORDER BY seq DESC LIMIT ?2"
        ),
        Some(EffectState::Done | EffectState::Skipped) | None => {
            effect_columns!("WHERE seq < ?1 AND ?3 IS ?3 ORDER BY seq DESC LIMIT ?2")
        }
    }
}

fn newer_statement(filter: &EffectFilter) -> &'static str {
    match filter.state {
        Some(EffectState::Pending | EffectState::Uncertain | EffectState::Dead) => {
            effect_columns!(
                "INDEXED BY effect_unended WHERE (state = 0 OR state = 3 OR state = 4) AND state = ?3 AND seq > ?1
                 ORDER BY seq LIMIT ?2"
            )
        }
        Some(EffectState::Claimed) => effect_columns!(
            "INDEXED BY effect_held WHERE state = 1 AND state = ?3 AND seq > ?1 ORDER BY seq LIMIT ?2"
        ),
        Some(EffectState::Done | EffectState::Skipped) | None => {
            effect_columns!("WHERE seq > ?1 AND ?3 IS ?3 ORDER BY seq LIMIT ?2")
        }
    }
}

fn walk(
    db: &Connection,
    filter: &EffectFilter,
    (way, from): (Way, i64),
    limit: usize,
) -> Result<Listed<Effect, EffectId>, StoreError> {
    let statement = match way {
        Way::Older => older_statement(filter),
        Way::Newer => newer_statement(filter),
    };
    let mut read = db.prepare_cached(statement).map_err(sql_error)?;
    let state = filter.state.map(EffectState::code);
    let mut rows = read
        .query(params![from, ROWS_LOOKED_AT_MAX, state])
        .map_err(sql_error)?;
    let mut walk = Walk::new(way, limit);
    let mut looked_at = 0;
    while let Some(row) = rows.next().map_err(sql_error)? {
        looked_at += 1;
        let held = to_held(row).map_err(sql_error)?;
        let fits = fits(db, filter, &held)?;
        let effect = held.effect;
        if walk.is_over(effect.id, fits.then_some(effect)) {
            return Ok(walk.listed(false));
        }
    }
    Ok(walk.listed(looked_at == ROWS_LOOKED_AT_MAX))
}

/// Its event's row is only read where all else fits.
fn fits(db: &Connection, filter: &EffectFilter, held: &effect::Held) -> Result<bool, StoreError> {
    if !filter.fits_itself(&held.effect, held.at) || filter.source.is_none() {
        return Ok(filter.fits_itself(&held.effect, held.at));
    }
    let source: Option<Arc<str>> = db
        .prepare_cached("SELECT source FROM event WHERE seq = ?1")
        .and_then(|mut read| {
            read.query_row([held.row >> PLACE_BITS], |row| row.get(0))
                .optional()
        })
        .map_err(sql_error)?;
    Ok(filter.fits(&held.effect, held.at, source.as_deref()))
}

//! Chains: what is known of an entity for one effect, and whether the next of its effects may start.

use std::sync::Arc;

use hapax_ledger::effect::EffectState;
use hapax_ledger::id::EffectId;
use hapax_ledger::key::{KeyHash, KeyKind};
use hapax_ledger::order::{self, EntityKnown, LifeStep, OrderVerdict, PlannedOrder};
use hapax_ledger::time::Time;
use hapax_ledger::version::is_stale;
use rusqlite::{Connection, OptionalExtension, params};

use super::effect::{Held, InChain, effect_columns, effect_id, to_held};
use super::sql_error;
use crate::error::StoreError;

/// What is known of an entity.
struct Chain {
    version: Option<String>,
    /// The last accepted of those that were started: its row and the time in its id.
    started: Option<(i64, Time)>,
    /// Whichever was started last: of all that are held, it alone can be under way.
    running: Option<i64>,
    ended_by: Option<String>,
}

fn read(db: &Connection, hash: [u8; 16]) -> Result<Option<Chain>, StoreError> {
    db.prepare_cached(
        "SELECT version, started, started_at, ended_by, running FROM chain WHERE hash = ?1",
    )
    .and_then(|mut read| {
        read.query_row([hash], |row| {
            let started: Option<i64> = row.get(1)?;
            let started_at: Option<i64> = row.get(2)?;
            Ok(Chain {
                version: row.get(0)?,
                started: started.zip(started_at.map(Time::from_micros)),
                ended_by: row.get(3)?,
                running: row.get(4)?,
            })
        })
        .optional()
    })
    .map_err(sql_error)
}

/// A new effect joins its chain; what its type means for the entity counts from the next one on.
pub(super) fn join(
    db: &Connection,
    name: &Arc<str>,
    order: &PlannedOrder,
    event_type: &str,
) -> Result<InChain, StoreError> {
    let hash = KeyHash::of(KeyKind::Chain, name, &order.entity).bytes();
    let before = read(db, hash)?.and_then(|chain| chain.ended_by);
    let ended_by = match order.life_step {
        LifeStep::Ordinary => before.as_deref(),
        LifeStep::Ends => Some(event_type),
        LifeStep::Reopens => None,
    };
    db.prepare_cached(
        "INSERT INTO chain (hash, members, ended_by) VALUES (?1, 1, ?2)
         ON CONFLICT (hash) DO UPDATE SET members = members + 1, ended_by = excluded.ended_by",
    )
    .and_then(|mut insert| insert.execute(params![hash, ended_by]))
    .map_err(sql_error)?;
    Ok(InChain {
        chain: hash,
        ended_by: before,
    })
}

/// An effect is gone, and with the last of its chain all that is known of it.
pub(super) fn leave(db: &Connection, place: &InChain) -> Result<(), StoreError> {
    db.prepare_cached("UPDATE chain SET members = members - 1 WHERE hash = ?1")
        .and_then(|mut update| update.execute([place.chain]))
        .map_err(sql_error)?;
    db.prepare_cached("DELETE FROM chain WHERE hash = ?1 AND members <= 0")
        .and_then(|mut delete| delete.execute([place.chain]))
        .map_err(sql_error)?;
    Ok(())
}

/// May it start, as far as its order is concerned?
pub(super) fn verdict(db: &Connection, held: &Held) -> Result<OrderVerdict, StoreError> {
    let (Some(order), Some(place)) = (&held.effect.order, &held.place) else {
        return Ok(OrderVerdict::Go);
    };
    let chain = read(db, place.chain)?;
    let chain = chain.as_ref();
    let predecessor: Option<(EffectId, EffectState)> = nearest_before(db, place, held.row)?
        .map(|other| (other.effect.id, other.effect.record.state));
    let running = chain.and_then(|chain| chain.running);
    let known = EntityKnown {
        predecessors: predecessor.as_slice(),
        under_way: held_later(db, running, held.row)?,
        later_started: chain
            .and_then(|chain| chain.started)
            .filter(|(row, _)| *row > held.row)
            .map(|(row, at)| effect_id(at, row)),
        highest_started: chain.and_then(|chain| chain.version.as_deref()),
        ended_by: place.ended_by.as_deref(),
        released: held.effect.released,
    };
    Ok(order::decide(order, &known))
}

/// It was started: what is older is stale or out of order from now on.
pub(super) fn started(db: &Connection, held: &Held) -> Result<(), StoreError> {
    let (Some(order), Some(place)) = (&held.effect.order, &held.place) else {
        return Ok(());
    };
    let Some(chain) = read(db, place.chain)? else {
        return Ok(());
    };
    let version = match (chain.version, &order.version) {
        (Some(highest), Some(version)) if is_stale(&highest, version) => Some(version.clone()),
        (None, version) => version.clone(),
        (highest, _) => highest,
    };
    let (row, at) = chain.started.max(Some((held.row, held.at))).unzip();
    db.prepare_cached(
        "UPDATE chain SET version = ?2, started = ?3, started_at = ?4, running = ?5 WHERE hash = ?1",
    )
    .and_then(|mut update| {
        let at = at.map(Time::micros);
        update.execute(params![place.chain, version, row, at, held.row])
    })
    .map_err(sql_error)?;
    Ok(())
}

/// Has it to wait for another of its chain: an earlier one that has not ended, or a later one that is under way? The second only if a person
/// let it go; otherwise it asks for one when it starts.
pub(super) fn waits(db: &Connection, held: &Held, place: &InChain) -> Result<bool, StoreError> {
    if nearest_before(db, place, held.row)?.is_some() {
        return Ok(true);
    }
    if !held.effect.released {
        return Ok(false);
    }
    let running = read(db, place.chain)?.and_then(|chain| chain.running);
    held_later(db, running, held.row).map(|later| later.is_some())
}

/// Whichever of a chain was started last, if it comes after a row and somebody holds it.
fn held_later(
    db: &Connection,
    running: Option<i64>,
    row: i64,
) -> Result<Option<EffectId>, StoreError> {
    let Some(later) = running.filter(|later| *later > row) else {
        return Ok(None);
    };
    let at: Option<i64> = db
        .prepare_cached("SELECT at FROM effect WHERE seq = ?1 AND state = 1")
        .and_then(|mut read| read.query_row([later], |row| row.get(0)).optional())
        .map_err(sql_error)?;
    Ok(at.map(|at| effect_id(Time::from_micros(at), later)))
}

/// The last one before a row that has not ended.
fn nearest_before(db: &Connection, place: &InChain, row: i64) -> Result<Option<Held>, StoreError> {
    db.prepare_cached(effect_columns!(
        "INDEXED BY effect_chain WHERE chain IS NOT NULL AND (state = 0 OR state = 1 OR state = 3) AND chain = ?1 AND seq < ?2
         ORDER BY seq DESC LIMIT 1"
    ))
    .and_then(|mut read| {
        read.query_row(params![place.chain, row], to_held)
            .optional()
    })
    .map_err(sql_error)
}

/// The first one after a row that has not ended; after none, the first of all.
pub(super) fn first_after(
    db: &Connection,
    place: &InChain,
    row: i64,
) -> Result<Option<Held>, StoreError> {
    db.prepare_cached(effect_columns!(
        "INDEXED BY effect_chain WHERE chain IS NOT NULL AND (state = 0 OR state = 1 OR state = 3) AND chain = ?1 AND seq > ?2
         ORDER BY seq LIMIT 1"
    ))
    .and_then(|mut read| {
        read.query_row(params![place.chain, row], to_held)
            .optional()
    })
    .map_err(sql_error)
}

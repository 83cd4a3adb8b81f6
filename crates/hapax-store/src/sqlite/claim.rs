//! Claims and rescues: who may carry an effect out, and what becomes of it when nobody hears of them again.

use hapax_ledger::id::EffectId;
use hapax_ledger::lease::Fence;
use hapax_ledger::outcome::{Lost, Outcome};
use hapax_ledger::time::Time;
use hapax_ledger::transition::{EffectStep, step};
use rusqlite::{OptionalExtension, params};

use super::effect::{Held, effect_columns, to_held};
use super::gate::Opened;
use super::writer::Tx;
use super::{advance, attempt, sql_error};
use crate::error::StoreError;
use crate::nouns::{ClaimAsk, Claimed, Claims, LaneRoom, OWN_LANE, Rescued, Said};

/// Effects that one step of the rescue looks at.
const RESCUE_ROWS: u32 = 500;

/// Claims what is due in some lanes, earliest first in each.
pub(super) fn claim(tx: &mut Tx<'_>, ask: &ClaimAsk) -> Result<Claims, StoreError> {
    let mut claims = Claims::default();
    for lane in &ask.lanes {
        for held in due(tx, lane)? {
            claims.claimed.extend(claim_one(tx, held, ask)?);
        }
        claims.next.push(next_due(tx, &lane.lane)?);
    }
    Ok(claims)
}

/// When the earliest is due of what can be claimed in a lane.
pub(super) fn next_due(tx: &Tx<'_>, lane: &str) -> Result<Option<Time>, StoreError> {
    let next: Option<i64> = tx
        .db
        .prepare_cached(
            "SELECT next_at FROM effect INDEXED BY effect_due WHERE state = 0 AND gate = 0 AND lane = ?1
             ORDER BY next_at LIMIT 1",
        )
        .and_then(|mut read| read.query_row([lane], |row| row.get(0)).optional())
        .map_err(sql_error)?;
    Ok(next.map(Time::from_micros))
}

fn due(tx: &Tx<'_>, lane: &LaneRoom) -> Result<Vec<Held>, StoreError> {
    tx.db
        .prepare_cached(effect_columns!(
            "INDEXED BY effect_due WHERE state = 0 AND gate = 0 AND lane = ?1 AND next_at <= ?2
             ORDER BY next_at, seq LIMIT ?3"
        ))
        .and_then(|mut read| {
            read.query_map(params![lane.lane, tx.now.micros(), lane.room], to_held)?
                .collect()
        })
        .map_err(sql_error)
}

fn claim_one(
    tx: &mut Tx<'_>,
    mut held: Held,
    ask: &ClaimAsk,
) -> Result<Option<Claimed>, StoreError> {
    let wanted = EffectStep::Claim {
        now: tx.now,
        epoch: tx.group.epoch(),
        lease: ask.lease,
    };
    let Ok(change) = step(&held.effect.record, &wanted) else {
        return Ok(None);
    };
    held.node = Some(ask.node.clone());
    held.started_at = None;
    let snapshot = attempt::snapshot(tx.db, held.row)?;
    // A claim lets nobody go.
    advance::apply(tx, &mut held, change.next, &mut Opened::new())?;
    let effect = held.effect.clone();
    advance::remember(tx, held);
    Ok(Some(Claimed { effect, snapshot }))
}

/// Frees what is held beyond its lease.
pub(super) fn rescue(tx: &mut Tx<'_>) -> Result<Rescued, StoreError> {
    let now = tx.now;
    let expired: Vec<Held> = tx
        .db
        .prepare_cached(effect_columns!(
            "WHERE state = 1 AND lease_until <= ?1 ORDER BY lease_until LIMIT ?2"
        ))
        .and_then(|mut read| {
            read.query_map(params![now.micros(), RESCUE_ROWS], to_held)?
                .collect()
        })
        .map_err(sql_error)?;
    let mut opened = Opened::new();
    let freed = free(
        tx,
        expired,
        |attempts_max| EffectStep::Expire { now, attempts_max },
        Lost::LostLease,
        &mut opened,
    )?;
    // One that was freed first may have to wait for one that was freed after it.
    let mut effects = Vec::with_capacity(freed.len());
    for id in freed {
        effects.extend(super::effect::find(tx.db, id)?.map(|held| held.effect));
    }
    Ok(Rescued {
        effects,
        opened: opened.into_iter().collect(),
    })
}

/// Frees one effect if it is held beyond its lease.
pub(super) fn expire(tx: &mut Tx<'_>, held: Held) -> Result<(), StoreError> {
    let now = tx.now;
    let wanted = |attempts_max| EffectStep::Expire { now, attempts_max };
    // What waits for it goes on waiting: it has not ended.
    free(tx, vec![held], wanted, Lost::LostLease, &mut Opened::new())?;
    Ok(())
}

/// Frees everything that an earlier process held: its leases ended with it (C3). How many there were in this step. What the user's own
/// code holds stays held until its lease ends: that code runs elsewhere, and may well be at it still.
pub(super) fn void(tx: &mut Tx<'_>) -> Result<usize, StoreError> {
    let now = tx.now;
    let floor = Fence::NONE.next(tx.group.epoch());
    let own = format!("{OWN_LANE}*");
    let held: Vec<Held> = tx
        .db
        .prepare_cached(effect_columns!(
            "WHERE state = 1 AND fence < ?1 AND lane NOT GLOB ?3 ORDER BY lease_until LIMIT ?2"
        ))
        .and_then(|mut read| {
            read.query_map(params![floor.as_u64() as i64, RESCUE_ROWS, own], to_held)?
                .collect()
        })
        .map_err(sql_error)?;
    let wanted = |attempts_max| EffectStep::Void { now, attempts_max };
    // Nobody listens yet: whoever dispatches looks at every lane when it starts.
    let freed = free(tx, held, wanted, Lost::Crash, &mut Opened::new())?;
    Ok(freed.len())
}

fn free(
    tx: &mut Tx<'_>,
    all: Vec<Held>,
    wanted: impl Fn(u32) -> EffectStep,
    why: Lost,
    opened: &mut Opened,
) -> Result<Vec<EffectId>, StoreError> {
    let mut freed = Vec::with_capacity(all.len());
    for mut held in all {
        if let Ok(change) = step(&held.effect.record, &wanted(held.attempts_max)) {
            if held.effect.record.started {
                attempt::end(tx, &mut held, Outcome::Lost { why }, Said::default())?;
            }
            advance::apply(tx, &mut held, change.next, opened)?;
            freed.push(held.effect.id);
        }
    }
    Ok(freed)
}

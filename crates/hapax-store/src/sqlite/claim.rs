//! Claims, moves and rescues: the ledger's machine, run inside the writer's transaction.

use std::sync::Arc;

use hapax_ledger::effect::EffectState;
use hapax_ledger::id::EffectId;
use hapax_ledger::lease::Fence;
use hapax_ledger::outcome::{Lost, Outcome};
use hapax_ledger::time::Time;
use hapax_ledger::transition::{Change, EffectStep, Rejected, step};
use rusqlite::params;

use super::effect::{self, Held, effect_columns, to_held};
use super::sql_error;
use super::writer::Tx;
use crate::error::StoreError;
use crate::nouns::{ClaimAsk, Claimed, EffectDetail, Move, Moved};
use crate::outcome_code::OutcomeCode;

/// Effects that one step of the rescue looks at.
const RESCUE_ROWS: u32 = 500;

/// Claims what is due, earliest first.
pub(super) fn claim(tx: &mut Tx<'_>, ask: &ClaimAsk) -> Result<Vec<Claimed>, StoreError> {
    let due: Vec<Held> = tx
        .db
        .prepare_cached(effect_columns!(
            "WHERE state = 0 AND next_at <= ?1 ORDER BY next_at, seq LIMIT ?2"
        ))
        .and_then(|mut read| {
            read.query_map(params![tx.now.micros(), ask.limit], to_held)?
                .collect()
        })
        .map_err(sql_error)?;
    let mut claimed = Vec::with_capacity(due.len());
    for mut held in due {
        let wanted = EffectStep::Claim {
            now: tx.now,
            epoch: tx.group.epoch(),
            lease: ask.lease,
        };
        if let Ok(change) = step(&held.effect.record, &wanted) {
            held.node = Some(ask.node.clone());
            held.started_at = None;
            apply(tx, &mut held, &change)?;
            claimed.push(Claimed {
                effect: held.effect,
            });
        }
    }
    Ok(claimed)
}

/// Moves an effect for the worker that shows this fence.
pub(super) fn advance(
    tx: &mut Tx<'_>,
    id: EffectId,
    fence: Fence,
    what: Move,
) -> Result<Moved, StoreError> {
    let held = effect::read(tx.db, id.0.row() as i64)?.filter(|held| held.effect.id == id);
    let Some(mut held) = held else {
        return Ok(Moved::NoEffect);
    };
    let now = tx.now;
    let wanted = what.step(fence, now);
    let change = match step(&held.effect.record, &wanted) {
        Ok(change) => change,
        Err(rejected) => {
            if let (Move::Settle(outcome, _), Rejected::StaleFence) = (what, rejected) {
                keep_late(tx, held.row, fence, outcome)?;
            }
            return Ok(Moved::Refused(rejected));
        }
    };
    match what {
        Move::Start => held.started_at = Some(now),
        Move::Settle(outcome, _) => end_attempt(tx, &mut held, outcome)?,
        Move::Extend(_) | Move::Release(_) | Move::Skip(_) => {}
    }
    apply(tx, &mut held, &change)?;
    Ok(Moved::Done(change))
}

/// Frees what is held beyond its lease.
pub(super) fn rescue(tx: &mut Tx<'_>) -> Result<u32, StoreError> {
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
    free(
        tx,
        expired,
        |attempts_max| EffectStep::Expire { now, attempts_max },
        Lost::LostLease,
    )
}

/// Frees everything that an earlier process held: its leases ended with it (C3).
pub(super) fn void(tx: &mut Tx<'_>) -> Result<u32, StoreError> {
    let now = tx.now;
    let floor = Fence::NONE.next(tx.group.epoch());
    let held: Vec<Held> = tx
        .db
        .prepare_cached(effect_columns!(
            "WHERE state = 1 AND fence < ?1 ORDER BY lease_until LIMIT ?2"
        ))
        .and_then(|mut read| {
            read.query_map(params![floor.as_u64() as i64, RESCUE_ROWS], to_held)?
                .collect()
        })
        .map_err(sql_error)?;
    free(
        tx,
        held,
        |attempts_max| EffectStep::Void { now, attempts_max },
        Lost::Crash,
    )
}

fn free(
    tx: &mut Tx<'_>,
    all: Vec<Held>,
    wanted: impl Fn(u32) -> EffectStep,
    why: Lost,
) -> Result<u32, StoreError> {
    let mut freed = 0;
    for mut held in all {
        if let Ok(change) = step(&held.effect.record, &wanted(held.attempts_max)) {
            if held.effect.record.started {
                end_attempt(tx, &mut held, Outcome::Lost { why })?;
            }
            apply(tx, &mut held, &change)?;
            freed += 1;
        }
    }
    Ok(freed)
}

/// One effect with its attempts.
pub(super) fn detail(
    db: &rusqlite::Connection,
    id: EffectId,
) -> Result<Option<EffectDetail>, StoreError> {
    let held = effect::read(db, id.0.row() as i64)?.filter(|held| held.effect.id == id);
    held.map(|held| {
        Ok(EffectDetail {
            attempts: effect::attempts(db, held.row)?,
            effect: held.effect,
        })
    })
    .transpose()
}

fn apply(tx: &Tx<'_>, held: &mut Held, change: &Change) -> Result<(), StoreError> {
    let before = held.effect.record;
    effect::write(tx.db, held, &change.next)?;
    held.effect.record = change.next;
    let shown = |state: EffectState, skip| (state, skip);
    if shown(before.state, before.skip) != shown(change.next.state, change.next.skip) {
        effect::touch_events(tx.db, held.row)?;
    }
    Ok(())
}

/// The attempt under way has ended: it gets a row of its own.
fn end_attempt(tx: &Tx<'_>, held: &mut Held, outcome: Outcome) -> Result<(), StoreError> {
    let record = held.effect.record;
    let code = OutcomeCode::of(outcome);
    let nobody: Arc<str> = "".into();
    tx.db
        .prepare_cached(
            "INSERT INTO attempt (effect, fence, generation, number, node, started_at, ended_at, outcome, detail, retry_after)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
        )
        .and_then(|mut insert| {
            insert.execute(params![
                held.row,
                record.fence.as_u64() as i64,
                record.generation,
                record.attempts,
                held.node.as_ref().unwrap_or(&nobody),
                held.started_at.unwrap_or(tx.now).micros(),
                tx.now.micros(),
                code.kind,
                code.detail,
                code.retry_after,
            ])
        })
        .map_err(sql_error)?;
    held.started_at = None;
    Ok(())
}

/// A settlement from a worker that was fenced off: changes nothing, and is kept (C2).
fn keep_late(tx: &Tx<'_>, effect: i64, fence: Fence, outcome: Outcome) -> Result<(), StoreError> {
    let code = OutcomeCode::of(outcome);
    let at: Time = tx.now;
    tx.db
        .prepare_cached(
            "UPDATE attempt SET late_at = ?3, late_outcome = ?4, late_detail = ?5
             WHERE effect = ?1 AND fence = ?2 AND late_at IS NULL",
        )
        .and_then(|mut update| {
            update.execute(params![
                effect,
                fence.as_u64() as i64,
                at.micros(),
                code.kind,
                code.detail
            ])
        })
        .map_err(sql_error)?;
    Ok(())
}

//! Moves: the ledger's machine, run inside the writer's transaction.

use std::sync::Arc;

use bytes::Bytes;
use hapax_ledger::effect::{EffectRecord, EffectState, SkipReason};
use hapax_ledger::id::EffectId;
use hapax_ledger::lease::Fence;
use hapax_ledger::order::{Gate, OrderVerdict};
use hapax_ledger::transition::{Change, EffectStep, Rejected, Resolution, Resolver, step};
use rusqlite::params;

use super::effect::{self, Held, PLACE_BITS};
use super::gate::{self, Opened};
use super::writer::Tx;
use super::{attempt, census, chain, sql_error, tiding};
use crate::error::StoreError;
use crate::nouns::{Advanced, Move, Moved, Review, Tiding, is_endpoint_lane};

/// Moves an effect for the worker that shows this fence.
pub(super) fn advance(
    tx: &mut Tx<'_>,
    id: EffectId,
    fence: Fence,
    what: Move,
) -> Result<Advanced, StoreError> {
    let mut opened = Opened::new();
    let moved = match find(tx, id)? {
        None => Moved::NoEffect,
        Some(mut held) => {
            let moved = match step(&held.effect.record, &what.step(fence, tx.now)) {
                Ok(change) => carry_out(tx, &mut held, &change, what, &mut opened)?,
                Err(rejected) => refuse(tx, &held, fence, &what, rejected)?,
            };
            remember(tx, held);
            moved
        }
    };
    Ok(said(moved, opened))
}

/// The effect of this id, as it is remembered or as it is read.
fn find(tx: &mut Tx<'_>, id: EffectId) -> Result<Option<Held>, StoreError> {
    match tx.group.under_way.take(id.0.row() as i64) {
        Some(held) if held.effect.id == id => Ok(Some(held)),
        Some(_) | None => effect::find(tx.db, id),
    }
}

/// What somebody holds will be asked for again.
pub(super) fn remember(tx: &mut Tx<'_>, held: Held) {
    if held.effect.record.state == EffectState::Claimed {
        tx.group.under_way.remember(held);
    }
}

fn said(moved: Moved, opened: Opened) -> Advanced {
    Advanced {
        moved,
        opened: opened.into_iter().collect(),
    }
}

/// A settlement from a worker that was fenced off changes nothing, and is kept (C2).
fn refuse(
    tx: &Tx<'_>,
    held: &Held,
    fence: Fence,
    what: &Move,
    rejected: Rejected,
) -> Result<Moved, StoreError> {
    if let (Move::Settle(settlement), Rejected::StaleFence) = (what, rejected) {
        attempt::keep_late(tx, held.row, fence, settlement)?;
    }
    Ok(Moved::Refused(rejected))
}

fn carry_out(
    tx: &mut Tx<'_>,
    held: &mut Held,
    change: &Change,
    what: Move,
    opened: &mut Opened,
) -> Result<Moved, StoreError> {
    match what {
        Move::Start(snapshot) => return start(tx, held, change, snapshot.as_ref(), opened),
        Move::Settle(settlement) => {
            attempt::end(tx, held, settlement.outcome, settlement.said.kept())?;
        }
        Move::Review(review) => ask_a_person(tx, held, &review)?,
        Move::Extend(_) | Move::Release(_) | Move::Skip(_) | Move::Tighten(_) => {}
    }
    apply(tx, held, change.next, opened)?;
    Ok(Moved::Done(*change))
}

/// A start that the fence allows: now its order decides.
fn start(
    tx: &mut Tx<'_>,
    held: &mut Held,
    change: &Change,
    snapshot: Option<&Bytes>,
    opened: &mut Opened,
) -> Result<Moved, StoreError> {
    let fence = held.effect.record.fence;
    let release = EffectStep::Release { fence, due: tx.now };
    match chain::verdict(tx.db, held)? {
        OrderVerdict::Go => {
            held.started_at = Some(tx.now);
            if let Some(snapshot) = snapshot {
                attempt::keep_snapshot(tx.db, held, snapshot)?;
            }
            chain::started(tx.db, held)?;
            apply(tx, held, change.next, opened)?;
            Ok(Moved::Done(*change))
        }
        OrderVerdict::Wait { behind } => Ok(match take(tx, held, &release, opened)? {
            Ok(_) => Moved::Waits(behind),
            Err(rejected) => Moved::Refused(rejected),
        }),
        OrderVerdict::Stale => {
            let reason = SkipReason::Stale;
            let skip = EffectStep::SkipClaimed { fence, reason };
            let skipped = take(tx, held, &skip, opened)?;
            Ok(skipped.map_or_else(Moved::Refused, Moved::Stale))
        }
        OrderVerdict::Review { why } => {
            ask_a_person(tx, held, &Review::of_order(&why))?;
            let released = take(tx, held, &release, opened)?;
            Ok(released.map_or_else(Moved::Refused, |_| Moved::Review(why)))
        }
    }
}

/// The gate stays shut until a person has looked, and the first event that calls for it says why. What was asked first stays.
fn ask_a_person(tx: &Tx<'_>, held: &mut Held, review: &Review) -> Result<(), StoreError> {
    held.effect.gate = Gate::Review;
    tx.db
        .prepare_cached(
            "UPDATE event SET status = 5, review_code = coalesce(review_code, ?3),
                 review_message = coalesce(review_message, ?4)
             WHERE seq = (SELECT seq FROM event
                 WHERE seq = ?1 OR seq IN (SELECT event FROM effect_link WHERE effect = ?2)
                 ORDER BY seq <> ?1, seq LIMIT 1)",
        )
        .and_then(|mut update| {
            update.execute(params![
                held.row >> PLACE_BITS,
                held.row,
                review.code,
                review.message
            ])
        })
        .map_err(sql_error)?;
    Ok(())
}

/// Settles what is uncertain.
pub(super) fn resolve(
    tx: &mut Tx<'_>,
    id: EffectId,
    resolution: Resolution,
    by: Resolver,
) -> Result<Advanced, StoreError> {
    let wanted = EffectStep::Resolve {
        resolution,
        by,
        now: tx.now,
    };
    let mut opened = Opened::new();
    let moved = match find(tx, id)? {
        None => Moved::NoEffect,
        Some(mut held) => {
            take(tx, &mut held, &wanted, &mut opened)?.map_or_else(Moved::Refused, Moved::Done)
        }
    };
    Ok(said(moved, opened))
}

/// Revives what of an event was given up; the lanes in which something was.
pub(super) fn revive(tx: &mut Tx<'_>, event: i64) -> Result<Vec<Arc<str>>, StoreError> {
    let wanted = EffectStep::Revive { now: tx.now };
    let mut revived = Opened::new();
    // Nobody holds what was given up.
    for mut held in effect::of_event(tx.db, event)? {
        // What comes back opens no gate.
        if held.effect.record.state == EffectState::Dead
            && take(tx, &mut held, &wanted, &mut Opened::new())?.is_ok()
        {
            revived.insert(held.effect.lane);
        }
    }
    Ok(revived.into_iter().collect())
}

/// Takes a step, if the ledger allows it.
pub(super) fn take(
    tx: &mut Tx<'_>,
    held: &mut Held,
    wanted: &EffectStep,
    opened: &mut Opened,
) -> Result<Result<Change, Rejected>, StoreError> {
    let change = step(&held.effect.record, wanted);
    if let Ok(change) = &change {
        apply(tx, held, change.next, opened)?;
    }
    Ok(change)
}

/// Writes what the ledger decided, and what follows from it for others.
pub(super) fn apply(
    tx: &mut Tx<'_>,
    held: &mut Held,
    next: EffectRecord,
    opened: &mut Opened,
) -> Result<(), StoreError> {
    let before = held.effect.record;
    held.effect.record = next;
    if next.state == EffectState::Pending && held.may_wait() {
        held.effect.gate = gate::of(tx.db, held)?;
    }
    // Read anew, it may have been remembered too.
    tx.group.under_way.take(held.row);
    if let Some(ended) = &held.ended {
        let gave_up = next.state == EffectState::Dead;
        let (lane, outcome) = (&held.effect.lane, ended.code.outcome());
        tx.group
            .tallies
            .count(lane, ended.ended_at, outcome, gave_up);
        let (began, at) = (ended.started_at, ended.ended_at);
        if let Some(tiding) = Tiding::of_attempt(&held.effect, outcome, began, at) {
            tiding::write(tx.db, &tiding)?;
        }
    }
    effect::write(tx.db, held)?;
    match (before.state, before.skip) != (next.state, next.skip) {
        false => Ok(()),
        true if !held.alone && is_endpoint_lane(&held.effect.lane) => {
            census::state_changed(tx, held, &before, opened)
        }
        true => {
            census::is_outdated(tx, held)?;
            gate::state_changed(tx.db, held, before.state, opened)
        }
    }
}

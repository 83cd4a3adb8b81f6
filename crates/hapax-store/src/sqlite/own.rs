//! Effects that the user's own code carries out: claimed and started in one transaction.

use bytes::Bytes;
use hapax_ledger::claim::ClaimVerdict;
use hapax_ledger::effect::EffectState;
use rusqlite::Connection;

use super::effect::{self, Held};
use super::gate::Opened;
use super::writer::Tx;
use super::{accept, advance, claim, plan, read, sql_error};
use crate::error::StoreError;
use crate::nouns::{OwnClaim, OwnClaimed};
use crate::own;

/// Claims an effect for somebody's own code; what is not there yet is planned first.
pub(super) fn claim_own(tx: &mut Tx<'_>, wanted: &OwnClaim) -> Result<OwnClaimed, StoreError> {
    if let Some(event) = wanted.event
        && !read::is_there(tx.db, event)?
    {
        return Ok(OwnClaimed::NoEvent);
    }
    let known = find(tx, wanted)?;
    if let Some(held) = known
        .as_ref()
        .filter(|held| !own::is_own(&held.effect.lane))
    {
        let effect = held.effect.id;
        return Ok(OwnClaimed::NotYours { effect });
    }
    match (wanted.event, known) {
        // Linked, if the effect is there.
        (Some(event), _) => plan::join(tx, event, &[own::planned(wanted)])?,
        (None, Some(_)) => {}
        (None, None) => plan_alone(tx, wanted)?,
    }
    match find(tx, wanted)? {
        Some(held) => claim_held(tx, held, wanted),
        None => Ok(OwnClaimed::NoEvent),
    }
}

/// The effect of this name and key.
fn find(tx: &Tx<'_>, wanted: &OwnClaim) -> Result<Option<Held>, StoreError> {
    let Some(row) = tx.group.find(tx.index, wanted.key_hash)? else {
        return Ok(None);
    };
    let held = effect::read(tx.db, row)?;
    Ok(held.filter(|held| held.effect.name == wanted.name && held.effect.key == wanted.key))
}

/// No event calls for it, so it gets one of its own.
fn plan_alone(tx: &mut Tx<'_>, wanted: &OwnClaim) -> Result<(), StoreError> {
    let receipts = accept::accept(tx, &own::arrival(wanted))?;
    if find(tx, wanted)?.is_some() {
        return Ok(());
    }
    // An event that was there already planned nothing.
    receipts
        .iter()
        .try_for_each(|receipt| plan::join(tx, receipt.event, &[own::planned(wanted)]))
}

fn claim_held(tx: &mut Tx<'_>, held: Held, wanted: &OwnClaim) -> Result<OwnClaimed, StoreError> {
    let (effect, row) = (held.effect.id, held.row);
    let mut held = match held.effect.record.state {
        EffectState::Claimed => {
            claim::expire(tx, held)?;
            match effect::read(tx.db, row)? {
                Some(held) => held,
                None => return Ok(OwnClaimed::NoEvent),
            }
        }
        EffectState::Pending
        | EffectState::Done
        | EffectState::Uncertain
        | EffectState::Dead
        | EffectState::Skipped => held,
    };
    let epoch = tx.group.epoch();
    let (record, verdict) = own::claim(&held.effect.record, wanted, tx.now, epoch);
    if let ClaimVerdict::Claimed { .. } = verdict {
        held.node = Some(wanted.actor.clone());
        held.started_at = Some(tx.now);
    }
    if record != held.effect.record {
        // A claim lets nobody go.
        advance::apply(tx, &mut held, record, &mut Opened::new())?;
        advance::remember(tx, held);
    }
    Ok(match verdict {
        ClaimVerdict::Claimed { fence, .. } => OwnClaimed::Claimed { effect, fence },
        ClaimVerdict::Done => OwnClaimed::Done {
            effect,
            result: result(tx.db, row)?,
        },
        ClaimVerdict::InFlight { until } => OwnClaimed::InFlight { effect, until },
        ClaimVerdict::Uncertain => OwnClaimed::Uncertain { effect },
        ClaimVerdict::Dead | ClaimVerdict::Skipped => OwnClaimed::Closed { effect },
    })
}

/// What was said at the end of its last attempt.
fn result(db: &Connection, effect: i64) -> Result<Option<Bytes>, StoreError> {
    let excerpt: Option<Vec<u8>> = db
        .prepare_cached("SELECT last_excerpt FROM effect WHERE seq = ?1")
        .and_then(|mut read| read.query_row([effect], |row| row.get(0)))
        .map_err(sql_error)?;
    Ok(excerpt.map(Bytes::from))
}

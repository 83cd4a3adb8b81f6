//! Claims of guarded keys, decided by the ledger in the writer's transaction.

use super::key;
use super::key_look::confirmed;
use super::writer::Tx;
use crate::error::StoreError;
use crate::guarded::{Guarded, Ruling, rule};
use crate::nouns::{KeyClaim, KeyClaimed};

/// A request arrives with a key. The index may have been asked for it after so many puts, and did not have it.
pub(super) fn claim(
    tx: &mut Tx<'_>,
    claim: &KeyClaim,
    absent_after: Option<u64>,
) -> Result<KeyClaimed, StoreError> {
    let epoch = tx.group.epoch();
    let found = tx
        .group
        .find_guarded(tx.index, claim.key_hash, absent_after)?;
    let known = match found {
        Some(row) => confirmed(tx.db, row, claim)?,
        None => None,
    };
    let Some(mut known) = known else {
        let row = tx.group.give_key_row()?;
        let new = Guarded::first(key::key_id(claim.at, row), claim, tx.now, epoch);
        key::insert(tx.db, &new, claim.key_hash)?;
        tx.group.take_guarded(claim.key_hash, row);
        return Ok(new.begun(false));
    };
    let id = known.shown.id;
    Ok(match rule(&known, claim, tx.now, epoch) {
        Ruling::Run { record, again } => {
            known.runs(claim, record);
            key::run_again(tx.db, &known)?;
            known.begun(again)
        }
        Ruling::Lost(record) => {
            known.record = record;
            key::update(tx.db, &known)?;
            KeyClaimed::OutcomeUnknown { id }
        }
        Ruling::Answered(body) => known.told(body, key::answer(tx.db, key::row_of(id))?),
        Ruling::Said(said) => said,
    })
}

//! Guarded keys that are only looked at, on a reader. That something may run is decided in [`super::key_claim`] and nowhere else.

use hapax_ledger::time::Time;
use rusqlite::Connection;

use super::index::KeyIndex;
use super::key::{self, KeyRow};
use super::sql_error;
use crate::error::StoreError;
use crate::guarded::{Guarded, Ruling, rule};
use crate::nouns::{KeyClaim, KeyClaimed};

/// What is said to a request without writing anything: what was committed is true, and the row shows when it ends to be. `None` if
/// that is not for a reader to decide: the key may run, or a run turns out to be lost.
pub(super) fn look(
    db: &Connection,
    index: &KeyIndex,
    claim: &KeyClaim,
    now: Time,
) -> Result<Option<KeyClaimed>, StoreError> {
    let Some(row) = index.get(claim.key_hash)? else {
        return Ok(None);
    };
    // One picture of the key and its answer.
    let db = &db.unchecked_transaction().map_err(sql_error)?;
    let Some(known) = confirmed(db, row, claim)? else {
        return Ok(None);
    };
    // Which epoch it is matters only to a run.
    Ok(match rule(&known, claim, now, 0) {
        Ruling::Run { .. } | Ruling::Lost(_) => None,
        Ruling::Answered(body) => Some(known.told(body, key::answer(db, row)?)),
        Ruling::Said(said) => Some(said),
    })
}

/// The key in a row, if it is the one of the claim.
pub(super) fn confirmed(
    db: &Connection,
    row: i64,
    claim: &KeyClaim,
) -> Result<Option<Guarded>, StoreError> {
    let found: Option<KeyRow> = key::read(db, row)?;
    let found = found.filter(|found| found.hash == claim.key_hash);
    Ok(found.map(|found| found.key))
}

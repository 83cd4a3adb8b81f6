//! What happens to guarded keys after their claim: extended, settled, resolved by somebody.

use hapax_ledger::guard::GuardRejected;
use hapax_ledger::id::KeyId;
use hapax_ledger::lease::Fence;
use hapax_ledger::time::{Span, Time};
use rusqlite::{Connection, params};

use super::key;
use super::sql_error;
use super::writer::Tx;
use crate::error::StoreError;
use crate::guarded::{ended, kept_answer};
use crate::nouns::{Authority, Changed, KeyEnding, KeyResolution};

/// The run needs longer.
pub(super) fn extend(
    tx: &Tx<'_>,
    id: KeyId,
    fence: Fence,
    lease: Span,
) -> Result<Result<(), GuardRejected>, StoreError> {
    let Some(mut key) = key::of_id(tx.db, id)? else {
        return Ok(Err(GuardRejected::StaleFence));
    };
    let extended = key.extend(fence, lease, tx.now);
    if extended.is_ok() {
        key::update(tx.db, &key)?;
    }
    Ok(extended)
}

/// The run ended.
pub(super) fn settle(
    tx: &Tx<'_>,
    id: KeyId,
    fence: Fence,
    ending: &KeyEnding,
) -> Result<Result<Time, GuardRejected>, StoreError> {
    // Nearly every run still has its key, and then its row need not be read.
    if let Some(expires_at) = end(tx, id, fence, ending)? {
        return Ok(Ok(expires_at));
    }
    let Some(mut key) = key::of_id(tx.db, id)? else {
        return Ok(Err(GuardRejected::StaleFence));
    };
    let answer = match key.settle(fence, ending, tx.now) {
        Ok(answer) => answer,
        Err(rejected) => return Ok(Err(rejected)),
    };
    if let Some(answer) = answer {
        key::keep_answer(tx.db, key::row_of(id), &answer)?;
    }
    key::update(tx.db, &key)?;
    Ok(Ok(key.record.expires_at))
}

/// Settles a run that still has its key, by its fence; says when its answer expires. `None` if it has not: what is said to it is the
/// ledger's to decide.
fn end(
    tx: &Tx<'_>,
    id: KeyId,
    fence: Fence,
    ending: &KeyEnding,
) -> Result<Option<Time>, StoreError> {
    let Ok((state, good_for)) = ended(ending) else {
        return Ok(None);
    };
    let expires_at = tx.now + good_for;
    // A row number alone does not make an id: the time has to be the row's too.
    let first_at = id.0.millis() as i64 * 1_000;
    let changed = tx
        .db
        .prepare_cached(
            "UPDATE guard_key SET state = ?5, expires_at = ?6, ended_at = ?7, status = ?8, error = ?9
             WHERE seq = ?1 AND first_at BETWEEN ?2 AND ?3 AND fence = ?4 AND (state = 0 OR state = 3)",
        )
        .and_then(|mut update| {
            update.execute(params![
                key::row_of(id),
                first_at,
                first_at + 999,
                fence.as_u64() as i64,
                state.code(),
                expires_at.micros(),
                key::ended_at(Some(ending.at)),
                key::status(ending.status),
                ending.error,
            ])
        })
        .map_err(sql_error)?;
    if changed == 0 {
        return Ok(None);
    }
    if let Some(answer) = kept_answer(ending) {
        key::keep_answer(tx.db, key::row_of(id), answer)?;
    }
    Ok(Some(expires_at))
}

/// Somebody found out what became of a run.
pub(super) fn resolve(
    db: &Connection,
    (id, fence): (KeyId, Fence),
    resolution: KeyResolution,
    by: &Authority,
    now: Time,
) -> Result<Changed, StoreError> {
    let Some(mut key) = key::of_id(db, id)? else {
        return Ok(Changed::NotFound);
    };
    if key.resolve(fence, resolution, by.at, now).is_err() {
        return Ok(Changed::NotFound);
    }
    key::update(db, &key)?;
    Ok(Changed::Done)
}

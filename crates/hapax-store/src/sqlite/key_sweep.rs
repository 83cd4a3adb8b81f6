//! Finds runs that were lost, and ends all leases when the process begins anew.

use hapax_ledger::guard::LEASE_GRACE;
use hapax_ledger::id::KeyId;
use hapax_ledger::time::Time;
use rusqlite::{Connection, params};

use super::key::{self, KeyRow, key_columns};
use super::sql_error;
use super::writer::Tx;
use crate::error::StoreError;
use crate::guarded::Guarded;
use crate::nouns::KEYS_PER_STEP_MAX;

/// Marks runs that were lost, those that were lost first first.
pub(super) fn lose(tx: &mut Tx<'_>) -> Result<Vec<KeyId>, StoreError> {
    let mut lost = Vec::new();
    for mut key in overdue(tx.db, tx.now)? {
        if key.lose(tx.now).is_ok() {
            key::update(tx.db, &key)?;
            lost.push(key.shown.id);
        }
    }
    Ok(lost)
}

/// Runs whose lease and grace are over.
pub(super) fn overdue(db: &Connection, now: Time) -> Result<Vec<Guarded>, StoreError> {
    let keys: Vec<KeyRow> = db
        .prepare_cached(key_columns!(
            "INDEXED BY guard_key_running WHERE k.state = 0 AND k.lease_until <= ?1 ORDER BY k.lease_until LIMIT ?2"
        ))
        .and_then(|mut read| {
            let over = now - LEASE_GRACE;
            read.query_map(params![over.micros(), KEYS_PER_STEP_MAX as i64], key::to_key)?
                .collect()
        })
        .map_err(sql_error)?;
    Ok(keys.into_iter().map(|row| row.key).collect())
}

/// A restart ends every lease that the process before it gave (C3): whoever ran under one is gone, and will neither extend nor
/// settle it. What it had sent may still be on its way or in the upstream's hands, so the run counts as running for the usual grace from
/// now on. Not from the end of the lease, which a clock that was set anew may have put anywhere.
pub(super) fn void(db: &Connection, now: Time) -> Result<usize, StoreError> {
    db.execute(
        "UPDATE guard_key SET lease_until = ?1 WHERE state = 0",
        [now.micros()],
    )
    .map_err(sql_error)
}

//! Finds runs that were lost.
//!
//! A run that ends well touches no index, so there is none of those that still run. What all of them have is a lease, and what is known of
//! leases is a time up to which all are done with: of keys whose lease was over by then none is running. So only those are looked at whose
//! lease came to its end since. A lease that is given now ends later, if the clock is not set back; if it was, all are looked at, and that
//! time is set back, too.

use std::sync::{Mutex, PoisonError};

use hapax_ledger::guard::LEASE_GRACE;
use hapax_ledger::id::KeyId;
use hapax_ledger::time::Span;
use tokio_postgres::types::Type;

use super::key::{KeyColumns, KeyRow, key_columns, to_key};
use super::moment::{LeaseClock, moment, no_row, now};
use super::pool::{Param, Pool};
use crate::error::StoreError;
use crate::nouns::KEYS_PER_STEP_MAX;

/// So far the time that is written down may be behind the one that this process knows: what is looked at twice after a restart, and by whoever
/// lists what is running. Writing it down more often would have a store at rest write all the time.
const WRITTEN_BEHIND_MAX: Span = Span::from_secs(60);

/// Looks for lost runs.
#[derive(Default)]
pub(super) struct KeySweep {
    /// Up to when leases are done with; before the first look, what is written down.
    swept: Mutex<Option<i64>>,
}

/// Up to when a look goes, what is written down, from when on the look goes, and whether a lost run is there. Without a lock: mostly there is
/// none. Where leases are done with up to a time that is still to come, the clock was set back: then all are looked at.
const LOOK: &str = concat!(
    "SELECT t.until, t.swept, t.after, EXISTS (
         SELECT FROM hapax.guard_key k WHERE k.lease_until > t.after AND k.lease_until <= t.until AND k.state = 0)
     FROM (
         SELECT n.now - $2 AS until, s.swept,
             CASE WHEN coalesce($3, s.swept) <= n.now - $2 THEN coalesce($3, s.swept) ELSE 0 END AS after
         FROM hapax.store s, ",
    now!("$1"),
    " AS n (now) WHERE s.one = 1) t"
);
/// Lost runs, those that were lost first first. What somebody holds is being decided.
const LOCK_LOST: &str = key_columns!(
    "",
    "FROM hapax.guard_key k WHERE k.lease_until > $1 AND k.lease_until <= $2 AND k.state = 0
     ORDER BY k.lease_until LIMIT $3 FOR UPDATE OF k SKIP LOCKED"
);
const WRITE_DOWN: &str = "UPDATE hapax.store SET swept = $1 WHERE one = 1";

impl KeySweep {
    /// Marks runs that were lost; names them.
    pub(super) async fn lose(
        &self,
        pool: &Pool,
        clock: &LeaseClock,
    ) -> Result<Vec<KeyId>, StoreError> {
        let known = *self.known();
        let params: [Param<'_>; 3] = [
            (&clock.given(), Type::INT8),
            (&LEASE_GRACE.micros(), Type::INT8),
            (&known, Type::INT8),
        ];
        let rows = pool.walk(LOOK, &params).await?;
        let row = rows.first().ok_or_else(no_row)?;
        let (until, written): (i64, i64) = (row.get(0), row.get(1));
        if row.get(3) {
            return lock_and_lose(pool, clock, (row.get(2), until)).await;
        }
        *self.known() = Some(until);
        if until < written || until - written > WRITTEN_BEHIND_MAX.micros() {
            let taken = pool.take().await?;
            taken.begin(WRITE_DOWN, &[(&until, Type::INT8)]).await?;
            taken.commit().await?;
        }
        Ok(Vec::new())
    }

    fn known(&self) -> std::sync::MutexGuard<'_, Option<i64>> {
        self.swept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Those whose lease came to its end after the first of these times and up to the second.
async fn lock_and_lose(
    pool: &Pool,
    clock: &LeaseClock,
    (after, until): (i64, i64),
) -> Result<Vec<KeyId>, StoreError> {
    let taken = pool.take().await?;
    let params: [Param<'_>; 3] = [
        (&after, Type::INT8),
        (&until, Type::INT8),
        (&(KEYS_PER_STEP_MAX as i64), Type::INT8),
    ];
    let rows = taken.begin(LOCK_LOST, &params).await?;
    let moment = moment(&taken, clock).await?;
    let rows = rows.iter().map(to_key);
    let lost = rows.filter_map(|mut row| row.key.lose(moment.now).is_ok().then_some(row));
    let lost: Vec<KeyRow> = lost.collect();
    let columns = KeyColumns::of(&lost);
    taken.commit_behind(&[columns.update()]).await?;
    Ok(lost.iter().map(|row| row.key.shown.id).collect())
}

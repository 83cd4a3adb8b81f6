//! Forgets guarded keys that are free, a little at a time, once events have been gone through.

use hapax_ledger::time::Time;
use tokio::sync::Mutex;
use tokio_postgres::types::Type;

use super::key::{KEY_COLUMNS, KeyRow, key_columns, to_key};
use super::moment::{LeaseClock, now};
use super::pool::Pool;
use super::reap::Reaper;
use super::wire::Uuid;
use crate::error::StoreError;
use crate::nouns::Reaped;

/// Keys looked at in one step: some milliseconds of the server's time.
const ROWS_PER_STEP: i64 = 500;
/// No key has this id.
const BEFORE_ALL: Uuid = Uuid([0; 16]);

/// Who goes round: first events, then keys. One step at a time, whoever asks for it.
pub(super) struct Reapers {
    events: Reaper,
    pool: Pool,
    clock: LeaseClock,
    /// The last key that was looked at; `None`: it is the events' turn.
    after: Mutex<Option<Uuid>>,
}

impl Reapers {
    pub(super) fn new(events: Reaper, pool: Pool, clock: LeaseClock) -> Reapers {
        Reapers {
            events,
            pool,
            clock,
            after: Mutex::new(None),
        }
    }

    /// One step. It goes on where the last one stopped and says `more` until it has been once around.
    pub(super) async fn step(&self, now: Time) -> Result<Reaped, StoreError> {
        let mut after = self.after.lock().await;
        let reaped = match *after {
            None => self.events.step(now).await?,
            Some(_) => Reaped::default(),
        };
        if reaped.more {
            return Ok(reaped);
        }
        // If it fails, the next round comes by again.
        let place = after.take().unwrap_or(BEFORE_ALL);
        let (keys, last) = step(&self.pool, place, now, &self.clock).await?;
        *after = last;
        Ok(Reaped {
            keys,
            more: last.is_some(),
            ..reaped
        })
    }
}

/// Counts the keys that all steps of a round would forget.
pub(super) async fn due(pool: &Pool, now: Time, clock: &LeaseClock) -> Result<u32, StoreError> {
    let rows = pool
        .walk(
            concat!(
                "SELECT count(*) FROM hapax.guard_key, ",
                now!("$2"),
                " AS t (now) WHERE state NOT IN (0, 3) AND expires_at + grace <= least($1, t.now)"
            ),
            &[(&now.micros(), Type::INT8), (&clock.given(), Type::INT8)],
        )
        .await?;
    Ok(rows.first().map_or(0, |row| row.get::<_, i64>(0) as u32))
}

/// Looks at the next keys without locking.
const LOOK: &str = key_columns!(
    ", t.now",
    concat!(
        "FROM (SELECT * FROM hapax.guard_key WHERE id > $1 ORDER BY id LIMIT $2) k, ",
        now!("$3"),
        " AS t (now) ORDER BY k.id"
    )
);

/// Deletes keys unless somebody holds them, or has claimed them anew since they were looked at: the fence says so.
const DELETE: &str = "WITH due AS MATERIALIZED (
         SELECT k.shard, k.key_hash FROM (SELECT unnest($1::uuid[]), unnest($2::int8[])) AS x (id, fence)
         JOIN hapax.guard_key k ON k.id = x.id AND k.fence = x.fence AND k.state NOT IN (0, 3)
         FOR UPDATE OF k SKIP LOCKED
     )
     DELETE FROM hapax.guard_key k USING due WHERE k.shard = due.shard AND k.key_hash = due.key_hash RETURNING k.id";

/// Looks at the keys after this place and deletes those that are free. Says how many, and where it stopped, unless all have been looked at.
async fn step(
    pool: &Pool,
    after: Uuid,
    now: Time,
    clock: &LeaseClock,
) -> Result<(u32, Option<Uuid>), StoreError> {
    let taken = pool.take().await?;
    let looked_at = taken
        .begin(
            LOOK,
            &[
                (&after, Type::UUID),
                (&ROWS_PER_STEP, Type::INT8),
                (&clock.given(), Type::INT8),
            ],
        )
        .await?;
    let over = looked_at.iter().filter_map(|row| {
        // A key ends by the store's clock, and by no other that may be ahead of it (I2).
        let moment = now.min(Time::from_micros(row.get(KEY_COLUMNS)));
        let KeyRow { key, .. } = to_key(row);
        let due = key.record.is_over(moment);
        due.then(|| (Uuid(key.shown.id.bytes()), key.record.fence.as_u64() as i64))
    });
    let (ids, fences): (Vec<Uuid>, Vec<i64>) = over.unzip();
    let full = looked_at.len() as i64 == ROWS_PER_STEP;
    let last = looked_at.last().filter(|_| full).map(|row| row.get(0));
    if ids.is_empty() {
        taken.commit().await?;
        return Ok((0, last));
    }
    let params = [
        (&ids as _, Type::UUID_ARRAY),
        (&fences as _, Type::INT8_ARRAY),
    ];
    let gone = taken.query(DELETE, &params).await?;
    taken.commit().await?;
    Ok((gone.len() as u32, last))
}

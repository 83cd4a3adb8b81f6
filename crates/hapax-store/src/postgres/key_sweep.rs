//! Finds runs that were lost.
//!
//! A run that ends well touches no index, so there is none of those that still run. What all of them have is a lease, and what is known of
//! leases is a time up to which all are done with: of keys whose lease was over by then none is running. So only those are looked at whose
//! lease came to its end since. A lease that is given now ends later, if the clock is not set back; if it was, all are looked at, and that
//! time is set back, too.
//!
//! A lease that was given may not be seen yet: its transaction waits for a standby, perhaps for longer than the lease. It ends after its
//! transaction began, so that time never passes the start of a transaction of ours that is still open.

use std::sync::{Mutex, PoisonError};

use hapax_ledger::guard::LEASE_GRACE;
use hapax_ledger::id::KeyId;
use hapax_ledger::time::Span;
use tokio_postgres::types::Type;

use super::key::{KeyColumns, KeyRow, key_columns, to_key};
use super::moment::{LeaseClock, moment, no_row, now};
use super::pool::{Param, Pool, Taken};
use crate::error::StoreError;
use crate::nouns::KEYS_PER_STEP_MAX;

/// So far the time that is written down may be behind the one that this process knows: what is looked at twice after a restart, and by whoever
/// lists what is running. Writing it down more often would have a store at rest write all the time.
const WRITTEN_BEHIND_MAX: Span = Span::from_secs(60);

/// Looks for lost runs.
pub(super) struct KeySweep {
    /// Up to when leases are done with; before the first look, what is written down.
    swept: Mutex<Option<i64>>,
    /// So long after its lease a run counts as lost.
    grace: Span,
}

impl Default for KeySweep {
    fn default() -> KeySweep {
        KeySweep {
            swept: Mutex::default(),
            grace: LEASE_GRACE,
        }
    }
}

/// When the oldest transaction of ours began that is still open; if there is none, the time before it was looked for, since one may begin right
/// after that. This session's own gives no lease. A pooler may write the client's address behind the name. Of sessions of another role, and
/// where the server tracks no activities, nothing is known; nodes share a role.
const OLDEST: &str = "SELECT (extract(epoch FROM least(min(a.xact_start), statement_timestamp())) * 1000000)::int8
     FROM pg_stat_activity a
     WHERE a.datname = current_database() AND a.application_name LIKE 'hapax%' AND a.pid <> pg_backend_pid()";

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

/// What a look has found.
struct Looked {
    /// Up to when it went.
    until: i64,
    written: i64,
    /// From when on it went.
    after: i64,
    any_lost: bool,
    /// See [`OLDEST`]; not known where a test has set the clock.
    oldest: Option<i64>,
}

impl Looked {
    /// Up to when leases are done with, if nothing was found.
    fn swept(&self) -> i64 {
        self.oldest
            .map_or(self.until, |oldest| oldest.min(self.until))
    }
}

impl KeySweep {
    /// Marks runs that were lost; names them.
    pub(super) async fn lose(
        &self,
        pool: &Pool,
        clock: &LeaseClock,
    ) -> Result<Vec<KeyId>, StoreError> {
        let looked = self.look(pool, clock).await?;
        if looked.any_lost {
            return lock_and_lose(pool, clock, (looked.after, looked.until)).await;
        }
        let (swept, written) = (looked.swept(), looked.written);
        *self.known() = Some(swept);
        if swept < written || swept - written > WRITTEN_BEHIND_MAX.micros() {
            let taken = pool.take().await?;
            taken.begin(WRITE_DOWN, &[(&swept, Type::INT8)]).await?;
            taken.commit().await?;
        }
        Ok(Vec::new())
    }

    /// The oldest transaction is asked for by a statement before the one that looks, each with a picture of its own. What is not open any more
    /// when it is asked for is seen by the look. Were both asked at once or the other way round, one that ends in between would be neither.
    async fn look(&self, pool: &Pool, clock: &LeaseClock) -> Result<Looked, StoreError> {
        let known = *self.known();
        let given = clock.given();
        let params: [Param<'_>; 3] = [
            (&given, Type::INT8),
            (&self.grace.micros(), Type::INT8),
            (&known, Type::INT8),
        ];
        let taken = pool.take().await?;
        let oldest = async {
            match given {
                Some(_) => Ok(None),
                None => oldest(&taken).await.map(Some),
            }
        };
        let ((), oldest, rows) =
            tokio::try_join!(biased; taken.open(), oldest, taken.query(LOOK, &params))?;
        taken.commit().await?;
        let row = rows.first().ok_or_else(no_row)?;
        Ok(Looked {
            until: row.get(0),
            written: row.get(1),
            after: row.get(2),
            any_lost: row.get(3),
            oldest,
        })
    }

    fn known(&self) -> std::sync::MutexGuard<'_, Option<i64>> {
        self.swept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn oldest(taken: &Taken) -> Result<i64, StoreError> {
    let rows = taken.query(OLDEST, &[]).await?;
    Ok(rows.first().ok_or_else(no_row)?.get(0))
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

#[cfg(test)]
mod tests {
    use tokio_postgres::Client;

    use super::*;
    use crate::conformance::database::with_database;

    #[test]
    fn leases_are_done_with_up_to_the_oldest_open_transaction() {
        let swept = |until, oldest| {
            let looked = Looked {
                until,
                written: 0,
                after: 0,
                any_lost: false,
                oldest,
            };
            looked.swept()
        };
        assert_eq!(swept(100, None), 100);
        assert_eq!(swept(100, Some(107)), 100);
        assert_eq!(swept(100, Some(40)), 40);
    }

    /// Begins a transaction under this name; says when it began.
    async fn begin(client: &Client, name: &str) -> i64 {
        let begin = format!("SET application_name = '{name}'; BEGIN");
        client
            .batch_execute(&begin)
            .await
            .expect("the server obeys");
        let began = "SELECT (extract(epoch FROM now()) * 1000000)::int8";
        let row = client.query_one(began, &[]).await;
        row.expect("the server answers").get(0)
    }

    async fn commit(client: &Client) {
        let ended = client.batch_execute("COMMIT").await;
        ended.expect("the server obeys");
    }

    /// Writes down a run whose lease is over at once; says when that was.
    async fn run(client: &Client) -> i64 {
        let run = "INSERT INTO hapax.guard_key (shard, key_hash, id, guard, principal, method, path, key, node, runs, first_at,
                started_at, state, fingerprint, fence, lease_until, expires_at, grace)
            VALUES (0, gen_random_uuid(), gen_random_uuid(), 'g', 'p', 'POST', '/', 'k', '', 1, 0, 0, 0, '\\x00', 0,
                (extract(epoch FROM clock_timestamp()) * 1000000)::int8, 0, 0)
            RETURNING lease_until";
        let row = client.query_one(run, &[]).await;
        row.expect("the server obeys").get(0)
    }

    /// H4: a run is found however much longer than its lease the transaction was open that began it.
    #[test]
    fn a_run_that_shows_after_its_lease_is_found() {
        with_database(|database| async move {
            let store = database.open().await;
            // Leases that are over are looked at without delay, so that nobody has to wait.
            let sweep = KeySweep {
                grace: Span::from_secs(0),
                ..KeySweep::default()
            };
            let holder = database.client().await;
            let began = begin(&holder, "hapax").await;
            let lease_until = run(&holder).await;
            let lost = sweep.lose(&store.readers, &store.clock).await;
            assert_eq!(lost.expect("it sweeps"), []);
            assert!(sweep.known().is_some_and(|known| known <= began));
            let row = holder.query_one("SELECT swept FROM hapax.store", &[]).await;
            let written: i64 = row.expect("the server answers").get(0);
            assert!(0 < written && written <= began, "{written} {began}");
            commit(&holder).await;
            let looked = sweep.look(&store.readers, &store.clock).await;
            let looked = looked.expect("it looks");
            assert!(looked.any_lost && looked.after < lease_until && lease_until <= looked.until);
            assert!(looked.swept() > began, "that one is over");
        });
    }

    /// Others do not give leases, whatever they keep open.
    #[test]
    fn only_transactions_of_ours_in_this_database_count() {
        with_database(|database| async move {
            let store = database.open().await;
            let oldest = async || {
                let taken = store.readers.take().await.expect("there is one");
                let oldest = oldest(&taken).await.expect("the server answers");
                taken.give_back();
                oldest
            };
            let (other, elsewhere) = (database.client().await, database.server_client().await);
            let other_began = begin(&other, "backup").await;
            let elsewhere_began = begin(&elsewhere, "hapax").await;
            let now = oldest().await;
            assert!(now > other_began && now > elsewhere_began);
            let (first, second) = (database.client().await, database.client().await);
            let first_began = begin(&first, "hapax - 10.0.0.7:41234").await;
            let second_began = begin(&second, "hapax").await;
            assert_eq!(oldest().await, first_began);
            commit(&first).await;
            assert_eq!(oldest().await, second_began);
            commit(&second).await;
            assert!(oldest().await > second_began);
        });
    }
}

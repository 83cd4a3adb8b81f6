//! One connection for groups that follow each other without waiting for each other's answers.
//!
//! The server comes to the next group the moment it has committed the one before, and the way there and back is not waited for. On a second
//! connection the two would be two processes that wait for each other's locks and flushes. See
//! `docs/design/what-does-a-guarded-request-cost.md`.
//!
//! Each group is a statement that is a transaction by itself: what becomes of one says nothing about those before and behind it, unless the
//! connection breaks, and then each of them is told by what it heard itself (A6).

use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use tokio::time::error::Elapsed;
use tokio::time::timeout;
use tokio_postgres::{Error, Row};

use super::keys::LANES;
use super::pool::{Param, Pool, Taken};
use crate::error::StoreError;

/// Who has waited so long for an answer waits for somebody's lock, or for a standby: nobody follows behind. Many times what a commit takes
/// otherwise.
const FOLLOW_WAIT: Duration = Duration::from_millis(20);

/// So many groups are on one connection: one lane is left for those that come while these wait for somebody, and whoever waits behind another
/// still has half of its time.
const GROUPS_MAX: usize = LANES - 1;

/// The connection that groups follow each other on, and others where that is not possible.
pub(super) struct Road {
    pool: Pool,
    /// A connection may be followed on once it keeps this statement: it is prepared only when nobody is on it.
    known: &'static str,
    /// Whoever set out last, as long as anybody is on the way.
    last: Mutex<Weak<Travelled>>,
}

/// A connection, for as long as anybody is on it.
struct Travelled {
    taken: Taken,
    /// Something went wrong on it. Those who are on it come to their end, and nobody follows.
    failed: AtomicBool,
}

/// A place on a connection. Dropped, it closes the connection, unless others are still on it.
pub(super) struct Ride(Arc<Travelled>);

impl Road {
    pub(super) fn new(pool: Pool, known: &'static str) -> Road {
        Road {
            pool,
            known,
            last: Mutex::new(Weak::new()),
        }
    }

    fn last(&self) -> MutexGuard<'_, Weak<Travelled>> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Behind those who are on their way; on a connection of its own, if nobody is or may be followed.
    pub(super) async fn ride(&self) -> Result<Ride, StoreError> {
        let before = self.last().upgrade().filter(may_be_followed);
        if let Some(before) = before {
            return Ok(Ride(before));
        }
        let taken = self.pool.take().await?;
        let followed = taken.keeps(self.known);
        let ride = Ride(Arc::new(Travelled {
            taken,
            failed: AtomicBool::new(false),
        }));
        if followed {
            *self.last() = Arc::downgrade(&ride.0);
        }
        Ok(ride)
    }

    /// Runs a statement that is planned once and a transaction by itself.
    pub(super) async fn run(
        &self,
        ride: Ride,
        sql: &'static str,
        params: Vec<Param<'_>>,
    ) -> Result<Vec<Row>, StoreError> {
        let Ride(on) = ride;
        let answer = self.answer(&on, sql, &params).await;
        let lost = answer.is_err();
        let said = on.taken.heard(answer);
        match (&said, lost) {
            (Ok(_), _) => Ride(on).give_back(),
            (Err(_), false) => on.failed.store(true, Ordering::Release),
            (Err(_), true) => {
                on.failed.store(true, Ordering::Release);
                if let Some(on) = Arc::into_inner(on) {
                    on.taken.leave_stuck();
                }
            }
        }
        said
    }

    async fn answer(
        &self,
        on: &Arc<Travelled>,
        sql: &'static str,
        params: &[Param<'_>],
    ) -> Result<Result<Vec<Row>, Error>, Elapsed> {
        let mut running = pin!(on.taken.committing(sql, params));
        match timeout(FOLLOW_WAIT, &mut running).await {
            Ok(answer) => answer,
            Err(_) => {
                self.leave(on);
                running.await
            }
        }
    }

    /// Nobody follows on this connection any more.
    fn leave(&self, on: &Arc<Travelled>) {
        let mut last = self.last();
        if std::ptr::eq(last.as_ptr(), Arc::as_ptr(on)) {
            *last = Weak::new();
        }
    }
}

impl Travelled {
    fn is_sound(&self) -> bool {
        !self.failed.load(Ordering::Acquire) && !self.taken.is_closed()
    }
}

/// Is there room for one more group, which this is counted for already?
fn may_be_followed(on: &Arc<Travelled>) -> bool {
    on.is_sound() && Arc::strong_count(on) <= GROUPS_MAX
}

impl Ride {
    /// It is not needed any more. The last to leave gives the connection back, if all went well on it.
    pub(super) fn give_back(self) {
        if let Some(on) = Arc::into_inner(self.0)
            && on.is_sound()
        {
            on.taken.give_back();
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio_postgres::Config;

    use super::super::kept::Statements;
    use super::super::{COMMIT_WAIT, tls};
    use super::*;
    use crate::conformance::database::{Database, with_database};

    /// Says which process of the server runs it, and waits for whoever holds the lock of that number.
    const SQL: &str =
        "SELECT pg_backend_pid() FROM (SELECT pg_advisory_xact_lock_shared($1::int8)) AS held";
    const FAILS: &str = "SELECT (1 / $1::int8)::int4";

    fn road(database: &Database) -> Road {
        let mut config: Config = database.url().parse().expect("a valid URL");
        let tls = tls::connector(&mut config, None).expect("TLS is not asked for");
        let pool = Pool::new(&config, tls, COMMIT_WAIT, 3, Statements::Planned);
        Road::new(pool, SQL)
    }

    async fn run(road: &Road, ride: Ride, sql: &'static str, n: i64) -> Result<i32, StoreError> {
        let params: Vec<Param<'_>> = vec![(&n, tokio_postgres::types::Type::INT8)];
        let rows = road.run(ride, sql, params).await?;
        Ok(rows[0].get(0))
    }

    /// Rides once, so that the statement is kept.
    async fn known(road: &Road) -> i32 {
        let ride = road.ride().await.expect("there is a server");
        let first = run(road, ride, SQL, 0).await.expect("it runs");
        let ride = road.ride().await.expect("there is a server");
        let second = run(road, ride, SQL, 0).await.expect("it runs");
        assert_eq!(first, second, "it was given back");
        first
    }

    #[test]
    fn groups_follow_each_other_on_one_connection_once_it_keeps_their_statement() {
        with_database(|database| async move {
            let road = road(&database);
            let (one, other) = (road.ride().await, road.ride().await);
            let (one, other) = (one.expect("a server"), other.expect("a server"));
            let first = run(&road, one, SQL, 0).await.expect("it runs");
            let second = run(&road, other, SQL, 0).await.expect("it runs");
            assert_ne!(first, second, "neither keeps it yet");
            let (one, other) = (road.ride().await, road.ride().await);
            let (one, other) = (one.expect("a server"), other.expect("a server"));
            let both = tokio::join!(run(&road, one, SQL, 0), run(&road, other, SQL, 0));
            let (first, second) = (both.0.expect("it runs"), both.1.expect("it runs"));
            assert_eq!(first, second);
        });
    }

    /// A6: each group is told what became of its own statement.
    #[test]
    fn a_group_that_fails_takes_no_other_with_it_and_its_connection_is_not_used_again() {
        with_database(|database| async move {
            let road = road(&database);
            let first = known(&road).await;
            let (one, other) = (road.ride().await.unwrap(), road.ride().await.unwrap());
            let (failed, behind) =
                tokio::join!(run(&road, one, FAILS, 0), run(&road, other, SQL, 0));
            failed.expect_err("nothing is divided by zero");
            assert_eq!(behind.expect("it runs all the same"), first);
            let second = known(&road).await;
            assert_ne!(second, first);
            let (one, other) = (road.ride().await.unwrap(), road.ride().await.unwrap());
            let (before, failed) =
                tokio::join!(run(&road, one, SQL, 0), run(&road, other, FAILS, 0));
            assert_eq!(before.expect("it ran before"), second);
            failed.expect_err("nothing is divided by zero");
            assert_ne!(known(&road).await, second);
        });
    }

    /// However fast they come, not all lanes are on one connection: the one in front may wait for somebody.
    #[test]
    fn one_lane_is_left_for_another_connection() {
        with_database(|database| async move {
            let road = road(&database);
            let first = known(&road).await;
            let mut rides = Vec::new();
            for _ in 0..LANES {
                rides.push(road.ride().await.expect("there is a server"));
            }
            let last = rides.pop().expect("the last one");
            assert_ne!(run(&road, last, SQL, 0).await.expect("it runs"), first);
            for ride in rides {
                assert_eq!(run(&road, ride, SQL, 0).await.expect("it runs"), first);
            }
        });
    }

    /// Whoever waits for a lock keeps those behind it, so that nobody follows who comes later.
    #[test]
    fn nobody_follows_behind_a_group_that_waits_for_somebody() {
        with_database(|database| async move {
            let road = road(&database);
            let first = known(&road).await;
            let holder = database.client().await;
            let hold = "SELECT pg_advisory_lock(7)";
            holder.batch_execute(hold).await.expect("nobody has it");
            let ride = road.ride().await.expect("there is a server");
            let mut waiting = pin!(run(&road, ride, SQL, 7));
            // As long as it takes until it is known that it waits.
            while road.last().upgrade().is_some() {
                let _ = timeout(Duration::from_millis(1), &mut waiting).await;
            }
            assert_ne!(known(&road).await, first);
            let unhold = "SELECT pg_advisory_unlock(7)";
            holder.batch_execute(unhold).await.expect("it has it");
            assert_eq!(waiting.await.expect("it runs"), first);
        });
    }

    /// A place that is not needed is given back like any other, and one that is dropped closes its connection.
    #[test]
    fn the_last_to_leave_gives_the_connection_back() {
        with_database(|database| async move {
            let road = road(&database);
            let first = known(&road).await;
            let (one, other) = (road.ride().await.unwrap(), road.ride().await.unwrap());
            one.give_back();
            assert_eq!(run(&road, other, SQL, 0).await.expect("it runs"), first);
            assert_eq!(known(&road).await, first);
            drop(road.ride().await.expect("there is a server"));
            assert_ne!(known(&road).await, first);
        });
    }
}

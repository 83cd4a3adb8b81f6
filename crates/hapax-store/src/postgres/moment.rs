//! The store's clock: the database's, so that nodes whose own clocks differ agree on when a lease ends (C3).

use hapax_ledger::time::Time;
use tokio_postgres::Row;
use tokio_postgres::types::Type;

use super::pool::{Pool, Taken};
use crate::error::{StoreError, StoreErrorKind};
use crate::store::Clock;

/// The time in microseconds, in the middle of a statement: the parameter, or the database's clock if it is NULL. As a subquery,
/// so that it is asked once and an index can be searched by it.
macro_rules! now {
    ($given:literal) => {
        concat!(
            "(SELECT coalesce(",
            $given,
            "::int8, (extract(epoch FROM clock_timestamp()) * 1000000)::int8))"
        )
    };
}
pub(super) use now;

/// Whose time it is: the database's, unless a test has set one.
#[derive(Clone)]
pub(super) struct LeaseClock(pub(super) Option<Clock>);

impl LeaseClock {
    /// What stands in a statement for the time, for [`now`].
    pub(super) fn given(&self) -> Option<i64> {
        self.0.as_ref().map(|clock| clock().micros())
    }
}

/// When something happens, and in which epoch of the store.
#[derive(Clone, Copy, Debug)]
pub(super) struct Moment {
    pub(super) now: Time,
    pub(super) epoch: u32,
}

/// The moment. Asked behind the statement that takes the locks and without waiting for its answer, it is known in the same
/// round trip and was read after the locks were held: a lease that ran out in the meantime has run out.
pub(super) async fn moment(taken: &Taken, clock: &LeaseClock) -> Result<Moment, StoreError> {
    let rows = taken.query(MOMENT, &[(&clock.given(), Type::INT8)]).await?;
    to_moment(&rows)
}

/// The epoch, outside of any transaction.
pub(super) async fn epoch(pool: &Pool, clock: &LeaseClock) -> Result<u32, StoreError> {
    let rows = pool.read(MOMENT, &[(&clock.given(), Type::INT8)]).await?;
    Ok(to_moment(&rows)?.epoch)
}

/// Reads the moment; what [`LeaseClock::given`] says is its parameter.
pub(super) const MOMENT: &str = concat!(
    "SELECT ",
    now!("$1"),
    ", epoch FROM hapax.store WHERE one = 1"
);

/// What [`MOMENT`] found.
pub(super) fn to_moment(rows: &[Row]) -> Result<Moment, StoreError> {
    let moment = rows.first().map(|row| Moment {
        now: Time::from_micros(row.get(0)),
        epoch: row.get::<_, i32>(1) as u32,
    });
    moment.ok_or_else(no_row)
}

/// There always is one.
pub(super) fn no_row() -> StoreError {
    StoreError::new(
        StoreErrorKind::Corrupt,
        "the store's own row cannot be read",
    )
}

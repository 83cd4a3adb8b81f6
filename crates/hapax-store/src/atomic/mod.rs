//! Keys in the caller's own database, written in the caller's own transaction: the key, the work and the stored answer commit
//! together, or none of them does (H1). A run that crashed has left nothing behind, and is simply run again.
//!
//! There is one small table, `hapax_key`, beside the caller's own: [`POSTGRES_SCHEMA`] and [`SQLITE_SCHEMA`] are its text,
//! [`install`] runs it. What becomes of a key is decided by [`hapax_ledger::guard`], as everywhere. The caller begins and ends
//! the transaction; a driver joins in by implementing [`AtomicTx`], which runs one statement at a time: `tokio_postgres::Transaction`,
//! `rusqlite::Transaction` and, with the feature `sqlx-postgres`, `sqlx::Transaction<Postgres>` do.
//!
//! - [`claim`] takes a key, or says who has it. It never waits for somebody who is running: PostgreSQL tries the key's lock, SQLite
//!   has one writer and its own time limit.
//! - [`finish`] stores the answer. The caller commits.
//! - [`phase`] names a recovery point that commits with the work before it. Between two transactions the run has a lease; when it is lost,
//!   the next claim hears [`Claimed::Resume`] with the last point that was committed.
//! - [`once`] is the same for events: it says whether one is new.
//!
//! Times are the database's, so that nodes whose clocks differ agree.

mod claim;
mod error;
mod forget;
mod install;
mod once;
mod row;
mod run;
mod rusqlite;
#[cfg(feature = "sqlx-postgres")]
mod sqlx_postgres;
mod tokio_postgres;
mod tx;

pub use claim::{Claim, Claimed, LEASE_DEFAULT, Phase, claim};
pub use error::{AtomicError, BoxError, TxError};
pub use forget::forget;
pub use install::{POSTGRES_SCHEMA, SQLITE_SCHEMA, install};
pub use once::{Event, Once, REMEMBER_DEFAULT, once};
pub use run::{Run, finish, phase};
pub use tx::{AtomicTx, Dialect, Param, Row, Value, blocking};

//! Atomic mode: the key, the work and the stored answer commit together, in the handler's own transaction.
//!
//! An [`AtomicLayer`] reads keys, callers and bodies as [`crate::IdempotencyLayer`] does, but has no store: its keys are in the
//! table `hapax_key` of your own database. The handler finds an [`Atomic`] in the request's extensions and joins its transaction to
//! it. A process that dies at any point leaves all of it or nothing, so no outcome is ever unknown: the retry runs, or gets
//! the answer.
//!
//! ```no_run
//! use axum::Extension;
//! use axum::response::{IntoResponse, Response};
//! use hapax_tower::atomic::{Atomic, Begun};
//!
//! type Error = Box<dyn std::error::Error + Send + Sync>;
//!
//! async fn charge(
//!     Extension(atomic): Extension<Atomic>,
//!     client: &mut tokio_postgres::Client,
//! ) -> Result<Response, Error> {
//!     let mut tx = client.transaction().await?;
//!     let run = match atomic.begin(&mut tx).await? {
//!         Begun::Fresh(run) | Begun::Resume(run, _) => run,
//!         // A replay, or why not: in progress, reused, expired.
//!         Begun::Answered(answer) => return Ok(answer.into_response()),
//!     };
//!     // The work, on the same transaction:
//!     // tx.execute(...).await?;
//!     let answer = http::Response::new("charged");
//!     let answer = run.finish(&mut tx, answer).await?;
//!     tx.commit().await?;
//!     Ok(answer.into_response())
//! }
//! ```
//!
//! A handler that fails returns without committing, and nothing has happened: the key is free. (A transaction that is dropped ends a moment
//! later; one that is rolled back ends before the caller can retry.) An answer is given out only after the
//! commit. The layer holds handlers to that: a success that was not finished is not given out.
//!
//! # Without the layer
//!
//! Consumers and other code use [`claim`], [`finish`] and [`phase`] with a key, a scope and a fingerprint of their own, and answers that
//! are plain bytes; or [`once`], if all they want to know is whether an event is new.
//!
//! ```
//! use hapax_tower::atomic::{Event, Once, blocking, install, once};
//! use rusqlite::{Connection, TransactionBehavior};
//!
//! let mut connection = Connection::open_in_memory()?;
//! let mut tx = connection.transaction()?;
//! blocking(install(&mut tx))?;
//! tx.commit()?;
//!
//! for expected in [Once::Fresh, Once::Seen] {
//!     let mut tx = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
//!     // rusqlite never waits, and needs no runtime.
//!     let seen = blocking(once(&mut tx, &Event::new("shop", "evt_1")))?;
//!     assert_eq!(seen, expected);
//!     if seen == Once::Fresh {
//!         // The work, on the same transaction: tx.execute(...)?;
//!     }
//!     tx.commit()?;
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Recovery points
//!
//! Work that has to leave the database in between (call a payment provider, say) is done in several transactions. Each ends with
//! [`AtomicRun::phase`], which commits with the work of that phase; the last with [`AtomicRun::finish`]. A retry after a crash hears
//! [`Begun::Resume`] with the last committed phase and its data, and goes on behind it. Commit that transaction, too, before going on:
//! it is what takes the key away from a process that may only be slow. What is called between two phases may be called again, so give
//! it a key of its own that is in the phase's data.
//!
//! # Drivers
//!
//! [`AtomicTx`] is implemented for `tokio_postgres::Transaction` (0.7), `rusqlite::Transaction` (0.41) and, with the feature
//! `sqlx-postgres`, `sqlx::Transaction<Postgres>` (0.9). Not for SQLite in sqlx, whose C library collides with rusqlite's. Pools whose transactions dereference to one of these work as they are (`&mut *tx`).

mod handle;
mod layer;

pub use handle::{Atomic, AtomicRun, Begun, unavailable};
pub use hapax_store::atomic::{
    AtomicError, AtomicTx, Claim, Claimed, Dialect, Event, Once, POSTGRES_SCHEMA, Param, Phase,
    Row, Run, SQLITE_SCHEMA, TxError, Value, blocking, claim, finish, forget, install, once, phase,
};
pub use layer::{AtomicLayer, AtomicService};

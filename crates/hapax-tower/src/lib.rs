//! `Idempotency-Key` for any tower HTTP service: a retried request gets the first one's answer, and the work runs once.
//!
//! ```no_run
//! use std::sync::Arc;
//!
//! use axum::Router;
//! use axum::routing::post;
//! use hapax_tower::principal::ByHeader;
//! use hapax_tower::store::model::ModelStore;
//! use hapax_tower::{Guard, IdempotencyLayer, clock};
//!
//! # async fn serve() -> Result<(), Box<dyn std::error::Error>> {
//! // In memory, for a first try. `store::sqlite` and `store::postgres` keep their keys.
//! let keys = Arc::new(ModelStore::new(clock::steady()));
//! let guard = Guard::new("charges", ByHeader::new(http::header::AUTHORIZATION));
//! let idempotency = IdempotencyLayer::new(keys, guard)?;
//!
//! let app: Router = Router::new()
//!     .route("/charges", post(async || "charged"))
//!     .layer(idempotency.clone());
//!
//! let listener = tokio::net::TcpListener::bind("127.0.0.1:3000").await?;
//! axum::serve(listener, app).await?;
//! // Runs outlive their callers: a server that stops waits for them.
//! idempotency.drain().await;
//! # Ok(())
//! # }
//! ```
//!
//! # What happens to a request
//!
//! A request of a guarded method with a key is read whole, and its key is claimed in the store. Only when the claim is
//! durable does the service get it, in a task of its own: a caller who hangs up does not stop it. Its answer is
//! stored, and then the caller gets it. Every later request with this key, from this caller, to this route gets the stored status,
//! headers and bytes with `Idempotent-Replayed: true`; another request under the same key is refused.
//!
//! If the service fails, panics or dies, nobody knows what it did: the outcome is *unknown*, and the policy decides whether the
//! work is held until somebody finds out, or repeated. See [`problem`] for what callers hear, [`Keep`] for what a handler
//! may decide, and [`Why`] for what it may tell operators.
//!
//! If the work ran and its answer cannot be stored, the layer tries again for as long as its lease lasts; then the caller hears 503
//! with the problem `outcome-unknown`, and not the answer: an answer that was given out and could not be repeated would be
//! worse than none.
//!
//! Where the service has a database of its own, [`atomic`] mode does better: key, work and answer are one transaction of its, and no
//! outcome is ever unknown.
//!
//! The service runs in a spawned task: what an outer layer has put into task-local storage is not there; what it has put into
//! the request's extensions is.

mod admit;
mod asked;
pub mod atomic;
mod attempt;
mod body;
mod caught;
pub mod clock;
mod entropy;
pub mod guard;
pub mod headers;
mod keep;
mod layer;
mod lease;
pub mod observe;
/// Shared with the program `hapax`; no part of what this crate promises.
#[doc(hidden)]
pub mod outlive;
mod prefer;
pub mod principal;
pub mod problem;
mod recent;
mod run;
mod running;
mod settle;
mod stored;
#[cfg(feature = "axum")]
pub mod webhook;

/// Shared with the program `hapax`; no part of what this crate promises.
#[doc(hidden)]
pub use body::drain;
pub use body::{AnswerBody, BoxError, GuardBody};
pub use guard::{Guard, GuardProblem};
pub use keep::{GuardedRun, Keep, MayBeCut, Why};
pub use layer::{Answering, IdempotencyLayer, Idempotent};
pub use lease::RunLease;
pub use observe::{Observer, Verdict};
pub use principal::{Principal, SharedScope};

/// The rules: policies, presets, times.
pub use hapax_ledger as ledger;
/// The stores.
pub use hapax_store as store;

/// The code of the guide compiles.
#[cfg(all(doctest, feature = "axum"))]
#[doc = include_str!("../../../docs/guide/guard-in-rust.md")]
mod guide {}

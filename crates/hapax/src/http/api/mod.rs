//! `/api/v1`: the ledger for operators and programs; and the pages that say how the server is.
//!
//! - [`effect`]: effects, one effect with its attempts
//! - [`event`]: events, one event, its bytes; `progress`: what its effects say about it
//! - [`source`]: sources and what they refused
//! - `list`: what lists look like
//! - [`ops`]: `/healthz`, `/readyz`, `/metrics`

pub mod effect;
pub mod event;
pub mod list;
pub mod ops;
mod progress;
pub mod source;

use std::sync::Arc;

use arc_swap::ArcSwap;
use axum::response::IntoResponse;
use axum::routing::get;
use axum::{Router, middleware};
use hapax_store::Store;

use super::answer::{self, problem};
use super::auth;
use crate::inbox::Inbox;
use crate::metrics::Metrics;

/// What the API works on.
#[derive(Clone)]
pub struct Api {
    /// The ledger.
    pub store: Arc<dyn Store>,
    /// The inbound door.
    pub inbox: Arc<Inbox>,
    /// What is counted.
    pub metrics: Arc<Metrics>,
    token_hash: Arc<ArcSwap<[u8; 32]>>,
}

impl Api {
    /// An API that asks for the token with this hash.
    pub fn new(
        store: Arc<dyn Store>,
        inbox: Arc<Inbox>,
        metrics: Arc<Metrics>,
        token_hash: [u8; 32],
    ) -> Api {
        Api {
            store,
            inbox,
            metrics,
            token_hash: Arc::new(ArcSwap::from_pointee(token_hash)),
        }
    }

    /// The hash of the token that is asked for.
    pub fn token_hash(&self) -> [u8; 32] {
        **self.token_hash.load()
    }

    /// Asks for another token from now on.
    pub fn set_token_hash(&self, hash: [u8; 32]) {
        self.token_hash.store(Arc::new(hash));
    }
}

/// All routes but the inbox's.
pub fn router(api: Api) -> Router {
    let guarded = Router::new()
        .route("/event", get(event::list))
        .route("/event/{id}", get(event::show))
        .route("/event/{id}/body", get(event::body))
        .route("/effect", get(effect::list))
        .route("/effect/{id}", get(effect::show))
        .route("/source", get(source::list))
        .route("/source/{name}/refused", get(source::refused))
        .fallback(nothing_here)
        .method_not_allowed_fallback(wrong_method)
        .layer(middleware::from_fn_with_state(api.clone(), auth::require));
    Router::new()
        .nest("/api/v1", guarded)
        .route("/healthz", get(ops::healthz))
        .route("/readyz", get(ops::readyz))
        .route("/metrics", get(ops::metrics))
        .fallback(nothing_here)
        .method_not_allowed_fallback(wrong_method)
        .with_state(api)
}

async fn nothing_here() -> impl IntoResponse {
    problem(answer::NOT_FOUND)
}

async fn wrong_method() -> impl IntoResponse {
    problem(answer::METHOD)
}

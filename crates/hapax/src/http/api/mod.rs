//! `/api/v1`: the ledger for operators and programs; and the pages that say how the server is.
//!
//! - [`effect`]: effects, one effect with its attempts
//! - [`event`]: events, one event, its bytes; `progress`: what its effects say about it; `run`: passes over it
//! - [`verdict`]: what would happen if somebody acted now
//! - [`timeline`]: what happened
//! - [`act`]: what operators decide
//! - [`replay`]: replays of many events
//! - [`own`]: the ledger for the user's own code
//! - [`token`]: API tokens; [`audit`]: who decided what
//! - [`source`]: sources and what they refused; [`keys`]: what the ledger tells about their keys
//! - `list`: what lists look like
//! - [`posted`]: requests that change something; `body`: their JSON, read strictly
//! - [`ops`]: `/healthz`, `/readyz`, `/metrics`

pub mod act;
pub mod audit;
mod body;
pub mod effect;
pub mod event;
pub mod keys;
pub mod list;
pub mod ops;
pub mod own;
pub mod posted;
mod progress;
pub mod replay;
mod run;
pub mod source;
pub mod timeline;
pub mod token;
pub mod verdict;

use std::sync::Arc;

use axum::response::IntoResponse;
use axum::routing::{get, post};
use axum::{Router, middleware};
use hapax_store::Store;

use super::answer::{self, problem};
use super::auth;
use crate::inbox::Inbox;
use crate::metrics::Metrics;
use crate::operate::Operator;
use crate::operate::replays::Replays;
use crate::operate::tokens::Tokens;

/// What the API works on.
#[derive(Clone)]
pub struct Api {
    /// The ledger.
    pub store: Arc<dyn Store>,
    /// The inbound door.
    pub inbox: Arc<Inbox>,
    /// Carries out what operators decide.
    pub operator: Operator,
    /// Carries replays on.
    pub replays: Arc<Replays>,
    /// Who may ask.
    pub tokens: Arc<Tokens>,
    /// What is counted.
    pub metrics: Arc<Metrics>,
}

/// All routes but the inbox's.
pub fn router(api: Api) -> Router {
    let guarded = ledger()
        .merge(admins())
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

/// Looking needs a viewer, deciding an operator: [`auth::require`] tells them apart by the method.
fn ledger() -> Router<Api> {
    Router::new()
        .route("/event", get(event::list))
        .route("/event/{id}", get(event::show))
        .route("/event/{id}/body", get(event::body))
        .route("/event/{id}/verdict", get(verdict::show))
        .route("/event/{id}/timeline", get(timeline::show))
        .route("/event/{id}/retry", post(act::retry))
        .route("/event/{id}/replay", post(act::replay))
        .route("/event/{id}/reconcile", post(act::reconcile))
        .route("/event/{id}/review", post(act::review))
        .route("/event/{id}/conflict/{number}", post(act::conflict))
        .route(
            "/event/{id}/conflict/{number}/body",
            get(verdict::conflict_body),
        )
        .route("/effect", get(effect::list))
        .route("/effect/{id}", get(effect::show))
        .route("/effect/{id}/resolve", post(act::resolve))
        .route("/effect/claim", post(own::claim))
        .route("/effect/{id}/extend", post(own::extend))
        .route("/effect/{id}/settle", post(own::settle))
        .route("/replay", get(replay::list).post(replay::start))
        .route("/replay/{id}", get(replay::show))
        .route("/replay/{id}/cancel", post(replay::cancel))
        .route("/source", get(source::list))
        .route("/source/{name}/audit", get(keys::audit))
        .route("/source/{name}/refused", get(source::refused))
}

/// What needs an admin.
fn admins() -> Router<Api> {
    Router::new()
        .route("/token", get(token::list).post(token::create))
        .route("/token/{id}/revoke", post(token::revoke))
        .route("/audit", get(audit::list))
        .route_layer(middleware::from_fn(auth::admins_only))
}

async fn nothing_here() -> impl IntoResponse {
    problem(answer::NOT_FOUND)
}

async fn wrong_method() -> impl IntoResponse {
    problem(answer::METHOD)
}

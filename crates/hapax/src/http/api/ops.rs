//! How the server is.

use axum::extract::State;
use axum::response::IntoResponse;
use http::StatusCode;
use serde_json::json;

use super::Api;
use crate::http::answer::{self, problem, with_type};

/// The process runs.
pub async fn healthz() -> impl IntoResponse {
    answer::json(StatusCode::OK, &json!({ "status": "ok" }))
}

/// A commit goes through.
pub async fn readyz(State(api): State<Api>) -> impl IntoResponse {
    match api.store.ready().await {
        Ok(()) => answer::json(StatusCode::OK, &json!({ "status": "ready" })),
        Err(error) => {
            tracing::warn!(%error, "not ready");
            problem(answer::UNAVAILABLE)
        }
    }
}

/// Everything that is counted.
pub async fn metrics(State(api): State<Api>) -> impl IntoResponse {
    with_type(
        StatusCode::OK,
        "application/openmetrics-text; version=1.0.0; charset=utf-8",
        api.metrics.text(),
    )
}

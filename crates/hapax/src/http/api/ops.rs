//! How the server is.

use axum::extract::State;
use axum::response::IntoResponse;
use http::StatusCode;
use serde::Serialize;
use utoipa::ToSchema;

use super::Api;
use super::describe::told;
use crate::http::answer::{self, problem, with_type};

/// How the server is.
#[derive(Serialize, ToSchema)]
#[schema(as = Health)]
struct HealthBody {
    status: &'static str,
}

/// The process runs.
#[utoipa::path(get, path = "/healthz", operation_id = "getHealth", tag = "operations",
    responses((status = OK, description = "it does", body = HealthBody)))]
pub async fn healthz() -> impl IntoResponse {
    answer::json(StatusCode::OK, &HealthBody { status: "ok" })
}

/// A commit goes through.
#[utoipa::path(get, path = "/readyz", operation_id = "getReadiness", tag = "operations",
    responses(
        (status = OK, description = "it does", body = HealthBody),
        (status = SERVICE_UNAVAILABLE, description = "it does not", body = told::Problem)))]
pub async fn readyz(State(api): State<Api>) -> impl IntoResponse {
    match api.store.ready().await {
        Ok(()) => answer::json(StatusCode::OK, &HealthBody { status: "ready" }),
        Err(error) => {
            tracing::warn!(%error, "not ready");
            problem(answer::UNAVAILABLE)
        }
    }
}

/// Everything that is counted.
#[utoipa::path(get, path = "/metrics", operation_id = "getMetrics", tag = "operations",
    responses((status = OK, description = "OpenMetrics", body = String, content_type = "application/openmetrics-text")))]
pub async fn metrics(State(api): State<Api>) -> impl IntoResponse {
    with_type(
        StatusCode::OK,
        "application/openmetrics-text; version=1.0.0; charset=utf-8",
        api.metrics.text(),
    )
}

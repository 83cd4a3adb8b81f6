//! How the way to an endpoint is: its breaker, how late it is, what it may take.

use axum::extract::{Path, State};
use axum::response::IntoResponse;
use http::StatusCode;
use serde::Serialize;
use utoipa::ToSchema;

use super::change;
use super::halt::Outcome;
use crate::http::answer;
use crate::http::api::Api;
use crate::http::api::describe::{value, value_outbox};
use crate::http::api::lane;

/// How the way to an endpoint is.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = EndpointLane)]
struct LaneBody {
    /// `closed`: all is well; `open`: only failures came back, and nothing is sent for a while; `trying`: one request at a time, to see
    /// whether it is back; `elsewhere`: another node sends to it, and knows.
    #[schema(schema_with = value_outbox::breaker)]
    breaker: &'static str,
    /// Until when nothing is sent, if the breaker is open.
    #[schema(schema_with = value::time_or_null)]
    open_until: Option<String>,
    /// Failures in a row.
    failures: u32,
    /// Requests under way.
    sending: u32,
    /// Deliveries that wait for their time; at most 10000 are counted.
    pending: u64,
    /// For how long the earliest of them has been due; 0 if none is.
    lag_seconds: u64,
    /// Requests a second at most; null: no limit.
    rate: Option<u32>,
    /// Requests at a time at most; 0 while nothing is sent to it.
    concurrency: u32,
}

/// How the way to an endpoint is, as this node sees it.
#[utoipa::path(get, path = "/app/{app_id}/endpoint/{endpoint_id}/lane", operation_id = "getEndpointLane", tag = "endpoints",
    params(("app_id" = String, Path, description = "the application's id or uid"),
        ("endpoint_id" = String, Path, description = "the endpoint's id or uid")),
    responses((status = OK, description = "how it is", body = LaneBody)))]
pub async fn show(
    State(api): State<Api>,
    Path((app, name)): Path<(String, String)>,
) -> impl IntoResponse {
    let endpoint = change::find_endpoint(&api, &app, &name).await?;
    let (pending, sending) = api.store.waiting(endpoint.id).await?;
    let name = endpoint.id.to_string();
    let (shown, caps) = (api.dispatcher.shown(&name), api.dispatcher.caps(&name));
    let (breaker, open_until) = lane::breaker(shown.map(|shown| shown.breaker));
    let body = LaneBody {
        breaker,
        open_until,
        failures: shown.map_or(0, |shown| shown.failures),
        sending: u32::try_from(sending).unwrap_or(u32::MAX),
        pending,
        lag_seconds: shown
            .and_then(|shown| shown.late)
            .map_or(0, |late| late.as_secs()),
        rate: endpoint.throttle_rate,
        concurrency: caps.map_or(0, |caps| caps.concurrency),
    };
    Outcome::Ok(answer::json(StatusCode::OK, &body))
}

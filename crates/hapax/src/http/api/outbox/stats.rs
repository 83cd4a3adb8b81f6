//! What deliveries to an endpoint came to.

use axum::extract::{Path, RawQuery, State};
use axum::response::IntoResponse;
use hapax_ledger::time::{Span, Time};
use hapax_store::nouns::Tally;
use http::StatusCode;
use serde::Serialize;
use utoipa::ToSchema;

use super::change;
use super::halt::{Halt, Outcome};
use crate::clock;
use crate::http::answer;
use crate::http::api::Api;
use crate::http::api::describe::asked_of_outbox::SpanQuery;
use crate::http::api::list::{self, Invalid};

/// Figures go back so far unless told.
const BACK: Span = Span::from_days(28);

/// Deliveries by where they stand.
#[derive(Serialize, ToSchema)]
#[schema(as = EndpointStats)]
struct StatsBody {
    /// Got through.
    success: u64,
    /// Wait for their time; at most 10000 are counted.
    pending: u64,
    /// Are under way.
    sending: u64,
    /// Were given up.
    fail: u64,
    /// Always 0: what was skipped is not counted.
    canceled: u64,
}

/// Attempts by how they ended.
#[derive(Serialize, ToSchema)]
#[schema(as = EndpointAttemptStats)]
struct AttemptStatsBody {
    success: u64,
    fail: u64,
    canceled: u64,
}

/// From when to when. Figures are by the hour.
fn span(query: Option<&str>) -> Result<(Time, Time), Halt> {
    let (mut since, mut until) = (None, None);
    for (name, value) in form_urlencoded::parse(query.unwrap_or_default().as_bytes()) {
        let found = list::time(&name, &value);
        let place = match &*name {
            "since" => &mut since,
            "until" => &mut until,
            _ => return Err(Invalid::query(&name, "there is no such parameter").into()),
        };
        let unknown = || Invalid::query(&name, "a time is expected");
        *place = Some(found.map_err(|told| told.unwrap_or_else(unknown))?);
    }
    let until = until.unwrap_or_else(clock::now);
    Ok((since.unwrap_or(until - BACK), until))
}

async fn tallies(
    api: &Api,
    app: &str,
    name: &str,
    query: Option<&str>,
) -> Result<(Tally, u64, u64), Halt> {
    let (since, until) = span(query)?;
    let endpoint = change::find_endpoint(api, app, name).await?.id;
    let mut sum = Tally::of(since);
    for tally in api.store.tallies(endpoint, since, until).await? {
        sum.done += tally.done;
        sum.failed += tally.failed;
        sum.dead += tally.dead;
    }
    let (pending, sending) = api.store.waiting(endpoint).await?;
    Ok((sum, pending, sending))
}

/// Deliveries to an endpoint by where they stand.
#[utoipa::path(get, path = "/app/{app_id}/endpoint/{endpoint_id}/stats", operation_id = "getEndpointStats", tag = "endpoints",
    params(("app_id" = String, Path, description = "the application's id or uid"),
        ("endpoint_id" = String, Path, description = "the endpoint's id or uid"), SpanQuery),
    responses((status = OK, description = "the figures", body = StatsBody)))]
pub async fn deliveries(
    State(api): State<Api>,
    Path((app, name)): Path<(String, String)>,
    RawQuery(query): RawQuery,
) -> impl IntoResponse {
    let (sum, pending, sending) = tallies(&api, &app, &name, query.as_deref()).await?;
    let body = StatsBody {
        success: sum.done,
        pending,
        sending,
        fail: sum.dead,
        canceled: 0,
    };
    Outcome::Ok(answer::json(StatusCode::OK, &body))
}

/// Attempts at an endpoint by how they ended.
#[utoipa::path(get, path = "/app/{app_id}/endpoint/{endpoint_id}/attempt-stats", operation_id = "getEndpointAttemptStats", tag = "endpoints",
    params(("app_id" = String, Path, description = "the application's id or uid"),
        ("endpoint_id" = String, Path, description = "the endpoint's id or uid"), SpanQuery),
    responses((status = OK, description = "the figures", body = AttemptStatsBody)))]
pub async fn attempts(
    State(api): State<Api>,
    Path((app, name)): Path<(String, String)>,
    RawQuery(query): RawQuery,
) -> impl IntoResponse {
    let (sum, ..) = tallies(&api, &app, &name, query.as_deref()).await?;
    let body = AttemptStatsBody {
        success: sum.done,
        fail: sum.failed,
        canceled: 0,
    };
    Outcome::Ok(answer::json(StatusCode::OK, &body))
}

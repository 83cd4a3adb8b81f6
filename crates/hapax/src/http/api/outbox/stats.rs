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
use crate::http::api::describe::value;
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

/// What attempts came to in one hour.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = EndpointHour)]
struct HourBody {
    /// When it began.
    #[schema(schema_with = value::time)]
    hour: String,
    /// Attempts that got through.
    success: u64,
    /// Attempts that did not.
    fail: u64,
    /// Deliveries that were given up.
    given_up: u64,
}

/// The figures of an endpoint, and how they came about.
#[derive(Serialize, ToSchema)]
#[schema(as = EndpointHistory)]
struct HistoryBody {
    deliveries: StatsBody,
    attempts: AttemptStatsBody,
    /// Hours in which something happened, oldest first.
    hours: Vec<HourBody>,
}

/// The hour that a time is in counts as a whole: what happened before it is told with it, and what happened after it is not left out.
pub(super) fn beginning_of_hour(time: Time) -> Time {
    let hour = Span::from_hours(1).micros();
    Time::from_micros(time.micros().div_euclid(hour) * hour)
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
    let since = since.map(beginning_of_hour);
    Ok((since.unwrap_or(until - BACK), until))
}

/// What is known of an endpoint within a span.
struct Figures {
    hours: Vec<Tally>,
    pending: u64,
    sending: u64,
}

impl Figures {
    async fn read(api: &Api, app: &str, name: &str, query: Option<&str>) -> Result<Figures, Halt> {
        let (since, until) = span(query)?;
        let endpoint = change::find_endpoint(api, app, name).await?.id;
        let hours = api.store.tallies(endpoint, since, until).await?;
        let (pending, sending) = api.store.waiting(endpoint).await?;
        Ok(Figures {
            hours,
            pending,
            sending,
        })
    }

    fn deliveries(&self) -> StatsBody {
        StatsBody {
            success: self.hours.iter().map(|tally| tally.done).sum(),
            pending: self.pending,
            sending: self.sending,
            fail: self.hours.iter().map(|tally| tally.dead).sum(),
            canceled: 0,
        }
    }

    fn attempts(&self) -> AttemptStatsBody {
        AttemptStatsBody {
            success: self.hours.iter().map(|tally| tally.done).sum(),
            fail: self.hours.iter().map(|tally| tally.failed).sum(),
            canceled: 0,
        }
    }
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
    let figures = Figures::read(&api, &app, &name, query.as_deref()).await?;
    Outcome::Ok(answer::json(StatusCode::OK, &figures.deliveries()))
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
    let figures = Figures::read(&api, &app, &name, query.as_deref()).await?;
    Outcome::Ok(answer::json(StatusCode::OK, &figures.attempts()))
}

/// Both of an endpoint, and hour by hour what came of its attempts.
#[utoipa::path(get, path = "/app/{app_id}/endpoint/{endpoint_id}/history", operation_id = "getEndpointHistory", tag = "endpoints",
    params(("app_id" = String, Path, description = "the application's id or uid"),
        ("endpoint_id" = String, Path, description = "the endpoint's id or uid"), SpanQuery),
    responses((status = OK, description = "the figures", body = HistoryBody)))]
pub async fn history(
    State(api): State<Api>,
    Path((app, name)): Path<(String, String)>,
    RawQuery(query): RawQuery,
) -> impl IntoResponse {
    let figures = Figures::read(&api, &app, &name, query.as_deref()).await?;
    let hour = |tally: &Tally| HourBody {
        hour: clock::text(tally.hour),
        success: tally.done,
        fail: tally.failed,
        given_up: tally.dead,
    };
    let body = HistoryBody {
        deliveries: figures.deliveries(),
        attempts: figures.attempts(),
        hours: figures.hours.iter().map(hour).collect(),
    };
    Outcome::Ok(answer::json(StatusCode::OK, &body))
}

//! `GET /lane`: lanes that are left alone for a while, since only failures come back.

use axum::extract::State;
use axum::response::IntoResponse;
use hapax_ledger::time::Span;
use http::StatusCode;
use serde::Serialize;
use utoipa::ToSchema;

use super::Api;
use super::describe::{value, value_outbox};
use super::list::DataBody;
use crate::clock;
use crate::dispatch::breaker::Allowed;
use crate::dispatch::lane::ShownLane;
use crate::http::answer;

/// Lanes that are told of. Where more are broken, it is not the lanes.
const LANES_MAX: usize = 100;

/// A lane that is in trouble.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = BrokenLane)]
struct LaneBody {
    /// An effect's lane, or an endpoint.
    lane: String,
    /// `open`: only failures came back, and nothing is sent for a while; `trying`: one request at a time, to see whether it is back.
    #[schema(schema_with = value_outbox::breaker)]
    breaker: &'static str,
    /// Until when nothing is sent, if the breaker is open.
    #[schema(schema_with = value::time_or_null)]
    open_until: Option<String>,
    /// Failures in a row.
    failures: u32,
    /// Requests under way.
    sending: u32,
    /// For how long the earliest that waits has been due; 0 if nothing is.
    lag_seconds: u64,
}

/// Lanes that this node looks after and whose breaker is not closed, those with the most failures first; 100 at most.
#[utoipa::path(get, path = "/lane", operation_id = "listBrokenLanes", tag = "effects",
    responses((status = OK, description = "lanes in trouble", body = DataBody<LaneBody>)))]
pub async fn list(State(api): State<Api>) -> impl IntoResponse {
    let broken = api.dispatcher.broken(LANES_MAX);
    let body = |(lane, shown): (std::sync::Arc<str>, ShownLane)| {
        let (breaker, open_until) = breaker(Some(shown.breaker));
        LaneBody {
            lane: lane.to_string(),
            breaker,
            open_until,
            failures: shown.failures,
            sending: shown.in_flight,
            lag_seconds: shown.late.map_or(0, |late| late.as_secs()),
        }
    };
    let data = broken.into_iter().map(body).collect();
    answer::json(StatusCode::OK, &DataBody { data })
}

/// A breaker in a word, and until when it is open. One that is not here is another node's.
pub(super) fn breaker(allowed: Option<Allowed>) -> (&'static str, Option<String>) {
    match allowed {
        None => ("elsewhere", None),
        Some(Allowed::All) => ("closed", None),
        Some(Allowed::One) => ("trying", None),
        Some(Allowed::NothingUntil(until)) => {
            let wait = until.saturating_duration_since(clock::tick());
            let micros = i64::try_from(wait.as_micros()).unwrap_or(i64::MAX);
            let until = clock::text(clock::now() + Span::from_micros(micros));
            ("open", Some(until))
        }
    }
}

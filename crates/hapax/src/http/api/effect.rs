//! Effects: lists, and one effect with its attempts.

use axum::extract::{Path, RawQuery, State};
use axum::response::IntoResponse;
use hapax_ledger::effect::EffectState;
use hapax_ledger::id::EffectId;
use hapax_ledger::outcome::Outcome;
use hapax_store::nouns::{Attempt, Effect, EffectDetail, EffectFilter};
use http::StatusCode;
use serde::Serialize;
use utoipa::ToSchema;

use super::Api;
use super::describe::asked::EffectQuery;
use super::describe::value;
use super::event::unavailable;
use super::list::{self, Asked, Invalid, ListBody};
use crate::clock::text as time_text;
use crate::http::answer::{self, problem};

/// An effect as users see it.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Effect)]
pub struct EffectBody {
    #[schema(schema_with = value::effect_id)]
    id: String,
    #[schema(schema_with = value::event_id)]
    event_id: String,
    name: String,
    key: String,
    #[schema(schema_with = value::repeat)]
    repeat: &'static str,
    #[schema(schema_with = value::state)]
    state: &'static str,
    attempt_count: u32,
    #[schema(schema_with = value::time_or_null)]
    next_attempt_at: Option<String>,
    last_outcome: Option<String>,
    lane: String,
    generation: u32,
    #[schema(schema_with = value::skip_reason_or_null)]
    skip_reason: Option<&'static str>,
    /// `open`, `waiting` (for others) or `review` (for a person), while it is pending.
    #[schema(schema_with = value::gate_or_null)]
    gate: Option<&'static str>,
    entity: Option<String>,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = EffectDetail)]
struct DetailBody {
    #[serde(flatten)]
    effect: EffectBody,
    /// Every event that calls for it, the first one first.
    event_ids: Vec<String>,
    attempts: Vec<AttemptBody>,
    /// The snapshot that goes along, as text.
    snapshot: Option<String>,
}

/// One attempt as users see it.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Attempt)]
pub struct AttemptBody {
    generation: u32,
    number: u32,
    fence: u64,
    node: String,
    #[schema(schema_with = value::time)]
    started_at: String,
    #[schema(schema_with = value::time)]
    ended_at: String,
    outcome: String,
    status: Option<u16>,
    error: Option<String>,
    response: Option<String>,
    response_bytes: Option<u64>,
    /// What its worker said after somebody else had taken over.
    late_outcome: Option<String>,
    #[schema(schema_with = value::time_or_null)]
    late_at: Option<String>,
}

/// Effects, newest first.
#[utoipa::path(get, path = "/effect", operation_id = "listEffects", tag = "effects",
    params(EffectQuery),
    responses((status = OK, description = "a page", body = ListBody<EffectBody>)))]
pub async fn list(State(api): State<Api>, RawQuery(query): RawQuery) -> impl IntoResponse {
    let asked = match list::parse(
        query.as_deref().unwrap_or(""),
        EffectFilter::default(),
        narrow,
    ) {
        Ok(asked) => asked,
        Err(invalid) => return list::refuse(invalid),
    };
    let Asked { filter, page } = asked;
    match api.store.effects(filter, page).await {
        Ok(listed) => {
            let body = ListBody::new(listed, |effect| effect.id, to_body);
            answer::json(StatusCode::OK, &body)
        }
        Err(error) => unavailable(&error),
    }
}

fn narrow(filter: &mut EffectFilter, name: &str, value: &str) -> Result<(), Option<Invalid>> {
    match name {
        "name" => filter.name = Some(value.to_owned()),
        "source" => filter.source = Some(value.to_owned()),
        "lane" => filter.lane = Some(value.to_owned()),
        "since" => filter.since = Some(list::time(name, value)?),
        "until" => filter.until = Some(list::time(name, value)?),
        "state" => {
            let state = EffectState::from_word(value).ok_or_else(|| {
                Invalid::query(
                    name,
                    "one of pending, claimed, done, uncertain, dead, skipped is expected",
                )
            })?;
            filter.state = Some(state);
        }
        _ => return Err(None),
    }
    Ok(())
}

/// One effect with its attempts.
#[utoipa::path(get, path = "/effect/{id}", operation_id = "getEffect", tag = "effects",
    params(("id" = String, Path, description = "the effect")),
    responses((status = OK, description = "the effect", body = DetailBody)))]
pub async fn show(State(api): State<Api>, Path(id): Path<String>) -> impl IntoResponse {
    let Ok(id) = id.parse::<EffectId>() else {
        return problem(answer::NOT_FOUND);
    };
    match api.store.effect(id).await {
        Ok(Some(detail)) => answer::json(StatusCode::OK, &detail_body(detail)),
        Ok(None) => problem(answer::NOT_FOUND),
        Err(error) => unavailable(&error),
    }
}

fn detail_body(detail: EffectDetail) -> DetailBody {
    DetailBody {
        event_ids: detail.events.iter().map(ToString::to_string).collect(),
        attempts: detail.attempts.into_iter().map(attempt).collect(),
        snapshot: detail
            .snapshot
            .map(|snapshot| String::from_utf8_lossy(&snapshot).into_owned()),
        effect: to_body(detail.effect),
    }
}

/// The effect as users see it.
pub fn to_body(effect: Effect) -> EffectBody {
    let record = effect.record;
    let pending = record.state == EffectState::Pending;
    EffectBody {
        id: effect.id.to_string(),
        event_id: effect.event.to_string(),
        name: effect.name.to_string(),
        key: effect.key,
        repeat: record.repeat.word(),
        state: record.state.word(),
        attempt_count: record.attempts,
        next_attempt_at: pending.then(|| time_text(record.next_attempt_at)),
        last_outcome: effect.last.map(|outcome| outcome.to_string()),
        lane: effect.lane.to_string(),
        generation: record.generation,
        skip_reason: record.skip.map(|reason| reason.word()),
        gate: pending.then(|| effect.gate.word()),
        entity: effect.order.map(|order| order.entity),
    }
}

fn attempt(attempt: Attempt) -> AttemptBody {
    let status = match attempt.outcome {
        Outcome::Answered { status, .. } => Some(status),
        Outcome::NotSent { .. } | Outcome::Lost { .. } | Outcome::Reported(_) => None,
    };
    let (late_at, late_outcome) = attempt.late.map_or((None, None), |(at, outcome)| {
        (Some(time_text(at)), Some(outcome.to_string()))
    });
    AttemptBody {
        generation: attempt.generation,
        number: attempt.number,
        fence: attempt.fence.as_u64(),
        node: attempt.node.to_string(),
        started_at: time_text(attempt.started_at),
        ended_at: time_text(attempt.ended_at),
        outcome: attempt.outcome.to_string(),
        status,
        error: attempt.said.error,
        response: attempt
            .said
            .excerpt
            .map(|excerpt| String::from_utf8_lossy(&excerpt).into_owned()),
        response_bytes: attempt.said.body_bytes,
        late_outcome,
        late_at,
    }
}

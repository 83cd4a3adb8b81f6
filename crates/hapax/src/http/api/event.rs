//! Events: lists, one event with all that hangs on it, and its bytes.

use axum::extract::{Path, RawQuery, State};
use axum::response::IntoResponse;
use bytes::Bytes;
use hapax_ledger::event::EventStatus;
use hapax_store::StoreError;
use hapax_store::nouns::{
    ConflictDecision, Delivery, Event, EventDetail, EventFilter, PayloadAnswer,
};
use http::header::{CONTENT_DISPOSITION, X_CONTENT_TYPE_OPTIONS};
use http::{HeaderValue, StatusCode};
use serde::Serialize;
use utoipa::ToSchema;

use super::Api;
use super::describe::asked::EventQuery;
use super::describe::{told, value};
use super::effect::{self, EffectBody};
use super::list::{self, Asked, Invalid, ListBody};
use super::progress::{self, Progress};
use super::run::{self, RunBody};
use crate::clock::text as time_text;
use crate::http::answer::{self, Answer, problem};

/// An event as users see it. `firstProcessedAt`, `completedAt` and the last error come from the attempts of its effects, which only
/// `GET /event/{id}` reads: in lists they are null, but for the error of an event that waits for a person, which is its own.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Event)]
struct EventBody {
    #[schema(schema_with = value::event_id)]
    id: String,
    source: String,
    r#type: Option<String>,
    key: String,
    #[schema(schema_with = value::key_origin)]
    key_origin: &'static str,
    provider_event_id: Option<String>,
    object_id: Option<String>,
    entity: Option<String>,
    version: Option<String>,
    #[schema(schema_with = value::status)]
    status: &'static str,
    #[schema(schema_with = value::time)]
    received_at: String,
    #[schema(schema_with = value::time_or_null)]
    first_processed_at: Option<String>,
    #[schema(schema_with = value::time_or_null)]
    completed_at: Option<String>,
    last_error_code: Option<String>,
    last_error_message: Option<String>,
    delivery_count: u32,
    duplicate_count: u32,
    conflict_count: u32,
}

#[derive(Serialize, ToSchema)]
#[schema(as = EventDetail)]
struct DetailBody {
    #[serde(flatten)]
    event: EventBody,
    deliveries: Vec<DeliveryBody>,
    effects: Vec<EffectBody>,
    runs: Vec<RunBody>,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Delivery)]
struct DeliveryBody {
    #[schema(schema_with = value::time)]
    at: String,
    #[schema(schema_with = value::delivery_outcome)]
    outcome: &'static str,
    scheme: String,
    secret_index: Option<u8>,
    #[schema(schema_with = value::time_or_null)]
    signed_at: Option<String>,
    body_hash: String,
    conflict: bool,
    remote: Option<String>,
    /// Its number, by which a conflict is named; the first is 0.
    number: u32,
    /// What somebody decided about another body: `acknowledged` or `promoted`.
    decided: Option<&'static str>,
    #[schema(schema_with = value::event_id_or_null)]
    promoted_to: Option<String>,
}

/// Events, newest first.
#[utoipa::path(get, path = "/event", operation_id = "listEvents", tag = "events",
    params(EventQuery),
    responses((status = OK, description = "a page", body = ListBody<EventBody>)))]
pub async fn list(State(api): State<Api>, RawQuery(query): RawQuery) -> impl IntoResponse {
    let asked = match list::parse(
        query.as_deref().unwrap_or(""),
        EventFilter::default(),
        narrow,
    ) {
        Ok(asked) => asked,
        Err(invalid) => return list::refuse(invalid),
    };
    let Asked { filter, page } = asked;
    match api.store.events(filter, page).await {
        Ok(listed) => {
            let body = ListBody::new(
                listed,
                |event| event.id,
                |event| to_body(event, Progress::default()),
            );
            answer::json(StatusCode::OK, &body)
        }
        Err(error) => unavailable(&error),
    }
}

/// Takes one filter of a query; `Err(None)` if there is none of that name.
pub(super) fn narrow(
    filter: &mut EventFilter,
    name: &str,
    value: &str,
) -> Result<(), Option<Invalid>> {
    match name {
        "source" => filter.source = Some(value.to_owned()),
        "type" => filter.event_type = Some(value.to_owned()),
        "key" => filter.key = Some(value.to_owned()),
        "keyContains" => filter.key_contains = Some(value.to_owned()),
        "entity" => filter.entity = Some(value.to_owned()),
        "since" => filter.since = Some(list::time(name, value)?),
        "until" => filter.until = Some(list::time(name, value)?),
        "status" => {
            let status = EventStatus::from_word(value).ok_or_else(|| {
                Invalid::query(
                    name,
                    "one of pending, in_progress, completed, needs_review, dead, stale is expected",
                )
            })?;
            filter.status = Some(status);
        }
        _ => return Err(None),
    }
    Ok(())
}

/// One event with all that hangs on it.
#[utoipa::path(get, path = "/event/{id}", operation_id = "getEvent", tag = "events",
    params(("id" = String, Path, description = "the event")),
    responses((status = OK, description = "the event", body = DetailBody)))]
pub async fn show(State(api): State<Api>, Path(id): Path<String>) -> impl IntoResponse {
    let Ok(id) = id.parse() else {
        return problem(answer::NOT_FOUND);
    };
    match api.store.event(id).await {
        Ok(Some(detail)) => match progress::of(&*api.store, &detail).await {
            Ok(progress) => answer::json(StatusCode::OK, &detail_body(detail, progress)),
            Err(error) => unavailable(&error),
        },
        Ok(None) => problem(answer::NOT_FOUND),
        Err(error) => unavailable(&error),
    }
}

/// The bytes as they came.
///
/// Never as a page: whatever type the sender named, a browser saves it.
#[utoipa::path(get, path = "/event/{id}/body", operation_id = "getEventBody", tag = "events",
    params(("id" = String, Path, description = "the event")),
    responses(
        (status = OK, description = "the bytes", body = Value, content_type = "*/*"),
        (status = GONE, description = "they have been deleted", body = told::Problem)))]
pub async fn body(State(api): State<Api>, Path(id): Path<String>) -> impl IntoResponse {
    let Ok(id) = id.parse() else {
        return problem(answer::NOT_FOUND);
    };
    match api.store.payload(id).await {
        Ok(PayloadAnswer::Kept(payload)) => attached(payload.content_type.as_deref(), payload.body),
        Ok(PayloadAnswer::Reaped) => problem(answer::REAPED),
        Ok(PayloadAnswer::NoEvent) => problem(answer::NOT_FOUND),
        Err(error) => unavailable(&error),
    }
}

/// Bytes as they came, to be saved.
pub(super) fn attached(content_type: Option<&str>, body: Bytes) -> Answer {
    let content_type = content_type.unwrap_or("application/octet-stream");
    let mut answer = answer::with_type(StatusCode::OK, content_type, body);
    let headers = answer.headers_mut();
    headers.insert(CONTENT_DISPOSITION, HeaderValue::from_static("attachment"));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    answer
}

/// The store could not answer.
pub fn unavailable(error: &StoreError) -> Answer {
    tracing::warn!(%error, "the store could not answer");
    problem(answer::failed(error.kind()))
}

fn detail_body(detail: EventDetail, progress: Progress) -> DetailBody {
    DetailBody {
        runs: run::bodies(&detail.event, detail.runs),
        event: to_body(detail.event, progress),
        deliveries: detail.deliveries.into_iter().map(delivery).collect(),
        effects: detail.effects.into_iter().map(effect::to_body).collect(),
    }
}

/// An event as a row of the list, as JSON.
pub(super) fn row(event: Event) -> String {
    // Nothing in it that JSON could not say.
    serde_json::to_string(&to_body(event, Progress::default())).unwrap_or_default()
}

fn to_body(event: Event, progress: Progress) -> EventBody {
    let review = event
        .review
        .map(|review| (review.code, Some(review.message)));
    let (code, message) = review.or(progress.last_error).unzip();
    EventBody {
        id: event.id.to_string(),
        source: event.source.to_string(),
        r#type: event.event_type,
        key: event.key,
        key_origin: event.key_origin.word(),
        provider_event_id: event.provider_event_id,
        object_id: event.object_id,
        entity: event.entity,
        version: event.version,
        status: event.status.word(),
        received_at: time_text(event.received_at),
        first_processed_at: progress.first_processed_at.map(time_text),
        completed_at: progress.completed_at.map(time_text),
        last_error_code: code,
        last_error_message: message.flatten(),
        delivery_count: event.delivery_count,
        duplicate_count: event.duplicate_count,
        conflict_count: event.conflict_count,
    }
}

fn delivery(delivery: Delivery) -> DeliveryBody {
    let (decided, promoted_to) = match delivery.decided {
        None => (None, None),
        Some(ConflictDecision::Acknowledged) => (Some("acknowledged"), None),
        Some(ConflictDecision::Promoted(event)) => (Some("promoted"), Some(event.to_string())),
    };
    DeliveryBody {
        at: time_text(delivery.at),
        outcome: delivery.outcome.word(),
        scheme: delivery.proof.scheme.to_string(),
        secret_index: delivery.proof.secret_index,
        signed_at: delivery.proof.signed_at.map(time_text),
        body_hash: delivery.body_hash.to_string(),
        conflict: delivery.conflict,
        remote: delivery.proof.remote.map(|remote| remote.to_string()),
        number: delivery.number,
        decided,
        promoted_to,
    }
}

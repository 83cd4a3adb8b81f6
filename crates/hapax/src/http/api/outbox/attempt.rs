//! Attempts: what came back from endpoints.

use axum::extract::{Path, RawQuery, State};
use axum::response::IntoResponse;
use hapax_ledger::id::{AttemptId, EndpointId, MessageId};
use hapax_store::nouns::{Deliveries, Listed, Page, PageFrom, PostedFilter, Tried};
use http::StatusCode;
use serde::Serialize;
use utoipa::ToSchema;

use super::attempt_query::{Place, Wanted, narrow};
use super::change;
use super::halt::{Halt, Outcome};
use super::message;
use super::message_body::{self, MessageBody};
use super::status::{Status, is_manual, status_code};
use crate::clock::text as time_text;
use crate::http::answer;
use crate::http::api::Api;
use crate::http::api::describe::asked_of_outbox::{
    AttemptsOfEndpointQuery, AttemptsOfMessageQuery, ExpandedQuery,
};
use crate::http::api::describe::{value, value_outbox};
use crate::http::api::list::{self, Asked, Invalid, ListBody};

/// Pages of the store that are looked through for one of ours, where most rows do not fit: an iterator goes on from there.
const LOOKS_MAX: usize = 8;
/// Rows that are looked at in a row.
const LOOK: u32 = 250;

/// An attempt as users see it.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = MessageAttempt)]
struct AttemptBody {
    #[schema(schema_with = value_outbox::attempt_id)]
    id: String,
    #[schema(schema_with = value_outbox::message_id)]
    msg_id: String,
    #[schema(schema_with = value_outbox::endpoint_id)]
    endpoint_id: String,
    /// Where the endpoint is now; empty if it is gone.
    url: String,
    /// The beginning of what came back.
    response: String,
    /// 0: nothing came back.
    response_status_code: u16,
    response_duration_ms: i64,
    #[schema(schema_with = value_outbox::message_status)]
    status: u8,
    #[schema(schema_with = value_outbox::message_status_text)]
    status_text: &'static str,
    /// 0: by the schedule; 1: by somebody's wish.
    #[schema(schema_with = value_outbox::trigger_type)]
    trigger_type: u8,
    #[schema(schema_with = value::time)]
    timestamp: String,
    /// How it ended, in the words of the ledger.
    outcome: String,
    /// The message, if it was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    msg: Option<MessageBody>,
}

fn id_of(tried: &Tried) -> AttemptId {
    let attempt = &tried.attempt;
    AttemptId::of(tried.posted.effect.id, attempt.fence, attempt.started_at)
}

fn to_body(api: &Api, tried: &Tried, msg: Option<MessageBody>) -> AttemptBody {
    let (effect, attempt) = (&tried.posted.effect, &tried.attempt);
    let status = Status::of_attempt(attempt);
    let endpoint = effect.name.parse::<EndpointId>().ok();
    let catalog = api.publisher.registry.catalog();
    let endpoint = endpoint.and_then(|id| catalog.endpoint_by_id(id));
    let said = &attempt.said;
    let response = said
        .excerpt
        .as_ref()
        .map(|text| String::from_utf8_lossy(text).into_owned());
    AttemptBody {
        id: id_of(tried).to_string(),
        msg_id: MessageId(effect.event.0).to_string(),
        endpoint_id: effect.name.to_string(),
        url: endpoint
            .map(|endpoint| endpoint.url.clone())
            .unwrap_or_default(),
        response: response.or_else(|| said.error.clone()).unwrap_or_default(),
        response_status_code: status_code(attempt.outcome),
        response_duration_ms: (attempt.ended_at.micros() - attempt.started_at.micros()) / 1_000,
        status: status.code(),
        status_text: status.word(),
        trigger_type: u8::from(is_manual(effect, attempt)),
        timestamp: time_text(attempt.started_at),
        outcome: attempt.outcome.to_string(),
        msg,
    }
}

/// Attempts at an endpoint, newest message first.
#[utoipa::path(get, path = "/app/{app_id}/attempt/endpoint/{endpoint_id}", operation_id = "listAttemptsByEndpoint", tag = "attempts",
    params(("app_id" = String, Path, description = "the application's id or uid"),
        ("endpoint_id" = String, Path, description = "the endpoint's id or uid"), AttemptsOfEndpointQuery),
    responses((status = OK, description = "a page", body = ListBody<AttemptBody>)))]
pub async fn of_endpoint(
    State(api): State<Api>,
    Path((app, name)): Path<(String, String)>,
    RawQuery(query): RawQuery,
) -> impl IntoResponse {
    let endpoint = change::find_endpoint(&api, &app, &name).await?.id;
    let query = query.unwrap_or_default();
    let asked = list::parse(
        &query,
        Wanted::default(),
        |wanted, name, value| match name {
            "endpoint_id" => Err(None),
            _ => narrow(wanted, name, value),
        },
    )?;
    page(&api, Deliveries::To(endpoint), asked).await
}

/// Attempts at a message, to all of its endpoints.
#[utoipa::path(get, path = "/app/{app_id}/attempt/msg/{msg_id}", operation_id = "listAttemptsByMessage", tag = "attempts",
    params(("app_id" = String, Path, description = "the application's id or uid"),
        ("msg_id" = String, Path, description = "the message's id or eventId"), AttemptsOfMessageQuery),
    responses((status = OK, description = "a page", body = ListBody<AttemptBody>)))]
pub async fn of_message(
    State(api): State<Api>,
    Path((app, name)): Path<(String, String)>,
    RawQuery(query): RawQuery,
) -> impl IntoResponse {
    let message = message::find(&api, &app, &name).await?;
    let query = query.unwrap_or_default();
    let mut asked = list::parse(&query, Wanted::default(), narrow)?;
    if let Some(name) = &asked.filter.endpoint {
        let endpoint = change::find_endpoint(&api, &app, name).await?;
        asked.filter.endpoint = Some(endpoint.id.to_string());
    }
    page(&api, Deliveries::Of(message.event.id), asked).await
}

/// Looks at attempts until a page is full, or enough were looked at.
async fn page(api: &Api, which: Deliveries, asked: Asked<Wanted, Place>) -> Outcome {
    let Asked {
        filter: wanted,
        page,
    } = asked;
    let limit = page.limit as usize;
    let backwards = matches!(page.from, PageFrom::NewerThan(_));
    let mut from = page.from;
    let mut found: Vec<Tried> = Vec::new();
    let mut reached = None;
    for _ in 0..LOOKS_MAX {
        let many = if wanted.narrows() { LOOK } else { page.limit };
        let (rows, on) = look(api, &which, &wanted, from, many).await?;
        found.extend(rows.into_iter().filter(|tried| wanted.fits(tried)));
        reached = on;
        if found.len() >= limit {
            break;
        }
        let Some(place) = on else { break };
        from = match backwards {
            true => PageFrom::NewerThan(place),
            false => PageFrom::OlderThan(place),
        };
    }
    if found.len() > limit {
        found.truncate(limit);
        reached = found.last().map(Place::of);
    }
    let (next, newer) = match backwards {
        true => {
            found.reverse();
            // There is always something older: the one this page began after.
            (found.last().map(Place::of).or(reached), reached)
        }
        false => (reached, None),
    };
    let mut rows = Vec::with_capacity(found.len());
    for tried in &found {
        let msg = told(api, tried, &wanted).await?;
        rows.push((Place::of(tried), to_body(api, tried, msg)));
    }
    let listed = Listed { rows, next, newer };
    let body = ListBody::new(listed, |(place, _)| *place, |(_, body)| body);
    Ok(answer::json(StatusCode::OK, &body))
}

/// One look at so many attempts, in the order in which they are gone through, and where to go on, if there is more.
async fn look(
    api: &Api,
    which: &Deliveries,
    wanted: &Wanted,
    from: PageFrom<Place>,
    many: u32,
) -> Result<(Vec<Tried>, Option<Place>), Halt> {
    let page = Page {
        limit: many,
        from: inner(from),
    };
    let filter = PostedFilter {
        message: wanted.filter.clone(),
        states: Vec::new(),
    };
    let listed = api.store.attempts(which.clone(), filter, page).await?;
    let mut rows: Vec<Tried> = listed.rows;
    if !matches!(from, PageFrom::NewerThan(_)) {
        return Ok((rows, listed.next.map(Place)));
    }
    let is_full = rows.len() >= many as usize;
    let newest = rows.first().map(Place::of).filter(|_| is_full);
    rows.reverse();
    Ok((rows, listed.newer.map(Place).or(newest)))
}

fn inner(from: PageFrom<Place>) -> PageFrom<hapax_store::nouns::TriedPlace> {
    match from {
        PageFrom::Newest => PageFrom::Newest,
        PageFrom::OlderThan(place) => PageFrom::OlderThan(place.0),
        PageFrom::NewerThan(place) => PageFrom::NewerThan(place.0),
    }
}

/// The message of an attempt, if it was asked for and is kept.
async fn told(api: &Api, tried: &Tried, wanted: &Wanted) -> Result<Option<MessageBody>, Halt> {
    let Some(message) = tried.posted.message.as_ref().filter(|_| wanted.with_msg) else {
        return Ok(None);
    };
    let payload = message_body::payload(api, message.event.id, wanted.content).await?;
    Ok(Some(message_body::to_body(message, payload)))
}

/// An attempt at a message by its id.
pub(super) async fn find(api: &Api, app: &str, name: &str, id: &str) -> Result<Tried, Halt> {
    let message = message::find(api, app, name).await?;
    let id = id
        .parse::<AttemptId>()
        .map_err(|_| Halt::from(answer::NOT_FOUND))?;
    let mut from = PageFrom::Newest;
    loop {
        let which = Deliveries::Of(message.event.id);
        let page = Page { limit: LOOK, from };
        let listed = api
            .store
            .attempts(which, PostedFilter::default(), page)
            .await?;
        if let Some(found) = listed.rows.into_iter().find(|tried| id_of(tried) == id) {
            return Ok(found);
        }
        match listed.next {
            Some(place) => from = PageFrom::OlderThan(place),
            None => return Err(answer::NOT_FOUND.into()),
        }
    }
}

/// One attempt.
#[utoipa::path(get, path = "/app/{app_id}/msg/{msg_id}/attempt/{attempt_id}", operation_id = "getAttempt", tag = "attempts",
    params(("app_id" = String, Path, description = "the application's id or uid"),
        ("msg_id" = String, Path, description = "the message's id or eventId"),
        ("attempt_id" = String, Path, description = "the attempt"), ExpandedQuery),
    responses((status = OK, description = "the attempt", body = AttemptBody)))]
pub async fn show(
    State(api): State<Api>,
    Path((app, name, id)): Path<(String, String, String)>,
    RawQuery(query): RawQuery,
) -> impl IntoResponse {
    for (name, value) in form_urlencoded::parse(query.unwrap_or_default().as_bytes()) {
        let told = match &*name {
            "expanded_statuses" => super::page::flag(&name, &value),
            _ => Err(None),
        };
        let unknown = || Invalid::query(&name, "there is no such parameter");
        told.map_err(|told| told.unwrap_or_else(unknown))?;
    }
    let tried = find(&api, &app, &name, &id).await?;
    Outcome::Ok(answer::json(StatusCode::OK, &to_body(&api, &tried, None)))
}

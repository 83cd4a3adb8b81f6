//! Events: lists, one event with all that hangs on it, and its bytes.

use std::str::FromStr;

use axum::extract::{Path, RawQuery, State};
use axum::response::IntoResponse;
use hapax_ledger::event::EventStatus;
use hapax_ledger::id::EventId;
use hapax_ledger::time::Time;
use hapax_store::StoreError;
use hapax_store::nouns::{Delivery, Event, EventFilter, PAGE_MAX, Page, PageFrom, PayloadAnswer};
use http::StatusCode;
use serde::Serialize;

use super::Api;
use crate::http::answer::{self, Answer, problem};

/// Rows of a list that does not say how many.
const LIMIT_DEFAULT: u32 = 50;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct EventBody {
    id: String,
    source: String,
    r#type: Option<String>,
    key: String,
    key_origin: &'static str,
    provider_event_id: Option<String>,
    object_id: Option<String>,
    entity: Option<String>,
    version: Option<String>,
    status: &'static str,
    received_at: String,
    first_processed_at: Option<String>,
    completed_at: Option<String>,
    last_error_code: Option<String>,
    last_error_message: Option<String>,
    delivery_count: u32,
    duplicate_count: u32,
    conflict_count: u32,
}

#[derive(Serialize)]
struct DetailBody {
    #[serde(flatten)]
    event: EventBody,
    deliveries: Vec<DeliveryBody>,
    effects: [(); 0],
    runs: [(); 0],
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct DeliveryBody {
    at: String,
    outcome: &'static str,
    scheme: String,
    secret_index: Option<u8>,
    signed_at: Option<String>,
    body_hash: String,
    conflict: bool,
    remote: Option<String>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ListBody {
    data: Vec<EventBody>,
    iterator: Option<String>,
    prev_iterator: Option<String>,
    done: bool,
}

#[derive(Serialize)]
struct InvalidBody {
    detail: [Invalid; 1],
}

/// What is wrong with a request, in the shape that the API's clients know.
#[derive(Debug, Serialize)]
pub struct Invalid {
    loc: [String; 2],
    msg: String,
    r#type: &'static str,
}

/// `GET /event`
pub async fn list(State(api): State<Api>, RawQuery(query): RawQuery) -> impl IntoResponse {
    let (filter, page) = match parse(query.as_deref().unwrap_or("")) {
        Ok(parsed) => parsed,
        Err(invalid) => {
            return answer::json(
                StatusCode::UNPROCESSABLE_ENTITY,
                &InvalidBody { detail: [invalid] },
            );
        }
    };
    match api.store.events(filter, page).await {
        Ok(listed) => {
            let prev_iterator = listed.rows.first().map(|event| format!("-{}", event.id));
            let body = ListBody {
                iterator: listed
                    .next
                    .or(listed.rows.last().map(|event| event.id))
                    .map(|id| id.to_string()),
                prev_iterator,
                done: listed.next.is_none(),
                data: listed.rows.into_iter().map(to_body).collect(),
            };
            answer::json(StatusCode::OK, &body)
        }
        Err(error) => unavailable(&error),
    }
}

/// `GET /event/{id}`
pub async fn show(State(api): State<Api>, Path(id): Path<String>) -> impl IntoResponse {
    let Ok(id) = id.parse() else {
        return problem(answer::NOT_FOUND);
    };
    match api.store.event(id).await {
        Ok(Some(detail)) => {
            let body = DetailBody {
                event: to_body(detail.event),
                deliveries: detail.deliveries.into_iter().map(delivery).collect(),
                effects: [],
                runs: [],
            };
            answer::json(StatusCode::OK, &body)
        }
        Ok(None) => problem(answer::NOT_FOUND),
        Err(error) => unavailable(&error),
    }
}

/// `GET /event/{id}/body`: the bytes as they came. Never as a page: whatever type the sender named, a browser saves it.
pub async fn body(State(api): State<Api>, Path(id): Path<String>) -> impl IntoResponse {
    let Ok(id) = id.parse() else {
        return problem(answer::NOT_FOUND);
    };
    match api.store.payload(id).await {
        Ok(PayloadAnswer::Kept(payload)) => {
            let content_type = payload
                .content_type
                .unwrap_or_else(|| "application/octet-stream".into());
            let mut answer = answer::with_type(StatusCode::OK, &content_type, payload.body);
            let headers = answer.headers_mut();
            headers.insert(
                http::header::CONTENT_DISPOSITION,
                http::HeaderValue::from_static("attachment"),
            );
            headers.insert(
                http::header::X_CONTENT_TYPE_OPTIONS,
                http::HeaderValue::from_static("nosniff"),
            );
            answer
        }
        Ok(PayloadAnswer::Reaped) => problem(answer::REAPED),
        Ok(PayloadAnswer::NoEvent) => problem(answer::NOT_FOUND),
        Err(error) => unavailable(&error),
    }
}

fn unavailable(error: &StoreError) -> Answer {
    tracing::warn!(%error, "the store could not answer");
    problem(answer::UNAVAILABLE)
}

fn parse(query: &str) -> Result<(EventFilter, Page), Invalid> {
    let mut filter = EventFilter::default();
    let mut page = Page {
        limit: LIMIT_DEFAULT,
        from: PageFrom::Newest,
    };
    for (name, value) in form_urlencoded::parse(query.as_bytes()) {
        let invalid = |msg: &str| Invalid {
            loc: ["query".into(), name.to_string()],
            msg: msg.into(),
            r#type: "value_error",
        };
        match &*name {
            "source" => filter.source = Some(value.into()),
            "type" => filter.event_type = Some(value.into()),
            "key" => filter.key = Some(value.into()),
            "entity" => filter.entity = Some(value.into()),
            "status" => {
                let status = EventStatus::from_word(&value).ok_or_else(|| {
                    invalid("one of pending, in_progress, completed, needs_review, dead, stale is expected")
                })?;
                filter.status = Some(status);
            }
            "since" | "until" => {
                let time = jiff::Timestamp::from_str(&value)
                    .map_err(|_| invalid("a time such as 2026-01-31T12:00:00Z is expected"))?;
                let time = Some(Time::from_micros(time.as_microsecond()));
                if name == "since" {
                    filter.since = time
                } else {
                    filter.until = time
                }
            }
            "limit" => {
                let limit = value
                    .parse()
                    .ok()
                    .filter(|limit| (1..=PAGE_MAX).contains(limit));
                page.limit = limit.ok_or_else(|| invalid("a number from 1 to 250 is expected"))?;
            }
            "iterator" => {
                page.from =
                    page_from(&value).ok_or_else(|| invalid("not an iterator of this list"))?
            }
            _ => return Err(invalid("this list has no such parameter")),
        }
    }
    Ok((filter, page))
}

/// An iterator is an event's id; with a minus it goes towards the newer ones.
fn page_from(iterator: &str) -> Option<PageFrom> {
    match iterator.strip_prefix('-') {
        Some(id) => id.parse::<EventId>().ok().map(PageFrom::NewerThan),
        None => iterator.parse::<EventId>().ok().map(PageFrom::OlderThan),
    }
}

/// A time as users read it: RFC 3339 in UTC.
pub fn time_text(time: Time) -> String {
    jiff::Timestamp::from_microsecond(time.micros())
        .map_or_else(|_| "never".to_owned(), |time| time.to_string())
}

fn to_body(event: Event) -> EventBody {
    let (code, message) = event.review.map_or((None, None), |review| {
        (Some(review.code), Some(review.message))
    });
    let done = event.status == EventStatus::Completed;
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
        first_processed_at: None,
        // An event that calls for nothing is complete when it is stored.
        completed_at: done.then(|| time_text(event.received_at)),
        last_error_code: code,
        last_error_message: message,
        delivery_count: event.delivery_count,
        duplicate_count: event.duplicate_count,
        conflict_count: event.conflict_count,
    }
}

fn delivery(delivery: Delivery) -> DeliveryBody {
    DeliveryBody {
        at: time_text(delivery.at),
        outcome: delivery.outcome.word(),
        scheme: delivery.proof.scheme.to_string(),
        secret_index: delivery.proof.secret_index,
        signed_at: delivery.proof.signed_at.map(time_text),
        body_hash: delivery.body_hash.to_string(),
        conflict: delivery.conflict,
        remote: delivery.proof.remote.map(|remote| remote.to_string()),
    }
}

//! Erasing: bytes that go at once, of one event or of all about an object. For admins.

use axum::extract::{Path, State};
use axum::response::IntoResponse;
use hapax_ledger::id::EventId;
use hapax_store::nouns::EventFilter;
use http::StatusCode;
use serde::Serialize;
use utoipa::ToSchema;

use super::Api;
use super::act;
use super::describe::asked::{ActionRequest, EraseRequest};
use super::describe::{told, value};
use super::event::unavailable;
use super::posted::Posted;
use crate::http::answer;
use crate::operate::Wish;

/// What became of events about an object.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = ErasedEvents)]
struct ErasedBody {
    /// So many were looked at.
    events: u64,
    /// So many still had a payload.
    erased: u64,
    /// Are there no more?
    done: bool,
    #[schema(schema_with = value::event_id_or_null)]
    iterator: Option<String>,
}

/// Deletes the payload of an event, and all that was said about it, at once.
#[utoipa::path(post, path = "/event/{id}/erase", operation_id = "eraseEvent", tag = "actions",
    params(("id" = String, Path, description = "the event")), request_body = ActionRequest,
    responses(
        (status = OK, description = "done; or what would happen, with `dryRun`", body = told::Acted)))]
pub async fn event(api: State<Api>, id: Path<String>, posted: Posted) -> impl IntoResponse {
    act::on_event(api, id, posted, |_| Some(Wish::Erase)).await
}

/// Deletes the payloads of all events of a source about an object, some at a time. The same again goes on, and erases nothing twice.
#[utoipa::path(post, path = "/erase", operation_id = "eraseEntity", tag = "actions",
    request_body = EraseRequest,
    responses((status = OK, description = "some are erased, or counted with `dryRun`", body = ErasedBody)))]
pub async fn entity(State(api): State<Api>, posted: Posted) -> impl IntoResponse {
    let mut fields = posted.fields();
    let (source, entity) = (fields.text("source"), fields.text("entity"));
    let reason = fields.text("reason");
    let dry_run = fields.flag("dryRun");
    let iterator = fields.optional_text("iterator");
    let from = iterator.as_deref().map(str::parse::<EventId>);
    if from.as_ref().is_some_and(Result::is_err) {
        fields.refuse("iterator", "an id of an event is expected");
    }
    if let Err(refused) = fields.finish() {
        return refused.answer();
    }
    let filter = EventFilter {
        source: Some(source),
        entity: Some(entity),
        ..EventFilter::default()
    };
    let from = from.and_then(Result::ok);
    let by = posted.authority(reason);
    match api.operator.erase_entity(filter, from, by, dry_run).await {
        Ok(erased) => {
            let body = ErasedBody {
                events: erased.events,
                erased: erased.erased,
                done: erased.next.is_none(),
                iterator: erased.next.map(|next| next.to_string()),
            };
            answer::json(StatusCode::OK, &body)
        }
        Err(error) => unavailable(&error),
    }
}

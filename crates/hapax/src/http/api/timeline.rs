//! `GET /event/{id}/timeline`: what happened to an event.

use axum::extract::{Path, State};
use axum::response::IntoResponse;
use hapax_ledger::field::Field;
use hapax_ledger::id::EventId;
use hapax_store::StoreError;
use hapax_store::nouns::{AuditFilter, AuditRecord, PAGE_MAX, Page, PageFrom, PayloadAnswer};
use http::StatusCode;
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use super::Api;
use super::describe::value;
use super::event::unavailable;
use super::list::DataBody;
use crate::clock::text as time_text;
use crate::http::answer::{self, problem};
use crate::operate::timeline::{Entry, add_differences, timeline};

/// Effects whose attempts are read for one answer.
const EFFECTS_READ_MAX: usize = 64;
/// Decisions about one event that are read for one answer: the latest.
const DECISIONS_READ_MAX: usize = 1_000;

#[derive(Serialize, ToSchema)]
#[schema(as = TimelineEntry)]
struct EntryBody {
    #[schema(schema_with = value::time)]
    at: String,
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    actor: Option<String>,
    text: String,
    detail: Value,
}

/// What happened to an event.
#[utoipa::path(get, path = "/event/{id}/timeline", operation_id = "getTimeline", tag = "events",
    params(("id" = String, Path, description = "the event")),
    responses((status = OK, description = "oldest first", body = DataBody<EntryBody>)))]
pub async fn show(State(api): State<Api>, Path(id): Path<String>) -> impl IntoResponse {
    let Ok(id) = id.parse::<EventId>() else {
        return problem(answer::NOT_FOUND);
    };
    match read(&api, id).await {
        Ok(Some(entries)) => {
            let data: Vec<EntryBody> = entries.into_iter().map(to_body).collect();
            answer::json(StatusCode::OK, &DataBody { data })
        }
        Ok(None) => problem(answer::NOT_FOUND),
        Err(error) => unavailable(&error),
    }
}

async fn read(api: &Api, id: EventId) -> Result<Option<Vec<Entry>>, StoreError> {
    let Some(detail) = api.store.event(id).await? else {
        return Ok(None);
    };
    let mut effects = Vec::new();
    for effect in detail.effects.iter().take(EFFECTS_READ_MAX) {
        effects.extend(api.store.effect(effect.id).await?);
    }
    let audit = decisions(api, id).await?;
    let mut entries = timeline(&detail, &effects, &audit);
    if detail.runs.iter().any(|run| run.snapshot.is_some())
        && let PayloadAnswer::Kept(payload) = api.store.payload(id).await?
    {
        let sources = api.inbox.sources();
        let config = sources
            .get(&detail.event.source)
            .map(|source| &source.config);
        let field = config.and_then(|config| config.object_id.as_ref().or(config.entity.as_ref()));
        let field = field.filter(|field| !field.is_header()).map(Field::text);
        add_differences(&mut entries, &detail.runs, &payload.body, field);
    }
    Ok(Some(entries))
}

/// What was decided about an event.
async fn decisions(api: &Api, id: EventId) -> Result<Vec<AuditRecord>, StoreError> {
    let filter = AuditFilter {
        actor: None,
        event: Some(id),
    };
    let mut records = Vec::new();
    let mut from = PageFrom::Newest;
    loop {
        let page = Page {
            limit: PAGE_MAX,
            from,
        };
        let listed = api.store.audit(filter.clone(), page).await?;
        records.extend(listed.rows);
        match listed.next {
            Some(next) if records.len() < DECISIONS_READ_MAX => from = PageFrom::OlderThan(next),
            _ => return Ok(records),
        }
    }
}

fn to_body(entry: Entry) -> EntryBody {
    EntryBody {
        at: time_text(entry.at),
        kind: entry.kind.word(),
        actor: entry.actor,
        text: entry.text,
        detail: entry.detail,
    }
}

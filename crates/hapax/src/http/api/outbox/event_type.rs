//! Types of events that may be sent.

use std::sync::Arc;

use axum::extract::{Path, RawQuery, State};
use axum::response::IntoResponse;
use hapax_ledger::time::Time;
use hapax_store::nouns::{Entry, EventType};
use http::StatusCode;
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use super::change::{self, Change, no_content};
use super::halt::{Halt, Outcome};
use super::page::{self, PageBody};
use super::words::{self, DESCRIPTION_CHARS_MAX};
use crate::clock::text as time_text;
use crate::http::answer;
use crate::http::api::Api;
use crate::http::api::body::Fields;
use crate::http::api::describe::asked_of_outbox::{EventTypeQuery, EventTypesQuery};
use crate::http::api::describe::asked_outbox::{
    EventTypePatchRequest, EventTypeRequest, EventTypeUpsertRequest,
};
use crate::http::api::describe::value;
use crate::http::api::list::Invalid;
use crate::http::api::posted::LargePosted;
use crate::outbox::Catalog;
use crate::outbox::extra::{self, EventTypeExtra};
use crate::outbox::schema;

/// A type of events as users see it.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = EventType)]
pub(super) struct EventTypeBody {
    name: String,
    description: String,
    archived: bool,
    deprecated: bool,
    /// A JSON Schema per version.
    schemas: Option<Value>,
    group_name: Option<String>,
    feature_flags: Option<Vec<String>>,
    retry_schedule: Option<Vec<u32>>,
    #[schema(schema_with = value::time)]
    created_at: String,
    #[schema(schema_with = value::time)]
    updated_at: String,
}

/// Is the schema told as well?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Content {
    With,
    Without,
}

fn to_body(known: &EventType, content: Content) -> EventTypeBody {
    let extra: EventTypeExtra = extra::read(&known.extra);
    let schemas = known
        .schemas
        .as_deref()
        .filter(|_| content == Content::With);
    EventTypeBody {
        name: known.name.to_string(),
        description: known.description.clone(),
        archived: known.archived,
        deprecated: known.deprecated,
        schemas: schemas.and_then(|text| serde_json::from_str(text).ok()),
        group_name: known.group_name.clone(),
        feature_flags: super::endpoint_body::listed(&known.feature_flags),
        retry_schedule: extra.retry_schedule,
        created_at: time_text(known.created_at),
        updated_at: time_text(known.updated_at),
    }
}

/// One that nothing is known of.
pub(super) fn blank(name: &str, at: Time) -> EventType {
    EventType {
        name: name.into(),
        description: String::new(),
        archived: false,
        deprecated: false,
        group_name: None,
        feature_flags: Vec::new(),
        schemas: None,
        extra: String::new(),
        created_at: at,
        updated_at: at,
        deleted_at: None,
        revision: 0,
    }
}

/// Puts what the fields say into a type; what they do not mention stays.
fn fill(fields: &mut Fields, known: &mut EventType) {
    // Older clients send it; it means nothing.
    fields.any_text("featureFlag", DESCRIPTION_CHARS_MAX);
    fields.set("description", &mut known.description, |fields, name| {
        fields.any_text(name, DESCRIPTION_CHARS_MAX)
    });
    fields.set("archived", &mut known.archived, Fields::optional_flag);
    fields.set("deprecated", &mut known.deprecated, Fields::optional_flag);
    fields.set("groupName", &mut known.group_name, |fields, name| {
        Some(Some(words::event_type(fields, name)))
    });
    fields.set("featureFlags", &mut known.feature_flags, words::event_types);
    fields.set("schemas", &mut known.schemas, schemas);
    let mut extra: EventTypeExtra = extra::read(&known.extra);
    fields.set("retrySchedule", &mut extra.retry_schedule, words::waits);
    known.extra = extra::write(&extra);
}

fn schemas(fields: &mut Fields, name: &str) -> Option<Option<String>> {
    let Some(Value::Object(schemas)) = fields.json(name) else {
        fields.refuse(name, "an object of JSON Schemas by version is expected");
        return None;
    };
    if let Err(why) = schema::check(&schemas) {
        fields.refuse(name, &why);
    }
    Some(Some(Value::Object(schemas).to_string()))
}

/// Types of events, by name.
#[utoipa::path(get, path = "/event-type", operation_id = "listEventTypes", tag = "event types",
    params(EventTypesQuery),
    responses((status = OK, description = "a page", body = PageBody<EventTypeBody>)))]
pub async fn list(State(api): State<Api>, RawQuery(query): RawQuery) -> impl IntoResponse {
    let asked = page::parse(query.as_deref(), Narrow::default(), narrow)?;
    let content = match asked.filter.with_content {
        true => Content::With,
        false => Content::Without,
    };
    let catalog = api.publisher.registry.fresh().await?;
    page::find(
        &asked,
        |after: Option<&Arc<str>>, way, max| catalog.event_types(after, way, max),
        |known| known.name.clone(),
        |text| words::is_event_type(text).then(|| Arc::from(text)),
        |known| asked.filter.include_archived || !known.archived,
        |known| to_body(known, content),
    )
}

#[derive(Debug, Default)]
struct Narrow {
    include_archived: bool,
    with_content: bool,
}

fn narrow(filter: &mut Narrow, name: &str, value: &str) -> Result<(), Option<Invalid>> {
    match name {
        "include_archived" => filter.include_archived = page::flag(name, value)?,
        "with_content" => filter.with_content = page::flag(name, value)?,
        _ => return Err(None),
    }
    Ok(())
}

/// One type of events.
#[utoipa::path(get, path = "/event-type/{event_type_name}", operation_id = "getEventType", tag = "event types",
    params(("event_type_name" = String, Path, description = "its name")),
    responses((status = OK, description = "the type", body = EventTypeBody)))]
pub async fn show(State(api): State<Api>, Path(name): Path<String>) -> impl IntoResponse {
    let catalog = api.publisher.registry.fresh().await?;
    let known = of(&catalog, &name)?;
    Outcome::Ok(answer::json(StatusCode::OK, &to_body(known, Content::With)))
}

fn of<'a>(catalog: &'a Catalog, name: &str) -> Result<&'a Arc<EventType>, Halt> {
    let known = catalog.event_type(name);
    known.ok_or_else(|| answer::NOT_FOUND.into())
}

pub(super) fn to_change(known: EventType, was: u64) -> Change<EventTypeBody> {
    Change {
        body: to_body(&known, Content::With),
        entry: Entry::EventType(known),
        was,
    }
}

/// Makes a type of events. One that is archived comes back.
#[utoipa::path(post, path = "/event-type", operation_id = "createEventType", tag = "event types",
    request_body = EventTypeRequest,
    responses((status = CREATED, description = "it is made", body = EventTypeBody)))]
pub async fn create(State(api): State<Api>, LargePosted(posted): LargePosted) -> impl IntoResponse {
    let mut fields = posted.fields();
    let name = words::event_type(&mut fields, "name");
    let mut made = blank(&name, posted.at);
    fill(&mut fields, &mut made);
    fields.finish()?;
    let decide = |catalog: &Catalog| {
        let archived = catalog.event_type(&name).filter(|known| known.archived);
        let was = archived.map_or(0, |known| known.revision);
        Ok(to_change(made.clone(), was))
    };
    let action = "event_type.create";
    change::put(&api, &posted, action, StatusCode::CREATED, decide).await
}

/// Makes a type of events, or replaces what is known of it.
#[utoipa::path(put, path = "/event-type/{event_type_name}", operation_id = "putEventType", tag = "event types",
    params(("event_type_name" = String, Path, description = "its name")),
    request_body = Option<EventTypeUpsertRequest>,
    responses(
        (status = OK, description = "it is changed", body = EventTypeBody),
        (status = CREATED, description = "it is made", body = EventTypeBody)))]
pub async fn replace(
    State(api): State<Api>,
    Path(name): Path<String>,
    LargePosted(posted): LargePosted,
) -> impl IntoResponse {
    if !words::is_event_type(&name) {
        return Err(answer::NOT_FOUND.into());
    }
    let decide = |catalog: &Catalog| {
        let was = catalog.event_type(&name);
        let mut made = blank(&name, posted.at);
        made.created_at = was.map_or(posted.at, |was| was.created_at);
        filled(posted.fields(), made, was.map_or(0, |was| was.revision))
    };
    let actions = ["event_type.create", "event_type.update"];
    change::upsert(&api, &posted, actions, decide).await
}

/// Changes what is said of a type of events; `null` clears a field.
#[utoipa::path(patch, path = "/event-type/{event_type_name}", operation_id = "patchEventType", tag = "event types",
    params(("event_type_name" = String, Path, description = "its name")),
    request_body = Option<EventTypePatchRequest>,
    responses((status = OK, description = "it is changed", body = EventTypeBody)))]
pub async fn patch(
    State(api): State<Api>,
    Path(name): Path<String>,
    LargePosted(posted): LargePosted,
) -> impl IntoResponse {
    let decide = |catalog: &Catalog| {
        let was = of(catalog, &name)?;
        let changed = EventType {
            updated_at: posted.at,
            ..(**was).clone()
        };
        filled(posted.fields(), changed, was.revision)
    };
    change::put(&api, &posted, "event_type.update", StatusCode::OK, decide).await
}

fn filled(
    mut fields: Fields,
    mut known: EventType,
    was: u64,
) -> Result<Change<EventTypeBody>, Halt> {
    fill(&mut fields, &mut known);
    fields.finish()?;
    Ok(to_change(known, was))
}

/// Archives a type of events: it is offered no more, and messages of it still go out. With `expunge` it is forgotten.
#[utoipa::path(delete, path = "/event-type/{event_type_name}", operation_id = "deleteEventType", tag = "event types",
    params(("event_type_name" = String, Path, description = "its name"), EventTypeQuery),
    responses((status = NO_CONTENT, description = "it is archived, or gone")))]
pub async fn delete(
    State(api): State<Api>,
    Path(name): Path<String>,
    RawQuery(query): RawQuery,
    LargePosted(posted): LargePosted,
) -> impl IntoResponse {
    let mut expunge = false;
    for (parameter, value) in form_urlencoded::parse(query.unwrap_or_default().as_bytes()) {
        let told = match &*parameter {
            "expunge" => page::flag(&parameter, &value),
            _ => Err(None),
        };
        let unknown = || Invalid::query(&parameter, "there is no such parameter");
        expunge = told.map_err(|told| told.unwrap_or_else(unknown))?;
    }
    let (action, gone) = match expunge {
        true => ("event_type.delete", Some(posted.at)),
        false => ("event_type.archive", None),
    };
    let decide = |catalog: &Catalog| {
        let was = of(catalog, &name)?;
        let known = EventType {
            archived: true,
            deleted_at: gone,
            updated_at: posted.at,
            ..(**was).clone()
        };
        Ok(to_change(known, was.revision))
    };
    change::make(&api, &posted, action, decide).await?;
    Outcome::Ok(no_content())
}

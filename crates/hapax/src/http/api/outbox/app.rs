//! Applications: whoever messages are sent for.

use std::collections::BTreeMap;

use axum::extract::{Path, RawQuery, State};
use axum::response::IntoResponse;
use hapax_ledger::id::AppId;
use hapax_ledger::time::Time;
use hapax_store::nouns::{App, Entry};
use http::StatusCode;
use serde::Serialize;
use utoipa::ToSchema;

use super::change::{self, Change, app_of, no_content};
use super::halt::{Halt, Outcome};
use super::page::{self, PageBody};
use super::words;
use crate::clock::text as time_text;
use crate::http::answer;
use crate::http::api::Api;
use crate::http::api::body::{Fields, Refused};
use crate::http::api::describe::asked_of_outbox::{AppQuery, AppsQuery};
use crate::http::api::describe::asked_outbox::{AppPatchRequest, AppRequest};
use crate::http::api::describe::{value, value_outbox};
use crate::http::api::list::Invalid;
use crate::http::api::posted::Posted;
use crate::operate::ids;
use crate::outbox::Catalog;
use crate::outbox::extra::{self, AppExtra};

/// An application as users see it.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Application)]
pub(super) struct AppBody {
    #[schema(schema_with = value_outbox::app_id)]
    id: String,
    uid: Option<String>,
    name: String,
    throttle_rate: Option<u32>,
    /// The same, as older clients call it.
    rate_limit: Option<u32>,
    metadata: BTreeMap<String, String>,
    /// Are payloads sent in an envelope?
    envelope: bool,
    retry_schedule: Option<Vec<u32>>,
    #[schema(schema_with = value::time)]
    created_at: String,
    #[schema(schema_with = value::time)]
    updated_at: String,
}

/// What is kept of an application that is gone.
#[derive(Serialize)]
pub(super) struct GoneBody {
    pub(super) id: String,
}

pub(super) fn to_body(app: &App) -> AppBody {
    let extra: AppExtra = extra::read(&app.extra);
    AppBody {
        id: app.id.to_string(),
        uid: app.uid.as_deref().map(str::to_owned),
        name: app.name.clone(),
        throttle_rate: app.throttle_rate,
        rate_limit: app.throttle_rate,
        metadata: app.metadata.clone(),
        envelope: extra.envelope,
        retry_schedule: extra.retry_schedule,
        created_at: time_text(app.created_at),
        updated_at: time_text(app.updated_at),
    }
}

/// One that nothing is known of.
fn blank(id: AppId, at: Time) -> App {
    App {
        id,
        uid: None,
        name: String::new(),
        throttle_rate: None,
        metadata: BTreeMap::new(),
        extra: String::new(),
        created_at: at,
        updated_at: at,
        deleted_at: None,
        revision: 0,
    }
}

/// Puts what the fields say into an application; what they do not mention stays.
fn fill(fields: &mut Fields, app: &mut App) {
    fields.set("name", &mut app.name, |fields, name| {
        Some(fields.text(name))
    });
    if app.name.is_empty() && !fields.has("name") {
        fields.text("name");
    }
    fields.set("uid", &mut app.uid, |fields, name| {
        words::uid(fields, name, AppId::PREFIX)
    });
    // The older name first: the newer one counts.
    fields.set("rateLimit", &mut app.throttle_rate, words::rate);
    fields.set("throttleRate", &mut app.throttle_rate, words::rate);
    fields.set("metadata", &mut app.metadata, words::metadata);
    let mut extra: AppExtra = extra::read(&app.extra);
    fields.set("envelope", &mut extra.envelope, Fields::optional_flag);
    fields.set("retrySchedule", &mut extra.retry_schedule, words::waits);
    app.extra = extra::write(&extra);
}

/// The application that fields describe, made now. `called` is what it was asked for by, and its uid if they name none.
pub(super) fn made(mut fields: Fields, called: Option<&str>, at: Time) -> Result<App, Refused> {
    let mut app = blank(AppId(ids::fresh(at)), at);
    fill(&mut fields, &mut app);
    match (&app.uid, called) {
        (None, Some(called)) => app.uid = Some(called.into()),
        // It would not be found by the name that it was asked for by.
        (Some(uid), Some(called)) if **uid != *called && is_free_name(called) => {
            fields.refuse("uid", "it is not the one in the path");
        }
        (Some(_), _) | (None, None) => {}
    }
    fields.finish()?;
    Ok(app)
}

/// The application that comes along with something else, if one does. It is checked also where it is not needed.
pub(super) fn inline(fields: &mut Fields, called: &str, at: Time) -> Result<Option<App>, Refused> {
    match fields.is_given("application") {
        true => made(fields.part("application"), Some(called), at).map(Some),
        false => {
            // `null` says nothing, and is not left over.
            drop(fields.json("application"));
            Ok(None)
        }
    }
}

/// May an application that is not there yet be called so? What looks like an id is one, of something else.
pub(super) fn is_free_name(called: &str) -> bool {
    let reserved = called.strip_prefix(AppId::PREFIX);
    words::is_event_type(called) && !reserved.is_some_and(|rest| rest.starts_with('_'))
}

/// The change that makes an application.
pub(super) fn making(app: App) -> Change<AppBody> {
    Change {
        body: to_body(&app),
        entry: Entry::App(app),
        was: 0,
    }
}

/// Applications, the oldest first.
#[utoipa::path(get, path = "/app", operation_id = "listApps", tag = "applications",
    params(AppsQuery),
    responses((status = OK, description = "a page", body = PageBody<AppBody>)))]
pub async fn list(State(api): State<Api>, RawQuery(query): RawQuery) -> impl IntoResponse {
    let asked = page::parse(query.as_deref(), Narrow::default(), narrow)?;
    let catalog = api.publisher.registry.fresh().await?;
    page::find(
        &asked,
        |after, way, max| catalog.apps(after.copied(), way, max),
        |app| app.id,
        |text| text.parse::<AppId>().ok(),
        |app| fits(&catalog, &asked.filter, app),
        to_body,
    )
}

#[derive(Debug, Default)]
struct Narrow {
    with_endpoints: bool,
    with_enabled: bool,
}

fn narrow(filter: &mut Narrow, name: &str, value: &str) -> Result<(), Option<Invalid>> {
    match name {
        "exclude_apps_with_no_endpoints" => filter.with_endpoints = page::flag(name, value)?,
        "exclude_apps_with_disabled_endpoints" => filter.with_enabled = page::flag(name, value)?,
        // There are none, so nothing is excluded by it.
        "exclude_apps_with_svix_play_endpoints" => drop(page::flag(name, value)?),
        _ => return Err(None),
    }
    Ok(())
}

fn fits(catalog: &Catalog, filter: &Narrow, app: &App) -> bool {
    (!filter.with_endpoints || catalog.has_endpoints(app.id))
        && (!filter.with_enabled || !catalog.has_endpoints(app.id) || catalog.has_enabled(app.id))
}

/// Makes an application.
#[utoipa::path(post, path = "/app", operation_id = "createApp", tag = "applications",
    params(AppQuery), request_body = AppRequest,
    responses(
        (status = CREATED, description = "it is made", body = AppBody),
        (status = OK, description = "it was there", body = AppBody)))]
pub async fn create(
    State(api): State<Api>,
    RawQuery(query): RawQuery,
    posted: Posted,
) -> impl IntoResponse {
    let get_if_exists = get_if_exists(query.as_deref())?;
    let app = made(posted.fields(), None, posted.at)?;
    let decide = |catalog: &Catalog| {
        let uid = app.uid.as_deref().filter(|_| get_if_exists);
        match uid.and_then(|uid| catalog.app(uid)) {
            Some(known) => Err(answer::json(StatusCode::OK, &to_body(known)).into()),
            None => Ok(making(app.clone())),
        }
    };
    change::put(&api, &posted, "app.create", StatusCode::CREATED, decide).await
}

fn get_if_exists(query: Option<&str>) -> Result<bool, Halt> {
    let mut found = false;
    for (name, value) in form_urlencoded::parse(query.unwrap_or_default().as_bytes()) {
        found = match &*name {
            "get_if_exists" => page::flag(&name, &value),
            _ => Err(None),
        }
        .map_err(|told| {
            told.unwrap_or_else(|| Invalid::query(&name, "there is no such parameter"))
        })?;
    }
    Ok(found)
}

/// One application.
#[utoipa::path(get, path = "/app/{app_id}", operation_id = "getApp", tag = "applications",
    params(("app_id" = String, Path, description = "the application's id or uid")),
    responses((status = OK, description = "the application", body = AppBody)))]
pub async fn show(State(api): State<Api>, Path(name): Path<String>) -> impl IntoResponse {
    let app = change::find_app(&api, &name).await?;
    Outcome::Ok(answer::json(StatusCode::OK, &to_body(&app)))
}

/// Makes an application, or replaces what is known of it.
#[utoipa::path(put, path = "/app/{app_id}", operation_id = "putApp", tag = "applications",
    params(("app_id" = String, Path, description = "the application's id or uid")),
    request_body = AppRequest,
    responses(
        (status = OK, description = "it is changed", body = AppBody),
        (status = CREATED, description = "it is made", body = AppBody)))]
pub async fn replace(
    State(api): State<Api>,
    Path(name): Path<String>,
    posted: Posted,
) -> impl IntoResponse {
    let decide = |catalog: &Catalog| {
        let Some(was) = catalog.app(&name) else {
            if !is_free_name(&name) {
                return Err(answer::NOT_FOUND.into());
            }
            return Ok(making(made(posted.fields(), Some(&name), posted.at)?));
        };
        let mut app = App {
            uid: was.uid.clone(),
            created_at: was.created_at,
            // What the SDKs do not know they cannot send, and do not mean to clear.
            extra: was.extra.clone(),
            ..blank(was.id, posted.at)
        };
        changed(posted.fields(), &mut app, was.revision)
    };
    change::upsert(&api, &posted, ["app.create", "app.update"], decide).await
}

/// Changes what is said of an application; `null` clears a field.
#[utoipa::path(patch, path = "/app/{app_id}", operation_id = "patchApp", tag = "applications",
    params(("app_id" = String, Path, description = "the application's id or uid")),
    request_body = Option<AppPatchRequest>,
    responses((status = OK, description = "it is changed", body = AppBody)))]
pub async fn patch(
    State(api): State<Api>,
    Path(name): Path<String>,
    posted: Posted,
) -> impl IntoResponse {
    let decide = |catalog: &Catalog| {
        let was = app_of(catalog, &name)?;
        let mut app = App {
            updated_at: posted.at,
            ..(**was).clone()
        };
        changed(posted.fields(), &mut app, was.revision)
    };
    change::put(&api, &posted, "app.update", StatusCode::OK, decide).await
}

fn changed(mut fields: Fields, app: &mut App, was: u64) -> Result<Change<AppBody>, Halt> {
    fill(&mut fields, app);
    fields.finish()?;
    Ok(Change {
        body: to_body(app),
        entry: Entry::App(app.clone()),
        was,
    })
}

/// Deletes an application with its endpoints. What was published is kept as long as everything else.
#[utoipa::path(delete, path = "/app/{app_id}", operation_id = "deleteApp", tag = "applications",
    params(("app_id" = String, Path, description = "the application's id or uid")),
    responses((status = NO_CONTENT, description = "it is gone")))]
pub async fn delete(
    State(api): State<Api>,
    Path(name): Path<String>,
    posted: Posted,
) -> impl IntoResponse {
    let decide = |catalog: &Catalog| {
        let was = app_of(catalog, &name)?;
        let app = App {
            deleted_at: Some(posted.at),
            updated_at: posted.at,
            ..(**was).clone()
        };
        Ok(Change {
            body: GoneBody {
                id: app.id.to_string(),
            },
            was: was.revision,
            entry: Entry::App(app),
        })
    };
    change::make(&api, &posted, "app.delete", decide).await?;
    Outcome::Ok(no_content())
}

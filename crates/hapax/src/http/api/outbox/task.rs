//! Jobs about the messages of an application, as the SDKs call them: background tasks.

use axum::extract::{Path, RawQuery, State};
use axum::response::IntoResponse;
use hapax_ledger::effect::EffectState;
use hapax_ledger::id::{AppId, EndpointId, ReplayId};
use hapax_store::nouns::{
    Authority, Changed, EventFilter, Replay, ReplayProgress, ReplayState, Standing, app_source,
};
use http::StatusCode;
use serde::Serialize;
use utoipa::ToSchema;

use super::attempt_query::CLASSES;
use super::change;
use super::delivery;
use super::halt::{Halt, Outcome};
use super::page::PageBody;
use super::status::Status;
use super::words;
use crate::clock::text as time_text;
use crate::http::answer;
use crate::http::api::Api;
use crate::http::api::body::Fields;
use crate::http::api::describe::asked_of_outbox::TaskQuery;
use crate::http::api::describe::asked_outbox::ResendRequest;
use crate::http::api::describe::asked_tasks::{BulkReplayRequest, SinceRequest};
use crate::http::api::describe::{value, value_outbox};
use crate::http::api::list::Invalid;
use crate::http::api::posted::{self, Posted};
use crate::operate::ids;
use crate::operate::task::{Kind, Task};

/// Background tasks of one application at a time: its consumers start them too, and they wait for each other's turn.
pub(super) const RUNNING_MAX: usize = 8;

/// A job as users see it.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = BackgroundTask)]
pub(super) struct TaskBody {
    #[schema(schema_with = value::replay_id)]
    id: String,
    #[schema(schema_with = value_outbox::task_status)]
    status: &'static str,
    #[schema(schema_with = value_outbox::task_kind)]
    task: &'static str,
    /// How far it has come.
    #[schema(value_type = Object)]
    data: serde_json::Value,
    #[schema(schema_with = value::time)]
    updated_at: String,
}

pub(super) fn to_body(replay: &Replay, task: &Task) -> TaskBody {
    let progress = &replay.progress;
    TaskBody {
        id: replay.id.to_string(),
        status: match replay.state {
            ReplayState::Running => "running",
            ReplayState::Completed => "finished",
            ReplayState::Cancelled => "failed",
        },
        task: task.task.word(),
        data: match task.task.finds() {
            Some(_) => serde_json::json!({ task.task.counted(): progress.done }),
            None => serde_json::json!({
                task.task.counted(): progress.done,
                "messagesSeen": progress.total,
                "messagesSkipped": progress.skipped,
                "messagesRefused": progress.blocked + progress.failed,
            }),
        },
        updated_at: time_text(replay.created_at),
    }
}

/// Sends an endpoint what was given up or skipped since a time.
#[utoipa::path(post, path = "/app/{app_id}/endpoint/{endpoint_id}/recover", operation_id = "recoverEndpoint", tag = "background tasks",
    params(("app_id" = String, Path, description = "the application's id or uid"),
        ("endpoint_id" = String, Path, description = "the endpoint's id or uid")),
    request_body = SinceRequest,
    responses((status = ACCEPTED, description = "it has begun", body = TaskBody)))]
pub async fn recover(
    State(api): State<Api>,
    Path((app, name)): Path<(String, String)>,
    posted: Posted,
) -> impl IntoResponse {
    for_endpoint(&api, &app, &name, &posted, Kind::Recover).await
}

/// Sends an endpoint what it never got since a time: what was published before it was there, or while it was not subscribed.
#[utoipa::path(post, path = "/app/{app_id}/endpoint/{endpoint_id}/replay-missing", operation_id = "replayMissing", tag = "background tasks",
    params(("app_id" = String, Path, description = "the application's id or uid"),
        ("endpoint_id" = String, Path, description = "the endpoint's id or uid")),
    request_body = SinceRequest,
    responses((status = ACCEPTED, description = "it has begun", body = TaskBody)))]
pub async fn replay_missing(
    State(api): State<Api>,
    Path((app, name)): Path<(String, String)>,
    posted: Posted,
) -> impl IntoResponse {
    for_endpoint(&api, &app, &name, &posted, Kind::Missing).await
}

/// Sends an endpoint again what fits, also what got through.
#[utoipa::path(post, path = "/app/{app_id}/endpoint/{endpoint_id}/bulk-replay", operation_id = "bulkReplay", tag = "background tasks",
    params(("app_id" = String, Path, description = "the application's id or uid"),
        ("endpoint_id" = String, Path, description = "the endpoint's id or uid")),
    request_body = BulkReplayRequest,
    responses((status = ACCEPTED, description = "it has begun", body = TaskBody)))]
pub async fn bulk_replay(
    State(api): State<Api>,
    Path((app, name)): Path<(String, String)>,
    posted: Posted,
) -> impl IntoResponse {
    for_endpoint(&api, &app, &name, &posted, Kind::Bulk).await
}

async fn for_endpoint(api: &Api, app: &str, name: &str, posted: &Posted, kind: Kind) -> Outcome {
    let endpoint = change::find_endpoint(api, app, name).await?;
    let mut fields = posted.fields();
    let mut task = blank(kind, endpoint.app, Some(endpoint.id));
    if kind == Kind::Bulk {
        narrow(&mut fields, &mut task);
    }
    let since = fields.optional_time("since");
    if since.is_none() && !fields.is_wrong("since") {
        fields.refuse("since", "it is required");
    }
    let until = fields.optional_time("until");
    fields.finish()?;
    if endpoint.standing != Standing::Enabled {
        return Err(delivery::disabled());
    }
    start(
        api,
        posted,
        endpoint.app,
        task,
        EventFilter {
            since,
            until,
            ..EventFilter::default()
        },
    )
    .await
}

fn blank(kind: Kind, app: AppId, endpoint: Option<EndpointId>) -> Task {
    Task {
        task: kind,
        app: app.to_string(),
        apps: Vec::new(),
        endpoint: endpoint.map(|endpoint| endpoint.to_string()),
        event_types: Vec::new(),
        channel: None,
        tag: None,
        states: Vec::new(),
        class: None,
    }
}

fn narrow(fields: &mut Fields, task: &mut Task) {
    task.event_types = words::event_types(fields, "eventTypes").unwrap_or_default();
    task.channel = fields.optional_text("channel");
    task.tag = fields.optional_text("tag");
    let states = fields.optional_number("status", 0..=4).and_then(|code| {
        let status = Status::from_text(&code.to_string())?;
        Some(status.states(true))
    });
    let words = |states: Vec<EffectState>| {
        let words = states.into_iter().map(|state| state.word().to_owned());
        words.collect()
    };
    task.states = states.map(words).unwrap_or_default();
    if let Some(class) = fields.optional_number("statusCodeClass", 0..=500) {
        task.class = u16::try_from(class)
            .ok()
            .filter(|class| CLASSES.contains(class));
        if task.class.is_none() {
            fields.refuse(
                "statusCodeClass",
                "one of 0, 100, 200, 300, 400, 500 is expected",
            );
        }
    }
}

async fn start(api: &Api, posted: &Posted, app: AppId, task: Task, filter: EventFilter) -> Outcome {
    let source = app_source(app);
    let running = api.store.replays(Some(ReplayState::Running)).await?;
    let own = running
        .iter()
        .filter(|replay| replay.filter.source.as_ref() == Some(&source));
    if own.count() >= RUNNING_MAX {
        return Err(answer::TOO_MANY_TASKS.into());
    }
    let until = filter.until.map_or(posted.at, |until| until.min(posted.at));
    let replay = Replay {
        id: ReplayId(ids::fresh(posted.at)),
        filter: EventFilter {
            source: Some(source),
            // What comes later is not part of it, so that it comes to an end.
            until: Some(until),
            ..filter
        },
        actor: posted.actor.name.clone(),
        reason: task.task.word().to_owned(),
        created_at: posted.at,
        dry_run: false,
        rate: None,
        task: Some(task.text()),
        state: ReplayState::Running,
        progress: ReplayProgress::default(),
    };
    let body = to_body(&replay, &task);
    let said = serde_json::to_string(&body).unwrap_or_default();
    let by = posted.authority(replay.reason.clone());
    keep(api, replay, by, said, &body).await
}

/// Keeps a job that begins, and says so.
pub(super) async fn keep(
    api: &Api,
    replay: Replay,
    by: Authority,
    said: String,
    body: &impl Serialize,
) -> Outcome {
    Ok(match api.store.start_replay(replay, by, said).await? {
        Changed::Done => {
            api.replays.hear();
            answer::json(StatusCode::ACCEPTED, body)
        }
        Changed::Before(before) => posted::before(before, StatusCode::ACCEPTED),
        Changed::NotFound | Changed::NameTaken => return Err(answer::NOT_FOUND.into()),
    })
}

/// Deletes the payloads of all messages of an application.
#[utoipa::path(post, path = "/app/{app_id}/msg/expunge-all-contents", operation_id = "expungeAllMessages", tag = "background tasks",
    params(("app_id" = String, Path, description = "the application's id or uid")),
    request_body = Option<ResendRequest>,
    responses((status = ACCEPTED, description = "it has begun", body = TaskBody)))]
pub async fn expunge_all(
    State(api): State<Api>,
    Path(app): Path<String>,
    posted: Posted,
) -> impl IntoResponse {
    let app = change::find_app(&api, &app).await?.id;
    posted.fields().finish()?;
    let task = blank(Kind::Purge, app, None);
    start(&api, &posted, app, task, EventFilter::default()).await
}

/// Jobs, newest first.
#[utoipa::path(get, path = "/background-task", operation_id = "listBackgroundTasks", tag = "background tasks",
    params(TaskQuery),
    responses((status = OK, description = "a page", body = PageBody<TaskBody>)))]
pub async fn list(State(api): State<Api>, RawQuery(query): RawQuery) -> impl IntoResponse {
    let asked = super::page::parse_newest(query.as_deref(), Wanted::default(), narrow_list)?;
    let replays = api.store.replays(None).await?;
    let tasks = replays
        .iter()
        .filter_map(|replay| Some((replay, Task::of(replay)?)));
    let bodies = tasks.map(|(replay, task)| to_body(replay, &task));
    let wanted = &asked.filter;
    let fitting = bodies.filter(|body| {
        wanted
            .status
            .as_deref()
            .is_none_or(|status| status == body.status)
            && wanted.task.as_deref().is_none_or(|task| task == body.task)
    });
    super::page::of_few(
        &asked,
        fitting.collect(),
        |body: &TaskBody| body.id.clone(),
        |text| text.parse::<ReplayId>().is_ok(),
    )
}

#[derive(Debug, Default)]
struct Wanted {
    status: Option<String>,
    task: Option<String>,
}

fn narrow_list(wanted: &mut Wanted, name: &str, value: &str) -> Result<(), Option<Invalid>> {
    match name {
        "status" if ["running", "finished", "failed"].contains(&value) => {
            wanted.status = Some(value.to_owned());
        }
        "status" => {
            let expected = "one of running, finished, failed is expected";
            return Err(Some(Invalid::query(name, expected)));
        }
        "task" => wanted.task = Some(value.to_owned()),
        _ => return Err(None),
    }
    Ok(())
}

/// One job, and how far it is.
#[utoipa::path(get, path = "/background-task/{task_id}", operation_id = "getBackgroundTask", tag = "background tasks",
    params(("task_id" = String, Path, description = "the job")),
    responses((status = OK, description = "the job", body = TaskBody)))]
pub async fn show(State(api): State<Api>, Path(id): Path<String>) -> impl IntoResponse {
    let nothing = || Halt::from(answer::NOT_FOUND);
    let id = id.parse::<ReplayId>().map_err(|_| nothing())?;
    let replay = api.store.replay(id).await?.ok_or_else(nothing)?;
    let task = Task::of(&replay).ok_or_else(nothing)?;
    let mut body = to_body(&replay, &task);
    if let Some(what) = task.task.finds()
        && replay.state == ReplayState::Completed
    {
        let found = api.store.found(id).await?.unwrap_or_default();
        body.data[what] = serde_json::from_str(&found).unwrap_or_default();
    }
    Outcome::Ok(answer::json(StatusCode::OK, &body))
}

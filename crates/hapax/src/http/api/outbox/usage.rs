//! What was sent for each application, and what each is subscribed to: found out by background tasks.

use axum::extract::State;
use axum::response::IntoResponse;
use hapax_ledger::id::{AppId, ReplayId};
use hapax_store::nouns::{EventFilter, Replay, ReplayProgress, ReplayState};
use serde::Serialize;
use utoipa::ToSchema;

use super::halt::{Halt, Outcome};
use super::stats::beginning_of_hour;
use super::task::{self, RUNNING_MAX, TaskBody};
use crate::http::answer;
use crate::http::api::Api;
use crate::http::api::body::Fields;
use crate::http::api::describe::asked_outbox::ResendRequest;
use crate::http::api::describe::asked_tasks::UsageRequest;
use crate::http::api::posted::Posted;
use crate::operate::ids;
use crate::operate::task::{Kind, Task};
use crate::outbox::operational::OPERATIONAL_APP;

/// A job that counts, as users see it.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = UsageTask)]
struct UsageBody {
    #[serde(flatten)]
    task: TaskBody,
    /// Applications that were asked for and are not there.
    unresolved_app_ids: Vec<String>,
}

/// Counts the attempts that were made for each application, by the hour.
#[utoipa::path(post, path = "/stats/usage/app", operation_id = "countUsage", tag = "background tasks",
    request_body = UsageRequest,
    responses((status = ACCEPTED, description = "it has begun; the job says what it counts", body = UsageBody)))]
pub async fn apps(State(api): State<Api>, posted: Posted) -> impl IntoResponse {
    let mut fields = posted.fields();
    let since = required_time(&mut fields, "since").map(beginning_of_hour);
    let until = required_time(&mut fields, "until");
    let asked = fields.texts("appIds");
    let (known, unknown) = known(&api, &asked).await?;
    if !asked.is_empty() && known.is_empty() {
        fields.refuse("appIds", "none of these applications is there");
    }
    fields.finish()?;
    let filter = EventFilter {
        since,
        until,
        ..EventFilter::default()
    };
    start(&api, &posted, Kind::Stats, known, filter, |task| {
        UsageBody {
            task,
            unresolved_app_ids: unknown,
        }
    })
    .await
}

/// Finds out which types the endpoints of each application are subscribed to.
#[utoipa::path(put, path = "/stats/usage/event-types", operation_id = "aggregateEventTypes", tag = "background tasks",
    request_body = Option<ResendRequest>,
    responses((status = ACCEPTED, description = "it has begun; the job says what it finds", body = TaskBody)))]
pub async fn event_types(State(api): State<Api>, posted: Posted) -> impl IntoResponse {
    posted.fields().finish()?;
    let all = EventFilter::default();
    start(&api, &posted, Kind::Types, Vec::new(), all, |task| task).await
}

fn required_time(fields: &mut Fields, name: &str) -> Option<hapax_ledger::time::Time> {
    let time = fields.optional_time(name);
    if time.is_none() && !fields.is_wrong(name) {
        fields.refuse(name, "it is required");
    }
    time
}

/// The applications of these ids and uids, and what is none.
async fn known(api: &Api, asked: &[String]) -> Result<(Vec<AppId>, Vec<String>), Halt> {
    let catalog = api.publisher.registry.fresh().await?;
    let (mut known, mut unknown) = (Vec::new(), Vec::new());
    for name in asked {
        match catalog.app(name).filter(|app| app.id != OPERATIONAL_APP) {
            Some(app) => known.push(app.id),
            None => unknown.push(name.clone()),
        }
    }
    Ok((known, unknown))
}

async fn start<B: Serialize>(
    api: &Api,
    posted: &Posted,
    kind: Kind,
    apps: Vec<AppId>,
    filter: EventFilter,
    say: impl FnOnce(TaskBody) -> B,
) -> Outcome {
    let running = api.store.replays(Some(ReplayState::Running)).await?;
    let alike = running.iter().filter_map(Task::of);
    if alike.filter(|task| task.task.finds().is_some()).count() >= RUNNING_MAX {
        return Err(answer::TOO_MANY_TASKS.into());
    }
    let task = Task {
        task: kind,
        app: String::new(),
        apps: apps.iter().map(AppId::to_string).collect(),
        endpoint: None,
        event_types: Vec::new(),
        channel: None,
        tag: None,
        states: Vec::new(),
        class: None,
    };
    let replay = Replay {
        id: ReplayId(ids::fresh(posted.at)),
        filter,
        actor: posted.actor.name.clone(),
        reason: kind.word().to_owned(),
        created_at: posted.at,
        dry_run: false,
        rate: None,
        task: Some(task.text()),
        state: ReplayState::Running,
        progress: ReplayProgress::default(),
    };
    let body = say(task::to_body(&replay, &task));
    let said = serde_json::to_string(&body).unwrap_or_default();
    let by = posted.authority(replay.reason.clone());
    task::keep(api, replay, by, said, &body).await
}

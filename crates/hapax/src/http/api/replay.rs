//! Replays of many events: started, looked at, cancelled.

use axum::extract::{Path, State};
use axum::response::IntoResponse;
use hapax_ledger::event::EventStatus;
use hapax_ledger::id::ReplayId;
use hapax_store::nouns::{Changed, EventFilter, Replay, ReplayProgress, ReplayState};
use http::StatusCode;
use serde::Serialize;
use utoipa::ToSchema;

use super::Api;
use super::body::{Fields, Refused};
use super::describe::asked::{ReasonRequest, ReplayRequest};
use super::describe::value;
use super::event::unavailable;
use super::list::DataBody;
use super::posted::{self, Posted};
use crate::clock::text as time_text;
use crate::http::answer::{self, problem};
use crate::operate::ids;

/// The highest rate: beyond it, a rate is no limit.
pub(super) const RATE_MAX: u64 = 10_000;

/// A replay as users see it.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Replay)]
struct ReplayBody {
    #[schema(schema_with = value::replay_id)]
    id: String,
    #[schema(schema_with = value::replay_state)]
    state: &'static str,
    filter: FilterBody,
    actor: String,
    reason: String,
    #[schema(schema_with = value::time)]
    created_at: String,
    dry_run: bool,
    /// Events a second at most.
    rate: Option<u32>,
    /// Events that were looked at so far.
    total: u64,
    done: u64,
    skipped: u64,
    blocked: u64,
    failed: u64,
}

/// Which events a replay is about.
#[derive(Serialize, ToSchema)]
#[schema(as = EventFilter)]
struct FilterBody {
    source: Option<String>,
    r#type: Option<String>,
    #[schema(schema_with = value::status_or_null)]
    status: Option<&'static str>,
    key: Option<String>,
    entity: Option<String>,
    #[schema(schema_with = value::time_or_null)]
    since: Option<String>,
    #[schema(schema_with = value::time_or_null)]
    until: Option<String>,
}

/// A replay that was just started.
#[derive(Serialize, ToSchema)]
#[schema(as = StartedReplay)]
struct StartedBody {
    #[schema(schema_with = value::replay_id)]
    id: String,
}

/// A replay that was stopped.
#[derive(Serialize, ToSchema)]
#[schema(as = CancelledReplay)]
struct CancelledBody {
    #[schema(schema_with = value::replay_id)]
    id: String,
    #[schema(schema_with = value::replay_state)]
    state: &'static str,
}

/// Starts a replay of many events.
#[utoipa::path(post, path = "/replay", operation_id = "startReplay", tag = "replays",
    request_body = ReplayRequest,
    responses((status = ACCEPTED, description = "it has begun", body = StartedBody)))]
pub async fn start(State(api): State<Api>, posted: Posted) -> impl IntoResponse {
    let replay = match read(&posted) {
        Ok(replay) => replay,
        Err(refused) => return refused.answer(),
    };
    let body = StartedBody {
        id: replay.id.to_string(),
    };
    let said = serde_json::to_string(&body).unwrap_or_default();
    let by = posted.authority(replay.reason.clone());
    match api.store.start_replay(replay, by, said).await {
        Ok(Changed::Done) => {
            api.replays.hear();
            answer::json(StatusCode::ACCEPTED, &body)
        }
        Ok(Changed::Before(before)) => posted::before(before, StatusCode::ACCEPTED),
        Ok(Changed::NotFound | Changed::NameTaken) => problem(answer::NOT_FOUND),
        Err(error) => unavailable(&error),
    }
}

fn read(posted: &Posted) -> Result<Replay, Refused> {
    let mut fields = posted.fields();
    let mut part = fields.part("filter");
    let mut filter = filter(&mut part);
    fields.join(part);
    let reason = fields.text("reason");
    let dry_run = fields.flag("dryRun");
    let rate = fields.optional_number("rate", 1..=RATE_MAX);
    fields.finish()?;
    // What comes later is not part of it, so that it comes to an end.
    filter.until = Some(filter.until.map_or(posted.at, |until| until.min(posted.at)));
    Ok(Replay {
        id: ReplayId(ids::fresh(posted.at)),
        filter,
        actor: posted.actor.name.clone(),
        reason,
        created_at: posted.at,
        dry_run,
        rate: rate.and_then(|rate| u32::try_from(rate).ok()),
        task: None,
        state: ReplayState::Running,
        progress: ReplayProgress::default(),
    })
}

/// The same filters as those of `GET /event`, but for the text in a key: what is replayed is named by what it is.
fn filter(fields: &mut Fields) -> EventFilter {
    let status = fields.optional_text("status");
    let known = status.as_deref().map(EventStatus::from_word);
    if known == Some(None) {
        let expected =
            "one of pending, in_progress, completed, needs_review, dead, stale is expected";
        fields.refuse("status", expected);
    }
    EventFilter {
        source: fields.optional_text("source"),
        event_type: fields.optional_text("type"),
        status: known.flatten(),
        key: fields.optional_text("key"),
        key_contains: None,
        entity: fields.optional_text("entity"),
        since: fields.optional_time("since"),
        until: fields.optional_time("until"),
    }
}

/// Replays, newest first.
#[utoipa::path(get, path = "/replay", operation_id = "listReplays", tag = "replays",
    responses((status = OK, description = "the latest", body = DataBody<ReplayBody>)))]
pub async fn list(State(api): State<Api>) -> impl IntoResponse {
    match api.store.replays(None).await {
        Ok(replays) => {
            let data: Vec<ReplayBody> = replays.iter().map(to_body).collect();
            answer::json(StatusCode::OK, &DataBody { data })
        }
        Err(error) => unavailable(&error),
    }
}

/// One replay, and how far it is.
#[utoipa::path(get, path = "/replay/{id}", operation_id = "getReplay", tag = "replays",
    params(("id" = String, Path, description = "the replay")),
    responses((status = OK, description = "the replay", body = ReplayBody)))]
pub async fn show(State(api): State<Api>, Path(id): Path<String>) -> impl IntoResponse {
    let Ok(id) = id.parse::<ReplayId>() else {
        return problem(answer::NOT_FOUND);
    };
    match api.store.replay(id).await {
        Ok(Some(replay)) => answer::json(StatusCode::OK, &to_body(&replay)),
        Ok(None) => problem(answer::NOT_FOUND),
        Err(error) => unavailable(&error),
    }
}

/// Stops a replay; what is done stays done.
#[utoipa::path(post, path = "/replay/{id}/cancel", operation_id = "cancelReplay", tag = "replays",
    params(("id" = String, Path, description = "the replay")), request_body = Option<ReasonRequest>,
    responses((status = OK, description = "it is stopped", body = CancelledBody)))]
pub async fn cancel(
    State(api): State<Api>,
    Path(id): Path<String>,
    posted: Posted,
) -> impl IntoResponse {
    let Ok(id) = id.parse::<ReplayId>() else {
        return problem(answer::NOT_FOUND);
    };
    let mut fields = posted.fields();
    let reason = fields.optional_text("reason").unwrap_or_default();
    if let Err(refused) = fields.finish() {
        return refused.answer();
    }
    let body = CancelledBody {
        id: id.to_string(),
        state: ReplayState::Cancelled.word(),
    };
    let said = serde_json::to_string(&body).unwrap_or_default();
    let by = posted.authority(reason);
    match api.store.cancel_replay(id, by, said).await {
        Ok(Changed::Done) => answer::json(StatusCode::OK, &body),
        Ok(Changed::Before(before)) => posted::before(before, StatusCode::OK),
        Ok(Changed::NotFound | Changed::NameTaken) => match api.store.replay(id).await {
            Ok(Some(_)) => problem(answer::NOT_RUNNING),
            Ok(None) => problem(answer::NOT_FOUND),
            Err(error) => unavailable(&error),
        },
        Err(error) => unavailable(&error),
    }
}

fn to_body(replay: &Replay) -> ReplayBody {
    let filter = &replay.filter;
    let progress = &replay.progress;
    ReplayBody {
        id: replay.id.to_string(),
        state: replay.state.word(),
        filter: FilterBody {
            source: filter.source.clone(),
            r#type: filter.event_type.clone(),
            status: filter.status.map(EventStatus::word),
            key: filter.key.clone(),
            entity: filter.entity.clone(),
            since: filter.since.map(time_text),
            until: filter.until.map(time_text),
        },
        actor: replay.actor.to_string(),
        reason: replay.reason.clone(),
        created_at: time_text(replay.created_at),
        dry_run: replay.dry_run,
        rate: replay.rate,
        total: progress.total,
        done: progress.done,
        skipped: progress.skipped,
        blocked: progress.blocked,
        failed: progress.failed,
    }
}

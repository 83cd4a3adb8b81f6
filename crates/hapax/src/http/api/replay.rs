//! Replays of many events: started, looked at, cancelled.

use axum::extract::{Path, State};
use axum::response::IntoResponse;
use hapax_ledger::event::EventStatus;
use hapax_ledger::id::ReplayId;
use hapax_store::nouns::{Changed, EventFilter, Replay, ReplayProgress, ReplayState};
use http::StatusCode;
use serde_json::{Value, json};

use super::Api;
use super::body::{Fields, Refused};
use super::event::unavailable;
use super::posted::{self, Posted};
use crate::clock::text as time_text;
use crate::http::answer::{self, problem};
use crate::operate::ids;

/// The highest rate: beyond it, a rate is no limit.
const RATE_MAX: u64 = 10_000;

/// `POST /replay`
pub async fn start(State(api): State<Api>, posted: Posted) -> impl IntoResponse {
    let replay = match read(&posted) {
        Ok(replay) => replay,
        Err(refused) => return refused.answer(),
    };
    let said = json!({ "id": replay.id.to_string() });
    let by = posted.authority(replay.reason.clone());
    match api.store.start_replay(replay, by, said.to_string()).await {
        Ok(Changed::Done) => {
            api.replays.hear();
            answer::json(StatusCode::ACCEPTED, &said)
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
        state: ReplayState::Running,
        progress: ReplayProgress::default(),
    })
}

/// The same filters as those of `GET /event`.
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
        entity: fields.optional_text("entity"),
        since: fields.optional_time("since"),
        until: fields.optional_time("until"),
    }
}

/// `GET /replay`
pub async fn list(State(api): State<Api>) -> impl IntoResponse {
    match api.store.replays(None).await {
        Ok(replays) => {
            let data: Vec<Value> = replays.iter().map(to_json).collect();
            answer::json(StatusCode::OK, &json!({ "data": data }))
        }
        Err(error) => unavailable(&error),
    }
}

/// `GET /replay/{id}`
pub async fn show(State(api): State<Api>, Path(id): Path<String>) -> impl IntoResponse {
    let Ok(id) = id.parse::<ReplayId>() else {
        return problem(answer::NOT_FOUND);
    };
    match api.store.replay(id).await {
        Ok(Some(replay)) => answer::json(StatusCode::OK, &to_json(&replay)),
        Ok(None) => problem(answer::NOT_FOUND),
        Err(error) => unavailable(&error),
    }
}

/// `POST /replay/{id}/cancel`
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
    let said = json!({ "id": id.to_string(), "state": ReplayState::Cancelled.word() });
    let by = posted.authority(reason);
    match api.store.cancel_replay(id, by, said.to_string()).await {
        Ok(Changed::Done) => answer::json(StatusCode::OK, &said),
        Ok(Changed::Before(before)) => posted::before(before, StatusCode::OK),
        Ok(Changed::NotFound | Changed::NameTaken) => match api.store.replay(id).await {
            Ok(Some(_)) => problem(answer::NOT_RUNNING),
            Ok(None) => problem(answer::NOT_FOUND),
            Err(error) => unavailable(&error),
        },
        Err(error) => unavailable(&error),
    }
}

fn to_json(replay: &Replay) -> Value {
    let filter = &replay.filter;
    let progress = &replay.progress;
    json!({
        "id": replay.id.to_string(),
        "state": replay.state.word(),
        "filter": {
            "source": filter.source,
            "type": filter.event_type,
            "status": filter.status.map(EventStatus::word),
            "key": filter.key,
            "entity": filter.entity,
            "since": filter.since.map(time_text),
            "until": filter.until.map(time_text),
        },
        "actor": &*replay.actor,
        "reason": replay.reason,
        "createdAt": time_text(replay.created_at),
        "dryRun": replay.dry_run,
        "rate": replay.rate,
        "total": progress.total,
        "done": progress.done,
        "skipped": progress.skipped,
        "blocked": progress.blocked,
        "failed": progress.failed,
    })
}

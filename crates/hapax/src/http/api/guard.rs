//! Keys of guarded requests: looked at, and settled by hand where nobody knows what became of the request.

use axum::extract::{Path, RawQuery, State};
use axum::response::IntoResponse;
use hapax_ledger::guard::{GuardState, TTL_DEFAULT};
use hapax_ledger::id::KeyId;
use hapax_ledger::lease::Fence;
use hapax_store::nouns::{Changed, KeyFilter, KeyRecord, KeyResolution};
use http::StatusCode;
use serde::Serialize;
use utoipa::ToSchema;

use super::Api;
use super::describe::asked::{GuardQuery, ResolveKeyRequest};
use super::describe::value;
use super::event::unavailable;
use super::list::{self, Asked, Invalid, ListBody};
use super::own::FENCE_MAX;
use super::posted::{self, Posted};
use crate::clock::text as time_text;
use crate::http::answer::{self, Answer, problem};

/// A guarded key as users see it.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = GuardKey)]
struct KeyBody {
    #[schema(schema_with = value::key_id)]
    id: String,
    guard: String,
    /// Who called; empty where all callers share one scope.
    principal: String,
    method: String,
    path: String,
    key: String,
    #[schema(schema_with = value::key_state)]
    state: &'static str,
    /// How often it ran.
    runs: u32,
    /// Of its latest run; `ifFence` of a resolution.
    fence: u64,
    node: String,
    #[schema(schema_with = value::time)]
    first_at: String,
    #[schema(schema_with = value::time)]
    started_at: String,
    #[schema(schema_with = value::time_or_null)]
    ended_at: Option<String>,
    /// The status of its answer.
    status: Option<u16>,
    /// Why there is none.
    error: Option<String>,
    #[schema(schema_with = value::time)]
    expires_at: String,
}

/// A key that was settled by hand.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = ResolvedKey)]
struct ResolvedBody {
    #[schema(schema_with = value::key_id)]
    id: String,
    #[schema(schema_with = value::key_outcome)]
    outcome: &'static str,
    #[schema(schema_with = value::key_state)]
    state: &'static str,
}

/// Guarded keys, newest first.
#[utoipa::path(get, path = "/guard/key", operation_id = "listGuardKeys", tag = "guard",
    params(GuardQuery),
    responses((status = OK, description = "a page", body = ListBody<KeyBody>)))]
pub async fn list(State(api): State<Api>, RawQuery(query): RawQuery) -> impl IntoResponse {
    let query = query.as_deref().unwrap_or("");
    let asked = match list::parse(query, KeyFilter::default(), narrow) {
        Ok(asked) => asked,
        Err(invalid) => return list::refuse(invalid),
    };
    let Asked { filter, page } = asked;
    match api.store.keys(filter, page).await {
        Ok(listed) => {
            let body = ListBody::new(listed, |record| record.id, to_body);
            answer::json(StatusCode::OK, &body)
        }
        Err(error) => unavailable(&error),
    }
}

fn narrow(filter: &mut KeyFilter, name: &str, value: &str) -> Result<(), Option<Invalid>> {
    match name {
        "guard" => filter.guard = Some(value.to_owned()),
        "key" => filter.key = Some(value.to_owned()),
        "principal" => filter.principal = Some(value.to_owned()),
        "state" => {
            let state = GuardState::from_word(value).ok_or_else(|| {
                let words = "one of running, completed, not_kept, unknown, released is expected";
                Invalid::query(name, words)
            })?;
            filter.state = Some(state);
        }
        _ => return Err(None),
    }
    Ok(())
}

/// One guarded key.
#[utoipa::path(get, path = "/guard/key/{id}", operation_id = "getGuardKey", tag = "guard",
    params(("id" = String, Path, description = "the key's id")),
    responses((status = OK, description = "the key", body = KeyBody)))]
pub async fn show(State(api): State<Api>, Path(id): Path<String>) -> impl IntoResponse {
    let Ok(id) = id.parse::<KeyId>() else {
        return problem(answer::NOT_FOUND);
    };
    match api.store.key(id).await {
        Ok(Some(record)) => answer::json(StatusCode::OK, &to_body(record)),
        Ok(None) => problem(answer::NOT_FOUND),
        Err(error) => unavailable(&error),
    }
}

/// Says what became of a guarded request whose outcome is unknown.
#[utoipa::path(post, path = "/guard/key/{id}/resolve", operation_id = "resolveGuardKey", tag = "guard",
    params(("id" = String, Path, description = "the key's id")), request_body = ResolveKeyRequest,
    responses((status = OK, description = "it is settled", body = ResolvedBody)))]
pub async fn resolve(
    State(api): State<Api>,
    Path(id): Path<String>,
    posted: Posted,
) -> impl IntoResponse {
    let Ok(id) = id.parse::<KeyId>() else {
        return problem(answer::NOT_FOUND);
    };
    let mut fields = posted.fields();
    let executed = fields.word("outcome", "executed, not_executed", |word| match word {
        "executed" => Some(true),
        "not_executed" => Some(false),
        _ => None,
    });
    let reason = fields.text("reason");
    let if_fence = fields.optional_number("ifFence", 0..=FENCE_MAX);
    if let Err(refused) = fields.finish() {
        return refused.answer();
    }
    let record = match api.store.key(id).await {
        Ok(Some(record)) => record,
        Ok(None) => return problem(answer::NOT_FOUND),
        Err(error) => return unavailable(&error),
    };
    let (resolution, body) = match executed {
        Some(true) => {
            let ttl = api.guards.named(&record.guard);
            let ttl = ttl.map_or(TTL_DEFAULT, |config| config.policy.ttl);
            let resolution = KeyResolution::Executed { ttl };
            (resolution, resolved(id, "executed", GuardState::NotKept))
        }
        // Only if the body was refused is there no outcome.
        Some(false) | None => {
            let body = resolved(id, "not_executed", GuardState::Released);
            (KeyResolution::NotExecuted, body)
        }
    };
    let run = Run {
        fence: if_fence.map_or(record.fence, Fence::from_u64),
        seen: record,
    };
    settle(&api, &run, resolution, &body, posted.authority(reason)).await
}

/// The run that somebody knows about: the one they name, or else the latest as it was looked at here.
struct Run {
    fence: Fence,
    seen: KeyRecord,
}

fn resolved(id: KeyId, outcome: &'static str, state: GuardState) -> ResolvedBody {
    ResolvedBody {
        id: id.to_string(),
        outcome,
        state: state.word(),
    }
}

async fn settle(
    api: &Api,
    run: &Run,
    resolution: KeyResolution,
    body: &ResolvedBody,
    by: hapax_store::nouns::Authority,
) -> Answer {
    let said = serde_json::to_string(body).unwrap_or_default();
    let (id, fence) = (run.seen.id, run.fence);
    let resolved = api.store.resolve_key(id, fence, resolution, by, said);
    match resolved.await {
        Ok(Changed::Done) => answer::json(StatusCode::OK, body),
        Ok(Changed::Before(before)) => posted::before(before, StatusCode::OK),
        // It is there: it was looked at before.
        Ok(Changed::NotFound | Changed::NameTaken) => {
            let moved = run.seen.fence != fence || run.seen.state == GuardState::Unknown;
            problem(match moved {
                true => answer::KEY_RAN_AGAIN,
                false => answer::KEY_NOT_UNKNOWN,
            })
        }
        Err(error) => unavailable(&error),
    }
}

fn to_body(record: KeyRecord) -> KeyBody {
    KeyBody {
        id: record.id.to_string(),
        guard: record.guard.to_string(),
        principal: record.principal.to_string(),
        method: record.method.to_string(),
        path: record.path.to_string(),
        key: record.key,
        state: record.state.word(),
        runs: record.runs,
        fence: record.fence.as_u64(),
        node: record.node.to_string(),
        first_at: time_text(record.first_at),
        started_at: time_text(record.started_at),
        ended_at: record.ended_at.map(time_text),
        status: record.status,
        error: record.error,
        expires_at: time_text(record.expires_at),
    }
}

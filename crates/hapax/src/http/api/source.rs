//! Sources, and the latest requests that they did not believe.

use axum::extract::{Path, State};
use axum::response::IntoResponse;
use http::StatusCode;
use serde::Serialize;
use utoipa::ToSchema;

use super::Api;
use super::describe::value;
use super::list::DataBody;
use crate::clock::text as time_text;
use crate::http::answer::{self, problem};
use crate::inbox::Source;
use crate::inbox::refused::RefusedRequest;

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Source)]
struct SourceBody {
    name: String,
    provider: String,
    scheme: String,
    retry_window_seconds: i64,
    identity_window_seconds: i64,
    payload_window_seconds: i64,
    ledger_window_seconds: i64,
    accepted: u64,
    duplicates: u64,
    failed_validation: u64,
    refused: u64,
    /// Which part of what was believed in the last minutes were duplicates, of 0 to 1; null if nothing came.
    duplicate_share: Option<f64>,
    /// The same before that, the latest hours counting most: what is usual for this source. Null until enough is known.
    duplicate_share_usual: Option<f64>,
}

#[derive(Serialize, ToSchema)]
#[schema(as = Refusal)]
struct RefusedBody {
    #[schema(schema_with = value::time)]
    at: String,
    remote: Option<String>,
    code: &'static str,
    cause: String,
    remedy: Option<String>,
}

/// Sources, with what they counted since the start.
#[utoipa::path(get, path = "/source", operation_id = "listSources", tag = "sources",
    responses((status = OK, description = "all of them", body = DataBody<SourceBody>)))]
pub async fn list(State(api): State<Api>) -> impl IntoResponse {
    let sources = api.inbox.sources();
    let data = sources
        .all()
        .into_iter()
        .map(|source| to_body(&api, source))
        .collect();
    answer::json(StatusCode::OK, &DataBody { data })
}

fn to_body(api: &Api, source: &Source) -> SourceBody {
    let [accepted, duplicates, failed_validation, refused] =
        api.metrics.counts(source.name()).unwrap_or_default();
    let keep = source.config.keep;
    let shares = api.alerts.shares(source.name());
    SourceBody {
        name: source.name().to_string(),
        provider: source.config.provider.to_string(),
        scheme: source.scheme_label.to_string(),
        retry_window_seconds: keep.retry_window.secs_ceil(),
        identity_window_seconds: keep.identity.secs_ceil(),
        payload_window_seconds: keep.payload.secs_ceil(),
        ledger_window_seconds: keep.ledger.secs_ceil(),
        accepted,
        duplicates,
        failed_validation,
        refused,
        duplicate_share: shares.recent,
        duplicate_share_usual: shares.usual,
    }
}

/// The latest requests that were not believed, with the likely cause.
#[utoipa::path(get, path = "/source/{name}/refused", operation_id = "listRefused", tag = "sources",
    params(("name" = String, Path, description = "the source")),
    responses((status = OK, description = "the latest, from memory", body = DataBody<RefusedBody>)))]
pub async fn refused(State(api): State<Api>, Path(name): Path<String>) -> impl IntoResponse {
    let sources = api.inbox.sources();
    let Some(source) = sources.get(&name).cloned() else {
        return problem(answer::NOT_FOUND);
    };
    // Finding a likely cause tries hundreds of variants of a signature: not on the threads that answer requests.
    let work = tokio::task::spawn_blocking(move || {
        let latest = source.refused.latest();
        let explained = latest.into_iter().map(|request| {
            let url = sources.public_url(&request.target);
            explain(&source, &request, url.as_deref())
        });
        explained.collect()
    });
    match work.await {
        Ok(data) => answer::json(StatusCode::OK, &DataBody { data }),
        Err(_) => problem(answer::UNAVAILABLE),
    }
}

fn explain(source: &Source, request: &RefusedRequest, url: Option<&str>) -> RefusedBody {
    let view = hapax_verify::Request {
        method: &request.method,
        url,
        headers: &request.headers,
        body: request.body.as_deref().unwrap_or_default(),
        now: request.at.micros(),
    };
    let cause = match request.body {
        // Without the body nothing more can be said than what failed.
        None => None,
        Some(_) => hapax_verify::explain(&source.verifier.load(), &view)
            .causes
            .into_iter()
            .next(),
    };
    RefusedBody {
        at: time_text(request.at),
        remote: request.remote.as_deref().map(str::to_owned),
        code: request.refusal.code(),
        cause: cause.as_ref().map_or_else(
            || request.refusal.to_string(),
            |cause| cause.evidence.clone(),
        ),
        remedy: cause.map(|cause| cause.remedy.to_string()),
    }
}

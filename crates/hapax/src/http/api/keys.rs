//! `GET /source/{name}/audit`: what the ledger tells about a source's keys.

use axum::extract::{Path, RawQuery, State};
use axum::response::IntoResponse;
use hapax_ledger::event::KeyOrigin;
use hapax_ledger::time::Time;
use http::StatusCode;

use super::Api;
use super::describe::asked::KeysQuery;
use super::event::unavailable;
use super::list::{self, Invalid};
use crate::config::SourceConfig;
use crate::forensics::{Expected, Report, gather, judge};
use crate::http::answer::{self, problem};

/// What the ledger tells about a source's keys.
#[utoipa::path(get, path = "/source/{name}/audit", operation_id = "auditKeys", tag = "sources",
    params(("name" = String, Path, description = "the source"), KeysQuery),
    responses((status = OK, description = "what was found", body = Report)))]
pub async fn audit(
    State(api): State<Api>,
    Path(name): Path<String>,
    RawQuery(query): RawQuery,
) -> impl IntoResponse {
    let sources = api.inbox.sources();
    let Some(source) = sources.get(&name).cloned() else {
        return problem(answer::NOT_FOUND);
    };
    let since = match since(query.as_deref().unwrap_or("")) {
        Ok(since) => since,
        Err(invalid) => return list::refuse(invalid),
    };
    match gather(&*api.store, &name, since).await {
        Ok(gathered) => {
            let report = judge(&name, &gathered, &expected(&source.config));
            answer::json(StatusCode::OK, &report)
        }
        Err(error) => unavailable(&error),
    }
}

fn since(query: &str) -> Result<Option<Time>, Invalid> {
    let mut since = None;
    for (name, value) in form_urlencoded::parse(query.as_bytes()) {
        match &*name {
            "since" => {
                let at = list::time(&name, &value);
                since = Some(at.map_err(|invalid| invalid.unwrap_or_else(|| unknown(&name)))?);
            }
            _ => return Err(unknown(&name)),
        }
    }
    Ok(since)
}

fn unknown(name: &str) -> Invalid {
    Invalid::query(name, "only `since` is known here")
}

/// The rung on which the config means a source's keys to be found.
fn expected(source: &SourceConfig) -> Expected {
    let provider = source.provider_id.as_ref();
    let provider = provider.filter(|id| id.signed || source.trust_unsigned_id);
    let origin = match (source.key.is_empty(), provider, source.composed.is_empty()) {
        (false, _, _) => KeyOrigin::Business,
        (true, Some(_), _) => KeyOrigin::Provider,
        (true, None, false) => KeyOrigin::Composed,
        (true, None, true) => KeyOrigin::Body,
    };
    Expected {
        origin,
        retry_window: source.keep.retry_window,
        object_field: source.object_id.as_ref().map(ToString::to_string),
    }
}

//! Secrets that providers choose and offer in a handshake: expected, listed, dropped. For admins. What they say is shown to nobody.

use axum::extract::{Path, State};
use axum::response::IntoResponse;
use hapax_ledger::time::Span;
use hapax_store::nouns::Changed;
use http::StatusCode;
use serde::Serialize;
use utoipa::ToSchema;

use super::Api;
use super::describe::asked::{ExpectRequest, ReasonedRequest};
use super::describe::value;
use super::event::unavailable;
use super::posted::{self, Posted};
use crate::clock::{self, text as time_text};
use crate::http::answer::{self, Answer, problem};
use crate::secrets::Unusable;

/// How long an offer is expected, unless told: long enough to make a webhook at the provider.
const SECONDS_DEFAULT: u64 = 600;
/// The longest: whoever comes first in that time is believed.
pub(super) const SECONDS_MAX: u64 = 3_600;

/// No name of a source or a secret is longer.
const NAME_BYTES_MAX: usize = 64;

/// A secret that was taken, without what it says.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = TakenSecret)]
struct SecretBody {
    id: String,
    #[schema(schema_with = value::time)]
    kept_at: String,
    /// Is it sealed with the first of the vault's keys?
    current_key: bool,
}

/// The secrets of a source.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = TakenSecrets)]
struct SecretsBody {
    data: Vec<SecretBody>,
    #[schema(schema_with = value::time_or_null)]
    expected_until: Option<String>,
}

/// An offer is expected.
#[derive(Serialize, ToSchema)]
#[schema(as = ExpectedSecret)]
struct ExpectedBody {
    #[schema(schema_with = value::time)]
    until: String,
}

/// A secret that does not count any more.
#[derive(Serialize, ToSchema)]
#[schema(as = DroppedSecret)]
struct DroppedBody {
    id: String,
}

/// The secrets that were taken for a source, and whether one is expected.
#[utoipa::path(get, path = "/source/{name}/secret", operation_id = "listSecrets", tag = "sources",
    params(("name" = String, Path, description = "the source")),
    responses((status = OK, description = "all of them", body = SecretsBody)))]
pub async fn list(State(api): State<Api>, Path(name): Path<String>) -> impl IntoResponse {
    if api.inbox.sources().get(&name).is_none() {
        return problem(answer::NOT_FOUND);
    }
    match api.offered.list(&name).await {
        Ok(taken) => {
            let data = taken.into_iter().map(|taken| SecretBody {
                id: taken.id,
                kept_at: time_text(taken.at),
                current_key: taken.current,
            });
            let until = api.offered.expected_until(&name, clock::now());
            let body = SecretsBody {
                data: data.collect(),
                expected_until: until.map(time_text),
            };
            answer::json(StatusCode::OK, &body)
        }
        Err(error) => unavailable(&error),
    }
}

/// Expects an offer: the next secret that the provider offers is taken, and verifies from then on.
#[utoipa::path(post, path = "/source/{name}/secret/expect", operation_id = "expectSecret", tag = "sources",
    params(("name" = String, Path, description = "the source")), request_body = ExpectRequest,
    responses((status = OK, description = "the next offer is taken", body = ExpectedBody)))]
pub async fn expect(
    State(api): State<Api>,
    Path(name): Path<String>,
    posted: Posted,
) -> impl IntoResponse {
    let sources = api.inbox.sources();
    let Some(source) = sources.get(&name) else {
        return problem(answer::NOT_FOUND);
    };
    let mut fields = posted.fields();
    let reason = fields.text("reason");
    let seconds = fields.optional_number("seconds", 1..=SECONDS_MAX);
    if let Err(refused) = fields.finish() {
        return refused.answer();
    }
    if !source
        .config
        .preset
        .is_some_and(|preset| preset.offers_secret())
    {
        return problem(answer::NO_OFFER);
    }
    let length = Span::from_secs(seconds.unwrap_or(SECONDS_DEFAULT) as i64);
    let body = ExpectedBody {
        until: time_text(posted.at + length),
    };
    let said = serde_json::to_string(&body).unwrap_or_default();
    let by = posted.authority(reason);
    match api.offered.expect(&name, length, by, said).await {
        Ok(Changed::Before(before)) => posted::before(before, StatusCode::OK),
        Ok(Changed::Done | Changed::NotFound | Changed::NameTaken) => {
            answer::json(StatusCode::OK, &body)
        }
        Err(error) => failed(&error),
    }
}

/// Drops a secret: what it signs is not believed any more.
#[utoipa::path(post, path = "/source/{name}/secret/{id}/drop", operation_id = "dropSecret", tag = "sources",
    params(("name" = String, Path, description = "the source"), ("id" = String, Path, description = "the secret")),
    request_body = ReasonedRequest,
    responses((status = OK, description = "it does not count any more", body = DroppedBody)))]
pub async fn drop_one(
    State(api): State<Api>,
    Path((name, id)): Path<(String, String)>,
    posted: Posted,
) -> impl IntoResponse {
    // A source that has gone from the config may have left secrets behind.
    let plain = |text: &str| {
        let letter = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        text.len() <= NAME_BYTES_MAX && text.bytes().all(letter)
    };
    if !plain(&name) || !plain(&id) {
        return problem(answer::NOT_FOUND);
    }
    let mut fields = posted.fields();
    let reason = fields.text("reason");
    if let Err(refused) = fields.finish() {
        return refused.answer();
    }
    let body = DroppedBody { id: id.clone() };
    let said = serde_json::to_string(&body).unwrap_or_default();
    let by = posted.authority(reason);
    let dropped = api.offered.drop_one(&name, &id, by, said).await;
    if let Err(error) = api.inbox.learn().await {
        tracing::warn!(%error, "secrets could not be read again; the change counts here within seconds");
    }
    match dropped {
        Ok(Changed::Done) => answer::json(StatusCode::OK, &body),
        Ok(Changed::Before(before)) => posted::before(before, StatusCode::OK),
        Ok(Changed::NotFound | Changed::NameTaken) => problem(answer::NOT_FOUND),
        Err(error) => failed(&error),
    }
}

fn failed(error: &Unusable) -> Answer {
    match error {
        Unusable::Store(error) => unavailable(error),
        Unusable::None | Unusable::Missing => problem(answer::NO_VAULT_KEY),
        Unusable::Wrong | Unusable::Sealed(_) | Unusable::File(_) => {
            tracing::error!(%error, "secrets cannot be read");
            problem(answer::UNAVAILABLE)
        }
    }
}

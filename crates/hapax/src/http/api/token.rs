//! API tokens: made, listed, revoked. For admins.

use axum::extract::{Path, State};
use axum::response::IntoResponse;
use hapax_ledger::id::TokenId;
use hapax_store::nouns::{Before, Changed, Role, Token};
use http::StatusCode;
use serde_json::{Value, json};

use super::Api;
use super::body::Refused;
use super::event::unavailable;
use super::posted::{self, Posted};
use crate::clock::text as time_text;
use crate::entropy;
use crate::http::answer::{self, Answer, problem};
use crate::http::auth::token_hash;
use crate::operate::ids;
use crate::operate::tokens::ADMIN;

/// The longest name: it stands in every audit record.
const NAME_CHARS_MAX: usize = 100;

const SHOWN_ONCE: &str = "an earlier request with this Idempotency-Key made the token; its secret was shown once, in that answer";

/// `GET /token`
pub async fn list(State(api): State<Api>) -> impl IntoResponse {
    match api.store.tokens().await {
        Ok(tokens) => {
            let data: Vec<Value> = tokens.iter().map(to_json).collect();
            answer::json(StatusCode::OK, &json!({ "data": data }))
        }
        Err(error) => unavailable(&error),
    }
}

/// `POST /token`: the secret is in the answer, and nowhere else.
pub async fn create(State(api): State<Api>, posted: Posted) -> impl IntoResponse {
    let (token, secret, reason) = match read(&posted) {
        Ok(read) => read,
        Err(refused) => return refused.answer(),
    };
    if *token.name == *ADMIN {
        return problem(answer::NAME_TAKEN);
    }
    let kept = to_json(&token);
    let created = api
        .store
        .create_token(token, posted.authority(reason), kept.to_string())
        .await;
    match created {
        Ok(Changed::Done) => {
            heard(&api).await;
            let mut said = kept;
            said["token"] = secret.into();
            answer::json(StatusCode::CREATED, &said)
        }
        Ok(Changed::Before(before)) => made_before(before),
        Ok(Changed::NotFound | Changed::NameTaken) => problem(answer::NAME_TAKEN),
        Err(error) => unavailable(&error),
    }
}

/// The same but for the secret, which was shown once.
fn made_before(before: Before) -> Answer {
    let before = match before {
        Before::Same(said) => {
            let mut said: Value = serde_json::from_str(&said).unwrap_or_default();
            said["token"] = Value::Null;
            said["detail"] = SHOWN_ONCE.into();
            Before::Same(said.to_string())
        }
        Before::Other => Before::Other,
    };
    posted::before(before, StatusCode::OK)
}

fn read(posted: &Posted) -> Result<(Token, String, String), Refused> {
    let mut fields = posted.fields();
    let name = fields.text("name");
    if name.chars().count() > NAME_CHARS_MAX || name.chars().any(char::is_control) {
        fields.refuse("name", "at most 100 characters on one line are expected");
    }
    let role = fields.word("role", "viewer, operator, admin", Role::from_word);
    let app = fields.optional_text("app");
    let expires_at = fields.optional_time("expiresAt");
    if expires_at.is_some_and(|until| until <= posted.at) {
        fields.refuse("expiresAt", "a time to come is expected");
    }
    let reason = fields.optional_text("reason").unwrap_or_default();
    fields.finish()?;
    let secret = format!("hpx_{}", hex::encode(entropy::bytes::<32>()));
    let token = Token {
        id: TokenId(ids::fresh(posted.at)),
        name: name.trim().into(),
        // Only if the body was refused is there no role.
        role: role.unwrap_or(Role::Viewer),
        app,
        hash: token_hash(secret.as_bytes()),
        created_at: posted.at,
        expires_at,
        last_used_at: None,
        revoked_at: None,
    };
    Ok((token, secret, reason))
}

/// `POST /token/{id}/revoke`
pub async fn revoke(
    State(api): State<Api>,
    Path(id): Path<String>,
    posted: Posted,
) -> impl IntoResponse {
    let Ok(id) = id.parse::<TokenId>() else {
        return problem(answer::NOT_FOUND);
    };
    let mut fields = posted.fields();
    let reason = fields.optional_text("reason").unwrap_or_default();
    if let Err(refused) = fields.finish() {
        return refused.answer();
    }
    let said = json!({ "id": id.to_string(), "revokedAt": time_text(posted.at) });
    let revoked = api
        .store
        .revoke_token(id, posted.authority(reason), said.to_string())
        .await;
    match revoked {
        Ok(Changed::Done) => {
            heard(&api).await;
            answer::json(StatusCode::OK, &said)
        }
        Ok(Changed::Before(before)) => posted::before(before, StatusCode::OK),
        Ok(Changed::NotFound | Changed::NameTaken) => problem(answer::NOT_FOUND),
        Err(error) => unavailable(&error),
    }
}

/// The change counts here from now on, before anybody hears of it.
async fn heard(api: &Api) {
    if let Err(error) = api.tokens.refresh().await {
        tracing::warn!(%error, "tokens could not be read again; the change counts here within seconds");
    }
}

/// A token as users see it. Its hash is nobody's business.
fn to_json(token: &Token) -> Value {
    json!({
        "id": token.id.to_string(),
        "name": &*token.name,
        "role": token.role.word(),
        "app": token.app,
        "createdAt": time_text(token.created_at),
        "expiresAt": token.expires_at.map(time_text),
        "lastUsedAt": token.last_used_at.map(time_text),
        "revokedAt": token.revoked_at.map(time_text),
    })
}

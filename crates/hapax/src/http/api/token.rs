//! API tokens: made, listed, revoked. For admins.

use axum::extract::{Path, State};
use axum::response::IntoResponse;
use hapax_ledger::id::TokenId;
use hapax_store::nouns::{Before, Changed, Role, Token};
use http::StatusCode;
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use super::Api;
use super::body::Refused;
use super::describe::asked::{ReasonRequest, TokenRequest};
use super::describe::value;
use super::event::unavailable;
use super::list::DataBody;
use super::posted::{self, Posted};
use crate::clock::text as time_text;
use crate::entropy;
use crate::http::answer::{self, Answer, problem};
use crate::http::auth::token_hash;
use crate::operate::ids;
use crate::operate::tokens::ADMIN;

/// The longest name: it stands in every audit record.
pub(super) const NAME_CHARS_MAX: usize = 100;

const SHOWN_ONCE: &str = "an earlier request with this Idempotency-Key made the token; its secret was shown once, in that answer";

/// A token as users see it. Its hash is nobody's business.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Token)]
struct TokenBody {
    #[schema(schema_with = value::token_id)]
    id: String,
    name: String,
    #[schema(schema_with = value::role)]
    role: &'static str,
    app: Option<String>,
    #[schema(schema_with = value::time)]
    created_at: String,
    #[schema(schema_with = value::time_or_null)]
    expires_at: Option<String>,
    #[schema(schema_with = value::time_or_null)]
    last_used_at: Option<String>,
    #[schema(schema_with = value::time_or_null)]
    revoked_at: Option<String>,
}

/// A token that was just made.
#[derive(Serialize, ToSchema)]
#[schema(as = MadeToken)]
struct MadeBody {
    #[serde(flatten)]
    made: TokenBody,
    /// Its secret, shown once: null if an earlier request with this `Idempotency-Key` made it.
    token: Option<String>,
    /// Why there is no secret.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    detail: Option<&'static str>,
}

/// A token that does not count any more.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = RevokedToken)]
struct RevokedBody {
    #[schema(schema_with = value::token_id)]
    id: String,
    #[schema(schema_with = value::time)]
    revoked_at: String,
}

/// All tokens, newest first.
#[utoipa::path(get, path = "/token", operation_id = "listTokens", tag = "tokens",
    responses((status = OK, description = "all of them", body = DataBody<TokenBody>)))]
pub async fn list(State(api): State<Api>) -> impl IntoResponse {
    match api.store.tokens().await {
        Ok(tokens) => {
            let data: Vec<TokenBody> = tokens.iter().map(to_body).collect();
            answer::json(StatusCode::OK, &DataBody { data })
        }
        Err(error) => unavailable(&error),
    }
}

/// Makes a token.
///
/// The secret is in the answer, and nowhere else.
#[utoipa::path(post, path = "/token", operation_id = "createToken", tag = "tokens",
    request_body = TokenRequest,
    responses(
        (status = CREATED, description = "the token and its secret", body = MadeBody),
        (status = OK, description = "it was made before", body = MadeBody)))]
pub async fn create(State(api): State<Api>, posted: Posted) -> impl IntoResponse {
    let (token, secret, reason) = match read(&posted) {
        Ok(read) => read,
        Err(refused) => return refused.answer(),
    };
    if *token.name == *ADMIN {
        return problem(answer::NAME_TAKEN);
    }
    let made = to_body(&token);
    let kept = serde_json::to_string(&made).unwrap_or_default();
    let created = api
        .store
        .create_token(token, posted.authority(reason), kept)
        .await;
    match created {
        Ok(Changed::Done) => {
            heard(&api).await;
            let body = MadeBody {
                made,
                token: Some(secret),
                detail: None,
            };
            answer::json(StatusCode::CREATED, &body)
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

/// Revokes a token.
#[utoipa::path(post, path = "/token/{id}/revoke", operation_id = "revokeToken", tag = "tokens",
    params(("id" = String, Path, description = "the token")), request_body = Option<ReasonRequest>,
    responses((status = OK, description = "it does not count any more", body = RevokedBody)))]
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
    let body = RevokedBody {
        id: id.to_string(),
        revoked_at: time_text(posted.at),
    };
    let said = serde_json::to_string(&body).unwrap_or_default();
    let revoked = api
        .store
        .revoke_token(id, posted.authority(reason), said)
        .await;
    match revoked {
        Ok(Changed::Done) => {
            heard(&api).await;
            answer::json(StatusCode::OK, &body)
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

fn to_body(token: &Token) -> TokenBody {
    TokenBody {
        id: token.id.to_string(),
        name: token.name.to_string(),
        role: token.role.word(),
        app: token.app.clone(),
        created_at: time_text(token.created_at),
        expires_at: token.expires_at.map(time_text),
        last_used_at: token.last_used_at.map(time_text),
        revoked_at: token.revoked_at.map(time_text),
    }
}

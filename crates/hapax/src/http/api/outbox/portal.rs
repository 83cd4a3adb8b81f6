//! Access for consumers: tokens of one application that end by themselves.

use axum::extract::{Path, State};
use axum::response::IntoResponse;
use bytes::Bytes;
use hapax_ledger::id::{AppId, TokenId};
use hapax_ledger::key::BodyHash;
use hapax_ledger::time::Span;
use hapax_store::nouns::{Before, Changed, Role, Token};
use http::StatusCode;
use serde::Serialize;
use utoipa::ToSchema;

use super::app;
use super::change::no_content;
use super::halt::{Halt, Outcome};
use super::message;
use crate::entropy;
use crate::http::answer::{self, explained};
use crate::http::api::Api;
use crate::http::api::describe::asked_outbox::{ExpireRequest, PortalRequest, ResendRequest};
use crate::http::api::describe::told;
use crate::http::api::once::{self, Said};
use crate::http::api::posted::{self, Posted};
use crate::http::auth::token_hash;
use crate::operate::ids;
use crate::operate::tokens::PORTAL;

/// The shortest and the longest that a token counts, in seconds: an hour, a week.
pub(in crate::http::api) const EXPIRY_SECONDS_MIN: u64 = 60 * 60;
/// See [`EXPIRY_SECONDS_MIN`].
pub(in crate::http::api) const EXPIRY_SECONDS_MAX: u64 = 7 * 24 * 60 * 60;

/// What a token of the portal may do, as the SDKs call it.
pub(in crate::http::api) const CAPABILITIES: [&str; 6] = [
    "ViewBase",
    "ViewEndpointSecret",
    "ManageEndpointSecret",
    "ManageTransformations",
    "CreateAttempts",
    "ManageEndpoint",
];

/// A way in.
#[derive(Serialize, ToSchema)]
#[schema(as = PortalAccess)]
struct AccessBody {
    /// Where a consumer goes.
    url: String,
    /// What it shows there: a token for the API, of one application.
    token: String,
}

/// What the audit log has of it.
#[derive(Serialize)]
struct KeptBody {
    id: String,
    app: String,
    role: &'static str,
}

/// Makes a token for a consumer, and a link to the portal.
#[utoipa::path(post, path = "/auth/app-portal-access/{app_id}", operation_id = "createPortalAccess", tag = "portal",
    params(("app_id" = String, Path, description = "the application's id or uid")),
    request_body = Option<PortalRequest>,
    responses((status = OK, description = "the link and the token", body = AccessBody),
        (status = NOT_IMPLEMENTED, description = "feature flags are not offered; nothing was done", body = told::Problem)))]
pub async fn access(
    State(api): State<Api>,
    Path(name): Path<String>,
    posted: Posted,
) -> impl IntoResponse {
    let mut fields = posted.fields();
    let inline = app::inline(&mut fields, &name, posted.at)?;
    let read_only = fields.flag("readOnly");
    let expected = "words such as ViewBase are expected";
    let known = |word: &str| CAPABILITIES.contains(&word);
    let capabilities = fields.words("capabilities", CAPABILITIES.len(), expected, known);
    let flags = fields.texts("featureFlags");
    let expiry = fields.optional_number("expiry", EXPIRY_SECONDS_MIN..=EXPIRY_SECONDS_MAX);
    let session = fields.optional_text("sessionId");
    // A token looks or may do all there is for its application. What lies between is not rounded up to more than was asked for.
    let looks_only = |all: &Vec<String>| all.iter().all(|word| word.starts_with("View"));
    let all_of_it = |all: &Vec<String>| {
        CAPABILITIES
            .iter()
            .all(|one| all.iter().any(|word| word == one))
    };
    if capabilities
        .as_ref()
        .is_some_and(|all| !looks_only(all) && !all_of_it(all))
    {
        fields.refuse(
            "capabilities",
            "all of them, or only those that begin with View, are expected",
        );
    }
    fields.finish()?;
    // They narrow which types of events a consumer is shown. Here all are shown, and that is more than was asked for.
    if !flags.is_empty() {
        let detail = "Hapax does not offer feature flags for consumers; nothing was done";
        return Err(explained(answer::UNSUPPORTED, detail, None).into());
    }
    let app = {
        api.publisher
            .registry
            .fresh()
            .await?
            .app(&name)
            .map(|app| app.id)
    };
    let app = match (app, inline) {
        (Some(app), _) => app,
        (None, Some(inline)) => message::make_app(&api, &posted, &inline, &name).await?,
        (None, None) => return Err(answer::NOT_FOUND.into()),
    };
    let role = match read_only || capabilities.as_ref().is_some_and(looks_only) {
        true => Role::Viewer,
        false => Role::Operator,
    };
    let seconds = i64::try_from(expiry.unwrap_or(EXPIRY_SECONDS_MAX)).unwrap_or(0);
    let wanted = Wanted {
        app,
        role,
        session: session.as_deref(),
        length: Span::from_secs(seconds),
    };
    make(&api, &posted, &wanted).await
}

struct Wanted<'a> {
    app: AppId,
    role: Role,
    session: Option<&'a str>,
    length: Span,
}

/// A session as it stands in names: nobody's words, and no longer than others.
fn mark(session: &str) -> String {
    hex::encode(&BodyHash::of(session.as_bytes()).bytes()[..8])
}

/// A request that comes again gets another way in, and the one before ends: its secret was in the answer and nowhere else. So a key stands
/// for one way in, however often it comes.
async fn make(api: &Api, posted: &Posted, wanted: &Wanted<'_>) -> Outcome {
    let session = wanted.session.map_or_else(|| "-".to_owned(), mark);
    let begin = match &posted.request {
        Some(request) => {
            let key = hex::encode(&request.key.bytes()[..8]);
            format!("{PORTAL}{} {session} {key}-", wanted.app)
        }
        None => format!("{PORTAL}{} {session} ", wanted.app),
    };
    let (changed, secret) = create(api, posted, wanted, &begin).await?;
    let secret = match changed {
        Changed::Done => secret,
        Changed::Before(Before::Same(_)) => {
            end_all(api, posted, std::slice::from_ref(&begin), "asked for again").await?;
            let (changed, secret) = create(api, &posted.without_key(), wanted, &begin).await?;
            if changed != Changed::Done {
                return Err(answer::BUSY.into());
            }
            secret
        }
        Changed::Before(before @ Before::Other) => {
            return Ok(posted::before(before, StatusCode::OK));
        }
        Changed::NotFound | Changed::NameTaken => return Err(answer::BUSY.into()),
    };
    api.tokens.refresh().await?;
    let url = format!("{}/{}#key={secret}", api.portal, wanted.app);
    let body = AccessBody { url, token: secret };
    Ok(answer::json(StatusCode::OK, &body))
}

/// Makes a token whose name begins so, and its secret.
async fn create(
    api: &Api,
    posted: &Posted,
    wanted: &Wanted<'_>,
    begin: &str,
) -> Result<(Changed, String), Halt> {
    let secret = format!("hpx_{}", hex::encode(entropy::bytes::<32>()));
    let lot = hex::encode(entropy::bytes::<8>());
    let token = Token {
        id: TokenId(ids::fresh(posted.at)),
        name: format!("{begin}{lot}").into(),
        role: wanted.role,
        app: Some(wanted.app.to_string()),
        hash: token_hash(secret.as_bytes()),
        created_at: posted.at,
        expires_at: Some(posted.at + wanted.length),
        last_used_at: None,
        revoked_at: None,
    };
    let kept = KeptBody {
        id: token.id.to_string(),
        app: wanted.app.to_string(),
        role: wanted.role.word(),
    };
    let said = serde_json::to_string(&kept).unwrap_or_default();
    let by = posted.authority("access to the portal".to_owned());
    Ok((api.store.create_token(token, by, said).await?, secret))
}

/// Ends all tokens that were made for consumers of an application, or those of some sessions.
#[utoipa::path(post, path = "/auth/app/{app_id}/expire-all", operation_id = "expirePortalAccess", tag = "portal",
    params(("app_id" = String, Path, description = "the application's id or uid")),
    request_body = Option<ExpireRequest>,
    responses((status = NO_CONTENT, description = "they count no more")))]
pub async fn expire_all(
    State(api): State<Api>,
    Path(name): Path<String>,
    posted: Posted,
) -> impl IntoResponse {
    let mut fields = posted.fields();
    // They end at once.
    fields.optional_number("expiry", 0..=0);
    let sessions = fields.texts("sessionIds");
    fields.finish()?;
    let app = super::change::find_app(&api, &name).await?.id;
    let begins: Vec<String> = match sessions.is_empty() {
        true => vec![format!("{PORTAL}{app} ")],
        false => sessions
            .iter()
            .map(|session| format!("{PORTAL}{app} {} ", mark(session)))
            .collect(),
    };
    // Those that are made later are not meant, also if the same request comes again then.
    let (own, alone) = (api.clone(), posted.without_key());
    let work = async move {
        let ended = end_all(&own, &alone, &begins, "all access to the portal expired").await;
        match ended {
            Ok(()) => Said::Keep(Bytes::new()),
            Err(halt) => Said::Pass(halt.answer()),
        }
    };
    let answer = once::once(api, posted, work).await;
    Outcome::Ok(match answer.status() {
        StatusCode::OK => no_content(),
        _ => answer,
    })
}

/// Ends all tokens whose names begin so.
async fn end_all(api: &Api, posted: &Posted, begins: &[String], why: &str) -> Result<(), Halt> {
    let alone = posted.without_key();
    for token in api.store.live_tokens(posted.at).await? {
        if begins.iter().any(|begin| token.name.starts_with(begin)) {
            revoke(api, &alone, token.id, why).await?;
        }
    }
    Ok(api.tokens.refresh().await?)
}

async fn revoke(api: &Api, posted: &Posted, id: TokenId, why: &str) -> Result<Changed, Halt> {
    let by = posted.authority(why.to_owned());
    let said = serde_json::json!({ "id": id.to_string() }).to_string();
    Ok(api.store.revoke_token(id, by, said).await?)
}

/// Ends the token that asks, if it is one of the portal.
#[utoipa::path(post, path = "/auth/logout", operation_id = "logout", tag = "portal",
    request_body = Option<ResendRequest>,
    responses((status = NO_CONTENT, description = "it counts no more")))]
pub async fn logout(State(api): State<Api>, posted: Posted) -> impl IntoResponse {
    let own = &posted.actor;
    let ours = own.app.as_ref().map(|app| format!("{PORTAL}{app} "));
    let ours = ours.is_some_and(|ours| own.name.starts_with(&ours));
    let Some(token) = own.token.filter(|_| ours) else {
        return Err(answer::NOT_PORTAL.into());
    };
    let changed = revoke(&api, &posted, token, "logged out").await?;
    if let Changed::Before(before @ Before::Other) = changed {
        return Ok(posted::before(before, StatusCode::NO_CONTENT));
    }
    api.tokens.refresh().await?;
    Outcome::Ok(no_content())
}

//! What of an endpoint is secret: the key that signs, and the headers that go along.

use std::collections::BTreeMap;

use axum::extract::{Path, State};
use axum::response::IntoResponse;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hapax_ledger::time::{Span, Time};
use hapax_store::nouns::{Before, Endpoint, Entry};
use http::StatusCode;
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use super::change::{self, Change, Changed, endpoint_of};
use super::endpoint::vault;
use super::endpoint_body;
use super::halt::{Halt, Outcome};
use crate::clock;
use crate::dispatch::signature::{DeliverySigner, PUBLIC_PREFIX, Scheme};
use crate::http::answer;
use crate::http::api::Api;
use crate::http::api::body::Fields;
use crate::http::api::describe::asked_outbox::{
    HeadersPatchRequest, HeadersRequest, RotateRequest,
};
use crate::http::api::posted::{self, Posted};
use crate::outbox::Catalog;
use crate::outbox::extra::{self, EndpointExtra};
use crate::outbox::headers;
use crate::outbox::sealed::{OVERLAP_DEFAULT, OVERLAP_MAX, Opened};

/// The longest overlap, in seconds.
pub(in crate::http::api) const OVERLAP_SECONDS_MAX: u64 = (OVERLAP_MAX.micros() / 1_000_000) as u64;

/// Words in the name of a header whose value is nobody's business.
const SENSITIVE: [&str; 10] = [
    "auth",
    "token",
    "secret",
    "key",
    "password",
    "cookie",
    "signature",
    "credential",
    "session",
    "bearer",
];

/// The key that consumers verify with.
#[derive(Serialize, ToSchema)]
#[schema(as = EndpointSecret)]
pub(super) struct SecretBody {
    /// `whsec_...`; of a key pair the public half, `whpk_...`.
    key: String,
}

/// Headers that go along.
#[derive(Serialize, ToSchema)]
#[schema(as = EndpointHeaders)]
pub(super) struct HeadersBody {
    /// Those that can be shown.
    headers: BTreeMap<String, String>,
    /// Names of those that cannot.
    sensitive: Vec<String>,
}

/// What the audit log has of a change to what is secret.
#[derive(Serialize)]
struct KeptBody {
    id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    headers: Option<Vec<String>>,
    /// What was sealed before did not open, and is gone: keys that signed, and headers.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    lost: bool,
}

fn open(api: &Api, endpoint: &Endpoint) -> Result<Opened, Halt> {
    let opened = Opened::open(&*vault(api)?, endpoint.id, &endpoint.sealed);
    opened.map_err(|error| {
        tracing::error!(%error, endpoint = %endpoint.id, "the secrets of an endpoint do not open");
        answer::UNAVAILABLE.into()
    })
}

/// What a consumer needs to verify with.
fn shown(endpoint: &Endpoint, opened: &Opened, now: Time) -> String {
    let extra: EndpointExtra = extra::read(&endpoint.extra);
    match extra.scheme() {
        Scheme::Hmac | Scheme::Stripe(_) => opened.current().to_owned(),
        Scheme::Ed25519 => {
            let signer = DeliverySigner::new(Scheme::Ed25519, extra.names(), &opened.live());
            let keys = signer.map(|signer| signer.public_keys(now));
            // The current one is the first: older ones sign, but what is new verifies from now on.
            let current = keys.ok().and_then(|keys| keys.first().copied());
            let key = current.unwrap_or_default();
            format!("{PUBLIC_PREFIX}{}", STANDARD.encode(key))
        }
    }
}

/// The key that the endpoint's consumer verifies with.
#[utoipa::path(get, path = "/app/{app_id}/endpoint/{endpoint_id}/secret", operation_id = "getEndpointSecret", tag = "endpoints",
    params(("app_id" = String, Path, description = "the application's id or uid"),
        ("endpoint_id" = String, Path, description = "the endpoint's id or uid")),
    responses((status = OK, description = "the key", body = SecretBody),
        (status = CONFLICT, description = "there is no vault key", body = crate::http::api::describe::told::Problem)))]
pub async fn show(
    State(api): State<Api>,
    Path((app, name)): Path<(String, String)>,
) -> impl IntoResponse {
    let endpoint = change::find_endpoint(&api, &app, &name).await?;
    let key = shown(&endpoint, &open(&api, &endpoint)?, clock::now());
    Outcome::Ok(answer::json(StatusCode::OK, &SecretBody { key }))
}

/// Another key signs from now on; the one before signs as well for the grace period. Where what was sealed before does not open since
/// its vault key is lost, a `key` that is given replaces it; the headers that went along are then lost, too.
#[utoipa::path(post, path = "/app/{app_id}/endpoint/{endpoint_id}/secret/rotate", operation_id = "rotateEndpointSecret", tag = "endpoints",
    params(("app_id" = String, Path, description = "the application's id or uid"),
        ("endpoint_id" = String, Path, description = "the endpoint's id or uid")),
    request_body = Option<RotateRequest>,
    responses((status = OK, description = "the new key", body = SecretBody)))]
pub async fn rotate(
    State(api): State<Api>,
    Path((app, name)): Path<(String, String)>,
    posted: Posted,
) -> impl IntoResponse {
    let decide = |catalog: &Catalog| {
        let was = endpoint_of(catalog, &app, &name)?;
        let mut fields = posted.fields();
        let extra: EndpointExtra = extra::read(&was.extra);
        let key = endpoint_body::secret(&mut fields, "key", extra.scheme());
        let grace = fields.optional_number("gracePeriodSeconds", 0..=OVERLAP_SECONDS_MAX);
        fields.finish()?;
        let seconds = grace.and_then(|grace| i64::try_from(grace).ok());
        let overlap = seconds.map_or(OVERLAP_DEFAULT, Span::from_secs);
        match open(&api, was) {
            Ok(mut opened) => {
                opened.rotate(key, overlap, posted.at);
                sealed(&api, was, &opened, posted.at, None)
            }
            // Whoever brings a key of their own repairs an endpoint whose vault key is lost: nothing is left that could overlap. A key
            // that we draw would be unknown to the consumer, and what does not open may only want the right vault key.
            Err(_) if api.safe.vault().is_some() && brings_key(&posted) => {
                let opened = Opened::new(key, BTreeMap::new(), posted.at);
                let mut change = sealed(&api, was, &opened, posted.at, None)?;
                change.body.lost = true;
                Ok(change)
            }
            Err(halt) => Err(halt),
        }
    };
    let rotated = change::make(&api, &posted, "endpoint.rotate", decide).await?;
    if let Changed::Before(before @ Before::Other) = rotated {
        return Ok(posted::before(before, StatusCode::OK));
    }
    // The answer of the first request is not kept, as it is secret: what is current now is what it said, or newer.
    let endpoint = change::find_endpoint(&api, &app, &name).await?;
    let key = shown(&endpoint, &open(&api, &endpoint)?, posted.at);
    // What could not be signed until now goes out.
    api.dispatcher.opened(&[endpoint.id.to_string().into()]);
    Outcome::Ok(answer::json(StatusCode::OK, &SecretBody { key }))
}

/// Does a request say which key it wants?
fn brings_key(posted: &Posted) -> bool {
    posted.fields().optional_text("key").is_some()
}

fn sealed(
    api: &Api,
    was: &Endpoint,
    opened: &Opened,
    at: Time,
    headers: Option<Vec<String>>,
) -> Result<Change<KeptBody>, Halt> {
    let mut endpoint = Endpoint {
        updated_at: at,
        ..was.clone()
    };
    endpoint_body::seal(opened, &vault(api)?, &mut endpoint);
    Ok(Change {
        body: KeptBody {
            id: endpoint.id.to_string(),
            headers,
            lost: false,
        },
        entry: Entry::Endpoint(Box::new(endpoint)),
        was: was.revision,
    })
}

/// Headers that go along. Values that look secret are not shown.
#[utoipa::path(get, path = "/app/{app_id}/endpoint/{endpoint_id}/headers", operation_id = "getEndpointHeaders", tag = "endpoints",
    params(("app_id" = String, Path, description = "the application's id or uid"),
        ("endpoint_id" = String, Path, description = "the endpoint's id or uid")),
    responses((status = OK, description = "the headers", body = HeadersBody),
        (status = CONFLICT, description = "there is no vault key", body = crate::http::api::describe::told::Problem)))]
pub async fn headers(
    State(api): State<Api>,
    Path((app, name)): Path<(String, String)>,
) -> impl IntoResponse {
    let endpoint = change::find_endpoint(&api, &app, &name).await?;
    let opened = open(&api, &endpoint)?;
    let hidden = |name: &str| {
        let lower = name.to_ascii_lowercase();
        SENSITIVE.iter().any(|word| lower.contains(word))
    };
    let (sensitive, headers): (BTreeMap<_, _>, BTreeMap<_, _>) = opened
        .headers
        .into_iter()
        .partition(|(name, _)| hidden(name));
    let body = HeadersBody {
        headers,
        sensitive: sensitive.into_keys().collect(),
    };
    Outcome::Ok(answer::json(StatusCode::OK, &body))
}

/// Replaces the headers that go along.
#[utoipa::path(put, path = "/app/{app_id}/endpoint/{endpoint_id}/headers", operation_id = "putEndpointHeaders", tag = "endpoints",
    params(("app_id" = String, Path, description = "the application's id or uid"),
        ("endpoint_id" = String, Path, description = "the endpoint's id or uid")),
    request_body = HeadersRequest,
    responses((status = NO_CONTENT, description = "they are replaced")))]
pub async fn put_headers(
    State(api): State<Api>,
    Path((app, name)): Path<(String, String)>,
    posted: Posted,
) -> impl IntoResponse {
    change_headers(&api, &app, &name, &posted, |fields, known| {
        known.clear();
        known.extend(endpoint_body::headers(fields, "headers"));
    })
    .await
}

/// Adds, changes and removes headers that go along.
#[utoipa::path(patch, path = "/app/{app_id}/endpoint/{endpoint_id}/headers", operation_id = "patchEndpointHeaders", tag = "endpoints",
    params(("app_id" = String, Path, description = "the application's id or uid"),
        ("endpoint_id" = String, Path, description = "the endpoint's id or uid")),
    request_body = Option<HeadersPatchRequest>,
    responses((status = NO_CONTENT, description = "they are changed")))]
pub async fn patch_headers(
    State(api): State<Api>,
    Path((app, name)): Path<(String, String)>,
    posted: Posted,
) -> impl IntoResponse {
    change_headers(&api, &app, &name, &posted, merge).await
}

/// What is `null` goes, as does what `deleteHeaders` names; names count whatever their case.
fn merge(fields: &mut Fields, known: &mut BTreeMap<String, String>) {
    let given = match fields.json("headers") {
        None => serde_json::Map::new(),
        Some(Value::Object(given)) => given,
        Some(_) => {
            fields.refuse("headers", "an object of texts is expected");
            return;
        }
    };
    let forget = |known: &mut BTreeMap<String, String>, name: &str| {
        known.retain(|one, _| !one.eq_ignore_ascii_case(name));
    };
    for name in fields.texts("deleteHeaders") {
        forget(known, &name);
    }
    for (name, value) in given {
        forget(known, &name);
        match value {
            Value::Null => {}
            Value::String(value) => drop(known.insert(name, value)),
            _ => fields.refuse("headers", "an object of texts is expected"),
        }
    }
    if let Err(bad) = headers::check(known) {
        fields.refuse("headers", &bad.to_string());
    }
}

async fn change_headers(
    api: &Api,
    app: &str,
    name: &str,
    posted: &Posted,
    edit: impl Fn(&mut Fields, &mut BTreeMap<String, String>),
) -> Outcome {
    let decide = |catalog: &Catalog| {
        let was = endpoint_of(catalog, app, name)?;
        let mut opened = open(api, was)?;
        let mut fields = posted.fields();
        edit(&mut fields, &mut opened.headers);
        fields.finish()?;
        let names = opened.headers.keys().cloned().collect();
        sealed(api, was, &opened, posted.at, Some(names))
    };
    change::put_quietly(api, posted, "endpoint.headers", decide).await
}

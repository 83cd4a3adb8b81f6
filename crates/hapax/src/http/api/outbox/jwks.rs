//! Public keys of endpoints that verify with a key pair, as a JSON Web Key Set: open to everybody, since they are public.

use axum::extract::{Path, State};
use axum::response::IntoResponse;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hapax_ledger::id::EndpointId;
use hapax_ledger::key::BodyHash;
use http::header::CACHE_CONTROL;
use http::{HeaderValue, StatusCode};
use serde::Serialize;
use utoipa::ToSchema;

use crate::clock;
use crate::http::answer;
use crate::http::api::Api;

/// A set that was asked for may be kept for five minutes: far shorter than old and new keys sign together by default.
const KEPT: HeaderValue = HeaderValue::from_static("public, max-age=300");

/// One public key (RFC 8037).
#[derive(Serialize, ToSchema)]
#[schema(as = PublicKey)]
struct KeyBody {
    kty: &'static str,
    crv: &'static str,
    #[serde(rename = "use")]
    usage: &'static str,
    alg: &'static str,
    /// The thumbprint of the key (RFC 7638).
    kid: String,
    /// The key.
    x: String,
}

/// Keys that verify a delivery at this time, the current one first.
#[derive(Serialize, ToSchema)]
#[schema(as = PublicKeys)]
struct KeysBody {
    keys: Vec<KeyBody>,
}

fn to_body(key: &[u8; 32]) -> KeyBody {
    let x = URL_SAFE_NO_PAD.encode(key);
    let members = format!(r#"{{"crv":"Ed25519","kty":"OKP","x":"{x}"}}"#);
    KeyBody {
        kty: "OKP",
        crv: "Ed25519",
        usage: "sig",
        alg: "EdDSA",
        kid: URL_SAFE_NO_PAD.encode(BodyHash::of(members.as_bytes()).bytes()),
        x,
    }
}

/// Public keys that deliveries to an endpoint verify with. None if its secret is shared, or if there is no such endpoint.
///
/// Answered from memory: whoever asks needs no token, so the store is not asked.
#[utoipa::path(get, path = "/jwks/{endpoint_id}", operation_id = "getPublicKeys", tag = "endpoints",
    params(("endpoint_id" = String, Path, description = "the endpoint's id")),
    responses((status = OK, description = "the keys", body = KeysBody)))]
pub async fn show(State(api): State<Api>, Path(id): Path<String>) -> impl IntoResponse {
    let registry = &api.publisher.registry;
    let keys = id
        .parse::<EndpointId>()
        .map(|id| registry.public_keys(id, clock::now()))
        .unwrap_or_default();
    let body = KeysBody {
        keys: keys.iter().map(to_body).collect(),
    };
    let mut answer = answer::json(StatusCode::OK, &body);
    answer.headers_mut().insert(CACHE_CONTROL, KEPT);
    answer
}

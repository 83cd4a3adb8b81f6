//! Who may ask: a bearer token, of which only the hash is kept.

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use hapax_ledger::key::BodyHash;
use http::header::AUTHORIZATION;
use subtle::ConstantTimeEq;

use super::answer::{self, problem};
use super::api::Api;

/// The hash of a token, as it is kept and compared.
pub fn token_hash(token: &[u8]) -> [u8; 32] {
    BodyHash::of(token).bytes()
}

/// Lets a request through if its token is known.
pub async fn require(State(api): State<Api>, request: Request, next: Next) -> Response {
    let token = request
        .headers()
        .get(AUTHORIZATION)
        .and_then(|value| value.as_bytes().strip_prefix(b"Bearer "))
        .unwrap_or_default();
    match bool::from(token_hash(token).ct_eq(&api.token_hash())) {
        true => next.run(request).await,
        false => problem(answer::NO_TOKEN).into_response(),
    }
}

//! Who may ask: a bearer token, of which only the hash is kept.

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use hapax_ledger::key::BodyHash;
use http::header::{AUTHORIZATION, WWW_AUTHENTICATE};
use http::{HeaderMap, HeaderValue};
use subtle::ConstantTimeEq;

use super::answer::{self, problem};
use super::api::Api;

/// The hash of a token, as it is kept and compared.
pub fn token_hash(token: &[u8]) -> [u8; 32] {
    BodyHash::of(token).bytes()
}

/// Lets a request through if its token is known.
pub async fn require(State(api): State<Api>, request: Request, next: Next) -> Response {
    let token = bearer(request.headers()).unwrap_or_default();
    match bool::from(token_hash(token).ct_eq(&api.token_hash())) {
        true => next.run(request).await,
        false => {
            let mut answer = problem(answer::NO_TOKEN).into_response();
            let scheme = HeaderValue::from_static("Bearer");
            answer.headers_mut().insert(WWW_AUTHENTICATE, scheme);
            answer
        }
    }
}

/// The token of an `Authorization: Bearer` header; the scheme's case does not matter (RFC 9110, 11.1).
fn bearer(headers: &HeaderMap) -> Option<&[u8]> {
    let (scheme, token) = headers.get(AUTHORIZATION)?.as_bytes().split_at_checked(7)?;
    scheme.eq_ignore_ascii_case(b"Bearer ").then_some(token)
}

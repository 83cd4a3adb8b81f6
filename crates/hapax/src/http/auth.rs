//! Who may ask: a bearer token, of which only the hash is kept, and what its role allows.
//!
//! Looking needs a viewer, changing something an operator, whatever the route; routes for admins say so themselves
//! ([`admins_only`]). So a new route is never open to more than it should be.

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use hapax_ledger::key::BodyHash;
use hapax_store::nouns::Role;
use http::header::{AUTHORIZATION, WWW_AUTHENTICATE};
use http::{HeaderMap, HeaderValue, Method};

use super::answer::{self, problem};
use super::api::Api;
use crate::clock;

pub use crate::operate::tokens::Actor;

/// The hash of a token, as it is kept and compared.
pub fn token_hash(token: &[u8]) -> [u8; 32] {
    BodyHash::of(token).bytes()
}

/// Lets a request through if its token counts and its role is high enough. Whoever it is travels with the request.
pub async fn require(State(api): State<Api>, mut request: Request, next: Next) -> Response {
    let Some(actor) = api.tokens.find(hash_of(request.headers()), clock::now()) else {
        return unknown();
    };
    // Everything here is about the whole ledger.
    if actor.app.is_some() {
        return problem(answer::OTHER_APP).into_response();
    }
    if actor.role < least(request.method()) {
        return problem(answer::FORBIDDEN).into_response();
    }
    request.extensions_mut().insert(actor);
    next.run(request).await
}

/// The least role that a request with this method needs, whatever it is about.
pub fn least(method: &Method) -> Role {
    match *method {
        Method::GET | Method::HEAD => Role::Viewer,
        _ => Role::Operator,
    }
}

/// Lets only admins through, behind [`require`].
pub async fn admins_only(request: Request, next: Next) -> Response {
    let actor = request.extensions().get::<Actor>();
    match actor.is_some_and(|actor| actor.role == Role::Admin) {
        true => next.run(request).await,
        false => problem(answer::FORBIDDEN).into_response(),
    }
}

/// The hash of the token that a request shows.
pub fn hash_of(headers: &HeaderMap) -> [u8; 32] {
    token_hash(bearer(headers).unwrap_or_default())
}

fn unknown() -> Response {
    let mut answer = problem(answer::NO_TOKEN).into_response();
    let scheme = HeaderValue::from_static("Bearer");
    answer.headers_mut().insert(WWW_AUTHENTICATE, scheme);
    answer
}

/// The token of an `Authorization: Bearer` header; the scheme's case does not matter (RFC 9110, 11.1).
fn bearer(headers: &HeaderMap) -> Option<&[u8]> {
    let (scheme, token) = headers.get(AUTHORIZATION)?.as_bytes().split_at_checked(7)?;
    scheme.eq_ignore_ascii_case(b"Bearer ").then_some(token)
}

//! Who may ask: a bearer token, of which only the hash is kept, and what its role allows.
//!
//! Looking needs a viewer, changing something an operator, whatever the route; routes for admins say so themselves
//! ([`admins_only`]). So a new route is never open to more than it should be.

use axum::extract::{RawPathParams, Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use hapax_ledger::key::BodyHash;
use hapax_store::nouns::Role;
use http::header::{AUTHORIZATION, WWW_AUTHENTICATE};
use http::{HeaderMap, HeaderValue, Method};

use super::answer::{self, Answer, problem};
use super::api::Api;
use super::api::event::unavailable;
use crate::clock;
use crate::outbox::operational::OPERATIONAL_APP;

pub use crate::operate::tokens::Actor;

/// How paths call the application that they are about.
const APP: &str = "app_id";

/// Where a token ends itself.
const LOGOUT: &str = "/auth/logout";

/// The hash of the token that a request shows: in its header, or in the session of a page, which asks inside the process. Nobody
/// outside can put it there.
#[derive(Clone, Copy, Debug)]
pub struct Shown(pub [u8; 32]);

/// The hash of a token, as it is kept and compared.
pub fn token_hash(token: &[u8]) -> [u8; 32] {
    BodyHash::of(token).bytes()
}

/// Lets a request through if its token counts and its role is high enough. Whoever it is travels with the request.
pub async fn require(State(api): State<Api>, mut request: Request, next: Next) -> Response {
    let shown = shown(&request);
    let Some(actor) = api.tokens.find(shown.0, clock::now()) else {
        return unknown().into_response();
    };
    // Everything here is about the whole ledger.
    if actor.app.is_some() {
        return problem(answer::OTHER_APP).into_response();
    }
    if actor.role < least(request.method()) {
        return problem(answer::FORBIDDEN).into_response();
    }
    request.extensions_mut().insert(shown);
    request.extensions_mut().insert(actor);
    next.run(request).await
}

/// The same for what is about one application: a token of that application may ask too, and of no other. What names no application
/// in its path is open to all of them.
pub async fn require_for_app(
    State(api): State<Api>,
    path: RawPathParams,
    mut request: Request,
    next: Next,
) -> Response {
    let shown = shown(&request);
    let named = path.iter().find(|(name, _)| *name == APP);
    // Whoever may only look may end that, too.
    let least = match request.uri().path().ends_with(LOGOUT) {
        true => Role::Viewer,
        false => least(request.method()),
    };
    match of_app(&api, shown, named.map(|(_, name)| name), least).await {
        Ok(actor) => {
            request.extensions_mut().insert(shown);
            request.extensions_mut().insert(actor);
            next.run(request).await
        }
        Err(refused) => refused.into_response(),
    }
}

/// Whoever shows this, if they are at least this and may ask about the application that is named.
async fn of_app(
    api: &Api,
    shown: Shown,
    named: Option<&str>,
    least: Role,
) -> Result<Actor, Box<Answer>> {
    let Some(actor) = api.tokens.find(shown.0, clock::now()) else {
        return Err(unknown().into());
    };
    // The operators' own application has paths of its own.
    if named.is_some_and(|name| name.parse() == Ok(OPERATIONAL_APP)) {
        return Err(problem(answer::NOT_FOUND).into());
    }
    if let (Some(own), Some(named)) = (&actor.app, named) {
        let registry = &api.publisher.registry;
        if let Err(error) = registry.fresh().await.map(drop) {
            return Err(unavailable(&error).into());
        }
        let catalog = registry.catalog();
        let id = |name: &str| catalog.app(name).map(|app| app.id);
        if id(named).is_none() || id(named) != id(own) {
            return Err(problem(answer::OTHER_APP).into());
        }
    }
    match actor.role < least {
        true => Err(problem(answer::FORBIDDEN).into()),
        false => Ok(actor),
    }
}

/// Whoever asks from outside to publish to an application, if they may: what [`require_for_app`] and [`owners_only`] say, for a
/// request that does not pass them.
///
/// # Errors
/// What they hear instead.
pub async fn publisher(api: &Api, headers: &HeaderMap, app: &str) -> Result<Actor, Box<Answer>> {
    let shown = Shown(token_hash(bearer(headers).unwrap_or_default()));
    let actor = of_app(api, shown, Some(app), Role::Operator).await?;
    match owns(&actor) {
        true => Ok(actor),
        false => Err(problem(answer::FORBIDDEN).into()),
    }
}

/// Lets only operators and admins through, behind [`require_for_app`].
pub async fn operators_only(request: Request, next: Next) -> Response {
    let actor = request.extensions().get::<Actor>();
    match actor.is_some_and(|actor| actor.role >= Role::Operator) {
        true => next.run(request).await,
        false => problem(answer::FORBIDDEN).into_response(),
    }
}

/// Lets no token of one application through, behind [`require_for_app`].
pub async fn of_no_app(request: Request, next: Next) -> Response {
    let actor = request.extensions().get::<Actor>();
    match actor.is_some_and(|actor| actor.app.is_none()) {
        true => next.run(request).await,
        false => problem(answer::OTHER_APP).into_response(),
    }
}

/// Lets tokens of one application through only if they are its admins', behind [`require_for_app`].
pub async fn owners_only(request: Request, next: Next) -> Response {
    let actor = request.extensions().get::<Actor>();
    match actor.is_some_and(owns) {
        true => next.run(request).await,
        false => problem(answer::FORBIDDEN).into_response(),
    }
}

fn owns(actor: &Actor) -> bool {
    actor.app.is_none() || actor.role == Role::Admin
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

/// What a request shows.
fn shown(request: &Request) -> Shown {
    let inside = request.extensions().get::<Shown>().copied();
    let token = || token_hash(bearer(request.headers()).unwrap_or_default());
    inside.unwrap_or_else(|| Shown(token()))
}

fn unknown() -> Answer {
    let mut answer = problem(answer::NO_TOKEN);
    let scheme = HeaderValue::from_static("Bearer");
    answer.headers_mut().insert(WWW_AUTHENTICATE, scheme);
    answer
}

/// The token of an `Authorization: Bearer` header; the scheme's case does not matter (RFC 9110, 11.1).
fn bearer(headers: &HeaderMap) -> Option<&[u8]> {
    let (scheme, token) = headers.get(AUTHORIZATION)?.as_bytes().split_at_checked(7)?;
    scheme.eq_ignore_ascii_case(b"Bearer ").then_some(token)
}

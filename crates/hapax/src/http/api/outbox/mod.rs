//! The outgoing API, as the Svix SDKs speak it, with what they miss.
//!
//! - [`app`], [`endpoint`], [`event_type`]: the catalogue; `endpoint_secret`: keys and headers; `change`: how it is changed;
//!   `page`: how it is listed
//! - [`message`]: what is published; `message_body`, `message_query`: how it is described and found; [`publishing`]: its way past the
//!   router
//! - [`attempt`], [`delivery`]: what became of it; `status`: in which words; sending again
//! - [`stats`], [`usage`], [`task`], [`poller`], [`example`], [`import`], [`portal`], [`whoami`], [`health`]: as they are called;
//!   `unsupported`: what is refused
//! - [`operational`]: endpoints of operators
//! - [`lane`]: how the way to an endpoint is; [`quota`]: how many examples may be sent
//! - [`jwks`]: public keys, open to everybody
//! - `words`: what names and numbers have to be like; `halt`: answers that end a request early
//!
//! Who may ask: what stands under an application can be asked by its own tokens too, as far as their role goes; see
//! [`crate::http::auth::require_for_app`].

pub mod app;
pub mod attempt;
pub(in crate::http::api) mod attempt_query;
mod change;
pub mod delivery;
pub mod endpoint;
mod endpoint_body;
pub mod endpoint_secret;
pub mod event_type;
pub mod example;
mod halt;
pub mod health;
pub mod import;
pub mod jwks;
pub mod lane;
pub mod message;
pub(in crate::http::api) mod message_body;
mod message_query;
pub mod operational;
mod page;
pub mod poller;
pub mod portal;
pub mod publishing;
pub mod quota;
pub mod stats;
pub(in crate::http::api) mod status;
pub mod task;
pub(in crate::http::api) mod unsupported;
pub mod usage;
pub mod whoami;
pub(in crate::http::api) mod words;

use axum::middleware;
use hapax_store::nouns::Role;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::Api;
use super::describe::document::{self, Scope};
use crate::http::auth;

/// What a token of one application may ask about that application.
pub(super) fn of_app() -> OpenApiRouter<Api> {
    let mut router = OpenApiRouter::new()
        .routes(routes!(app::show))
        .routes(routes!(endpoint::list, endpoint::create))
        .routes(routes!(
            endpoint::show,
            endpoint::replace,
            endpoint::patch,
            endpoint::delete
        ))
        .routes(routes!(endpoint_secret::rotate))
        .routes(routes!(
            endpoint_secret::headers,
            endpoint_secret::put_headers,
            endpoint_secret::patch_headers
        ))
        .routes(routes!(message::list))
        .routes(routes!(message::show))
        .routes(routes!(message::precheck))
        .routes(routes!(attempt::of_endpoint))
        .routes(routes!(attempt::of_message))
        .routes(routes!(attempt::show))
        .routes(routes!(delivery::of_endpoint))
        .routes(routes!(delivery::of_message))
        .routes(routes!(delivery::dead_letters))
        .routes(routes!(delivery::resend))
        .routes(routes!(stats::deliveries))
        .routes(routes!(stats::attempts))
        .routes(routes!(stats::history))
        .routes(routes!(lane::show))
        .routes(routes!(task::recover))
        .routes(routes!(task::replay_missing))
        .routes(routes!(task::bulk_replay))
        .routes(routes!(example::send))
        .routes(routes!(poller::poll))
        .routes(routes!(poller::consumer_seek));
    document::guard(router.get_openapi_mut(), auth::least, Scope::OneApp);
    router
}

/// What shows keys, and what moves a consumer's place although it is a GET: looking is not enough.
pub(super) fn secrets() -> OpenApiRouter<Api> {
    let mut router = OpenApiRouter::new()
        .routes(routes!(endpoint_secret::show))
        .routes(routes!(poller::consumer_poll))
        .route_layer(middleware::from_fn(auth::operators_only));
    document::guard(router.get_openapi_mut(), |_| Role::Operator, Scope::OneApp);
    router
}

/// What a token of one application may do only as an admin of it: a customer does not publish, nor end the application.
pub(super) fn owners() -> OpenApiRouter<Api> {
    let mut router = OpenApiRouter::new()
        .routes(routes!(app::replace, app::patch, app::delete))
        .routes(routes!(message::create))
        .routes(routes!(message::expunge))
        .routes(routes!(task::expunge_all))
        .routes(routes!(portal::access))
        .routes(routes!(portal::expire_all))
        .route_layer(middleware::from_fn(auth::owners_only));
    document::guard(router.get_openapi_mut(), auth::least, Scope::OneApp);
    router
}

/// What any token may look at.
pub(super) fn shared() -> OpenApiRouter<Api> {
    let mut router = OpenApiRouter::new()
        .routes(routes!(event_type::list))
        .routes(routes!(event_type::show))
        .routes(routes!(health::show));
    document::guard(router.get_openapi_mut(), auth::least, Scope::Anyone);
    router
}

/// What changes what all look at: its paths are those of [`shared`].
pub(super) fn types() -> OpenApiRouter<Api> {
    let mut router = OpenApiRouter::new()
        .routes(routes!(event_type::create))
        .routes(routes!(
            event_type::replace,
            event_type::patch,
            event_type::delete
        ))
        .route_layer(middleware::from_fn(auth::of_no_app));
    document::guard(router.get_openapi_mut(), auth::least, Scope::All);
    router
}

/// What is about the token that asks: what it is, and its end.
pub(super) fn own_token() -> OpenApiRouter<Api> {
    let mut router = OpenApiRouter::new()
        .routes(routes!(whoami::show))
        .routes(routes!(portal::logout));
    document::guard(router.get_openapi_mut(), |_| Role::Viewer, Scope::Anyone);
    router
}

/// What is about all applications.
pub(super) fn of_all() -> OpenApiRouter<Api> {
    OpenApiRouter::new()
        .routes(routes!(app::list, app::create))
        .routes(routes!(import::openapi))
        .routes(routes!(usage::apps))
        .routes(routes!(usage::event_types))
        .routes(routes!(task::list))
        .routes(routes!(task::show))
        .routes(routes!(operational::list, operational::create))
        .routes(routes!(
            operational::show,
            operational::replace,
            operational::delete
        ))
        .routes(routes!(operational::rotate))
        .routes(routes!(operational::headers, operational::put_headers))
}

/// The same about keys: looking is not enough.
pub(super) fn secrets_of_all() -> OpenApiRouter<Api> {
    let mut router = OpenApiRouter::new()
        .routes(routes!(operational::secret))
        .route_layer(middleware::from_fn(auth::operators_only));
    document::guard(router.get_openapi_mut(), |_| Role::Operator, Scope::All);
    router
}

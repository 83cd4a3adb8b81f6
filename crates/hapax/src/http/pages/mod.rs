//! The web pages: routes, sessions, forms. What they look like is in [`crate::dashboard`], which also says how a page is added.
//!
//! - [`session`]: the cookie, sealed, and checked against the tokens at every request
//! - [`visitor`]: who is logged in, and whether a form may be theirs
//! - [`ask`]: a page's way to the API, inside the process
//! - [`submitted`]: a form; [`shown`]: a page, a redirect
//! - [`login`]: in and out; [`asset`]: what pages load
//! - [`overview`], [`event_list`], [`event`], [`queue`], [`place`], [`app`], [`admin`]: the pages, as in [`crate::dashboard`]
//! - [`portal`]: the consumers' pages; [`look`]: what they look like
//! - [`missing`]: what is no page; [`headers`]: what every page says to the browser
//!
//! **Invariant**: a page reads and changes things through the API's own router only, under the role of whoever looks. So it has no
//! power that the API lacks.

pub mod admin;
pub mod app;
pub mod ask;
pub mod asset;
pub mod event;
pub mod event_list;
pub mod headers;
pub mod login;
pub mod look;
pub mod missing;
pub mod overview;
pub mod place;
pub mod portal;
pub mod queue;
pub mod session;
pub mod shown;
pub mod submitted;
pub mod visitor;

use std::sync::Arc;

use axum::routing::{get, post};
use axum::{Router, middleware};

use self::login::Attempts;
use self::session::Sessions;
use super::api::{self, Api};

/// What pages work on.
#[derive(Clone)]
pub struct Pages {
    /// The API's own router, asked inside the process.
    pub(super) router: Router,
    /// What the few pages look at that are about the process, not the ledger.
    pub(super) api: Api,
    /// Cookies.
    pub sessions: Arc<Sessions>,
    /// Failed logins.
    pub(super) attempts: Arc<Attempts>,
}

/// The API and the pages: all routes but the inbox's.
pub fn router(api: Api) -> Router {
    let router = api::router(api.clone());
    let pages = Pages {
        router,
        sessions: Arc::new(Sessions::new(api.safe.clone(), &api.portal)),
        attempts: Arc::default(),
        api,
    };
    let open = Router::new()
        .route("/login", get(login::show).post(login::enter))
        .route("/assets/{name}", get(asset::show));
    let inside = signed_in().route_layer(middleware::from_fn_with_state(
        pages.clone(),
        visitor::require,
    ));
    open.merge(inside)
        .merge(portal::router(&pages))
        .layer(middleware::from_fn(headers::add))
        .fallback(missing::show)
        .with_state(pages)
}

/// What is for those who are logged in.
fn signed_in() -> Router<Pages> {
    Router::new()
        .route("/", get(overview::show))
        .route("/logout", post(login::leave))
        .merge(about_events())
        .merge(about_places())
        .route("/tokens", get(admin::tokens).post(admin::create))
        .route("/tokens/{id}/revoke", post(admin::revoke))
        .route("/audit", get(admin::audit))
        .route("/settings", get(admin::settings))
}

fn about_events() -> Router<Pages> {
    Router::new()
        .route("/events", get(event_list::show))
        .route("/events/stream", get(event_list::stream))
        .route("/events/{id}", get(event::show))
        .route("/events/{id}/body", get(event::body))
        .route("/events/{id}/act", post(event::act))
        .route("/events/{id}/review", post(event::review))
        .route("/events/{id}/conflict/{number}", post(event::conflict))
        .route("/effects", get(queue::effects))
        .route("/effects/{id}/resolve", post(event::resolve))
        .route("/review", get(queue::review))
        .route("/dead", get(queue::dead))
        .route("/dead/replay", post(queue::start))
        .route("/replays", get(queue::replays))
        .route("/replays/{id}", get(queue::replay))
        .route("/replays/{id}/cancel", post(queue::cancel))
}

fn about_places() -> Router<Pages> {
    Router::new()
        .route("/sources", get(place::sources))
        .route("/sources/{name}", get(place::source))
        .route("/guard", get(place::keys))
        .route("/guard/{id}", get(place::key))
        .route("/guard/{id}/resolve", post(place::resolve))
        .route("/apps", get(app::list).post(app::create))
        .route("/apps/{app}", get(app::show))
        .route("/apps/{app}/portal", post(app::portal))
        .route("/apps/{app}/endpoints", post(app::add))
        .route("/apps/{app}/endpoints/{endpoint}", get(app::endpoint))
        .route("/apps/{app}/endpoints/{endpoint}/act", post(app::act))
        .route("/apps/{app}/endpoints/{endpoint}/settings", post(app::save))
        .route(
            "/apps/{app}/endpoints/{endpoint}/headers",
            post(app::headers),
        )
}

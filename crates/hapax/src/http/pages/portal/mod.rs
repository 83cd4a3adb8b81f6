//! The consumers' portal: routes, the session of a magic link, forms. What it looks like is in [`crate::dashboard::portal`].
//!
//! - [`enter`]: in by a magic link, and out
//! - [`guest`]: who came by a link, and their way to the API, under their own application only
//! - [`endpoints`]: the list, and making one; [`endpoint`]: one of them and what can be sent to it; [`settings`], [`secret`]
//! - [`messages`]: messages and attempts; [`catalogue`]: types of events; [`verify`]: how to verify
//! - [`asset`]: what its pages load
//!
//! A magic link is `/portal/{app}#key=...`. The key stands behind `#`, which browsers send to nobody: it is in no log, of ours or of a
//! proxy, and in no `Referer`. The page that the link leads to takes the key out of the address, and posts it. Where no script runs, the
//! link is pasted into the same form. What comes of it is a cookie of another name and seal than the dashboard's, for as long as the
//! token counts and at most half a day; the link itself can be opened again until then.
//!
//! **Invariant**: whatever a page of the portal reads or changes, it asks the API under the token of the session, which is of one
//! application. So other applications are not there, and an operator's pages and these do not open each other.

pub mod asset;
pub mod catalogue;
pub mod endpoint;
pub mod endpoints;
pub mod enter;
pub mod guest;
pub mod messages;
pub mod secret;
pub mod settings;
pub mod verify;

use axum::routing::{get, post};
use axum::{Router, middleware};

use super::Pages;

/// All routes of the portal.
pub fn router(pages: &Pages) -> Router<Pages> {
    let inside = signed_in().route_layer(middleware::from_fn_with_state(
        pages.clone(),
        guest::require,
    ));
    Router::new()
        .route("/portal", get(enter::show))
        .route("/portal/", get(enter::show))
        .route("/portal/enter", get(enter::show).post(enter::enter))
        .route("/portal/{app}", get(enter::show))
        .route("/portal/assets/{name}", get(asset::show))
        .merge(inside)
}

/// What is for those who came by a link.
fn signed_in() -> Router<Pages> {
    Router::new()
        .route("/portal/logout", post(enter::leave))
        .route("/portal/endpoints", get(endpoints::show))
        .route(
            "/portal/endpoints/new",
            get(endpoints::blank).post(endpoints::add),
        )
        .route("/portal/endpoints/{id}", get(endpoint::show))
        .route("/portal/endpoints/{id}/example", post(endpoint::example))
        .route("/portal/endpoints/{id}/recover", post(endpoint::recover))
        .route("/portal/endpoints/{id}/missing", post(endpoint::missing))
        .route("/portal/endpoints/{id}/enable", post(settings::enable))
        .route("/portal/endpoints/{id}/disable", post(settings::disable))
        .route("/portal/endpoints/{id}/delete", post(settings::delete))
        .route("/portal/endpoints/{id}/headers", post(settings::headers))
        .route(
            "/portal/endpoints/{id}/settings",
            get(settings::show).post(settings::save),
        )
        .route(
            "/portal/endpoints/{id}/secret",
            get(secret::hidden).post(secret::show),
        )
        .route("/portal/endpoints/{id}/secret/rotate", post(secret::rotate))
        .route("/portal/endpoints/{id}/verify", get(verify::show))
        .route("/portal/messages", get(messages::list))
        .route("/portal/messages/{id}", get(messages::show))
        .route("/portal/messages/{id}/resend", post(messages::resend))
        .route(
            "/portal/messages/{id}/attempts/{attempt}",
            get(messages::attempt),
        )
        .route("/portal/events", get(catalogue::list))
        .route("/portal/events/{name}", get(catalogue::show))
        .route("/portal/verify", get(verify::first))
        .route("/portal/{app}/{*rest}", get(guest::nothing_here))
}

//! What the SDKs could ask for and Hapax does not offer: refused with a code, never accepted without effect.

use axum::Router;
use axum::response::IntoResponse;
use axum::routing::any;

use crate::http::answer::{self, problem};
use crate::http::api::Api;

/// Paths under an application.
const OF_APP: [&str; 10] = [
    "/app/{app_id}/integration",
    "/app/{app_id}/integration/{*rest}",
    "/app/{app_id}/autoconfig",
    "/app/{app_id}/autoconfig/{*rest}",
    "/app/{app_id}/destination",
    "/app/{app_id}/destination/{*rest}",
    "/app/{app_id}/endpoint/{endpoint_id}/transformation",
    "/app/{app_id}/endpoint/{endpoint_id}/transformation/{*rest}",
    "/app/{app_id}/msg/bulk-expunge",
    "/app/{app_id}/msg/{msg_id}/attempt/{attempt_id}/content",
];

/// Paths about everything.
const OF_ALL: [&str; 10] = [
    "/auth/stream-portal-access/{stream_id}",
    "/auth/stream-logout",
    "/auth/stream/{*rest}",
    "/connector",
    "/connector/{*rest}",
    "/environment/{*rest}",
    "/ingest/{*rest}",
    "/stream",
    "/stream/{*rest}",
    "/svix-play/{*rest}",
];

/// What stands under an application.
pub(in crate::http::api) fn of_app() -> Router<Api> {
    let add = |router: Router<Api>, path| router.route(path, any(refuse));
    OF_APP.into_iter().fold(Router::new(), add)
}

/// All else.
pub(in crate::http::api) fn of_all() -> Router<Api> {
    let add = |router: Router<Api>, path| router.route(path, any(refuse));
    OF_ALL.into_iter().fold(Router::new(), add)
}

/// 501, with a code that says what is offered instead.
pub(in crate::http::api) async fn refuse() -> impl IntoResponse {
    problem(answer::UNSUPPORTED)
}

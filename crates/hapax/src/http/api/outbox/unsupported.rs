//! What the SDKs could ask for and Hapax does not offer: refused with a code, never accepted without effect.

use axum::Router;
use axum::response::IntoResponse;
use axum::routing::any;

use crate::http::answer::{self, problem};
use crate::http::api::Api;

/// Paths under an application.
const OF_APP: [&str; 15] = [
    "/app/{app_id}/integration",
    "/app/{app_id}/integration/{*rest}",
    "/app/{app_id}/autoconfig",
    "/app/{app_id}/autoconfig/{*rest}",
    "/app/{app_id}/destination",
    "/app/{app_id}/destination/{*rest}",
    "/app/{app_id}/endpoint/{endpoint_id}/auto-config",
    "/app/{app_id}/endpoint/{endpoint_id}/auto-config/{*rest}",
    "/app/{app_id}/endpoint/{endpoint_id}/transformation",
    "/app/{app_id}/endpoint/{endpoint_id}/transformation/{*rest}",
    "/app/{app_id}/events",
    "/app/{app_id}/events/{*rest}",
    "/app/{app_id}/msg/bulk-expunge",
    "/app/{app_id}/msg/{msg_id}/attempt/{attempt_id}/content",
    "/app/{app_id}/polling-endpoint/{*rest}",
];

/// Paths about everything.
const OF_ALL: [&str; 9] = [
    "/auth/stream-portal-access/{stream_id}",
    "/auth/stream-logout",
    "/auth/stream/{*rest}",
    "/connector",
    "/connector/{*rest}",
    "/environment/{*rest}",
    "/stream",
    "/stream/{*rest}",
    "/svix-play/{*rest}",
];

/// Paths that the SDKs do not look for under `/api/v1`: their other API, for incoming webhooks.
const BESIDE: [&str; 2] = ["/ingest", "/ingest/{*rest}"];

/// What stands under an application.
pub(in crate::http::api) fn of_app() -> Router<Api> {
    refused(&OF_APP)
}

/// What is about everything.
pub(in crate::http::api) fn of_all() -> Router<Api> {
    refused(&OF_ALL)
}

/// What stands beside `/api/v1`.
pub(in crate::http::api) fn beside() -> Router<Api> {
    refused(&BESIDE)
}

fn refused(paths: &[&str]) -> Router<Api> {
    let add = |router: Router<Api>, path: &&str| router.route(path, any(refuse));
    paths.iter().fold(Router::new(), add)
}

/// 501, with a code that says what is offered instead.
pub(in crate::http::api) async fn refuse() -> impl IntoResponse {
    problem(answer::UNSUPPORTED)
}

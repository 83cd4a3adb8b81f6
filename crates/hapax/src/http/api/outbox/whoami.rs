//! Who is asking? As the SDKs ask.

use axum::Extension;
use axum::extract::State;
use axum::response::IntoResponse;
use http::StatusCode;
use serde::Serialize;
use utoipa::ToSchema;

use crate::http::answer;
use crate::http::api::Api;
use crate::http::api::describe::value;
use crate::http::auth::Actor;

/// How the SDKs call a token that is kept by the server that was asked. There is no other kind here.
#[derive(Serialize, ToSchema)]
enum PermissionSource {
    RegionalAuthToken,
}

/// The token that asks.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Whoami)]
struct WhoamiBody {
    /// The one application that it is for; not there if it is for all of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    app_id: Option<String>,
    permission_source: PermissionSource,
    #[schema(schema_with = value::role)]
    role: &'static str,
}

/// Says what the token that asks is for. The session of one of the portal is not told: only its hash is kept.
#[utoipa::path(get, path = "/auth/whoami", operation_id = "whoami", tag = "about",
    responses((status = OK, description = "the token", body = WhoamiBody)))]
pub async fn show(State(api): State<Api>, Extension(actor): Extension<Actor>) -> impl IntoResponse {
    let catalog = api.publisher.registry.catalog();
    // A token may have been made for an application by its uid.
    let id = |own: String| catalog.app(&own).map_or(own, |app| app.id.to_string());
    let body = WhoamiBody {
        app_id: actor.app.map(id),
        permission_source: PermissionSource::RegionalAuthToken,
        role: actor.role.word(),
    };
    answer::json(StatusCode::OK, &body)
}

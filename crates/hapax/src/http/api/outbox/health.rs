//! Is the server there? As the SDKs ask.

use axum::response::IntoResponse;

use super::change::no_content;

/// Says that the server is there, and that the token counts.
#[utoipa::path(get, path = "/health", operation_id = "health", tag = "about",
    responses((status = NO_CONTENT, description = "it is")))]
pub async fn show() -> impl IntoResponse {
    no_content()
}

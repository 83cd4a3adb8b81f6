//! What pages of the portal load: its style sheet with its colour in it, its script, its logo.

use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use http::header::CACHE_CONTROL;
use http::{HeaderValue, StatusCode};

use crate::http::answer::with_type;
use crate::http::pages::{Pages, shown};

/// One of them. A name is good for one content, so browsers may keep it for good.
pub async fn show(State(pages): State<Pages>, Path(name): Path<String>) -> Response {
    let theme = pages.api.look.now();
    let name = format!("/{name}");
    let Some(file) = theme.files().find(|file| file.path.ends_with(&name)) else {
        return shown::nothing_here();
    };
    let mut answer = with_type(StatusCode::OK, file.kind, file.bytes.clone()).into_response();
    let forever = HeaderValue::from_static("public, max-age=31536000, immutable");
    answer.headers_mut().insert(CACHE_CONTROL, forever);
    answer
}

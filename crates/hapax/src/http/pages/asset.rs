//! What pages load. A name is good for one content, so browsers may keep it for good.

use axum::extract::Path;
use axum::response::{IntoResponse, Response};
use http::header::CACHE_CONTROL;
use http::{HeaderValue, StatusCode};

use super::shown;
use crate::dashboard::assets;
use crate::http::answer::with_type;

/// One of them.
pub async fn show(Path(name): Path<String>) -> Response {
    let mut all = assets::all().into_iter();
    let found = all.find(|asset| asset.path.ends_with(&format!("/{name}")));
    let Some(asset) = found else {
        return shown::nothing_here();
    };
    let mut answer = with_type(StatusCode::OK, asset.kind, asset.bytes).into_response();
    let forever = HeaderValue::from_static("public, max-age=31536000, immutable");
    answer.headers_mut().insert(CACHE_CONTROL, forever);
    answer
}

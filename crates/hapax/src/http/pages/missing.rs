//! What is no page: the API's answer, and for people who look with a browser a page that says so.

use axum::extract::{Request, State};
use axum::response::Response;
use http::header::ACCEPT;
use http::{Method, StatusCode};
use tower::ServiceExt;

use super::portal::guest;
use super::{Pages, headers, shown};
use crate::http::answer;

/// Asks the API. Where it knows nothing either, a browser gets a page.
pub async fn show(State(pages): State<Pages>, request: Request) -> Response {
    let looks = wants_page(&request);
    let in_portal = request.uri().path().starts_with("/portal/");
    let answer = match pages.router.clone().oneshot(request).await {
        Ok(answer) => answer,
        Err(never) => match never {},
    };
    if !looks || answer.status() != StatusCode::NOT_FOUND {
        return answer;
    }
    let mut page = match in_portal {
        true => guest::refuse(&pages, answer::NOT_FOUND),
        false => shown::nothing_here(),
    };
    headers::put(&mut page);
    page
}

/// Is this a person's browser, which is not asking the API?
fn wants_page(request: &Request) -> bool {
    let accept = request.headers().get(ACCEPT);
    let accept = accept.and_then(|value| value.to_str().ok());
    let html = accept.is_some_and(|accept| accept.contains("text/html"));
    html && request.method() == Method::GET && !request.uri().path().starts_with("/api/")
}

//! What pages answer: a page, or the way to another.

use axum::response::{IntoResponse, Response};
use http::header::LOCATION;
use http::{HeaderValue, StatusCode};
use maud::Markup;

use super::ask::Trouble;
use crate::dashboard::trouble::{Told, note};
use crate::dashboard::{frame, trouble};
use crate::http::answer::{self, Problem, with_type};

/// What a handler of a page answers.
pub type Shown = Result<Response, Trouble>;

/// A page.
pub fn html(status: StatusCode, page: &Markup) -> Response {
    with_type(status, "text/html; charset=utf-8", page.0.clone()).into_response()
}

/// A page where all is well.
pub fn ok(page: &Markup) -> Shown {
    Ok(html(StatusCode::OK, page))
}

/// A page with trouble on it, or without.
pub fn told(page: &Markup, trouble: Option<&Trouble>) -> Shown {
    let status = trouble.map_or(StatusCode::OK, |trouble| trouble.status);
    Ok(html(status, page))
}

/// To another page, with GET.
pub fn to(path: &str) -> Response {
    let mut answer = StatusCode::SEE_OTHER.into_response();
    if let Ok(value) = HeaderValue::from_str(path) {
        answer.headers_mut().insert(LOCATION, value);
    }
    answer
}

/// To another page that says what was done: a word of [`frame::DONE`].
pub fn back_to(path: &str, word: &str) -> Shown {
    let joint = if path.contains('?') { '&' } else { '?' };
    Ok(to(&format!("{path}{joint}did={word}")))
}

/// Nothing here.
pub fn nothing_here() -> Response {
    bare(answer::NOT_FOUND)
}

/// A form that another page sent, or one of an older session.
pub fn refused_form() -> Response {
    bare(answer::OTHER_FORM)
}

/// A page without a way around, for those of whom nothing is known.
fn bare(problem: Problem) -> Response {
    let content = maud::html! {
        main class="way-in" id="main" { (note(&told_of(problem))) p { a href="/" { "To the overview" } } }
    };
    html(
        problem.status,
        &frame::document("That did not work", &content),
    )
}

/// A problem as pages tell it.
pub fn told_of(problem: Problem) -> trouble::Told {
    Told {
        code: problem.code.to_owned(),
        detail: problem.detail.to_owned(),
        fields: Vec::new(),
    }
}

//! Who is logged in. Whoever is not is led to the way in; a form that may not be theirs is refused.

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http::header::{HOST, ORIGIN, SET_COOKIE};
use http::{HeaderMap, Method};

use super::Pages;
use super::session::{Realm, Session};
use super::shown;
use crate::clock;
use crate::operate::tokens::Actor;

/// Somebody who is logged in; travels with the request.
#[derive(Clone, Debug)]
pub struct Visitor {
    /// Whose token it is, as of this request.
    pub actor: Actor,
    /// Their session.
    pub session: Session,
}

/// Lets those through who are logged in with a token that counts, and is not of one application.
pub async fn require(State(pages): State<Pages>, request: Request, next: Next) -> Response {
    let Some(visitor) = find(&pages, Realm::Operators, request.headers()) else {
        return ask_in(&pages, &request);
    };
    if visitor.actor.app.is_some() {
        return ask_in(&pages, &request);
    }
    pass(visitor, request, next).await
}

/// Lets a request of somebody who is logged in through, unless another site's page sent it.
pub async fn pass(visitor: Visitor, mut request: Request, next: Next) -> Response {
    if changes(request.method()) && !is_from_here(request.headers()) {
        return shown::refused_form();
    }
    request.extensions_mut().insert(visitor);
    next.run(request).await
}

/// Whose request it is.
pub fn find(pages: &Pages, realm: Realm, headers: &HeaderMap) -> Option<Visitor> {
    let now = clock::now();
    let session = pages.sessions.find(realm, headers, now)?;
    let actor = pages.api.tokens.find(session.token, now)?;
    Some(Visitor { actor, session })
}

/// Leads to the way in, and from there back.
fn ask_in(pages: &Pages, request: &Request) -> Response {
    let next = match *request.method() {
        Method::GET => request
            .uri()
            .path_and_query()
            .map_or("/", |uri| uri.as_str()),
        _ => "/",
    };
    let next: String = form_urlencoded::byte_serialize(next.as_bytes()).collect();
    let mut answer = shown::to(&format!("/login?next={next}"));
    if pages.sessions.is_shown(Realm::Operators, request.headers()) {
        let ends = pages.sessions.end(Realm::Operators);
        answer.headers_mut().insert(SET_COOKIE, ends);
    }
    answer.into_response()
}

fn changes(method: &Method) -> bool {
    !matches!(*method, Method::GET | Method::HEAD)
}

/// Did one of our own pages send this? Browsers say so themselves; where an old one does not, the form's token has to do.
pub fn is_from_here(headers: &HeaderMap) -> bool {
    let text = |name: &str| headers.get(name).map(|value| value.to_str().unwrap_or("?"));
    if let Some(site) = text("sec-fetch-site") {
        return site == "same-origin";
    }
    let Some(origin) = text(ORIGIN.as_str()) else {
        return true;
    };
    let host = origin.split_once("://").map(|(_, host)| host);
    host.is_some() && host == text(HOST.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        let pair = |(name, value): &(&'static str, &'static str)| {
            (
                name.parse().expect("a name"),
                value.parse().expect("a value"),
            )
        };
        let pairs: Vec<(http::HeaderName, http::HeaderValue)> = pairs.iter().map(pair).collect();
        pairs.into_iter().collect()
    }

    #[test]
    fn forms_of_other_sites_are_told_apart() {
        for (pairs, ours) in [
            (&[("sec-fetch-site", "same-origin")][..], true),
            (&[("sec-fetch-site", "cross-site")], false),
            (&[("sec-fetch-site", "same-site")], false),
            (&[("sec-fetch-site", "none")], false),
            (&[("origin", "http://a:1"), ("host", "a:1")], true),
            (&[("origin", "http://b:1"), ("host", "a:1")], false),
            (&[("origin", "null"), ("host", "a:1")], false),
            (&[], true),
        ] {
            assert_eq!(is_from_here(&headers(pairs)), ours, "{pairs:?}");
        }
    }
}

//! `POST /api/v1/app/{app_id}/msg` past the router.
//!
//! What an application publishes comes as often as what a provider sends, and like that it is spared the router's layers. The same
//! functions check and answer it as behind the router; whatever is not plain is left to the router.

use axum::BoxError;
use http::request::Parts;
use http::{Method, Request, Uri};
use hyper::body::Body;

use super::halt::Outcome;
use super::message;
use crate::http::answer::Answer;
use crate::http::api::{Api, UNDER, posted};
use crate::http::auth;

/// The application that is published to by this method to this path, if its name is written as it is.
fn app_of<'a>(method: &Method, uri: &'a Uri) -> Option<&'a str> {
    let path = uri.path().strip_prefix(UNDER)?;
    let name = path.strip_prefix("/app/")?.strip_suffix("/msg")?;
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    let plain = !name.is_empty() && name.bytes().all(plain);
    (plain && *method == Method::POST).then_some(name)
}

/// Is it for [`answer`]?
pub fn is_for<B>(request: &Request<B>) -> bool {
    app_of(request.method(), request.uri()).is_some()
}

/// Answers a request that [`is_for`] this.
pub async fn answer<B>(api: &Api, request: Request<B>) -> Answer
where
    B: Body<Error: Into<BoxError>>,
{
    let (head, body) = request.into_parts();
    match publish(api, &head, body).await {
        Ok(answer) => answer,
        Err(halt) => halt.answer(),
    }
}

async fn publish<B>(api: &Api, head: &Parts, body: B) -> Outcome
where
    B: Body<Error: Into<BoxError>>,
{
    let app = app_of(&head.method, &head.uri).unwrap_or_default();
    let actor = auth::publisher(api, &head.headers, app).await?;
    let posted = posted::read_large(head, body, actor).await?;
    message::create_one(api, app, head.uri.query(), &posted).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_plain_goes_past_the_router() {
        let table = [
            ("POST", "/api/v1/app/acme/msg", Some("acme")),
            (
                "POST",
                "/api/v1/app/a-b_c.9/msg?with_content=false",
                Some("a-b_c.9"),
            ),
            ("GET", "/api/v1/app/acme/msg", None),
            ("POST", "/api/v1/app/acme/msg/", None),
            ("POST", "/api/v1/app//msg", None),
            ("POST", "/api/v1/app/ac%6de/msg", None),
            ("POST", "/api/v1/app/acme/endpoint/msg", None),
            ("POST", "/api/v1/app/acme/msg/precheck/active", None),
            ("POST", "/api/v2/app/acme/msg", None),
        ];
        for (method, path, app) in table {
            let method = method.parse().expect("a method");
            let uri = path.parse().expect("a path");
            assert_eq!(app_of(&method, &uri), app, "{method} {path}");
        }
    }
}

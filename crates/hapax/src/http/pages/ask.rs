//! A page's way to the API: its own router, inside the process, with the token of the session.

use axum::body::Body;
use axum::extract::{FromRequestParts, State};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method, Request, StatusCode};
use serde_json::Value;
use tower::ServiceExt;

use super::Pages;
use super::shown::{self, html};
use super::visitor::Visitor;
use crate::clock;
use crate::dashboard::frame::Looker;
use crate::dashboard::json::Json;
use crate::dashboard::trouble::{self, Told};
use crate::entropy;
use crate::http::auth::Shown as ShownToken;

/// The most that a page reads of one answer: a page of a list, or the largest body of an event.
const ANSWER_BYTES_MAX: usize = 32 * 1024 * 1024;
/// Where the API stands.
const UNDER: &str = "/api/v1";

/// Who looks at a page, and their way to the API.
#[derive(Clone)]
pub struct Ask {
    /// What pages work on.
    pub pages: Pages,
    /// Who looks.
    pub looker: Looker,
    /// Their session and their token.
    pub visitor: Visitor,
}

/// What the API refused, with who asked: enough for a page.
#[derive(Clone, Debug)]
pub struct Trouble {
    /// The API's status.
    pub status: StatusCode,
    /// What it said.
    pub told: Told,
    /// The verdict that it showed.
    pub verdict: Option<Value>,
    looker: Box<Looker>,
}

impl IntoResponse for Trouble {
    fn into_response(self) -> Response {
        html(self.status, &trouble::page(&self.looker, &self.told))
    }
}

impl FromRequestParts<Pages> for Ask {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, pages: &Pages) -> Result<Ask, Response> {
        let State(pages) = State::from_request_parts(parts, pages)
            .await
            .map_err(IntoResponse::into_response)?;
        let Some(visitor) = parts.extensions.get::<Visitor>().cloned() else {
            return Err(shown::to("/login").into_response());
        };
        let query = parts.uri.query().unwrap_or_default();
        let mut pairs = form_urlencoded::parse(query.as_bytes());
        let done = pairs.find(|(name, _)| name == "did");
        let looker = Looker {
            name: visitor.actor.name.to_string(),
            role: visitor.actor.role,
            csrf: hex::encode(visitor.session.csrf),
            once: hex::encode(entropy::bytes::<16>()),
            path: parts.uri.to_string(),
            done: done.map(|(_, word)| word.into_owned()),
            now: clock::now(),
        };
        Ok(Ask {
            pages,
            looker,
            visitor,
        })
    }
}

impl Ask {
    /// Asks for JSON.
    ///
    /// # Errors
    /// What the API said instead.
    pub async fn get(&self, path: &str) -> Result<Value, Trouble> {
        let answer = self.send(Method::GET, path, None, None).await;
        self.read(answer).await
    }

    /// Asks for bytes.
    ///
    /// # Errors
    /// What the API said instead.
    pub async fn bytes(&self, path: &str) -> Result<Bytes, Trouble> {
        let answer = self.send(Method::GET, path, None, None).await;
        let (status, body) = self.take(answer).await?;
        match status.is_success() {
            true => Ok(body),
            false => Err(self.trouble(status, &body)),
        }
    }

    /// Passes the API's answer on as it is: a download, a stream. `headers` are the browser's own.
    pub async fn pass(&self, path: &str, headers: &HeaderMap) -> Response {
        self.send(Method::GET, path, None, Some(headers)).await
    }

    /// Changes something. `once` is the form's own key: sent twice, it counts once.
    ///
    /// # Errors
    /// What the API said instead.
    pub async fn post(
        &self,
        path: &str,
        body: &Value,
        once: Option<&str>,
    ) -> Result<Value, Trouble> {
        self.change(Method::POST, path, body, once).await
    }

    /// Changes something with another method.
    ///
    /// # Errors
    /// What the API said instead.
    pub async fn change(
        &self,
        method: Method,
        path: &str,
        body: &Value,
        once: Option<&str>,
    ) -> Result<Value, Trouble> {
        let mut headers = HeaderMap::new();
        if let Some(key) = once.and_then(|once| HeaderValue::from_str(once).ok()) {
            headers.insert("idempotency-key", key);
        }
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let answer = self.send(method, path, Some(body), Some(&headers)).await;
        self.read(answer).await
    }

    /// Something that the page itself refuses.
    pub fn refuse(&self, status: StatusCode, told: Told) -> Trouble {
        Trouble {
            status,
            told,
            verdict: None,
            looker: Box::new(self.looker.clone()),
        }
    }

    async fn send(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
        headers: Option<&HeaderMap>,
    ) -> Response {
        let body = body.map_or_else(Body::empty, |body| Body::from(body.to_string()));
        let mut request = Request::new(body);
        *request.method_mut() = method;
        match format!("{UNDER}{path}").parse() {
            Ok(uri) => *request.uri_mut() = uri,
            // Only what somebody wrote into the address of a page can be no path.
            Err(_) => return shown::nothing_here(),
        }
        for name in ["idempotency-key", "content-type", "last-event-id"] {
            if let Some(value) = headers.and_then(|headers| headers.get(name)) {
                request.headers_mut().insert(name, value.clone());
            }
        }
        let token = ShownToken(self.visitor.session.token);
        request.extensions_mut().insert(token);
        match self.pages.router.clone().oneshot(request).await {
            Ok(answer) => answer,
            Err(never) => match never {},
        }
    }

    async fn read(&self, answer: Response) -> Result<Value, Trouble> {
        let (status, body) = self.take(answer).await?;
        match (status.is_success(), serde_json::from_slice(&body)) {
            (true, Ok(value)) => Ok(value),
            // An answer without a body.
            (true, Err(_)) => Ok(Value::Null),
            (false, _) => Err(self.trouble(status, &body)),
        }
    }

    async fn take(&self, answer: Response) -> Result<(StatusCode, Bytes), Trouble> {
        let status = answer.status();
        let body = axum::body::to_bytes(answer.into_body(), ANSWER_BYTES_MAX).await;
        let body = body.map_err(|_| self.trouble(StatusCode::PAYLOAD_TOO_LARGE, b"{}"))?;
        Ok((status, body))
    }

    fn trouble(&self, status: StatusCode, body: &[u8]) -> Trouble {
        let said: Value = serde_json::from_slice(body).unwrap_or_default();
        let field = |one: &Value| {
            let place = one["loc"][1].as_str().unwrap_or_default().to_owned();
            (place, one.text("msg").to_owned())
        };
        let told = match said.maybe("detail") {
            Some(detail) => Told {
                code: said.text("code").to_owned(),
                detail: detail.to_owned(),
                fields: Vec::new(),
            },
            None => Told {
                code: "H0303".to_owned(),
                detail: "something in the form is not as expected; nothing was done".to_owned(),
                fields: said.list("detail").iter().map(field).collect(),
            },
        };
        let verdict = said.get("verdict").cloned();
        Trouble {
            verdict,
            ..self.refuse(status, told)
        }
    }
}

/// A piece of a path or a query: nothing in it is taken for more.
pub fn piece(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => {
                out.push(char::from(byte));
            }
            _ => {
                let hex = |nibble: u8| char::from(b"0123456789ABCDEF"[usize::from(nibble)]);
                out.extend(['%', hex(byte >> 4), hex(byte & 15)]);
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::piece;

    #[test]
    fn a_piece_is_no_path_and_no_query() {
        assert_eq!(piece("evt_1"), "evt_1");
        assert_eq!(piece("../x?y=1#z é"), "..%2Fx%3Fy%3D1%23z%20%C3%A9");
    }
}

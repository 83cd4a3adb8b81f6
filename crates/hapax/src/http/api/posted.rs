//! A request that changes something: who asks, its body, and the key under which it is carried out once.

use std::sync::Arc;
use std::time::Duration;

use axum::BoxError;
use axum::extract::{FromRequest, Request};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use hapax_ledger::fingerprint::{Fingerprint, RequestParts};
use hapax_ledger::guard::parse_key;
use hapax_ledger::key::{KeyHash, KeyKind, composite};
use hapax_ledger::time::Time;
use hapax_store::nouns::{Authority, Before, RequestKey};
use http::request::Parts;
use http::{HeaderName, HeaderValue, StatusCode};
use http_body_util::{BodyExt, Limited};
use hyper::body::Body;

use super::body::Fields;
use crate::clock;
use crate::http::answer::{self, Answer, explained, problem};
use crate::http::auth::Actor;

/// The largest body: a result of 8 KiB, a reason and a list of names are far below.
const BODY_BYTES_MAX: usize = 64 * 1024;
/// The largest body with a payload in it: a payload of 1 MiB, and what is said about it.
const LARGE_BYTES_MAX: usize = 2 * 1024 * 1024;
/// How long a body may take. An operator's tool sends it with its head.
const BODY_TIMEOUT: Duration = Duration::from_secs(10);

const IDEMPOTENCY_KEY: &str = "idempotency-key";
/// Says that an answer was given before.
const REPLAYED: HeaderName = HeaderName::from_static("idempotent-replayed");

/// A request that changes something.
#[derive(Clone)]
pub struct Posted {
    /// Who asks.
    pub actor: Actor,
    /// When it came.
    pub at: Time,
    /// What came.
    pub(super) body: Bytes,
    /// Under which key.
    pub(super) request: Option<RequestKey>,
    /// The key as it was written, for lists.
    pub(super) key: Option<String>,
    /// Where it was sent.
    pub(super) path: Arc<str>,
}

impl Posted {
    /// The fields of its body.
    pub(super) fn fields(&self) -> Fields {
        Fields::of(&self.body)
    }

    /// The same request for something that is done along with it: the key is for the whole.
    pub(super) fn without_key(&self) -> Posted {
        Posted {
            request: None,
            key: None,
            ..self.clone()
        }
    }

    /// Under whose name it is done, and why.
    pub(super) fn authority(&self, reason: String) -> Authority {
        Authority {
            actor: self.actor.name.clone(),
            reason,
            at: self.at,
            request: self.request,
        }
    }
}

impl<S: Sync> FromRequest<S> for Posted {
    type Rejection = Response;

    async fn from_request(request: Request, _: &S) -> Result<Posted, Response> {
        read(request, BODY_BYTES_MAX).await
    }
}

/// The same with room for a payload, a schema or a description of an API.
pub struct LargePosted(pub Posted);

impl<S: Sync> FromRequest<S> for LargePosted {
    type Rejection = Response;

    async fn from_request(request: Request, _: &S) -> Result<LargePosted, Response> {
        read(request, LARGE_BYTES_MAX).await.map(LargePosted)
    }
}

async fn read(request: Request, bytes_max: usize) -> Result<Posted, Response> {
    let (head, body) = request.into_parts();
    let Some(actor) = head.extensions.get::<Actor>().cloned() else {
        return Err(problem(answer::NO_TOKEN).into_response());
    };
    let posted = read_parts(&head, body, actor, bytes_max).await;
    posted.map_err(|refused| refused.into_response())
}

/// A request with room for a payload, of an actor who is known.
///
/// # Errors
/// What they hear if it cannot be read.
pub(super) async fn read_large<B>(
    head: &Parts,
    body: B,
    actor: Actor,
) -> Result<Posted, Box<Answer>>
where
    B: Body<Error: Into<BoxError>>,
{
    read_parts(head, body, actor, LARGE_BYTES_MAX).await
}

async fn read_parts<B>(
    head: &Parts,
    body: B,
    actor: Actor,
    bytes_max: usize,
) -> Result<Posted, Box<Answer>>
where
    B: Body<Error: Into<BoxError>>,
{
    let headers = head.headers.get_all(IDEMPOTENCY_KEY).iter();
    let key = parse_key(headers.map(HeaderValue::as_bytes))
        .map_err(|wrong| Box::new(explained(answer::BAD_KEY, &wrong.to_string(), None)))?;
    let reading = Limited::new(body, bytes_max).collect();
    let body = match tokio::time::timeout(BODY_TIMEOUT, reading).await {
        Ok(Ok(body)) => body.to_bytes(),
        Ok(Err(_)) => return Err(problem(answer::TOO_LARGE).into()),
        Err(_) => return Err(problem(answer::TOO_SLOW).into()),
    };
    let parts = RequestParts {
        method: head.method.as_str(),
        path: head.uri.path(),
        query: head.uri.query(),
        content_type: None,
        body: &body,
    };
    let request = key.as_ref().map(|key| RequestKey {
        key: request_key(&actor.name, key.as_str()),
        fingerprint: Fingerprint::of(&parts).bytes(),
    });
    Ok(Posted {
        actor,
        at: clock::now(),
        body,
        request,
        key: key.map(|key| key.to_string()),
        path: head.uri.path().into(),
    })
}

/// What an actor's key is kept under. Everybody has keys of their own.
fn request_key(actor: &str, key: &str) -> KeyHash {
    KeyHash::of(KeyKind::Request, &composite(&["actor", actor]), key)
}

/// What is said to a request whose key came before.
pub(super) fn before(before: Before, status: StatusCode) -> Answer {
    match before {
        Before::Same(said) => {
            let mut answer = answer::with_type(status, "application/json", said);
            let headers = answer.headers_mut();
            headers.insert(REPLAYED, HeaderValue::from_static("true"));
            answer
        }
        Before::Other => problem(answer::KEY_REUSED),
    }
}

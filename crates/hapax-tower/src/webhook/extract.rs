//! The extractor.

use std::sync::Arc;

use axum_core::body::Body;
use axum_core::extract::{FromRef, FromRequest, Request};
use axum_core::response::Response;
use bytes::Bytes;
use hapax_ledger::extract::HeaderLookup;
use hapax_store::atomic::Event;
use hapax_verify::{HeaderValue, Headers};
use http::{HeaderMap, StatusCode};
use http_body_util::{BodyExt, LengthLimitError, Limited};

use super::source::WebhookSource;
use crate::clock;
use crate::problem::Problem;

/// A webhook whose sender is known. A handler that asks for it runs only if the request verifies.
#[derive(Clone, Debug)]
pub struct VerifiedWebhook {
    /// What it is known by, for [`crate::atomic::once`]: the same whenever it is sent again.
    pub event: Event,
    /// The id that its provider gave it, whether or not the signature covers it.
    pub event_id: Option<String>,
    /// Its type.
    pub event_type: Option<String>,
    /// The raw bytes that were verified.
    pub body: Bytes,
}

const NOT_VERIFIED: Problem = Problem::new(
    "not-verified",
    StatusCode::UNAUTHORIZED,
    "The request is not signed as this endpoint expects",
    "Nothing was done. The endpoint's operators can see why.",
);
const TOO_LARGE: Problem = Problem::new(
    "request-too-large",
    StatusCode::PAYLOAD_TOO_LARGE,
    "The request is too large",
    "The body is longer than this endpoint takes. Nothing was done.",
);
const INCOMPLETE: Problem = Problem::new(
    "request-incomplete",
    StatusCode::BAD_REQUEST,
    "The request did not arrive whole",
    "The body broke off. Nothing was done; send it again.",
);

impl<S> FromRequest<S> for VerifiedWebhook
where
    S: Send + Sync,
    Arc<WebhookSource>: FromRef<S>,
{
    type Rejection = Response;

    async fn from_request(request: Request, state: &S) -> Result<VerifiedWebhook, Response> {
        let source = Arc::<WebhookSource>::from_ref(state);
        let (head, body) = request.into_parts();
        let body = read(body, source.bytes_max).await?;
        let headers = Seen(&head.headers);
        let now = clock::now().micros();
        if let Err(refusal) = source.verify(head.method.as_str(), &headers, &body, now) {
            tracing::warn!(source = %source.name(), %refusal, "a webhook was refused");
            return Err(NOT_VERIFIED.response(Body::from));
        }
        let names = source.names(&headers, &body);
        Ok(VerifiedWebhook {
            event: Event::new(source.name().clone(), names.key),
            event_id: names.event_id,
            event_type: names.event_type,
            body,
        })
    }
}

/// The whole body, if it is not too long.
async fn read(body: Body, bytes_max: usize) -> Result<Bytes, Response> {
    match Limited::new(body, bytes_max).collect().await {
        Ok(body) => Ok(body.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => Err(TOO_LARGE.response(Body::from)),
        Err(_) => Err(INCOMPLETE.response(Body::from)),
    }
}

/// Headers as the verifier and the fields look them up.
struct Seen<'a>(&'a HeaderMap);

impl Headers for Seen<'_> {
    fn get(&self, name: &str) -> HeaderValue<'_> {
        let values = self.0.get_all(name).iter();
        values.fold(HeaderValue::Missing, |seen, value| {
            seen.and(value.as_bytes())
        })
    }
}

impl HeaderLookup for Seen<'_> {
    fn header(&self, name: &str) -> Option<&str> {
        std::str::from_utf8(self.get(name).one()?).ok()
    }
}

//! `/in/{source}`: reads a provider's request within limits, and turns the inbox's verdict into an answer.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::{Bytes, BytesMut};
use hapax_store::nouns::{Receipt, Receipted};
use http::{Request, StatusCode};
use http_body_util::BodyExt;
use hyper::body::{Body, Incoming};
use serde::Serialize;

use super::answer::{self, Answer, Problem, problem};
use crate::clock;
use crate::config::Limits;
use crate::inbox::headers::RequestHeaders;
use crate::inbox::{Inbox, Received, Verdict};
use crate::metrics::Metrics;

/// What stands before the source's name.
pub const PREFIX: &str = "/in/";

/// The inbox's way to the network.
pub struct Intake {
    inbox: Arc<Inbox>,
    metrics: Arc<Metrics>,
    limits: Limits,
    inflight_bytes: AtomicUsize,
}

/// Bytes that count against the server's limit until they are dropped.
struct Held<'a> {
    intake: &'a Intake,
    bytes: usize,
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.intake
            .inflight_bytes
            .fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

impl Held<'_> {
    /// Counts more bytes, unless that would be too many.
    fn grow(&mut self, more: usize) -> Result<(), Problem> {
        let before = self
            .intake
            .inflight_bytes
            .fetch_add(more, Ordering::Relaxed);
        self.bytes += more;
        if before + more > self.intake.limits.inflight_bytes_max {
            self.intake.metrics.shed();
            return Err(answer::OVERLOADED);
        }
        Ok(())
    }
}

impl Intake {
    /// Intake for an inbox.
    pub fn new(inbox: Arc<Inbox>, metrics: Arc<Metrics>, limits: Limits) -> Intake {
        Intake {
            inbox,
            metrics,
            limits,
            inflight_bytes: AtomicUsize::new(0),
        }
    }

    /// Answers one request to `/in/...`.
    pub async fn answer(&self, request: Request<Incoming>, remote: Option<Arc<str>>) -> Answer {
        let (head, body) = request.into_parts();
        let mut held = Held {
            intake: self,
            bytes: 0,
        };
        let body = match tokio::time::timeout(self.limits.body_timeout, self.read(body, &mut held))
            .await
        {
            Ok(Ok(body)) => body,
            Ok(Err(refused)) => return problem(refused),
            Err(_) => return problem(answer::TOO_SLOW),
        };
        let started = clock::tick();
        let received = Received {
            method: head.method.as_str().to_owned(),
            source: head.uri.path()[PREFIX.len()..].to_owned(),
            target: head
                .uri
                .path_and_query()
                .map_or("/", |target| target.as_str())
                .to_owned(),
            headers: RequestHeaders(head.headers),
            body,
            remote,
            at: clock::now(),
        };
        let answer = match self.inbox.receive(received).await {
            Verdict::Accepted(receipt) => accepted(&receipt),
            Verdict::AcceptedBatch(receipts) => accepted_batch(&receipts),
            Verdict::WrongMethod => wrong_method(),
            Verdict::Handshake(handshake) => shake(handshake),
            Verdict::Refused => problem(answer::REFUSED),
            Verdict::Failed(kind) => problem(answer::failed(kind)),
        };
        self.metrics.accept_took(clock::since(started));
        answer
    }

    async fn read(&self, mut body: Incoming, held: &mut Held<'_>) -> Result<Bytes, Problem> {
        let max = self.limits.body_bytes_max;
        let announced = body
            .size_hint()
            .exact()
            .map(|bytes| usize::try_from(bytes).unwrap_or(usize::MAX));
        if announced.is_some_and(|bytes| bytes > max) {
            return Err(answer::TOO_LARGE);
        }
        let mut first: Option<Bytes> = None;
        let mut rest = BytesMut::new();
        while let Some(frame) = body.frame().await {
            let Ok(data) = frame.map_err(|_| answer::MALFORMED)?.into_data() else {
                continue;
            };
            // Counted as it comes: what is only announced costs nothing, and must not keep others out.
            held.grow(data.len())?;
            match &first {
                None => first = Some(data),
                Some(head) => {
                    if rest.is_empty() {
                        rest.extend_from_slice(head);
                    }
                    rest.extend_from_slice(&data);
                }
            }
            if rest.len().max(first.as_ref().map_or(0, Bytes::len)) > max {
                return Err(answer::TOO_LARGE);
            }
        }
        // A body that came in one piece, as most do, is not copied.
        Ok(if rest.is_empty() {
            first.unwrap_or_default()
        } else {
            rest.freeze()
        })
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Accepted {
    accepted: bool,
    #[serde(flatten)]
    receipt: ReceiptBody,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct AcceptedBatch {
    accepted: bool,
    events: Vec<ReceiptBody>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ReceiptBody {
    duplicate: bool,
    event_id: String,
    #[serde(skip_serializing_if = "is_false")]
    conflict: bool,
    #[serde(skip_serializing_if = "is_false")]
    needs_review: bool,
}

fn is_false(value: &bool) -> bool {
    !value
}

impl ReceiptBody {
    fn of(receipt: &Receipt) -> ReceiptBody {
        let (duplicate, conflict) = match receipt.sighting {
            Receipted::New => (false, false),
            Receipted::Duplicate => (true, false),
            Receipted::Conflict => (true, true),
        };
        ReceiptBody {
            duplicate,
            conflict,
            event_id: receipt.event.to_string(),
            needs_review: receipt.needs_review,
        }
    }
}

fn accepted(receipt: &Receipt) -> Answer {
    let receipt = ReceiptBody::of(receipt);
    let body = Accepted {
        accepted: true,
        receipt,
    };
    answer::json(StatusCode::OK, &body)
}

fn accepted_batch(receipts: &[Receipt]) -> Answer {
    let events = receipts.iter().map(ReceiptBody::of).collect();
    let body = AcceptedBatch {
        accepted: true,
        events,
    };
    answer::json(StatusCode::OK, &body)
}

fn wrong_method() -> Answer {
    let mut answer = problem(answer::METHOD);
    let allowed = http::HeaderValue::from_static("POST");
    answer.headers_mut().insert(http::header::ALLOW, allowed);
    answer
}

fn shake(handshake: hapax_verify::provider::HandshakeAnswer) -> Answer {
    let status = StatusCode::from_u16(handshake.status).unwrap_or(StatusCode::OK);
    let mut answer = answer::with_type(status, handshake.content_type, handshake.body);
    for (name, value) in handshake.headers {
        if let (Ok(name), Ok(value)) = (
            http::HeaderName::try_from(name),
            http::HeaderValue::try_from(value),
        ) {
            answer.headers_mut().insert(name, value);
        }
    }
    answer
}

//! The world: one listener with the company's services, the customer's endpoint and the API behind the guard. They misbehave as services
//! do, each in its own way, as chance has it.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Request, Response};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;

use super::deed::{Log, Mishap};
use super::lots::Lots;
use super::{charges, consumer, services};
use crate::http::listen;

/// Connections at a time: more than the server's lanes have together.
const CONNECTIONS_MAX: usize = 256;
/// The largest body: the demo's own are far below.
const BODY_BYTES_MAX: usize = 64 * 1024;
/// Longer than any effect of the demo waits.
const TOO_SLOW: Duration = Duration::from_millis(1500);

/// What its parts share.
pub(super) struct World {
    pub(super) log: Log,
    pub(super) lots: Lots,
    /// What the customer verifies messages with, once it knows.
    pub(super) consumer: consumer::Consumer,
    /// Orders that were refused once.
    pub(super) charges_refused: charges::Refused,
}

/// A request as the parts see it.
pub(super) struct Seen {
    pub(super) path: String,
    pub(super) query: String,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
}

impl Seen {
    /// A header as text; empty if there is none.
    pub(super) fn header(&self, name: &str) -> &str {
        let value = self.headers.get(name);
        value.and_then(|value| value.to_str().ok()).unwrap_or("")
    }
}

/// What is answered.
#[derive(Debug)]
pub(super) enum Act {
    Answer(u16, String),
    /// "Come again", at once.
    Busy,
    HangUp,
    /// After longer than anybody waits.
    Late(u16),
}

impl Act {
    /// What a mishap looks like from outside.
    pub(super) fn of(mishap: Mishap) -> Act {
        match mishap {
            Mishap::None => Act::Answer(200, "{\"ok\":true}".to_owned()),
            Mishap::Busy => Act::Busy,
            Mishap::FailsBefore | Mishap::FailsAfter => Act::Answer(500, String::new()),
            Mishap::HangsUp => Act::HangUp,
            Mishap::TooSlow => Act::Late(200),
        }
    }
}

/// The connection ends without an answer.
#[derive(Debug, thiserror::Error)]
#[error("hung up")]
struct HungUp;

/// Answers until `stop` says so.
pub(super) async fn run(listener: TcpListener, world: Arc<World>, stop: watch::Receiver<bool>) {
    let permits = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    let mut connections = JoinSet::new();
    listen::accept(
        &listener,
        &permits,
        stop,
        |stream, _: SocketAddr, permit| {
            while connections.try_join_next().is_some() {}
            let world = world.clone();
            connections.spawn(async move {
                let service = service_fn(move |request| answer(world.clone(), request));
                let connection =
                    http1::Builder::new().serve_connection(TokioIo::new(stream), service);
                // One that breaks off is part of the story.
                let _ = connection.await;
                drop(permit);
            });
        },
    )
    .await;
    connections.shutdown().await;
}

async fn answer(
    world: Arc<World>,
    request: Request<Incoming>,
) -> Result<Response<Full<Bytes>>, HungUp> {
    let (parts, body) = request.into_parts();
    let body = Limited::new(body, BODY_BYTES_MAX).collect().await;
    let seen = Seen {
        path: parts.uri.path().to_owned(),
        query: parts.uri.query().unwrap_or_default().to_owned(),
        headers: parts.headers,
        body: body.map_err(|_| HungUp)?.to_bytes(),
    };
    let act = match seen.path.as_str() {
        "/effect" => services::work(&world, &seen),
        "/mail/sent" => services::sent(&world, &seen),
        "/hooks" => consumer::take(&world, &seen),
        "/charges" => charges::charge(&world, &seen).await,
        _ => Act::Answer(404, String::new()),
    };
    let (status, body) = match act {
        Act::Answer(status, body) => (status, body),
        Act::Busy => (429, String::new()),
        Act::HangUp => return Err(HungUp),
        Act::Late(status) => {
            tokio::time::sleep(TOO_SLOW).await;
            (status, String::new())
        }
    };
    let mut answer = Response::builder().status(status);
    if status == 429 {
        answer = answer.header("retry-after", "0");
    }
    answer
        .body(Full::new(Bytes::from(body)))
        .map_err(|_| HungUp)
}

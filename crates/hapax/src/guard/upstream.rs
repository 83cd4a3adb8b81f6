//! The way to the upstream: a pool of connections, and what a failure on it proves.
//!
//! It is the operator's own service, named in the config and by nobody else, so that any address may be meant. It is spoken to in HTTP/1.1:
//! that carries the caller's own `Host`, changes of protocol, and every byte of a stream as it comes.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::combinators::UnsyncBoxBody;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use hyper_util::client::legacy::{Client, connect::capture_connection};
use hyper_util::rt::{TokioExecutor, TokioTimer};
use tokio::sync::Notify;
use tokio::time::timeout;

use crate::dispatch::connect::{self, Connector, Reach};
use crate::dispatch::failure::{self, Connection, Failure};
use crate::dispatch::resolve::{Remembering, SystemResolver};

use super::BoxError;

/// How long resolving, connecting and the TLS handshake may take together: three lost SYNs.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// How long an unused connection is kept. Common servers close theirs after 5 seconds, and a request that meets a closing connection may
/// be lost; so ours go first.
const IDLE_TIMEOUT: Duration = Duration::from_secs(4);
/// How many unused connections are kept per upstream.
const IDLE_MAX: usize = 1_024;
/// How large the head of an answer may be, give or take one read.
const HEAD_BYTES_MAX: usize = 256 * 1024;
/// How many headers an answer may have.
const HEADERS_MAX: usize = 256;

/// A request's body on its way out.
pub type Outgoing = UnsyncBoxBody<Bytes, BoxError>;

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NoAnswer {
    /// No byte of the request left.
    NotSent {
        /// In time?
        why: Why,
        /// For people, short.
        text: String,
    },
    /// Bytes left, and what became of them nobody knows.
    Lost {
        /// In time?
        why: Why,
        /// For people, short.
        text: String,
    },
}

/// What the upstream did instead of answering.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// It took too long.
    Late,
    /// It refused, broke off, or said something that is not HTTP.
    Broken,
}

/// Connections to upstreams. One pool is enough for all guards.
#[derive(Clone)]
pub struct Upstreams {
    pool: Client<Connector, Moving>,
}

impl Upstreams {
    /// No connections yet.
    ///
    /// # Errors
    /// If TLS cannot be set up.
    pub fn new() -> Result<Upstreams, rustls::Error> {
        let resolver = Arc::new(Remembering::new(Arc::new(SystemResolver)));
        let mut tls = (*connect::tls(Vec::new())?).clone();
        tls.alpn_protocols = vec![b"http/1.1".to_vec()];
        let connector = Connector::new(resolver, Reach::Anywhere, Arc::new(tls), CONNECT_TIMEOUT);
        Ok(Upstreams {
            pool: pool(connector),
        })
    }

    /// Sends a request and waits for the head of the answer. `patience` begins anew with every part of the request's body that leaves,
    /// so that a long upload is not a silent upstream.
    ///
    /// # Errors
    /// If there is no answer; it says what that proves.
    pub async fn send(
        &self,
        request: Request<Outgoing>,
        patience: Duration,
    ) -> Result<Response<Incoming>, NoAnswer> {
        let moved = Arc::new(Notify::new());
        let mut request = request.map(|body| Moving {
            body,
            moved: moved.clone(),
        });
        let captured = capture_connection(&mut request);
        // A request that a connection gave back unwritten goes to the next one by itself. A failure after that is told of the first
        // connection that was given, which can only make us more careful.
        let mut answering = pin!(self.pool.request(request));
        loop {
            let moving = moved.notified();
            let answered = tokio::select! {
                biased;
                answered = timeout(patience, &mut answering) => answered,
                () = moving => continue,
            };
            let assigned = captured.connection_metadata().is_some();
            return match (answered, assigned) {
                (Ok(Ok(response)), _) => Ok(response),
                (Ok(Err(error)), assigned) => Err(no_answer(&error, assigned)),
                (Err(_), assigned) => {
                    let text = format!("no answer within {}", connect::length(patience));
                    let why = Why::Late;
                    Err(match assigned {
                        true => NoAnswer::Lost { why, text },
                        false => NoAnswer::NotSent { why, text },
                    })
                }
            };
        }
    }
}

fn no_answer(error: &hyper_util::client::legacy::Error, assigned: bool) -> NoAnswer {
    use hapax_ledger::outcome::{Lost, NotSent, Outcome};
    let connection = match assigned {
        true => Connection::Assigned,
        false => Connection::None,
    };
    match failure::of(error, connection) {
        Failure::Untouched => NoAnswer::NotSent {
            why: Why::Broken,
            text: "it closes its connections before a request is written".to_owned(),
        },
        Failure::Final { outcome, text } => match outcome {
            Outcome::NotSent { why } => NoAnswer::NotSent {
                why: match why {
                    NotSent::ConnectTimeout => Why::Late,
                    _ => Why::Broken,
                },
                text,
            },
            Outcome::Lost { why } => NoAnswer::Lost {
                why: match why {
                    Lost::Timeout => Why::Late,
                    _ => Why::Broken,
                },
                text,
            },
            Outcome::Answered { .. } | Outcome::Reported(_) => NoAnswer::Lost {
                why: Why::Broken,
                text,
            },
        },
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "the guard's one client, with our own connector"
)]
fn pool(connector: Connector) -> Client<Connector, Moving> {
    Client::builder(TokioExecutor::new())
        .timer(TokioTimer::new())
        .pool_timer(TokioTimer::new())
        .pool_idle_timeout(IDLE_TIMEOUT)
        .pool_max_idle_per_host(IDLE_MAX)
        .http1_max_buf_size(HEAD_BYTES_MAX)
        .http1_max_headers(HEADERS_MAX)
        .build(connector)
}

/// A body that tells whenever a part of it leaves.
struct Moving {
    body: Outgoing,
    moved: Arc<Notify>,
}

impl Body for Moving {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let polled = Pin::new(&mut self.body).poll_frame(context);
        if polled.is_ready() {
            self.moved.notify_one();
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// Reads a body to its end, if it is no longer than this.
pub async fn whole(body: Incoming, bytes_max: usize) -> Option<Bytes> {
    let mut body = pin!(body);
    let mut read = Vec::new();
    while let Some(frame) = poll_fn(|context| body.as_mut().poll_frame(context)).await {
        if let Ok(part) = frame.ok()?.into_data() {
            if read.len() + part.len() > bytes_max {
                return None;
            }
            read.extend_from_slice(&part);
        }
    }
    Some(read.into())
}

//! The way to the upstream: a pool of connections, and what a failure on it proves.
//!
//! It is the operator's own service, named in the config and by nobody else, so that any address may be meant. It is spoken to in HTTP/1.1:
//! that carries the caller's own `Host`, changes of protocol, and every byte of a stream as it comes.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::combinators::UnsyncBoxBody;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use hyper_util::client::legacy::Client;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use tokio::time::sleep;

use crate::clock;
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
    pool: Arc<Client<Connector, Moving>>,
}

impl Upstreams {
    /// No connections yet.
    ///
    /// # Errors
    /// If TLS cannot be set up.
    pub fn new() -> Result<Upstreams, rustls::Error> {
        let resolver = Remembering::new(Arc::new(SystemResolver));
        let mut tls = (*connect::tls(Vec::new())?).clone();
        tls.alpn_protocols = vec![b"http/1.1".to_vec()];
        let connector = Connector::new(resolver, Reach::Anywhere, Arc::new(tls), CONNECT_TIMEOUT);
        Ok(Upstreams {
            pool: Arc::new(pool(connector)),
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
        let moves = Arc::new(Moves::new());
        let request = request.map(|body| Moving {
            body,
            moves: moves.clone(),
        });
        // A request that a connection gave back unwritten goes to the next one by itself. A failure after that is told of the first
        // connection that was given, which can only make us more careful.
        let mut answering = pin!(self.pool.request(request));
        let mut waiting = pin!(sleep(patience));
        loop {
            tokio::select! {
                biased;
                answered = &mut answering => {
                    return answered.map_err(|error| no_answer(&error, moves.began()));
                }
                () = &mut waiting => {}
            }
            // The timer is not set anew with every part that leaves: when it ends, the last one says how much longer it should have run.
            let left = patience.saturating_sub(moves.still_for());
            if left.is_zero() {
                let (why, text) = (
                    Why::Late,
                    format!("no answer within {}", connect::length(patience)),
                );
                return Err(match moves.began() {
                    true => NoAnswer::Lost { why, text },
                    false => NoAnswer::NotSent { why, text },
                });
            }
            waiting.set(sleep(left));
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
        // An answer may have 100 headers, which is the parser's own limit: places for more would be allocated for each answer.
        .build(connector)
}

/// What a request's body tells of its way out.
struct Moves {
    start: Instant,
    /// Microseconds from the start to the last part that left.
    last: AtomicU64,
    /// Has a connection begun to write the request?
    began: AtomicBool,
}

impl Moves {
    fn new() -> Moves {
        Moves {
            start: clock::tick(),
            last: AtomicU64::new(0),
            began: AtomicBool::new(false),
        }
    }

    fn note(&self) {
        let micros = u64::try_from(clock::since(self.start).as_micros()).unwrap_or(u64::MAX);
        self.last.store(micros, Ordering::Relaxed);
    }

    /// How long ago the last part left; the whole time, if none did.
    fn still_for(&self) -> Duration {
        let last = Duration::from_micros(self.last.load(Ordering::Relaxed));
        clock::since(self.start).saturating_sub(last)
    }

    fn began(&self) -> bool {
        self.began.load(Ordering::Relaxed)
    }
}

/// A body that tells of its way. No connection writes a head before it has asked how long the body is, so a body that nobody has asked
/// belongs to a request of which no byte has left.
struct Moving {
    body: Outgoing,
    moves: Arc<Moves>,
}

impl Body for Moving {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        self.moves.began.store(true, Ordering::Relaxed);
        let polled = Pin::new(&mut self.body).poll_frame(context);
        if polled.is_ready() {
            self.moves.note();
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.moves.began.store(true, Ordering::Relaxed);
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.moves.began.store(true, Ordering::Relaxed);
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

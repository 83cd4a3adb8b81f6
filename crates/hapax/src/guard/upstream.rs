//! The way to the upstream: connections, and what a failure on one proves.
//!
//! It is the operator's own service, named in the config and by nobody else, so that any address may be meant. It is spoken to in HTTP/1.1,
//! over a connection for each request, unless the config says otherwise: a connection that breaks then leaves one outcome unknown, and not
//! those of all who shared it. What changes its protocol goes that way always.
//!
//! - `form`: a request as each version of HTTP wants it; `moving`: on its way out, and whether it has begun
//! - `origin`: an upstream's connections of HTTP/2; `connection` is one of them
//! - `exchange`: one request over a stream, and what its end proves; `arriving` is the answer's body

mod arriving;
mod connection;
mod exchange;
mod form;
mod moving;
mod origin;

use std::collections::HashMap;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use hapax_tower::RunLease;
use http::uri::Scheme;
use http::{Request, Response, Uri};
use http_body_util::combinators::UnsyncBoxBody;
use hyper::body::Body;
use hyper_util::client::legacy::Client;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use rustls::pki_types::CertificateDer;

pub use arriving::Arriving;
use moving::{LeaseOver, Moves, Moving};
use origin::{Choice, Origin, Slot, Spoken};

use super::BoxError;
use crate::config::UpstreamHttp;
use crate::dispatch::connect::{self, Connector, Reach};
use crate::dispatch::failure::{self, Connection, Failure};
use crate::dispatch::resolve::{Remembering, SystemResolver};

/// How long resolving, connecting and the TLS handshake may take together: three lost SYNs.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// How long an unused connection is kept. Common servers close theirs after 5 seconds, and a request that meets a closing connection may
/// be lost; so ours go first.
const IDLE_TIMEOUT: Duration = Duration::from_secs(4);
/// How many unused connections are kept per upstream.
const IDLE_MAX: usize = 1_024;
/// How large the head of an answer may be, give or take one read.
const HEAD_BYTES_MAX: u32 = 256 * 1024;

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
    /// No byte of the request left, since its run had lost its lease before: the key may be another's.
    Withheld {
        /// For people, short.
        text: String,
    },
    /// The upstream says that it has done nothing with the request.
    Refused {
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
    /// Upstreams that may be spoken to in HTTP/2. There are as many as the configs of this process have named.
    origins: Arc<Mutex<Origins>>,
    /// Their ways out.
    two: Connector,
    either: Connector,
}

type Origins = HashMap<(Uri, Choice), Arc<Origin>>;

/// How one upstream is spoken to.
#[derive(Clone)]
pub struct Line(Option<Arc<Origin>>);

impl Line {
    /// In HTTP/1.1.
    pub const ONE: Line = Line(None);
}

impl Upstreams {
    /// No connections yet. `roots` are trusted beside those that browsers trust.
    ///
    /// # Errors
    /// If TLS cannot be set up.
    pub fn new(roots: Vec<CertificateDer<'static>>) -> Result<Upstreams, rustls::Error> {
        let resolver = Remembering::new(Arc::new(SystemResolver));
        let tls = connect::tls(roots)?;
        let offering = |protocols: &[&[u8]]| {
            let mut tls = (*tls).clone();
            tls.alpn_protocols = protocols.iter().map(|name| name.to_vec()).collect();
            let reach = Reach::Anywhere;
            Connector::new(resolver.clone(), reach, Arc::new(tls), CONNECT_TIMEOUT)
        };
        Ok(Upstreams {
            pool: Arc::new(pool(offering(&[b"http/1.1"]))),
            origins: Arc::default(),
            two: offering(&[b"h2"]),
            either: offering(&[b"h2", b"http/1.1"]),
        })
    }

    /// How this upstream is spoken to. Without TLS there is nothing to choose by.
    pub fn line(&self, upstream: &Uri, http: UpstreamHttp) -> Line {
        let encrypted = upstream.scheme() == Some(&Scheme::HTTPS);
        let (choice, connector) = match http {
            UpstreamHttp::One => return Line::ONE,
            UpstreamHttp::Auto if !encrypted => return Line::ONE,
            UpstreamHttp::Auto => (Choice::Either, &self.either),
            UpstreamHttp::Two => (Choice::Two, &self.two),
        };
        let uri = form::origin(upstream);
        let mut origins = self.origins.lock().unwrap_or_else(PoisonError::into_inner);
        let origin = origins
            .entry((uri.clone(), choice))
            .or_insert_with(|| Arc::new(Origin::new(uri, choice, connector.clone())));
        Line(Some(origin.clone()))
    }

    /// Sends a request and waits for the head of the answer. `patience` begins anew with every part of the request's body that leaves,
    /// so that a long upload is not a silent upstream. The lease, if there is one, is asked right before the first byte.
    ///
    /// # Errors
    /// If there is no answer; it says what that proves.
    pub async fn send(
        &self,
        line: &Line,
        request: Request<Outgoing>,
        patience: Duration,
        lease: Option<RunLease>,
    ) -> Result<Response<Arriving>, NoAnswer> {
        let moves = Arc::new(Moves::new(lease));
        let Some(origin) = &line.0 else {
            return self.one(request, moves, patience).await;
        };
        match moves.within(pin!(origin.speak()), patience).await {
            Some(Ok(Spoken::One)) => self.one(request, moves, patience).await,
            Some(Ok(Spoken::Two(slot))) => two(slot, request, &moves, patience).await,
            Some(Err(unconnected)) => Err(proved(unconnected.into())),
            None => {
                let (why, text) = late(patience);
                Err(NoAnswer::NotSent { why, text })
            }
        }
    }

    async fn one(
        &self,
        request: Request<Outgoing>,
        moves: Arc<Moves>,
        patience: Duration,
    ) -> Result<Response<Arriving>, NoAnswer> {
        let mut request = form::for_http1(request);
        let length = form::told_by_body(&mut request);
        let request = request.map(|body| Moving::new(body, moves.clone(), length));
        // A request that a connection gave back unwritten goes to the next one by itself. A failure after that is told of the first
        // connection that was given, which can only make us more careful.
        let answered = {
            let answering = pin!(self.pool.request(request));
            moves.within(answering, patience).await
        };
        match answered {
            Some(Ok(response)) => Ok(response.map(Arriving::One)),
            Some(Err(_)) if moves.withheld() => Err(withheld()),
            Some(Err(error)) => Err(no_answer(&error, moves.began())),
            None => {
                let (why, text) = late(patience);
                Err(match moves.withdrawn().await {
                    true => NoAnswer::NotSent { why, text },
                    false => NoAnswer::Lost { why, text },
                })
            }
        }
    }
}

async fn two(
    slot: Slot,
    request: Request<Outgoing>,
    moves: &Arc<Moves>,
    patience: Duration,
) -> Result<Response<Arriving>, NoAnswer> {
    let request = form::for_http2(request).map_err(|unfit| NoAnswer::NotSent {
        why: Why::Broken,
        text: unfit.to_string(),
    })?;
    let exchanging = pin!(exchange::exchange(slot, request, moves));
    match moves.within(exchanging, patience).await {
        Some(answered) => answered,
        None => {
            let (why, text) = late(patience);
            Err(NoAnswer::Lost { why, text })
        }
    }
}

fn withheld() -> NoAnswer {
    NoAnswer::Withheld {
        text: LeaseOver.to_string(),
    }
}

fn late(patience: Duration) -> (Why, String) {
    let text = format!("no answer within {}", connect::length(patience));
    (Why::Late, text)
}

fn no_answer(error: &hyper_util::client::legacy::Error, assigned: bool) -> NoAnswer {
    let connection = match assigned {
        true => Connection::Assigned,
        false => Connection::None,
    };
    proved(failure::of(error, connection))
}

fn proved(failure: Failure) -> NoAnswer {
    use hapax_ledger::outcome::{Lost, NotSent, Outcome};
    match failure {
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
        .http1_max_buf_size(HEAD_BYTES_MAX as usize)
        // An answer may have 100 headers, which is the parser's own limit: places for more would be allocated for each answer.
        .build(connector)
}

/// Reads a body to its end, if it is no longer than this.
pub async fn whole(body: Arriving, bytes_max: usize) -> Option<Bytes> {
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

#[cfg(test)]
mod tests;

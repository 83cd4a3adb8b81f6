//! The sender: one request, one answer or the reason why there is none, within one deadline.
//!
//! It follows no redirects, reads no proxy variables, keeps no cookies and unpacks nothing: what a receiver says is
//! taken as it is. Dropping [`Sender::send`] aborts the request; whether it arrived is then as open as after a loss.

use std::sync::Arc;
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
use bytes::Bytes;
use hapax_ledger::outcome::{Lost, NotSent, Outcome};
use hapax_verify::Secret;
use http::{HeaderMap, Method, Request, Response, Uri};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper_util::client::legacy::{Client, connect::capture_connection};
use hyper_util::rt::{TokioExecutor, TokioTimer};
use rustls::ClientConfig;
use rustls::pki_types::CertificateDer;
use tokio::time::timeout;

use super::answer::{self, Excerpt, Keep};
use super::connect::{self, Connector, Reach, length};
use super::failure::{self, Connection, Failure};
use super::gate::Rules;
use super::redact;
use super::resolve::{Dns, Remembering, Resolve, SystemResolver};
use crate::clock;

/// How long resolving, connecting and the TLS handshake may take together: three lost SYNs.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// How long an unused connection is kept. Common servers close theirs after 5 seconds, and a request that meets a
/// closing connection may be lost; so ours go first.
const IDLE_TIMEOUT: Duration = Duration::from_secs(4);
/// How many unused connections are kept per receiver: as many as a lane may have in flight, or each burst would open them anew.
const IDLE_MAX: usize = 1_024;
/// How large the head of an answer may be over HTTP/1, give or take one read, which is at most as large.
const HEAD_BYTES_MAX: usize = 64 * 1024;
/// How many headers an answer may have over HTTP/1.
const HEADERS_MAX: usize = 128;
/// How large the headers of an answer may be over HTTP/2.
const HEADER_LIST_BYTES_MAX: u32 = 64 * 1024;
/// How often an HTTP/2 connection in use is asked whether it is still there, and how long the answer may take: without
/// it one dead connection would swallow every request to its receiver.
const PING_INTERVAL: Duration = Duration::from_secs(10);
/// How many connections a request may find closed before it was written to one. The pool throws closed ones away, so
/// that even the second is a rare meeting.
const CONNECTIONS_MAX: u32 = 4;

type Pool = Client<Connector, Full<Bytes>>;

/// A request on its way out.
#[derive(Clone)]
pub struct Outgoing {
    /// The method.
    pub method: Method,
    /// Where to: `http` or `https`, with a host.
    pub url: Uri,
    /// All headers but `Host` and the body's length.
    pub headers: HeaderMap,
    /// The body.
    pub body: Bytes,
    /// The deadline over everything: connection, request, answer and as much of its body as is kept.
    pub timeout: Duration,
    /// Where it may go.
    pub reach: Reach,
    /// How much of the answer's body is wanted.
    pub keep: Keep,
    /// What must not be found in the excerpt or the error.
    pub secrets_to_redact: Arc<[Secret]>,
}

/// What became of a request.
#[derive(Clone, Debug)]
pub struct Sent {
    /// The evidence for the ledger.
    pub outcome: Outcome,
    /// The first bytes of the answer, if there was one.
    pub excerpt: Option<Excerpt>,
    /// Why there was none, for people: `connection refused`.
    pub error: Option<String>,
    /// How long it took.
    pub duration: Duration,
}

/// How a sender is set up.
pub struct Settings {
    /// Certificate authorities to trust beside those that browsers trust.
    pub roots: Vec<CertificateDer<'static>>,
    /// Who turns names into addresses that the operator wrote.
    pub resolver: Arc<dyn Resolve>,
    /// And those that consumers wrote: so many of them may never answer that they have a way of their own.
    pub consumers: Arc<dyn Resolve>,
    /// How long a connection may take.
    pub connect_timeout: Duration,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            roots: Vec::new(),
            resolver: Arc::new(SystemResolver),
            consumers: Arc::new(Dns::default()),
            connect_timeout: CONNECT_TIMEOUT,
        }
    }
}

/// Sends requests over connections that it keeps. One is enough for the whole program.
pub struct Sender {
    /// Connections are kept per reach, so that nobody gets to an address over a connection that was opened for one
    /// with a longer reach.
    anywhere: Pool,
    /// Those that were opened by the gate's rules, and by which. Other rules begin without connections.
    consumers: ArcSwap<ConsumerPool>,
    /// Names that consumers wrote.
    names: Remembering,
    tls: Arc<ClientConfig>,
    connect_timeout: Duration,
}

struct ConsumerPool {
    rules: Arc<Rules>,
    pool: Pool,
}

impl Sender {
    /// A sender without connections.
    ///
    /// # Errors
    /// If one of the additional roots is not a certificate.
    pub fn new(settings: Settings) -> Result<Sender, rustls::Error> {
        let own = Remembering::new(settings.resolver);
        let names = Remembering::new(settings.consumers);
        let tls = connect::tls(settings.roots)?;
        let time = settings.connect_timeout;
        let reaching = |names, reach| pool(Connector::new(names, reach, tls.clone(), time));
        let rules = Arc::<Rules>::default();
        Ok(Sender {
            anywhere: reaching(own, Reach::Anywhere),
            consumers: ArcSwap::from_pointee(ConsumerPool {
                pool: reaching(names.clone(), Reach::Consumer(rules.clone())),
                rules,
            }),
            names,
            tls,
            connect_timeout: time,
        })
    }

    /// The connections that were opened with this reach.
    fn pool(&self, reach: &Reach) -> Pool {
        let rules = match reach {
            Reach::Anywhere => return self.anywhere.clone(),
            Reach::Consumer(rules) => rules,
        };
        let held = self.consumers.load();
        if Arc::ptr_eq(&held.rules, rules) || held.rules == *rules {
            return held.pool.clone();
        }
        let (names, tls) = (self.names.clone(), self.tls.clone());
        let connector = Connector::new(names, reach.clone(), tls, self.connect_timeout);
        let pool = pool(connector);
        self.consumers.store(Arc::new(ConsumerPool {
            rules: rules.clone(),
            pool: pool.clone(),
        }));
        pool
    }

    /// Sends a request and says what became of it, at the latest when its time is over.
    pub async fn send(&self, request: Outgoing) -> Sent {
        let start = clock::tick();
        let secrets = &request.secrets_to_redact;
        let (outcome, excerpt, error) = match self.head(&request, start).await {
            Ok(response) => {
                let (head, body) = response.into_parts();
                let outcome = Outcome::Answered {
                    status: head.status.as_u16(),
                    retry_after: answer::retry_after(&head.headers, clock::now()),
                };
                // The head says it all: whatever happens to the body cannot change the outcome.
                let left = request.timeout.saturating_sub(clock::since(start));
                let excerpt = answer::read(body, request.keep, left, secrets).await;
                (outcome, Some(excerpt), None)
            }
            Err((outcome, text)) => (outcome, None, Some(redact::text(&text, secrets))),
        };
        Sent {
            outcome,
            excerpt,
            error,
            duration: clock::since(start),
        }
    }

    /// The head of the answer. A request that a connection gave back unwritten goes to the next one; the pool could do
    /// that by itself, but would not say which connection a later failure is about.
    async fn head(
        &self,
        request: &Outgoing,
        start: Instant,
    ) -> Result<Response<Incoming>, (Outcome, String)> {
        for _ in 0..CONNECTIONS_MAX {
            let failed = match message(request) {
                Ok(message) => self.once(request, message, start).await,
                Err(unfit) => Err(unfit),
            };
            match failed {
                Ok(response) => return Ok(response),
                Err(Failure::Untouched) => {}
                Err(Failure::Final { outcome, text }) => return Err((outcome, text)),
            }
        }
        let why = NotSent::Refused;
        let text = "the receiver closes its connections before a request is written";
        Err((Outcome::NotSent { why }, text.to_owned()))
    }

    async fn once(
        &self,
        request: &Outgoing,
        mut message: Request<Full<Bytes>>,
        start: Instant,
    ) -> Result<Response<Incoming>, Failure> {
        let pool = self.pool(&request.reach);
        let captured = capture_connection(&mut message);
        let left = request.timeout.saturating_sub(clock::since(start));
        let answered = timeout(left, pool.request(message)).await;
        let connection = match *captured.connection_metadata() {
            None => Connection::None,
            Some(_) => Connection::Assigned,
        };
        match (answered, connection) {
            (Ok(Ok(response)), _) => Ok(response),
            (Ok(Err(error)), connection) => Err(failure::of(&error, connection)),
            (Err(_), Connection::None) => {
                Err(connect::no_connection_within(request.timeout).into())
            }
            (Err(_), Connection::Assigned) => {
                let text = format!("no answer within {}", length(request.timeout));
                Err(failure::lost(Lost::Timeout, text))
            }
        }
    }
}

fn message(request: &Outgoing) -> Result<Request<Full<Bytes>>, Failure> {
    let is_web = matches!(request.url.scheme_str(), Some("http" | "https"));
    if !is_web || request.url.host().is_none_or(str::is_empty) {
        return Err(failure::not_sent(
            NotSent::Blocked,
            "the URL is not one of http or https",
        ));
    }
    if let Reach::Consumer(rules) = &request.reach {
        // Asked of every request, also over a connection that is open already: the rules may have changed since the URL was written.
        let judged = rules.url(&request.url.to_string());
        judged.map_err(|refused| failure::not_sent(NotSent::Blocked, refused.to_string()))?;
    }
    let mut message = Request::new(Full::new(request.body.clone()));
    *message.method_mut() = request.method.clone();
    *message.uri_mut() = request.url.clone();
    *message.headers_mut() = request.headers.clone();
    Ok(message)
}

#[expect(
    clippy::disallowed_methods,
    reason = "the sender's one client, with our own connector"
)]
fn pool(connector: Connector) -> Pool {
    Client::builder(TokioExecutor::new())
        .retry_canceled_requests(false)
        .timer(TokioTimer::new())
        .pool_timer(TokioTimer::new())
        .pool_idle_timeout(IDLE_TIMEOUT)
        .pool_max_idle_per_host(IDLE_MAX)
        .http1_max_buf_size(HEAD_BYTES_MAX)
        .http1_max_headers(HEADERS_MAX)
        .http2_max_header_list_size(HEADER_LIST_BYTES_MAX)
        .http2_keep_alive_interval(PING_INTERVAL)
        .http2_keep_alive_timeout(PING_INTERVAL)
        .build(connector)
}

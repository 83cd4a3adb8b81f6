//! A guard's listener: HTTP/1.1 and HTTP/2, plain or with TLS.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use hapax_tower::drain;
use http::{Request, Response};
use http_body_util::{Either, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use rustls::ServerConfig;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio_rustls::TlsAcceptor;
use tower::ServiceExt;

use super::caller::Subject;
use super::flow::Flowing;
use super::guards::{Served, ServedBody};
use super::head::{self, Peer};
use super::place::Places;
use super::{caller, subject};
use crate::config::Limits;
use crate::http::gateway;
use crate::http::listen::{self, LAST_REQUESTS, UNREAD_MS_MAX};

/// A head larger than this is refused.
const HEAD_BYTES_MAX: usize = 64 * 1024;
/// The same over HTTP/2.
const HEADER_LIST_BYTES_MAX: u32 = 64 * 1024;
/// Requests at a time over one connection of HTTP/2.
const STREAMS_MAX: u32 = 250;
/// How often a silent connection of HTTP/2 is asked whether it is still there, and how long the answer may take.
const PING_INTERVAL: Duration = Duration::from_secs(20);

/// Takes connections until `stop` says so, then finishes what was taken.
pub async fn run(
    listener: TcpListener,
    guard: Arc<Served>,
    limits: Limits,
    stop: watch::Receiver<bool>,
) {
    let permits = Arc::new(Semaphore::new(limits.connections_max));
    let places = Places::new(limits.connections_max);
    let graceful = GracefulShutdown::new();
    let server = Arc::new(server(&limits));
    listen::accept(&listener, &permits, stop, |stream, peer, permit| {
        let (server, watcher) = (server.clone(), graceful.watcher());
        let behind = Behind {
            guard: guard.clone(),
            places: places.clone(),
        };
        let handshake = limits.header_timeout;
        tokio::spawn(async move {
            connect(&server, stream, peer, behind, watcher, handshake).await;
            drop(permit);
        });
    })
    .await;
    drop(listener);
    let ended = tokio::time::timeout(LAST_REQUESTS, graceful.shutdown()).await;
    if ended.is_err() {
        tracing::warn!("some guarded connections did not end in time and are cut off");
    }
}

fn server(limits: &Limits) -> auto::Builder<TokioExecutor> {
    let mut server = auto::Builder::new(TokioExecutor::new());
    server
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.header_timeout)
        .max_buf_size(HEAD_BYTES_MAX);
    server
        .http2()
        .timer(TokioTimer::new())
        .max_header_list_size(HEADER_LIST_BYTES_MAX)
        .max_concurrent_streams(STREAMS_MAX)
        .keep_alive_interval(PING_INTERVAL)
        .keep_alive_timeout(PING_INTERVAL);
    server
}

/// The body of an answer: the guard's, or what is said at the door.
type DoorBody = Either<ServedBody, Full<Bytes>>;

/// What is behind a door.
struct Behind {
    guard: Arc<Served>,
    places: Places,
}

async fn connect(
    server: &auto::Builder<TokioExecutor>,
    stream: TcpStream,
    peer: SocketAddr,
    behind: Behind,
    watcher: Watcher,
    handshake: Duration,
) {
    // Requests and answers are passed on as they come; waiting to fill a packet only delays them.
    let _ = stream.set_nodelay(true);
    // Nor does a client that reads nothing keep its place.
    let _ = rustix::net::sockopt::set_tcp_user_timeout(&stream, UNREAD_MS_MAX);
    let known = |encrypted| Peer::new(peer.ip(), encrypted);
    match behind.guard.tls() {
        None => serve(server, stream, known(false), None, behind, watcher).await,
        Some(tls) => {
            let shaking = TlsAcceptor::from(tls as Arc<ServerConfig>).accept(stream);
            // A client that breaks off, or shows no certificate that counts, is no event of ours.
            let Ok(Ok(stream)) = tokio::time::timeout(handshake, shaking).await else {
                return;
            };
            let certificates = stream.get_ref().1.peer_certificates();
            let subject = certificates.and_then(|chain| subject::of(chain.first()?));
            let subject = subject.map(|name| Subject(caller::named(&name)));
            serve(server, stream, known(true), subject, behind, watcher).await;
        }
    }
}

async fn serve<S>(
    server: &auto::Builder<TokioExecutor>,
    stream: S,
    peer: Peer,
    subject: Option<Subject>,
    behind: Behind,
    watcher: Watcher,
) where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let service = service_fn(move |request: Request<Incoming>| {
        let (service, patience) = behind.guard.service();
        let place = behind.places.take();
        // A caller that stands still in the middle of a body keeps its place no longer than an upstream would.
        let mut request = request.map(|body| Flowing::new(body, patience));
        let extensions = request.extensions_mut();
        extensions.insert(peer.clone());
        if let Some(subject) = &subject {
            extensions.insert(subject.clone());
        }
        async move {
            let refused = match (place, head::is_coded(request.headers())) {
                (_, true) => gateway::coded(),
                (None, false) => gateway::no_place(),
                (Some(place), false) => {
                    request.extensions_mut().insert(place);
                    let answer = service.oneshot(request).await?;
                    return Ok(answer.map(Either::Left));
                }
            };
            // Who writes everything before it listens is to hear this, too.
            let (head, body) = request.into_parts();
            drain(pin!(body), &head.headers).await;
            let answered: Result<Response<DoorBody>, Infallible> = Ok(refused.map(Either::Right));
            answered
        }
    });
    let connection = server.serve_connection_with_upgrades(TokioIo::new(stream), service);
    // A client that breaks off is no event of ours.
    let _ = watcher.watch(connection).await;
}

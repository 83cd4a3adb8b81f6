//! Our own accept loop: a bounded number of connections, a time limit on request heads, and an end that finishes what was
//! taken.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use http::{Request, Response};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tower::ServiceExt;

use super::api::Api;
use super::api::outbox::publishing;
use super::intake::{Intake, PREFIX};
use crate::config::Limits;
use crate::metrics::Metrics;

/// A request head larger than this is refused: no provider's signatures come near it.
const HEAD_BYTES_MAX: usize = 64 * 1024;
/// How long requests under way may take to finish at the end.
pub const LAST_REQUESTS: Duration = Duration::from_secs(25);
/// How long an answer may lie unread, in milliseconds.
pub const UNREAD_MS_MAX: u32 = 30_000;
/// After an accept that failed for want of file descriptors: long enough for some to be freed.
const ACCEPT_AGAIN: Duration = Duration::from_millis(50);

/// What the connections share.
pub struct Doors {
    /// `/in/...`
    pub intake: Intake,
    /// What applications publish.
    pub api: Api,
    /// Everything else.
    pub router: Router,
    /// What bounds them.
    pub limits: Limits,
    /// What is counted.
    pub metrics: Arc<Metrics>,
}

/// Takes connections until `stop` says so, then finishes what was taken.
pub async fn run(listener: TcpListener, doors: Arc<Doors>, stop: watch::Receiver<bool>) {
    let permits = Arc::new(Semaphore::new(doors.limits.connections_max));
    let graceful = GracefulShutdown::new();
    let mut server = http1::Builder::new();
    server
        .timer(TokioTimer::new())
        .header_read_timeout(doors.limits.header_timeout)
        .max_buf_size(HEAD_BYTES_MAX);
    accept(&listener, &permits, stop, |stream, peer, permit| {
        let connection = graceful.watch(connect(&server, stream, peer, doors.clone()));
        let metrics = doors.metrics.clone();
        tokio::spawn(async move {
            metrics.connections.inc();
            // A client that breaks off is no event of ours.
            let _ = connection.await;
            metrics.connections.dec();
            drop(permit);
        });
    })
    .await;
    drop(listener);
    if tokio::time::timeout(LAST_REQUESTS, graceful.shutdown())
        .await
        .is_err()
    {
        tracing::warn!("some requests did not finish in time and are cut off");
    }
}

/// The address that a request came from.
#[derive(Clone, Debug)]
pub struct Remote(pub Arc<str>);

/// Gives each connection to `take`, with its permit, until `stop` says so.
pub async fn accept(
    listener: &TcpListener,
    permits: &Arc<Semaphore>,
    mut stop: watch::Receiver<bool>,
    mut take: impl FnMut(TcpStream, SocketAddr, OwnedSemaphorePermit),
) {
    loop {
        // Beyond the limit, connections wait in the kernel's queue: no memory, no task.
        let permit = tokio::select! {
            permit = permits.clone().acquire_owned() => permit,
            _ = stop.wait_for(|stop| *stop) => return,
        };
        let Ok(permit) = permit else { return };
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = stop.wait_for(|stop| *stop) => return,
        };
        match accepted {
            Ok((stream, peer)) => take(stream, peer, permit),
            Err(error) => {
                tracing::warn!(%error, "cannot take a connection");
                tokio::time::sleep(ACCEPT_AGAIN).await;
            }
        }
    }
}

fn connect(
    server: &http1::Builder,
    stream: TcpStream,
    peer: SocketAddr,
    doors: Arc<Doors>,
) -> impl hyper_util::server::graceful::GracefulConnection<Error = hyper::Error> + use<> {
    // Answers are small; waiting to fill a packet only delays them.
    let _ = stream.set_nodelay(true);
    // Nor does a client that reads nothing keep its place: what it has not taken by then ends the connection.
    let _ = rustix::net::sockopt::set_tcp_user_timeout(&stream, UNREAD_MS_MAX);
    let remote: Arc<str> = peer.ip().to_string().into();
    let service = service_fn(move |request| {
        let doors = doors.clone();
        let remote = remote.clone();
        async move { Ok::<_, Infallible>(answer(&doors, request, remote).await) }
    });
    server.serve_connection(TokioIo::new(stream), service)
}

async fn answer(doors: &Doors, request: Request<Incoming>, remote: Arc<str>) -> Response<Body> {
    if request.uri().path().starts_with(PREFIX) {
        return doors
            .intake
            .answer(request, Some(remote))
            .await
            .map(Body::new);
    }
    if publishing::is_for(&request) {
        return publishing::answer(&doors.api, request).await.map(Body::new);
    }
    let mut request = request.map(Body::new);
    request.extensions_mut().insert(Remote(remote));
    match doors.router.clone().oneshot(request).await {
        Ok(answer) => answer,
        Err(never) => match never {},
    }
}

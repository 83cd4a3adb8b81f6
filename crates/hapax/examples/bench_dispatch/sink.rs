//! A receiver in this process, on a thread and a runtime of its own: it answers 200 and says when a request was there.

use std::collections::HashMap;
use std::convert::Infallible;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use bytes::Bytes;
use hapax::clock;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{HeaderMap, Request, Response};
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;
use tokio::sync::oneshot;

type Expected = Arc<Mutex<HashMap<String, Noted>>>;

/// What is known of a key.
enum Noted {
    /// Somebody waits for its request.
    Awaited(oneshot::Sender<Instant>),
    /// Its request was there before anybody asked.
    There(Instant),
}

/// The receiver.
pub(crate) struct Sink {
    /// Where it listens.
    pub(crate) address: SocketAddr,
    expected: Expected,
}

impl Sink {
    /// Listens on a port of its own until the process ends.
    pub(crate) fn start() -> anyhow::Result<Sink> {
        let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let expected = Expected::default();
        let noted = expected.clone();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        std::thread::Builder::new()
            .name("sink".into())
            .spawn(move || runtime.block_on(serve(listener, noted)))?;
        Ok(Sink { address, expected })
    }

    /// Says when the request that carries this key is there, body and all, or since when it is. A repeat of it says nothing.
    pub(crate) fn expect(&self, key: String) -> oneshot::Receiver<Instant> {
        let (there, when) = oneshot::channel();
        let mut expected = lock(&self.expected);
        match expected.remove(&key) {
            // The receiver is in our hands.
            Some(Noted::There(at)) => drop(there.send(at)),
            Some(Noted::Awaited(_)) | None => {
                expected.insert(key, Noted::Awaited(there));
            }
        }
        when
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn serve(listener: std::net::TcpListener, expected: Expected) -> anyhow::Result<()> {
    let listener = TcpListener::from_std(listener)?;
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        let expected = expected.clone();
        tokio::spawn(async move {
            let service = service_fn(|request| answer(request, expected.clone()));
            // A connection that breaks is the client's affair.
            let _ = http1::Builder::new()
                .serve_connection(TokioIo::new(stream), service)
                .await;
        });
    }
}

async fn answer(
    request: Request<Incoming>,
    expected: Expected,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let (head, body) = request.into_parts();
    let whole = body.collect().await.is_ok();
    let now = clock::tick();
    if whole {
        note(&expected, &head.headers, now);
    }
    Ok(Response::new(Full::from("{}")))
}

/// The key of an effect is known to who waits for it before it is sent. The id of a message is given when it is stored, so that a
/// delivery may be here first.
fn note(expected: &Expected, headers: &HeaderMap, now: Instant) {
    let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let mut expected = lock(expected);
    match (header("idempotency-key"), header("webhook-id")) {
        (Some(key), _) => {
            if let Some(Noted::Awaited(there)) = expected.remove(key) {
                // Nobody waits any more at the end of the bench.
                let _ = there.send(now);
            }
        }
        (None, Some(id)) => match expected.remove(id) {
            Some(Noted::Awaited(there)) => drop(there.send(now)),
            Some(Noted::There(_)) | None => {
                expected.insert(id.to_owned(), Noted::There(now));
            }
        },
        (None, None) => {}
    }
}

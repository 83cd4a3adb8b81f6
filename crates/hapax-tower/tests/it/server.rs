//! A server with a guarded handler.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse, Response};
use axum::routing::any;
use hapax_tower::principal::SharedScope;
use hapax_tower::{Guard, IdempotencyLayer, Verdict};
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, watch};

use crate::client::{Answer, post};
use crate::world::World;

/// A guarded server.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    pub(crate) layer: IdempotencyLayer,
    runs: Arc<AtomicUsize>,
    verdicts: Arc<Verdicts>,
    ended: watch::Sender<usize>,
}

/// Counts when it is dropped: with the answer, or when the caller is gone.
struct End(watch::Sender<usize>);

impl Drop for End {
    fn drop(&mut self) {
        self.0.send_modify(|count| *count += 1);
    }
}

/// What the observer has heard.
pub(crate) struct Verdicts {
    heard: Mutex<Vec<Verdict>>,
    count: watch::Sender<usize>,
}

/// A guard for tests: one caller.
pub(crate) fn guard() -> Guard {
    Guard::new("charges", SharedScope)
}

impl Server {
    /// Serves this handler behind this guard.
    pub(crate) async fn start<H, Fut, A>(world: &World, guard: Guard, handler: H) -> Server
    where
        H: Fn(Request) -> Fut + Clone + Send + Sync + 'static,
        Fut: Future<Output = A> + Send + 'static,
        A: IntoResponse,
    {
        let verdicts = Arc::new(Verdicts {
            heard: Mutex::default(),
            count: watch::Sender::new(0),
        });
        let hears = verdicts.clone();
        let guard = guard.observer(Arc::new(move |_: &str, verdict: Verdict| {
            hears.heard.lock().expect("whole").push(verdict);
            hears.count.send_modify(|count| *count += 1);
        }));
        let layer = IdempotencyLayer::new(world.keys.clone(), guard).expect("a good guard");
        let runs = Arc::new(AtomicUsize::new(0));
        let counts = runs.clone();
        let counted = move |request: Request| {
            counts.fetch_add(1, Ordering::SeqCst);
            handler(request)
        };
        let ended = watch::Sender::new(0);
        let ends = ended.clone();
        let app = Router::new()
            .route("/{*path}", any(counted))
            .layer(layer.clone())
            .layer(from_fn(move |request: Request, next: Next| {
                let end = End(ends.clone());
                async move {
                    let _end = end;
                    next.run(request).await
                }
            }));
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        // Ends with the runtime.
        tokio::spawn(async move { axum::serve(listener, app).await });
        Server {
            address,
            layer,
            runs,
            verdicts,
            ended,
        }
    }

    /// Waits until the server is done with so many requests, whether or not their runs are.
    pub(crate) async fn ended(&self, requests: usize) {
        let mut ended = self.ended.subscribe();
        let enough = ended.wait_for(|count| *count >= requests).await;
        enough.expect("the sender lives");
    }

    /// How often the handler was called.
    pub(crate) fn runs(&self) -> usize {
        self.runs.load(Ordering::SeqCst)
    }

    /// A request to `/charges` with this key and body.
    pub(crate) async fn charge(&self, key: &str, body: &str) -> Answer {
        post(self.address, "/charges", &[("idempotency-key", key)], body).await
    }

    /// The same with more headers.
    pub(crate) async fn charge_with(
        &self,
        key: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Answer {
        let headers = [&[("idempotency-key", key)], headers].concat();
        post(self.address, "/charges", &headers, body).await
    }

    /// All verdicts so far.
    pub(crate) fn verdicts(&self) -> Vec<Verdict> {
        self.verdicts.heard.lock().expect("whole").clone()
    }

    /// Waits until this verdict was heard so many times.
    pub(crate) async fn heard(&self, verdict: Verdict, times: usize) {
        heard(&self.verdicts, verdict, times).await;
    }

    /// For handlers that wait for verdicts themselves.
    pub(crate) fn ear(&self) -> Arc<Verdicts> {
        self.verdicts.clone()
    }
}

/// Waits until this verdict was heard so many times.
pub(crate) async fn heard(verdicts: &Verdicts, verdict: Verdict, times: usize) {
    let mut count = verdicts.count.subscribe();
    let enough = |_: &usize| {
        let heard = verdicts.heard.lock().expect("whole");
        heard.iter().filter(|one| **one == verdict).count() >= times
    };
    count.wait_for(enough).await.expect("the sender lives");
}

/// A door in a handler: the test hears who has come, and lets them go on.
#[derive(Clone)]
pub(crate) struct Door {
    here: Arc<Semaphore>,
    open: Arc<Semaphore>,
}

impl Door {
    pub(crate) fn new() -> Door {
        Door {
            here: Arc::new(Semaphore::new(0)),
            open: Arc::new(Semaphore::new(0)),
        }
    }

    /// In the handler: says that it is here, and waits.
    pub(crate) async fn pass(&self) {
        self.here.add_permits(1);
        self.open.acquire().await.expect("never closed").forget();
    }

    /// In the test: waits until somebody is here.
    pub(crate) async fn reached(&self) {
        self.here.acquire().await.expect("never closed").forget();
    }

    /// Lets one go on.
    pub(crate) fn open(&self) {
        self.open.add_permits(1);
    }
}

/// The whole body of a request.
pub(crate) async fn text(request: Request) -> String {
    let bytes = axum::body::to_bytes(request.into_body(), usize::MAX).await;
    String::from_utf8(bytes.expect("a whole body").to_vec()).expect("text")
}

/// An answer with this status.
pub(crate) fn status(status: u16, body: impl Into<Body>) -> Response {
    Response::builder()
        .status(status)
        .body(body.into())
        .expect("a status")
}

//! A service of the test's own with hapax-tower's layer around it, over real HTTP.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::Router;
use axum::routing::post;
use hapax_ledger::guard::Preset;
use hapax_store::Store;
use hapax_store::postgres::{self, PostgresStore};
use hapax_store::sqlite::{self, DiskLimits, SqliteStore};
use hapax_tower::principal::ByHeader;
use hapax_tower::{Guard, IdempotencyLayer};
use http::{HeaderName, StatusCode};
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::effects::scene::SQLITE;

/// Runs a check with the URL of a service that charges on every POST. Its layer has this preset, knows callers by `x-user`, and asks for
/// a key. Says how often the service has charged.
pub(super) fn behind_the_layer(store: &str, preset: Preset, check: impl FnOnce(&str)) -> usize {
    let folder = tempfile::tempdir().expect("a folder");
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let served = runtime.block_on(async {
        let store = open(store, folder.path()).await;
        Served::start(store, preset).await
    });
    check(&format!("http://{}/charges", served.address));
    runtime.block_on(served.end())
}

/// SQLite in this folder, or PostgreSQL at this URL.
async fn open(store: &str, folder: &Path) -> Arc<dyn Store> {
    if store == SQLITE {
        let options = sqlite::Options {
            clock: hapax::clock::steady(),
            nonce: hapax::entropy::bytes(),
            // No ballast: tests come in hundreds.
            disk: DiskLimits {
                free_bytes_min: 0,
                ballast_bytes: 0,
            },
        };
        let store = SqliteStore::open(&folder.join("hapax.db"), options);
        return Arc::new(store.expect("the store opens"));
    }
    let entropy = Arc::new(|| u64::from_be_bytes(hapax::entropy::bytes()));
    let options = postgres::Options::new(store, hapax::entropy::bytes(), entropy);
    let store = PostgresStore::open(options).await;
    Arc::new(store.expect("the store opens"))
}

/// The service, as it is served.
struct Served {
    address: SocketAddr,
    charges: Arc<AtomicUsize>,
    layer: IdempotencyLayer,
    store: Arc<dyn Store>,
    stop: oneshot::Sender<()>,
    serving: JoinHandle<()>,
}

impl Served {
    async fn start(store: Arc<dyn Store>, preset: Preset) -> Served {
        let by = ByHeader::new(HeaderName::from_static("x-user"));
        let guard = Guard::new(preset.to_string(), by);
        let guard = guard.preset(preset).required();
        let layer = IdempotencyLayer::new(store.clone(), guard).expect("a good guard");
        let charges = Arc::new(AtomicUsize::new(0));
        let counted = charges.clone();
        let charge = move || {
            let count = counted.fetch_add(1, Ordering::SeqCst) + 1;
            async move { (StatusCode::CREATED, format!("{{\"execution\":{count}}}")) }
        };
        let app: Router = Router::new()
            .route("/charges", post(charge).get(async || "all of them"))
            .layer(layer.clone());
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let (stop, stopped) = oneshot::channel::<()>();
        let serving = tokio::spawn(async move {
            let server = axum::serve(listener, app).with_graceful_shutdown(async move {
                // A test that fails drops its end, which says the same.
                let _ = stopped.await;
            });
            server.await.expect("it serves until it is told to stop");
        });
        Served {
            address,
            charges,
            layer,
            store,
            stop,
            serving,
        }
    }

    /// Ends what was started; says how often it has charged.
    async fn end(self) -> usize {
        self.stop.send(()).expect("it serves");
        self.serving.await.expect("it ends");
        self.layer.drain().await;
        self.store.close().await;
        self.charges.load(Ordering::SeqCst)
    }
}

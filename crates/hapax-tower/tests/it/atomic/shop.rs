//! A server whose handler joins the key's transaction, on SQLite or PostgreSQL. The request's body tells the handler what to do.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::Router;
use axum::extract::{Extension, Request, State};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use hapax_store::conformance::atomic::lose_all;
use hapax_store::conformance::database::with_database;
use hapax_tower::atomic::{Atomic, AtomicLayer, AtomicTx, Begun, blocking, install};
use hapax_tower::{BoxError, Guard};
use http::StatusCode;
use tokio::net::TcpListener;
use tokio::runtime::Handle;
use tokio_postgres::NoTls;

use crate::client::{Answer, post as send};
use crate::server::{Door, status, text};

/// Where the keys are.
#[derive(Clone)]
pub(crate) enum Base {
    Sqlite(PathBuf),
    Postgres(String),
}

/// A running server.
#[derive(Clone)]
pub(crate) struct Shop {
    base: Base,
    runs: Arc<AtomicUsize>,
    /// For requests that say `wait`.
    pub(crate) door: Door,
    pub(crate) address: SocketAddr,
}

impl Shop {
    /// Opens it behind this guard.
    pub(crate) async fn open(base: &Base, guard: Guard) -> Shop {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let shop = Shop {
            base: base.clone(),
            runs: Arc::default(),
            door: Door::new(),
            address: listener.local_addr().expect("an address"),
        };
        let charges = Router::new()
            .route("/charges", post(handle).get(async || "none"))
            .layer(AtomicLayer::new(guard).expect("a good guard"));
        let app = Router::new()
            .nest("/a", charges.clone())
            .nest("/b", charges.clone())
            .merge(charges)
            .with_state(shop.clone());
        // Ends with the runtime.
        tokio::spawn(async move { axum::serve(listener, app).await });
        shop
    }

    /// All that runs now is lost.
    pub(crate) async fn lose(&self) {
        match &self.base {
            Base::Sqlite(path) => {
                let mut connection = rusqlite::Connection::open(path).expect("the file opens");
                let mut tx = connection.transaction().expect("a transaction");
                blocking(lose_all(&mut tx)).expect("lost");
                tx.commit().expect("committed");
            }
            Base::Postgres(url) => {
                let connected = tokio_postgres::connect(url, NoTls).await;
                let (mut client, connection) = connected.expect("connected");
                tokio::spawn(connection);
                let mut tx = client.transaction().await.expect("a transaction");
                lose_all(&mut tx).await.expect("lost");
                tx.commit().await.expect("committed");
            }
        }
    }

    /// How often the work was done, whether or not it was committed.
    pub(crate) fn runs(&self) -> usize {
        self.runs.load(Ordering::SeqCst)
    }

    /// A request to `/charges` with this key and body.
    pub(crate) async fn charge(&self, key: &str, body: &str) -> Answer {
        self.charge_as("anna", key, body).await
    }

    /// The same, from this caller.
    pub(crate) async fn charge_as(&self, caller: &str, key: &str, body: &str) -> Answer {
        let headers = [("idempotency-key", key), ("x-account", caller)];
        send(self.address, "/charges", &headers, body).await
    }
}

async fn handle(
    State(shop): State<Shop>,
    atomic: Option<Extension<Atomic>>,
    request: Request,
) -> Response {
    let body = text(request).await;
    let Some(Extension(atomic)) = atomic else {
        return status(200, "no key");
    };
    if body == "forget" {
        return status(200, "nothing of this is stored");
    }
    let done = match shop.base.clone() {
        Base::Postgres(url) => on_postgres(&shop, &url, &atomic, &body).await,
        Base::Sqlite(path) => {
            let runtime = Handle::current();
            let work = move || on_sqlite(&shop, &path, &atomic, &body, &runtime);
            tokio::task::spawn_blocking(work).await.expect("no panic")
        }
    };
    done.unwrap_or_else(|error| status(503, error.to_string()))
}

async fn on_postgres(
    shop: &Shop,
    url: &str,
    atomic: &Atomic,
    body: &str,
) -> Result<Response, BoxError> {
    let (mut client, connection) = tokio_postgres::connect(url, NoTls).await?;
    tokio::spawn(connection);
    let mut tx = client.transaction().await?;
    match charge(shop, &mut tx, atomic, body).await {
        Ok(done) => {
            tx.commit().await?;
            Ok(done)
        }
        // Left to itself it would end a moment after the answer, and an immediate retry would find it in progress.
        Err(error) => {
            tx.rollback().await?;
            Err(error)
        }
    }
}

fn on_sqlite(
    shop: &Shop,
    path: &PathBuf,
    atomic: &Atomic,
    body: &str,
    runtime: &Handle,
) -> Result<Response, BoxError> {
    let mut connection = rusqlite::Connection::open(path)?;
    connection.busy_timeout(std::time::Duration::ZERO)?;
    let mut tx = connection.transaction()?;
    // The handler waits at a door now and then; the driver never does.
    let done = runtime.block_on(charge(shop, &mut tx, atomic, body))?;
    tx.commit()?;
    Ok(done)
}

async fn charge<T: AtomicTx>(
    shop: &Shop,
    tx: &mut T,
    atomic: &Atomic,
    body: &str,
) -> Result<Response, BoxError> {
    let (mut run, resumed) = match atomic.begin(tx).await? {
        Begun::Fresh(run) => (run, None),
        Begun::Resume(run, phase) => (run, Some(phase)),
        Begun::Answered(answer) => return Ok(answer.into_response()),
    };
    let runs = shop.runs.fetch_add(1, Ordering::SeqCst) + 1;
    match body {
        "wait" => shop.door.pass().await,
        "fail" => return Err("the card was declined".into()),
        // The phase is committed, and then nothing more is heard of this run.
        "phases" if resumed.is_none() => {
            run.phase(tx, "charged", b"ch_1").await?;
            return Ok(status(503, "lost"));
        }
        _ => {}
    }
    let text = if body == "large" {
        "x".repeat(100)
    } else if let Some(phase) = resumed {
        format!("resumed behind {} with {:?}", phase.name, phase.data)
    } else {
        format!(
            "charge {runs} for {} ({})",
            atomic.principal(),
            atomic.key()
        )
    };
    let answer = http::Response::builder()
        .status(StatusCode::CREATED)
        .header("location", format!("/charges/{runs}"))
        .header("set-cookie", "session=secret")
        .body(text)?;
    Ok(run.finish(tx, answer).await?.into_response())
}

/// Runs a check on SQLite.
pub(crate) fn sqlite<Fut: Future<Output = ()>>(check: impl FnOnce(Base) -> Fut) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("own.db");
    let mut connection = rusqlite::Connection::open(&path).expect("the file opens");
    let mut tx = connection.transaction().expect("a transaction");
    blocking(install(&mut tx)).expect("the table is made");
    tx.commit().expect("committed");
    let runtime = tokio::runtime::Runtime::new().expect("a runtime starts");
    runtime.block_on(check(Base::Sqlite(path)));
}

/// Runs a check on PostgreSQL.
pub(crate) fn postgres<Fut>(check: impl FnOnce(Base) -> Fut + Send + 'static)
where
    Fut: Future<Output = ()> + Send + 'static,
{
    with_database(async move |database| {
        let mut client = database.client().await;
        let mut tx = client.transaction().await.expect("a transaction");
        install(&mut tx).await.expect("the table is made");
        tx.commit().await.expect("committed");
        check(Base::Postgres(database.url())).await;
    });
}

/// Makes two tests of each check.
macro_rules! on_both_bases {
    ($($check:ident),+ $(,)?) => {
        $(mod $check {
            #[test]
            fn sqlite() {
                crate::atomic::shop::sqlite(super::$check);
            }
            #[test]
            fn postgres() {
                crate::atomic::shop::postgres(super::$check);
            }
        })+
    };
}
pub(crate) use on_both_bases;

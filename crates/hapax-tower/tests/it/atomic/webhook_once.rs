//! Webhooks that are worked on once: verified before the handler runs, written down in the transaction of its work.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use axum::Router;
use axum::extract::{FromRef, State};
use axum::routing::post;
use hapax_tower::BoxError;
use hapax_tower::atomic::{Once, blocking, once};
use hapax_tower::webhook::{VerifiedWebhook, WebhookSource};
use http::StatusCode;
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_postgres::{Client, NoTls};

use super::shop::{Base, on_both_bases};
use super::webhook::{SECRET, deliver, signed, stripe, verifier};

on_both_bases!(
    a_webhook_that_is_sent_many_times_ships_once,
    a_webhook_whose_work_failed_is_as_new_as_before,
    a_forged_webhook_ships_nothing,
);

const TABLE: &str = "CREATE TABLE shipment (event text NOT NULL)";
const SHIP: &str = "INSERT INTO shipment (event) VALUES ($1)";
const SHIPPED: &str = "SELECT event FROM shipment ORDER BY event";

/// A service that ships what was paid.
#[derive(Clone)]
struct Shipper {
    source: Arc<WebhookSource>,
    base: Base,
    calls: Arc<AtomicUsize>,
    /// Does the next shipment fail before it is committed?
    fails: Arc<AtomicBool>,
}

impl FromRef<Shipper> for Arc<WebhookSource> {
    fn from_ref(shipper: &Shipper) -> Arc<WebhookSource> {
        shipper.source.clone()
    }
}

async fn handle(State(shipper): State<Shipper>, webhook: VerifiedWebhook) -> StatusCode {
    shipper.calls.fetch_add(1, Ordering::SeqCst);
    let done = match shipper.base.clone() {
        Base::Postgres(url) => shipper.on_postgres(&url, &webhook).await,
        Base::Sqlite(path) => {
            let work = move || shipper.on_sqlite(&path, &webhook);
            tokio::task::spawn_blocking(work).await.expect("no panic")
        }
    };
    match done {
        Ok(Once::Fresh | Once::Seen) => StatusCode::OK,
        // It will be sent again.
        Ok(Once::Busy) | Err(_) => StatusCode::SERVICE_UNAVAILABLE,
    }
}

impl Shipper {
    async fn on_postgres(&self, url: &str, webhook: &VerifiedWebhook) -> Result<Once, BoxError> {
        let mut client = connect(url).await;
        let mut tx = client.transaction().await?;
        let seen = once(&mut tx, &webhook.event).await?;
        if seen == Once::Fresh {
            tx.execute(SHIP, &[&&*webhook.event.id]).await?;
        }
        if self.fails.swap(false, Ordering::SeqCst) {
            tx.rollback().await?;
            return Err("the parcel tore".into());
        }
        tx.commit().await?;
        Ok(seen)
    }

    fn on_sqlite(
        &self,
        path: &std::path::Path,
        webhook: &VerifiedWebhook,
    ) -> Result<Once, BoxError> {
        let mut connection = rusqlite::Connection::open(path)?;
        let immediate = rusqlite::TransactionBehavior::Immediate;
        let mut tx = connection.transaction_with_behavior(immediate)?;
        let seen = blocking(once(&mut tx, &webhook.event))?;
        if seen == Once::Fresh {
            tx.execute(SHIP, [&*webhook.event.id])?;
        }
        if self.fails.swap(false, Ordering::SeqCst) {
            return Err("the parcel tore".into());
        }
        tx.commit()?;
        Ok(seen)
    }

    /// What it has shipped, from the database.
    async fn shipped(&self) -> Vec<String> {
        match &self.base {
            Base::Postgres(url) => {
                let rows = connect(url).await.query(SHIPPED, &[]).await;
                let rows = rows.expect("the table is there");
                rows.iter().map(|row| row.get(0)).collect()
            }
            Base::Sqlite(path) => {
                let connection = rusqlite::Connection::open(path).expect("the file opens");
                let mut rows = connection.prepare(SHIPPED).expect("the table is there");
                let rows = rows.query_map([], |row| row.get(0)).expect("rows");
                rows.collect::<Result<_, _>>().expect("texts")
            }
        }
    }
}

async fn connect(url: &str) -> Client {
    let connected = tokio_postgres::connect(url, NoTls).await;
    let (client, connection) = connected.expect("connected");
    tokio::spawn(connection);
    client
}

/// Serves it, with its table made.
async fn serve(base: Base) -> (SocketAddr, Shipper) {
    match &base {
        Base::Postgres(url) => {
            let made = connect(url).await.batch_execute(TABLE).await;
            made.expect("the table is made");
        }
        Base::Sqlite(path) => {
            let connection = rusqlite::Connection::open(path).expect("the file opens");
            connection.execute_batch(TABLE).expect("the table is made");
        }
    }
    let shipper = Shipper {
        source: Arc::new(stripe()),
        base,
        calls: Arc::default(),
        fails: Arc::default(),
    };
    let router = Router::new().route("/hook", post(handle));
    let router = router.with_state(shipper.clone());
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    // Ends with the runtime.
    tokio::spawn(async move { axum::serve(listener, router).await });
    (address, shipper)
}

/// Sends an event as Stripe would, signed now; says what it heard.
async fn send(address: SocketAddr, id: &str) -> u16 {
    let body = format!(r#"{{"id":"{id}","type":"invoice.paid"}}"#);
    let headers = signed(&verifier("stripe", SECRET), &body);
    deliver(address, &headers, &body).await.status.as_u16()
}

async fn a_webhook_that_is_sent_many_times_ships_once(base: Base) {
    let (address, shipper) = serve(base).await;
    let mut sending = JoinSet::new();
    for _ in 0..20 {
        sending.spawn(async move { send(address, "evt_1").await });
    }
    let heard = sending.join_all().await;
    // Whoever comes while it is being worked on is asked to come again, and nobody hears anything else.
    assert!(
        heard.iter().all(|status| [200, 503].contains(status)),
        "{heard:?}"
    );
    assert!(heard.contains(&200), "{heard:?}");
    assert_eq!(shipper.shipped().await.len(), 1);
    for _ in 0..3 {
        assert_eq!(send(address, "evt_1").await, 200);
    }
    assert_eq!(shipper.shipped().await.len(), 1);
    assert_eq!(shipper.calls.load(Ordering::SeqCst), 23);
    assert_eq!(send(address, "evt_2").await, 200);
    assert_eq!(shipper.shipped().await.len(), 2);
}

async fn a_webhook_whose_work_failed_is_as_new_as_before(base: Base) {
    let (address, shipper) = serve(base).await;
    shipper.fails.store(true, Ordering::SeqCst);
    assert_eq!(send(address, "evt_1").await, 503);
    assert!(shipper.shipped().await.is_empty());
    for _ in 0..2 {
        assert_eq!(send(address, "evt_1").await, 200);
        assert_eq!(shipper.shipped().await.len(), 1);
    }
}

async fn a_forged_webhook_ships_nothing(base: Base) {
    let (address, shipper) = serve(base).await;
    let body = r#"{"id":"evt_1","type":"invoice.paid"}"#;
    let forged = signed(&verifier("stripe", "whsec_some_other_secret"), body);
    let answer = deliver(address, &forged, body).await;
    assert_eq!(answer.refusal(), (401, "not-verified".to_owned()));
    assert_eq!(shipper.calls.load(Ordering::SeqCst), 0);
    assert!(shipper.shipped().await.is_empty());
    // Nor does it take the place of the real one.
    assert_eq!(send(address, "evt_1").await, 200);
    assert_eq!(shipper.shipped().await.len(), 1);
}

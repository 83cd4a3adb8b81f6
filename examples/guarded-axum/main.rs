//! A service that charges once per `Idempotency-Key`: the key, the charge and the stored answer are one transaction in its own
//! PostgreSQL database.
//!
//! ```text
//! guarded-axum ADDRESS DATABASE_URL
//! ```

use std::sync::{Arc, Mutex, PoisonError};

use axum::extract::{Extension, Json, State};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use axum::{Router, serve};
use hapax_tower::atomic::{Atomic, AtomicLayer, Begun, install};
use hapax_tower::ledger::time::Span;
use hapax_tower::principal::ByHeader;
use hapax_tower::{BoxError, Guard};
use http::StatusCode;
use http::header::{CONTENT_TYPE, HeaderName};
use serde::Deserialize;
use serde_json::json;
use tokio::net::TcpListener;
use tokio_postgres::{Client, NoTls};

mod halt;
mod phases;

use halt::step;

#[derive(Deserialize)]
struct Order {
    order: String,
    amount: i64,
}

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    let mut args = std::env::args().skip(1);
    let (Some(address), Some(url)) = (args.next(), args.next()) else {
        return Err("usage: guarded-axum ADDRESS DATABASE_URL".into());
    };
    let pool = Pool::new(url);
    prepare(&pool).await?;
    // Whoever stands before this service vouches for the account.
    let account = ByHeader::new(HeaderName::from_static("x-account"));
    // What holds up the next run of a booking whose process has died; each part of one takes milliseconds.
    let lease = Span::from_secs(2);
    let guard = Guard::new("charges", account).required().lease(lease);
    let app = Router::new()
        .route("/charges", post(charge).get(charges))
        .route("/bookings", post(phases::book).get(phases::parts))
        .layer(AtomicLayer::new(guard)?)
        .with_state(pool);
    let listener = TcpListener::bind(address).await?;
    println!("listening on {}", listener.local_addr()?);
    Ok(serve(listener, app).await?)
}

/// Makes the tables: the key's, and the service's own.
async fn prepare(pool: &Pool) -> Result<(), BoxError> {
    let mut client = pool.take().await?;
    let mut tx = client.transaction().await?;
    install(&mut tx).await?;
    tx.batch_execute(
        "CREATE TABLE IF NOT EXISTS charge (
             id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, account text NOT NULL, order_no text NOT NULL,
             amount bigint NOT NULL);
         CREATE TABLE IF NOT EXISTS booking_part (
             id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, booking text NOT NULL, part text NOT NULL)",
    )
    .await?;
    tx.commit().await?;
    Ok(())
}

async fn charge(
    State(pool): State<Pool>,
    Extension(atomic): Extension<Atomic>,
    Json(order): Json<Order>,
) -> Result<Response, Failure> {
    step("received").await;
    let mut client = pool.take().await?;
    let answer = charge_once(&mut client, &atomic, &order).await?;
    pool.give_back(client);
    Ok(answer)
}

/// The key, the charge and the answer, or none of them.
async fn charge_once(
    client: &mut Client,
    atomic: &Atomic,
    order: &Order,
) -> Result<Response, BoxError> {
    let mut tx = client.transaction().await?;
    step("begun").await;
    let run = match atomic.begin(&mut tx).await? {
        Begun::Fresh(run) | Begun::Resume(run, _) => run,
        Begun::Answered(answer) => return Ok(answer.into_response()),
    };
    step("claimed").await;
    let row = tx
        .query_one(
            "INSERT INTO charge (account, order_no, amount) VALUES ($1, $2, $3) RETURNING id",
            &[&atomic.principal(), &order.order, &order.amount],
        )
        .await?;
    step("charged").await;
    let charged =
        json!({ "id": row.get::<_, i64>(0), "order": order.order, "amount": order.amount });
    let answer = http::Response::builder()
        .status(StatusCode::CREATED)
        .header(CONTENT_TYPE, "application/json")
        .body(charged.to_string())?;
    let answer = run.finish(&mut tx, answer).await?;
    step("finished").await;
    tx.commit().await?;
    step("committed").await;
    Ok(answer.into_response())
}

/// All charges, for whoever wants to count them.
async fn charges(State(pool): State<Pool>) -> Result<Response, Failure> {
    let client = pool.take().await?;
    let rows = client
        .query("SELECT id, order_no FROM charge ORDER BY id", &[])
        .await?;
    pool.give_back(client);
    let charges = rows
        .iter()
        .map(|row| json!({ "id": row.get::<_, i64>(0), "order": row.get::<_, String>(1) }));
    Ok(Json(charges.collect::<Vec<_>>()).into_response())
}

/// Connections that nobody uses now. A service has a pool of its choice here.
#[derive(Clone)]
struct Pool {
    url: Arc<str>,
    idle: Arc<Mutex<Vec<Client>>>,
}

impl Pool {
    fn new(url: String) -> Pool {
        Pool {
            url: url.into(),
            idle: Arc::default(),
        }
    }

    async fn take(&self) -> Result<Client, BoxError> {
        let idle = self
            .idle
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .pop();
        if let Some(client) = idle {
            return Ok(client);
        }
        let (client, connection) = tokio_postgres::connect(&self.url, NoTls).await?;
        tokio::spawn(connection);
        Ok(client)
    }

    /// Only after a good end: a connection whose transaction failed is closed.
    fn give_back(&self, client: Client) {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        idle.push(client);
    }
}

/// Nothing was done: whoever hears it sends the request again, with the same key.
struct Failure(BoxError);

impl<E: Into<BoxError>> From<E> for Failure {
    fn from(error: E) -> Failure {
        Failure(error.into())
    }
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        eprintln!("a request failed: {}", self.0);
        let retry_after = [(http::header::RETRY_AFTER, "1")];
        (StatusCode::SERVICE_UNAVAILABLE, retry_after).into_response()
    }
}

//! A service whose `POST /charges` asks a bank, once per `Idempotency-Key`: the layer keeps the keys in a store of its own, and the handler
//! says what becomes of each answer.
//!
//! ```text
//! guarded-layer ADDRESS STORE       STORE: sqlite:FILE, postgres://..., or memory
//! ```

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use axum::extract::{Extension, Json, State};
use axum::response::{IntoResponse, Response};
use axum::routing::{post, put};
use axum::{Router, serve};
use hapax_tower::ledger::guard::Preset;
use hapax_tower::principal::ByHeader;
use hapax_tower::store::Store;
use hapax_tower::store::model::ModelStore;
use hapax_tower::store::postgres::{self, PostgresStore};
use hapax_tower::store::sqlite::{self, DiskLimits, SqliteStore};
use hapax_tower::{BoxError, Guard, IdempotencyLayer, Keep, Why, clock};
use http::StatusCode;
use http::header::HeaderName;
use serde::Deserialize;
use serde_json::json;
use tokio::net::TcpListener;

#[derive(Deserialize)]
struct Order {
    order: String,
    amount: i64,
}

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    let mut args = std::env::args().skip(1);
    let (Some(address), Some(store)) = (args.next(), args.next()) else {
        return Err("usage: guarded-layer ADDRESS STORE".into());
    };
    let store = open(&store).await?;
    // Whoever stands before this service vouches for the account.
    let account = ByHeader::new(HeaderName::from_static("x-account"));
    let guard = Guard::new("charges", account)
        .preset(Preset::Ietf)
        .required();
    let idempotency = IdempotencyLayer::new(store.clone(), guard)?;
    let app = Router::new()
        .route("/charges", post(charge).get(charges))
        .route("/bank", put(set_mood))
        .layer(idempotency.clone())
        .with_state(Arc::new(Bank::default()));
    let listener = TcpListener::bind(address).await?;
    println!("listening on {}", listener.local_addr()?);
    serve(listener, app)
        .with_graceful_shutdown(async {
            // Without a signal to hear, it stops at once.
            let _ = tokio::signal::ctrl_c().await;
        })
        .await?;
    // Runs outlive their callers: what is not waited for has an unknown outcome.
    idempotency.drain().await;
    store.close().await;
    Ok(())
}

/// Where the keys are kept: a file of this process, or a database that any number of nodes share.
async fn open(store: &str) -> Result<Arc<dyn Store>, BoxError> {
    if store == "memory" {
        return Ok(Arc::new(ModelStore::new(clock::steady())));
    }
    if let Some(file) = store.strip_prefix("sqlite:") {
        let options = sqlite::Options {
            clock: clock::steady(),
            nonce: lots(),
            disk: DiskLimits::default(),
        };
        return Ok(Arc::new(SqliteStore::open(Path::new(file), options)?));
    }
    let entropy = Arc::new(|| u64::from_be_bytes(lots()));
    let options = postgres::Options::new(store, lots(), entropy);
    Ok(Arc::new(PostgresStore::open(options).await?))
}

#[expect(clippy::disallowed_methods, reason = "a service draws its own lots")]
fn lots<const N: usize>() -> [u8; N] {
    let mut lots = [0; N];
    getrandom::fill(&mut lots).expect("the operating system gives random bytes");
    lots
}

/// Without a word from the handler the status decides: the 201 and the 422 are stored, and every retry gets them.
async fn charge(State(bank): State<Arc<Bank>>, Json(order): Json<Order>) -> Response {
    if order.amount <= 0 {
        return (StatusCode::UNPROCESSABLE_ENTITY, "nothing to charge").into_response();
    }
    match bank.charge(&order) {
        Told::Charged(id) => {
            let charged = json!({ "id": id, "order": order.order, "amount": order.amount });
            (StatusCode::CREATED, Json(charged)).into_response()
        }
        // Nothing was charged, and this handler knows it: the key is free, and the next request with it runs.
        Told::Closed => {
            let answer = (StatusCode::SERVICE_UNAVAILABLE, "the bank is closed");
            (Extension(Keep::Release), answer).into_response()
        }
        // A retry gets this refusal, although its status is one of those that are not stored by themselves.
        Told::Declined => {
            let answer = (StatusCode::FORBIDDEN, "the bank has declined");
            (Extension(Keep::Store), answer).into_response()
        }
        // Perhaps it has charged: no retry runs before somebody has found out.
        Told::Nothing => {
            let why = Why(format!("the bank said nothing about {}", order.order));
            let answer = (StatusCode::BAD_GATEWAY, "the bank said nothing");
            (Extension(Keep::Unknown), Extension(why), answer).into_response()
        }
    }
}

/// The orders that the bank has charged, for whoever wants to count them.
async fn charges(State(bank): State<Arc<Bank>>) -> Json<Vec<String>> {
    Json(bank.state().charged.clone())
}

/// A bank that does what it is told with `PUT /bank`: `open`, `closed`, `declining` or `silent`.
async fn set_mood(State(bank): State<Arc<Bank>>, mood: String) {
    bank.state().mood = mood;
}

#[derive(Default)]
struct Bank(Mutex<Books>);

#[derive(Default)]
struct Books {
    mood: String,
    charged: Vec<String>,
}

enum Told {
    Charged(usize),
    Closed,
    Declined,
    Nothing,
}

impl Bank {
    fn state(&self) -> std::sync::MutexGuard<'_, Books> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn charge(&self, order: &Order) -> Told {
        let mut books = self.state();
        match &*books.mood {
            "closed" => return Told::Closed,
            "declining" => return Told::Declined,
            _ => books.charged.push(order.order.clone()),
        }
        match &*books.mood {
            "silent" => Told::Nothing,
            _ => Told::Charged(books.charged.len()),
        }
    }
}

//! The company's own services, small enough to read: what `hapax.toml` beside this file sends its effects to.
//!
//! `cargo run --example provisioning -- 127.0.0.1:9000 [--flaky]` keeps everything in memory. `GET /world` says what really
//! happened, by key. With `--flaky` it misbehaves as services do: it hangs up after the work is done, answers 500 before or after
//! it, or asks to come back later.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Context;
use axum::extract::{Path, Query, State};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use http::{HeaderMap, StatusCode};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::net::TcpListener;

/// What happened in the world, by service and key.
#[derive(Default)]
struct World {
    /// Requests that arrived.
    asked: BTreeMap<String, u64>,
    /// Times the thing was done: rows that say `active`, mails that left, lines in the report.
    done: BTreeMap<String, u64>,
}

#[derive(Clone)]
struct App {
    world: Arc<Mutex<World>>,
    manners: Manners,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Manners {
    Good,
    Flaky,
}

/// How a request goes wrong, if it does.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mishap {
    None,
    /// Refused before anything was done.
    Busy,
    /// Broken before anything was done.
    FailsBefore,
    /// Done, and then broken.
    FailsAfter,
}

/// What repeating a request does here.
#[derive(Clone, Copy)]
enum Kind {
    /// The same state again.
    Sets,
    /// Nothing, if the key is known.
    Dedupes,
    /// The thing once more.
    Repeats,
}

fn kind(service: &str, action: &str) -> Option<Kind> {
    match (service, action) {
        ("subscription", "activate") | ("features", "enable") | ("workspace", "ensure") => {
            Some(Kind::Sets)
        }
        ("finance", "post") | ("tasks", "create") => Some(Kind::Dedupes),
        ("email", "send") => Some(Kind::Repeats),
        _ => None,
    }
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let address: SocketAddr = arguments
        .next()
        .context("usage: provisioning ADDRESS [--flaky]")?
        .parse()
        .context("the first argument is an address such as 127.0.0.1:9000")?;
    let manners = match arguments.next().as_deref() {
        None => Manners::Good,
        Some("--flaky") => Manners::Flaky,
        Some(other) => anyhow::bail!("unknown option {other}; there is only --flaky"),
    };
    let app = App {
        world: Arc::default(),
        manners,
    };
    let router = Router::new()
        .route("/{service}/{action}", post(work))
        .route("/email/sent", get(sent))
        .route("/world", get(world))
        .with_state(app);
    let listener = TcpListener::bind(address).await?;
    println!("listening on {}", listener.local_addr()?);
    axum::serve(listener, router).await?;
    Ok(())
}

async fn work(
    State(app): State<App>,
    Path((service, action)): Path<(String, String)>,
    headers: HeaderMap,
) -> Response {
    let key = headers.get("idempotency-key");
    let key = key.and_then(|key| key.to_str().ok()).map(str::to_owned);
    let (Some(kind), Some(key)) = (kind(&service, &action), key) else {
        return StatusCode::NOT_FOUND.into_response();
    };
    let mishap = app.note(&key, kind);
    match mishap {
        Mishap::None => (StatusCode::OK, Json(json!({ "ok": true }))).into_response(),
        Mishap::Busy => (StatusCode::TOO_MANY_REQUESTS, [("retry-after", "0")]).into_response(),
        Mishap::FailsBefore | Mishap::FailsAfter => {
            StatusCode::INTERNAL_SERVER_ERROR.into_response()
        }
    }
}

impl App {
    /// Does the thing, unless the mishap comes first.
    fn note(&self, key: &str, kind: Kind) -> Mishap {
        let mut world = self.world.lock().unwrap_or_else(PoisonError::into_inner);
        let asked = world.asked.entry(key.to_owned()).or_default();
        *asked += 1;
        let mishap = match self.manners {
            Manners::Good => Mishap::None,
            Manners::Flaky => mishap(key, *asked),
        };
        if matches!(mishap, Mishap::None | Mishap::FailsAfter) {
            let done = world.done.entry(key.to_owned()).or_default();
            match kind {
                Kind::Sets | Kind::Dedupes => *done = 1,
                Kind::Repeats => *done += 1,
            }
        }
        mishap
    }
}

/// The first try of some keys goes wrong, each in its own way; the second never does.
fn mishap(key: &str, asked: u64) -> Mishap {
    let lot = key
        .bytes()
        .fold(0_u32, |sum, byte| sum.wrapping_mul(31) + u32::from(byte));
    match (asked, lot % 5) {
        (1, 0) => Mishap::Busy,
        (1, 1) => Mishap::FailsBefore,
        (1, 2) => Mishap::FailsAfter,
        _ => Mishap::None,
    }
}

#[derive(Deserialize)]
struct Asked {
    key: String,
}

/// What Hapax asks when it cannot tell: was the mail with this key sent?
async fn sent(State(app): State<App>, Query(asked): Query<Asked>) -> Json<Value> {
    let world = app.world.lock().unwrap_or_else(PoisonError::into_inner);
    let key = format!("send-welcome-email:{}", asked.key);
    Json(json!({ "applied": world.done.contains_key(&key) }))
}

async fn world(State(app): State<App>) -> Json<Value> {
    let world = app.world.lock().unwrap_or_else(PoisonError::into_inner);
    Json(json!({ "asked": world.asked, "done": world.done }))
}

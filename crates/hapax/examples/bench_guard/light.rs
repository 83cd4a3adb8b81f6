//! How long one takes while nothing else is going on: a request that the guard passes on, a commit, and a first request with a key.
//!
//! The three go by turns in one process, for the reasons that `bench_dispatch` has.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, ensure};
use bytes::Bytes;
use hapax::config::{Config, System, parse};
use hapax::guard::Guards;
use hapax::guard::guards::Parts;
use hapax::http::serve::open;
use hapax::metrics::Metrics;
use hapax::secrets::Safe;
use hapax::{clock, entropy};
use hapax_ledger::time::Span;
use hapax_store::Store;
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http1::SendRequest;
use hyper::{Method, Request};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::sync::watch;

use crate::Order;
use crate::arrival::{Maker, body};
use crate::round::{Tally, rounds};

/// Before each of the three: all of them begin from rest.
const REST: Duration = Duration::from_millis(1);

/// What is counted of each.
#[derive(Default)]
struct Tallies {
    passed: Tally,
    commit: Tally,
    first: Tally,
}

/// Prints each round three times: the request that passes, the commit, and the first request.
pub(crate) async fn run(order: &Order) -> anyhow::Result<()> {
    let config = config(order)?;
    let store = open(&config.store).await?;
    let (stop, stopping) = watch::channel(false);
    let guards = Arc::new(Guards::start(&config.guards, parts(&config, &store).await?).await?);
    let guarding = tokio::spawn(guards.run(stopping));
    let tallies = Tallies::default();
    let each = [&tallies.passed, &tallies.commit, &tallies.first];
    let counted = tokio::select! {
        counted = rounds(order, &each) => counted,
        broken = turns(order, &*store, &tallies) => broken,
    };
    stop.send_replace(true);
    guarding.await?;
    store.close().await;
    counted
}

async fn turns(order: &Order, store: &dyn Store, tallies: &Tallies) -> anyhow::Result<()> {
    let mut guard = connect(order).await?;
    let maker = Maker::new(order.body_bytes);
    let salt = hex::encode(entropy::bytes::<8>());
    for number in 1_u64.. {
        tokio::time::sleep(REST).await;
        let passes = request(order, None)?;
        let began = clock::tick();
        ask(&mut guard, passes).await?;
        tallies.passed.done_within(clock::since(began));

        tokio::time::sleep(REST).await;
        let arrival = maker.plain();
        let began = clock::tick();
        store.accept(arrival).await?;
        tallies.commit.done_within(clock::since(began));

        tokio::time::sleep(REST).await;
        let first = request(order, Some(format!("{salt}-{number}")))?;
        let began = clock::tick();
        ask(&mut guard, first).await?;
        tallies.first.done_within(clock::since(began));
    }
    Ok(())
}

async fn parts(config: &Config, store: &Arc<dyn Store>) -> anyhow::Result<Parts> {
    let lease = i64::try_from(config.limits.lease.as_micros())?;
    Ok(Parts {
        store: store.clone(),
        safe: Arc::new(Safe::open(config, &**store).await?),
        metrics: Arc::new(Metrics::default()),
        node: "bench".into(),
        lease: Span::from_micros(lease),
        limits: config.limits.clone(),
    })
}

/// As the bench writes it for the program, with the light's own places.
fn config(order: &Order) -> anyhow::Result<Config> {
    let Order {
        store,
        listen,
        upstream,
        ..
    } = order;
    let text = format!(
        "store = \"{store}\"\n[[guard]]\nname = \"bench\"\nlisten = \"{listen}\"\nupstream = \"http://{upstream}\"\nprincipal = \"header.x-user\"\n"
    );
    let parsed = parse(&text, "bench.toml", &System::beside("bench.toml".as_ref()));
    let loaded = parsed.map_err(|problems| anyhow::anyhow!("{problems}"))?;
    Ok(loaded.config)
}

#[expect(
    clippy::disallowed_methods,
    reason = "a bench's client of its own guard, on loopback"
)]
async fn connect(order: &Order) -> anyhow::Result<SendRequest<Full<Bytes>>> {
    let stream = TcpStream::connect(order.listen).await?;
    stream.set_nodelay(true)?;
    let (guard, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
    // Ends with the guard's side of it; its error is that of the request under way.
    tokio::spawn(async move { connection.await.ok() });
    Ok(guard)
}

fn request(order: &Order, key: Option<String>) -> anyhow::Result<Request<Full<Bytes>>> {
    let request = Request::builder()
        .method(Method::POST)
        .uri("/charges")
        .header("host", order.listen.to_string())
        .header("x-user", "bench")
        .header("content-type", "application/json");
    let request = match key {
        Some(key) => request.header("idempotency-key", key),
        None => request,
    };
    let body = Full::new(body("charge", order.body_bytes));
    request.body(body).context("a request of fixed words")
}

async fn ask(
    guard: &mut SendRequest<Full<Bytes>>,
    request: Request<Full<Bytes>>,
) -> anyhow::Result<()> {
    guard.ready().await?;
    let answer = guard.send_request(request).await?;
    let status = answer.status();
    let answer = answer.into_body().collect().await?.to_bytes();
    ensure!(status.is_success(), "the guard said {status}: {answer:?}");
    Ok(())
}

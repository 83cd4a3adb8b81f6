//! The worker of `cargo xt bench outbox`: publishes messages and delivers them in this process, without the HTTP API before them.
//!
//! Reads an [`Order`] as JSON from stdin, carries it out, and prints one line of JSON per round, as `xtask load` does.
//! - `setup`: store, registry and dispatcher, the real ones. `rate`: how many a second. `beside`: how long one takes beside endpoints
//!   that are bad; `bad`: what those do, `arrivals`: when messages come. `figures`: what statistics cost beside so many attempts.
//! - `round`, `sink`: as in `bench_dispatch`.

mod arrivals;
mod bad;
mod beside;
mod figures;
mod rate;
#[path = "../bench_dispatch/round.rs"]
mod round;
mod setup;
#[path = "../bench_dispatch/sink.rs"]
mod sink;

use std::net::SocketAddr;

use anyhow::Context;
use serde::Deserialize;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// What to measure, and for how long.
#[derive(Clone, Debug, Deserialize)]
struct Order {
    row: Row,
    /// Where the ledger is kept, as the config has it.
    store: String,
    /// A receiver in another process, for the rate.
    sink: SocketAddr,
    body_bytes: usize,
    /// Attempts that are there before, for the figures.
    fill: u64,
    /// Messages that are published and not delivered, at most.
    outstanding: usize,
    warmup_ms: u64,
    round_ms: u64,
    rounds: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Row {
    /// Messages a second from published to done.
    DeliveredRate,
    /// Endpoints that are well, at a steady pace.
    Alone,
    /// The same, beside others that are well.
    BesideWell,
    /// The same, beside others that are bad.
    BesideBad,
    /// Statistics of an endpoint, and of an application, by turns.
    Figures,
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let order: Order =
        serde_json::from_reader(std::io::stdin().lock()).context("the order is not readable")?;
    match order.row {
        Row::DeliveredRate => rate::run(&order).await,
        Row::Alone | Row::BesideWell | Row::BesideBad => beside::run(&order).await,
        Row::Figures => figures::run(&order).await,
    }
}

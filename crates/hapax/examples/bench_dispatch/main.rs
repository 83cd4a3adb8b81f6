//! The worker of `cargo xt bench dispatch`: carries effects out in this process, without the HTTP intake before them.
//!
//! Reads an [`Order`] as JSON from stdin, carries it out, and prints one line of JSON per round, as `xtask load` does.
//! - `setup`: store, config and dispatcher, the real ones. `arrival`: what an inbox would hand over. `fill`: what waits.
//! - `rate`: how many a second. `light`: how long one takes. `lanes`: how long one takes beside lanes that are down.
//! - `sink`: a receiver in this process, which notes when a request is there. `round`: what is counted and printed.

mod arrival;
mod fill;
mod lanes;
mod light;
mod rate;
mod round;
mod setup;
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
    /// A receiver in another process, for the rates.
    sink: SocketAddr,
    body_bytes: usize,
    /// Effects that wait, due long after the bench.
    fill: u64,
    /// Effects that are accepted and not done, at most.
    outstanding: usize,
    /// Lanes whose target is down.
    lanes_down: u32,
    warmup_ms: u64,
    round_ms: u64,
    rounds: u32,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Row {
    /// Requests a second that the sender alone makes.
    BareRate,
    /// Effects a second from accept to done.
    SettledRate,
    /// A request, a commit and an effect by turns: each round is printed three times, once for each.
    Light,
    /// Effects in many lanes at a steady pace.
    Lanes,
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let order: Order =
        serde_json::from_reader(std::io::stdin().lock()).context("the order is not readable")?;
    allow_open_files();
    match order.row {
        Row::BareRate => rate::bare(&order).await,
        Row::SettledRate => rate::settled(&order).await,
        Row::Light => light::run(&order).await,
        Row::Lanes => lanes::run(&order).await,
    }
}

/// As the server does: ten thousand lanes may all be connecting.
fn allow_open_files() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let maximum = getrlimit(Resource::Nofile).maximum;
    let raised = Rlimit {
        current: maximum,
        maximum,
    };
    if setrlimit(Resource::Nofile, raised).is_err() {
        eprintln!("the limit on open files stays as it is");
    }
}

//! The programs of `cargo xt bench guard` that need what is measured, or stand beside it.
//!
//! `bench_guard bare PORT UPSTREAM` is a proxy that does nothing but pass on, until its stdin is closed: the ceiling of every other. Without
//! arguments it reads an [`Order`] as JSON from stdin, and prints one line of JSON per round, as `xtask load` does.
//! - `bare`: the proxy. `light`: how long one request takes.
//! - `arrival`, `round`: as in `bench_dispatch`.

#[path = "../bench_dispatch/arrival.rs"]
#[expect(
    dead_code,
    reason = "shared with a bench that also carries effects out"
)]
mod arrival;
mod bare;
mod light;
#[path = "../bench_dispatch/round.rs"]
#[expect(dead_code, reason = "shared with a bench that also counts rates")]
mod round;

use std::net::SocketAddr;

use anyhow::Context;
use serde::Deserialize;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// What to measure, and for how long.
#[derive(Clone, Debug, Deserialize)]
struct Order {
    /// Where keys are kept, as the config has it.
    store: String,
    /// What the guard stands before.
    upstream: SocketAddr,
    /// Where it listens.
    listen: SocketAddr,
    body_bytes: usize,
    warmup_ms: u64,
    round_ms: u64,
    rounds: u32,
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.as_slice() {
        [] => {
            let order = serde_json::from_reader(std::io::stdin().lock());
            light::run(&order.context("the order is not readable")?).await
        }
        [bare, port, upstream] if bare == "bare" => {
            bare::run(port.parse()?, upstream.parse()?).await
        }
        _ => anyhow::bail!("usage: bench_guard [bare PORT UPSTREAM]"),
    }
}

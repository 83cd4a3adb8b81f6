//! `cargo xt bench ceiling`: the generator against a server that does nothing.
//!
//! It shows what the generator itself can do on this machine, and what signing costs it.

use std::process::Command;

use anyhow::Context;

use super::Load;
use super::server::Server;
use super::session::Session;
use crate::load::{Order, Shape};
use crate::loopback;

/// Takes one row per shape of request.
pub(super) fn run(load: &Load) -> anyhow::Result<()> {
    let server = start()?;
    let mut session = Session::new("ceiling", load);
    let rows = [
        ("plain", Shape::Plain),
        ("signed like GitHub", Shape::Github),
        ("signed like Stripe", Shape::Stripe),
    ];
    for (name, shape) in rows {
        session.measure(name, &order(load, &server, shape), &server)?;
    }
    session.finish("plain")
}

/// Starts the server that does nothing; other benches take their ceiling from it too.
pub(super) fn start() -> anyhow::Result<Server> {
    let address = loopback::free_address()?;
    let program = std::env::current_exe().context("xtask does not find itself")?;
    let mut command = Command::new(program);
    command.args(["ceiling-server", "--port", &address.port().to_string()]);
    Server::start(&mut command, address)
}

/// An order to load `server` with requests of one shape.
pub(super) fn order(load: &Load, server: &Server, shape: Shape) -> Order {
    Order {
        address: server.address(),
        path: "/in/bench".to_owned(),
        shape,
        secret: "a secret of the bench".to_owned(),
        body_bytes: load.body_bytes,
        connections: load.connections,
        threads: load.threads,
        warmup_ms: load.warmup_ms,
        round_ms: load.round_ms,
        rounds: load.rounds,
    }
}

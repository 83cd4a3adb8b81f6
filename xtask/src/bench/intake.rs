//! `cargo xt bench intake`: what durability costs at the inbox.
//!
//! The ceiling is the same server with the same verification over a store that keeps nothing. Each store is then
//! measured with new events, and SQLite also with duplicates, with forged requests, and with millions of events present.

use std::path::Path;
use std::process::Command;

use super::server::Server;
use super::session::Session;
use super::{Load, build_example, ceiling};
use crate::load::{Order, Shape};
use crate::postgres::ThrowAway;
use crate::{loopback, workspace};

/// Connections at which everything is measured.
pub(super) const CONNECTIONS: [u32; 2] = [64, 256];
/// What requests are signed with; the server knows the same.
const SECRET: &str = "a secret of the bench";

/// Takes the row of the ceiling: the same server and verification over a store that keeps nothing.
pub(super) fn measure_ceiling(
    session: &mut Session,
    load: &Load,
    name: &str,
) -> anyhow::Result<()> {
    let nothing = start(&build_example("bench_server")?, "none", 0)?;
    session.measure(
        name,
        &order(load, &nothing, Shape::Stripe, SECRET),
        &nothing,
    )
}

/// Takes one report per number of connections.
pub(super) fn run(load: &Load) -> anyhow::Result<()> {
    let program = build_example("bench_server")?;
    let folder = tempfile::tempdir_in(workspace::target())?;
    let small = format!("sqlite:{}", folder.path().join("small.db").display());
    let large = format!("sqlite:{}", folder.path().join("large.db").display());
    let postgres = (!load.no_postgres).then(ThrowAway::start).transpose()?;
    for connections in CONNECTIONS {
        let load = Load {
            connections,
            ..load.clone()
        };
        let mut session = Session::new(&format!("intake-{connections}"), &load);
        measure_ceiling(&mut session, &load, "ceiling")?;
        sqlite(&mut session, &load, &start(&program, &small, 0)?)?;
        if load.fill > 0 {
            let present = Path::new(large.trim_start_matches("sqlite:")).exists();
            let server = start(&program, &large, if present { 0 } else { load.fill })?;
            let name = format!("sqlite, {} million there", load.fill / 1_000_000);
            session.measure(
                &name,
                &order(&load, &server, Shape::Stripe, SECRET),
                &server,
            )?;
        }
        if let Some(postgres) = &postgres {
            let server = start(&program, postgres.url(), 0)?;
            session.measure(
                "postgres",
                &order(&load, &server, Shape::Stripe, SECRET),
                &server,
            )?;
        }
        println!(
            "{connections} connections, bodies of {} bytes",
            load.body_bytes
        );
        session.finish("ceiling")?;
    }
    Ok(())
}

fn sqlite(session: &mut Session, load: &Load, server: &Server) -> anyhow::Result<()> {
    session.measure(
        "sqlite",
        &order(load, server, Shape::Stripe, SECRET),
        server,
    )?;
    session.measure(
        "sqlite, duplicates",
        &order(load, server, Shape::StripeAgain, SECRET),
        server,
    )?;
    session.measure(
        "sqlite, forged",
        &order(load, server, Shape::Stripe, "not the secret"),
        server,
    )
}

fn order(load: &Load, server: &Server, shape: Shape, secret: &str) -> Order {
    Order {
        secret: secret.to_owned(),
        ..ceiling::order(load, server, shape)
    }
}

fn start(program: &Path, store: &str, fill: u64) -> anyhow::Result<Server> {
    let address = loopback::free_address()?;
    let mut command = Command::new(program);
    command.args([&address.port().to_string(), store, &fill.to_string()]);
    Server::start(&mut command, address)
}

//! `cargo xt bench outbox`: what messages to customers' endpoints cost, and what bad endpoints cost the others.
//!
//! Four reports. *Creates*: messages a second through the program's API, each with one delivery, beside the inbox's ceiling: while they are
//! delivered, and to an endpoint that takes one a second, so that they wait. *Deliveries*: from published to done, beside the bare sender.
//! *Beside*: how long a delivery takes while of three other endpoints, which get messages, too, one drips, one hangs and one answers without end;
//! beside the same without those endpoints, and beside the same while they are well, too. *Figures*: what statistics cost beside many
//! attempts, and beside few.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, ensure};
use serde::Serialize;

use super::dispatch::{BARE, OUTSTANDING, beside_alone, measure_bare, p99_beside};
use super::guard::verdict;
use super::intake::measure_ceiling;
use super::row::Row;
use super::server::Server;
use super::session::Session;
use super::{Load, build_example, build_program, ceiling};
use crate::load::{Generator, Order, Shape};
use crate::postgres::ThrowAway;
use crate::{loopback, workspace};

/// The inbox's ceiling.
const CEILING: &str = "intake ceiling";
/// Of the inbox's ceiling.
const CREATES_WANTED: f64 = 0.35;
/// Of the bare sender.
const DELIVERIES_WANTED: f64 = 0.3;
/// Of the p99 without those endpoints and their messages, and of the p99 while they are well.
const P99_WANTED: f64 = 1.2;
/// The row without other endpoints.
const ALONE: &str = "alone";
/// The row beside three others that are well.
const BESIDE_WELL: &str = "beside well ones";
/// The row beside one endpoint that drips, one that hangs and one that answers without end.
const BESIDE_BAD: &str = "beside bad ones";
/// Rounds that pass before a row beside them is measured, so that they can do their worst: ten seconds, by the default.
const ROUNDS_TO_GO_BAD: u64 = 5;
/// A round of such a row is as long as so many others: 3,000 messages by the default, so that thirty of them make the p99 and not ten. The disk's
/// own stalls are longer than what bad endpoints cost.
const ROUNDS_IN_ONE: u64 = 3;
/// Beyond the memory without them.
const MEMORY_MIB_WANTED: u64 = 64;
/// Attempts beside which statistics cost what they cost.
const FEW: u64 = 10_000;
/// Of the p50 beside few.
const FIGURES_WANTED: f64 = 1.5;
/// Applications, and the rate of their endpoint: messages wait for it, or are delivered while others are created.
const WAYS: [(&str, Option<&str>); 2] = [("waiting", Some("1")), ("delivered", None)];
/// Seals secrets in a database that nodes share, and is the admin's token. It is gone in a minute.
const VAULT_KEY: &str = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";

/// What the bench's program is told; see `crates/hapax/examples/bench_outbox`.
#[derive(Clone, Debug, Serialize)]
struct Told {
    row: &'static str,
    store: String,
    sink: String,
    body_bytes: usize,
    fill: u64,
    outstanding: usize,
    warmup_ms: u64,
    round_ms: u64,
    rounds: u32,
}

struct Bench<'a> {
    program: PathBuf,
    worker: PathBuf,
    load: &'a Load,
    folder: PathBuf,
    sink: Server,
    postgres: Option<ThrowAway>,
}

/// Takes the reports.
pub(super) fn run(load: &Load) -> anyhow::Result<()> {
    let folder = tempfile::tempdir_in(workspace::target())?;
    let bench = Bench {
        program: build_program()?,
        worker: build_example("bench_outbox")?,
        load,
        folder: folder.path().to_owned(),
        sink: ceiling::start()?,
        postgres: (!load.no_postgres).then(ThrowAway::start).transpose()?,
    };
    bench.creates()?;
    bench.deliveries()?;
    bench.beside()?;
    match load.fill {
        0 => Ok(()),
        _ => bench.figures(),
    }
}

impl Bench<'_> {
    /// The stores, by name; in SQLite a database of its own.
    fn stores(&self, name: &str) -> Vec<(&'static str, String)> {
        let path: &Path = &self.folder.join(format!("{name}.db"));
        let sqlite = ("sqlite", format!("sqlite:{}", path.display()));
        let postgres = self.postgres.as_ref();
        let postgres = postgres.map(|server| ("postgres", server.url().to_owned()));
        std::iter::once(sqlite).chain(postgres).collect()
    }

    fn creates(&self) -> anyhow::Result<()> {
        let mut session = Session::new("outbox", self.load);
        let servers = self.served()?;
        session.by_turns(|session, load| {
            measure_ceiling(session, load, CEILING)?;
            servers.iter().try_for_each(|(name, server)| {
                WAYS.iter().try_for_each(|(way, _)| {
                    let order = Order {
                        path: format!("/api/v1/app/{way}/msg"),
                        secret: VAULT_KEY.to_owned(),
                        ..ceiling::order(load, server, Shape::Message)
                    };
                    session.measure(&format!("{name}, {way}"), &order, server)?;
                    // What is still to be delivered would slow down the rows to come, the ceiling among them.
                    server.wait_until_at_rest()
                })
            })
        })?;
        let names = servers.iter().map(|(name, _)| name);
        let rows = names.flat_map(|name| WAYS.map(|(way, _)| format!("{name}, {way}")));
        let verdicts: Vec<String> = rows
            .map(|row| verdict(&session, &row, CEILING, CREATES_WANTED))
            .collect();
        println!(
            "Messages created over HTTP, each with one delivery: it waits, or it is delivered meanwhile; {} connections, bodies of {} bytes",
            self.load.connections, self.load.body_bytes
        );
        session.finish(CEILING)?;
        verdicts.iter().for_each(|verdict| println!("{verdict}"));
        Ok(())
    }

    /// The program over each store, with its applications.
    fn served(&self) -> anyhow::Result<Vec<(&'static str, Server)>> {
        let stores = self.stores("creates").into_iter();
        let served = stores.map(|(name, store)| {
            let server = self.serve(&store)?;
            for (way, rate) in WAYS {
                self.make_app(&server, way, rate)?;
            }
            Ok((name, server))
        });
        served.collect()
    }

    fn deliveries(&self) -> anyhow::Result<()> {
        let mut session = Session::new("outbox-deliveries", self.load);
        let (stores, sink) = (self.stores("deliveries"), self.sink.address().to_string());
        session.by_turns(|session, load| {
            measure_bare(session, load, &sink)?;
            stores.iter().try_for_each(|(name, store)| {
                let told = Told {
                    rounds: load.rounds,
                    ..self.told("delivered_rate", store.clone())
                };
                session.measure_itself(&[name], self.start(&told)?)
            })
        })?;
        let verdicts: Vec<String> = stores
            .iter()
            .map(|(name, _)| verdict(&session, name, BARE, DELIVERIES_WANTED))
            .collect();
        println!(
            "Messages from published to done, to one endpoint; p50, p99 and max are those of the publishing."
        );
        session.finish(BARE)?;
        verdicts.iter().for_each(|verdict| println!("{verdict}"));
        Ok(())
    }

    fn beside(&self) -> anyhow::Result<()> {
        let mut session = Session::new("outbox-beside", self.load);
        let mut verdicts: Vec<String> = Vec::new();
        session.by_turns(|session, load| {
            for (name, row) in [
                (ALONE, "alone"),
                (BESIDE_WELL, "beside_well"),
                (BESIDE_BAD, "beside_bad"),
            ] {
                let file = format!("{row}-{}.db", session.rounds(name));
                let store = format!("sqlite:{}", self.folder.join(file).display());
                let told = Told {
                    rounds: load.rounds,
                    warmup_ms: self.load.round_ms * ROUNDS_TO_GO_BAD,
                    round_ms: self.load.round_ms * ROUNDS_IN_ONE,
                    ..self.told(row, store)
                };
                session.measure_itself(&[name], self.start(&told)?)?;
            }
            Ok(())
        })?;
        verdicts.extend([ALONE, BESIDE_WELL].map(|other| {
            let beside = p99_beside(&session, BESIDE_BAD, other);
            format!("{beside}, wanted at most {P99_WANTED:.2}")
        }));
        let memory = |name| session.row(name).and_then(Row::rss_kib_max);
        let grown = memory(BESIDE_BAD).zip(memory(ALONE));
        let grown = grown.map(|(beside, alone)| beside.saturating_sub(alone) / 1024);
        verdicts.push(match grown {
            Some(mib) => {
                format!("memory: {mib} MiB more beside them, wanted at most {MEMORY_MIB_WANTED}")
            }
            None => "memory: not known on this system".to_owned(),
        });
        println!(
            "Published to arrival, at 100 endpoints that are well, 500 messages a second at random times."
        );
        session.finish(ALONE)?;
        verdicts.iter().for_each(|verdict| println!("{verdict}"));
        Ok(())
    }

    /// What is asked of a store again and again must not cost more because much has happened.
    fn figures(&self) -> anyhow::Result<()> {
        let mut session = Session::new("outbox-figures", self.load);
        let postgres = (!self.load.no_postgres).then_some("postgres");
        let mut verdicts = Vec::new();
        for store in std::iter::once("sqlite").chain(postgres) {
            let beside_few = self.figures_of(&mut session, store, FEW)?;
            let beside_many = self.figures_of(&mut session, store, self.load.fill)?;
            for (few, many) in beside_few.iter().zip(&beside_many) {
                let p50 = |name: &str| session.row(name)?.median_us(|round| round.p50_us);
                verdicts.push(format!(
                    "{many}: p50 {}, wanted at most {FIGURES_WANTED:.2}",
                    beside_alone(p50(many), p50(few))
                ));
            }
        }
        println!(
            "Statistics of 28 days, one question at a time: of an endpoint, and of an application with ten."
        );
        session.finish(&format!("sqlite, {FEW} attempts: an endpoint"))?;
        verdicts.iter().for_each(|verdict| println!("{verdict}"));
        Ok(())
    }

    /// Fills a store of its own, and measures; gives the names of the rows.
    fn figures_of(
        &self,
        session: &mut Session,
        store: &str,
        fill: u64,
    ) -> anyhow::Result<[String; 2]> {
        let server = (store == "postgres").then(ThrowAway::start).transpose()?;
        let path = self.folder.join(format!("figures-{fill}.db"));
        let at = match &server {
            Some(server) => server.url().to_owned(),
            None => format!("sqlite:{}", path.display()),
        };
        let what = ["an endpoint", "an application"];
        let names = what.map(|what| format!("{store}, {fill} attempts: {what}"));
        let told = Told {
            fill,
            ..self.told("figures", at)
        };
        session.measure_itself(&names.each_ref().map(String::as_str), self.start(&told)?)?;
        Ok(names)
    }

    fn told(&self, row: &'static str, store: String) -> Told {
        Told {
            row,
            store,
            sink: self.sink.address().to_string(),
            body_bytes: self.load.body_bytes,
            fill: 0,
            outstanding: OUTSTANDING,
            warmup_ms: self.load.warmup_ms,
            round_ms: self.load.round_ms,
            rounds: self.load.rounds,
        }
    }

    fn start(&self, told: &Told) -> anyhow::Result<Generator> {
        Generator::start_program(&mut Command::new(&self.worker), told)
    }

    /// The program, whose endpoints may be on this machine.
    fn serve(&self, store: &str) -> anyhow::Result<Server> {
        let address = loopback::free_address()?;
        let config: &Path = &self.folder.join(format!("{}.toml", address.port()));
        let text = format!(
            "listen = \"{address}\"\nstore = \"{store}\"\n[admin]\ntoken = \"{VAULT_KEY}\"\n[outbox]\nallow_subnets = [\"127.0.0.1/32\"]\n"
        );
        std::fs::write(config, text).context("could not write the config")?;
        let mut command = Command::new(&self.program);
        command.args(["serve", "--config"]).arg(config);
        command.env("HAPAX_VAULT_KEY", VAULT_KEY);
        command.env("HAPAX_LOG", "warn");
        Server::start(&mut command, address)
    }

    /// An application with one endpoint, of this rate if given.
    fn make_app(&self, server: &Server, uid: &str, rate: Option<&str>) -> anyhow::Result<()> {
        self.hapax(server, &["apps", "create", uid, "--uid", uid])?;
        let url = format!("http://{}/", self.sink.address());
        let mut create = vec!["endpoints", "create", uid, &url];
        create.extend(rate.iter().flat_map(|rate| ["--rate", rate]));
        self.hapax(server, &create)
    }

    fn hapax(&self, server: &Server, arguments: &[&str]) -> anyhow::Result<()> {
        let output = Command::new(&self.program)
            .args(arguments)
            .env("HAPAX_URL", format!("http://{}", server.address()))
            .env("HAPAX_TOKEN", VAULT_KEY)
            .output()
            .context("could not start hapax")?;
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "hapax {arguments:?}: {said}");
        Ok(())
    }
}

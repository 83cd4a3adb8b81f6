//! `cargo xt bench guard`: what a key costs at the reverse proxy.
//!
//! Three reports. *Rates*, with few connections and with many: requests a second through the program, all to the same upstream: without a key, the first with its key, and
//! replays; beside a proxy of hyper's parts that does nothing but pass on. *Light*: how long one takes while nothing else is going on, beside one
//! that passes, and a commit.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context;
use serde::Serialize;

use super::dispatch::shown;
use super::intake::CONNECTIONS;
use super::row::{Row, median};
use super::server::Server;
use super::session::Session;
use super::{Load, build_example, build_program, ceiling};
use crate::load::{Generator, Order, Round, Shape};
use crate::postgres::ThrowAway;
use crate::{loopback, workspace};

/// The ceiling of them all.
const BARE: &str = "bare proxy";
/// The program without a key: the ceiling of guarded requests.
const PASSED: &str = "passed";
/// Of the bare proxy.
const PASSED_WANTED: f64 = 0.8;
/// Of what is passed.
const REPLAYS_WANTED: f64 = 0.9;
/// A first request may take so many commits longer than one that passes: the claim and the settlement.
const COMMITS_MAX: f64 = 2.0;
/// Seals the answers in a database that nodes share. It is gone in a minute.
const VAULT_KEY: &str = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";

/// What the bench's program is told; see `crates/hapax/examples/bench_guard`.
#[derive(Clone, Debug, Serialize)]
struct LightOrder {
    store: String,
    upstream: SocketAddr,
    listen: SocketAddr,
    body_bytes: usize,
    warmup_ms: u64,
    round_ms: u64,
    rounds: u32,
}

/// A store, and what is wanted of first requests on it, as a share of what is passed.
struct Kept {
    name: &'static str,
    url: String,
    firsts_wanted: f64,
}

struct Bench<'a> {
    program: PathBuf,
    beside: PathBuf,
    load: &'a Load,
    folder: PathBuf,
    upstream: Server,
}

/// Takes all reports.
pub(super) fn run(load: &Load) -> anyhow::Result<()> {
    let folder = tempfile::tempdir_in(workspace::target())?;
    let bench = Bench {
        program: build_program()?,
        beside: build_example("bench_guard")?,
        load,
        folder: folder.path().to_owned(),
        upstream: ceiling::start()?,
    };
    let postgres = (!load.no_postgres).then(ThrowAway::start).transpose()?;
    let on = |light: &str| {
        let sqlite = Kept {
            name: "sqlite",
            url: format!("sqlite:{}", folder.path().join(light).display()),
            firsts_wanted: 0.5,
        };
        let postgres = postgres.as_ref().map(|postgres| Kept {
            name: "postgres",
            url: postgres.url().to_owned(),
            firsts_wanted: 0.4,
        });
        std::iter::once(sqlite).chain(postgres).collect::<Vec<_>>()
    };
    for connections in CONNECTIONS {
        bench.rates(connections, &on(&format!("rates-{connections}.db")))?;
    }
    bench.light(&on("light.db"))
}

impl Bench<'_> {
    fn rates(&self, connections: u32, stores: &[Kept]) -> anyhow::Result<()> {
        let load = Load {
            connections,
            ..self.load.clone()
        };
        let mut session = Session::new(&format!("guard-{connections}"), &load);
        let bare = self.bare()?;
        let guards = stores.iter().map(|store| self.guard(&store.url));
        let guards = guards.collect::<anyhow::Result<Vec<Server>>>()?;
        session.by_turns(|session, load| {
            session.measure(BARE, &order(load, &bare, Shape::Plain), &bare)?;
            for (at, (store, guard)) in stores.iter().zip(&guards).enumerate() {
                if at == 0 {
                    session.measure(PASSED, &order(load, guard, Shape::Plain), guard)?;
                }
                let [firsts, replays] = rows(store);
                session.measure(&firsts, &order(load, guard, Shape::Keyed), guard)?;
                session.measure(&replays, &order(load, guard, Shape::KeyedAgain), guard)?;
            }
            Ok(())
        })?;
        let mut verdicts = vec![verdict(&session, PASSED, BARE, PASSED_WANTED)];
        for store in stores {
            let [firsts, replays] = rows(store);
            verdicts.push(verdict(&session, &firsts, PASSED, store.firsts_wanted));
            verdicts.push(verdict(&session, &replays, PASSED, REPLAYS_WANTED));
        }
        println!(
            "{connections} connections, bodies of {} bytes",
            load.body_bytes
        );
        session.finish(BARE)?;
        verdicts.iter().for_each(|verdict| println!("{verdict}"));
        Ok(())
    }

    fn light(&self, stores: &[Kept]) -> anyhow::Result<()> {
        let mut session = Session::new("guard-light", self.load);
        let mut verdicts = Vec::new();
        for store in stores {
            verdicts.push(self.light_on(&mut session, store)?);
        }
        println!("One at a time, from rest.");
        session.finish("sqlite: passed")?;
        verdicts.iter().for_each(|verdict| println!("{verdict}"));
        Ok(())
    }

    fn light_on(&self, session: &mut Session, store: &Kept) -> anyhow::Result<String> {
        let name = store.name;
        let names = ["passed", "commit", "first request"].map(|what| format!("{name}: {what}"));
        let order = LightOrder {
            store: store.url.clone(),
            upstream: self.upstream.address(),
            listen: loopback::free_address()?,
            body_bytes: self.load.body_bytes,
            warmup_ms: self.load.warmup_ms,
            round_ms: self.load.round_ms,
            rounds: self.load.rounds,
        };
        let mut command = Command::new(&self.beside);
        let program = Generator::start_program(command.env("HAPAX_VAULT_KEY", VAULT_KEY), &order)?;
        session.measure_itself(&names.each_ref().map(String::as_str), program)?;
        let p50 = |name: &String| session.row(name)?.median_us(|round| round.p50_us);
        let [passed, commit, first] = names.each_ref().map(p50);
        let rows = names.each_ref().map(|name| session.row(name));
        let commits = match rows {
            [Some(passed), Some(commit), Some(first)] => commits_added(passed, commit, first),
            _ => None,
        };
        let commits = commits.map_or("no answers".to_owned(), |commits| format!("{commits:.2}"));
        Ok(format!(
            "{name}: a first request takes p50 {}, one that passes {}, a commit {}; of rounds, commits that are added: {commits}, wanted at most {COMMITS_MAX:.2}",
            shown(first),
            shown(passed),
            shown(commit),
        ))
    }

    fn bare(&self) -> anyhow::Result<Server> {
        let address = loopback::free_address()?;
        let mut command = Command::new(&self.beside);
        command.args(["bare", &address.port().to_string()]);
        command.arg(self.upstream.address().to_string());
        Server::start(&mut command, address)
    }

    /// The program, with one guard.
    fn guard(&self, store: &str) -> anyhow::Result<Server> {
        let (address, api) = (loopback::free_address()?, loopback::free_address()?);
        let upstream = self.upstream.address();
        let config: &Path = &self.folder.join(format!("{}.toml", address.port()));
        let text = format!(
            "listen = \"{api}\"\nstore = \"{store}\"\n[admin]\ntoken = \"{VAULT_KEY}\"\n[[guard]]\nname = \"bench\"\nlisten = \"{address}\"\nupstream = \"http://{upstream}\"\nprincipal = \"header.x-user\"\n"
        );
        std::fs::write(config, text).context("could not write the config")?;
        let mut command = Command::new(&self.program);
        command.args(["serve", "--config"]).arg(config);
        command.env("HAPAX_VAULT_KEY", VAULT_KEY);
        command.env("HAPAX_LOG", "warn");
        Server::start(&mut command, address)
    }
}

fn order(load: &Load, server: &Server, shape: Shape) -> Order {
    Order {
        path: "/charges".to_owned(),
        ..ceiling::order(load, server, shape)
    }
}

/// How many commits longer a first request takes than one that passes: the median over rounds, whose three rows were taken by turns.
fn commits_added(passed: &Row, commit: &Row, first: &Row) -> Option<f64> {
    let rounds = passed.rounds.iter().zip(&commit.rounds).zip(&first.rounds);
    let p50 = |round: &Round| (round.answers() > 0).then_some(round.p50_us as f64);
    let added = rounds.filter_map(|((passed, commit), first)| {
        let (passed, commit) = p50(&passed.round).zip(p50(&commit.round))?;
        // A round without answers took longer than any.
        Some(p50(&first.round).map_or(f64::INFINITY, |first| (first - passed) / commit))
    });
    median(added).filter(|commits| commits.is_finite())
}

/// The names of a store's rows: first requests, and replays.
fn rows(store: &Kept) -> [String; 2] {
    ["first", "replays"].map(|what| format!("{}, {what}", store.name))
}

/// A row's rate beside another's.
pub(super) fn verdict(session: &Session, row: &str, of: &str, wanted: f64) -> String {
    let pair = session.row(row).zip(session.row(of));
    let share = match pair.and_then(|(own, ceiling)| own.share_of(ceiling)) {
        None => "no answers".to_owned(),
        Some(share) => format!("{share:.2} of it"),
    };
    format!("{row}, beside {of}: {share}, wanted at least {wanted:.2}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::row::tests::row;

    #[test]
    fn commits_are_counted_round_by_round() {
        let times = |p50s: [u64; 3]| {
            let mut row = row("a", &[1; 3]);
            for (measured, p50) in row.rounds.iter_mut().zip(p50s) {
                measured.round.p50_us = p50;
            }
            row
        };
        let (passed, commit) = (times([200, 100, 100]), times([400, 100, 200]));
        let first = times([1_000, 400, 400]);
        assert_eq!(commits_added(&passed, &commit, &first), Some(2.0));
        let never = row("a", &[0; 3]);
        assert_eq!(commits_added(&passed, &never, &first), None);
        assert_eq!(commits_added(&passed, &commit, &never), None);
    }
}

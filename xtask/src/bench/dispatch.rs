//! `cargo xt bench dispatch`: what a ledger costs on the way out.
//!
//! Three reports. *Rates*: effects a second from accept to done, beside the bare sender to the same receiver. *Light*: how long one
//! effect takes while nothing else is going on, beside a round trip and a commit. *Lanes*: the same in 100 lanes, beside
//! thousands whose target refuses every connection.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde::Serialize;

use super::report::time;
use super::session::Session;
use super::{Load, build_example, ceiling};
use crate::load::Generator;
use crate::postgres::ThrowAway;
use crate::workspace;

/// Effects that are accepted and not done, at most: twelve for each slot of their lane, of the sixteen that a fast one holds in memory. Fewer
/// leave slots empty while commits are under way; where there are more, some go the longer way over the store.
pub(super) const OUTSTANDING: usize = 768;
/// The row of the bare sender.
pub(super) const BARE: &str = "bare sender";
/// Lanes whose target is down; 100 more are well.
const LANES_DOWN: u32 = 9_900;
/// Rounds that pass before lanes that are down are measured: a minute, by the default, until their breakers have opened and
/// their pauses have grown.
const ROUNDS_TO_SETTLE: u64 = 30;
/// An effect may take so many round trips and commits until its receiver has it.
const ROUND_TRIPS_MAX: u64 = 3;
const COMMITS_MAX: u64 = 2;

/// What the bench's program is told; see `crates/hapax/examples/bench_dispatch`.
#[derive(Clone, Debug, Serialize)]
struct Order {
    row: &'static str,
    store: String,
    sink: String,
    body_bytes: usize,
    fill: u64,
    outstanding: usize,
    lanes_down: u32,
    warmup_ms: u64,
    round_ms: u64,
    rounds: u32,
}

struct Bench<'a> {
    program: PathBuf,
    load: &'a Load,
    folder: PathBuf,
    sink: String,
}

/// Takes the three reports.
pub(super) fn run(load: &Load) -> anyhow::Result<()> {
    let sink = ceiling::start()?;
    let folder = tempfile::tempdir_in(workspace::target())?;
    let bench = Bench {
        program: build_example("bench_dispatch")?,
        load,
        folder: folder.path().to_owned(),
        sink: sink.address().to_string(),
    };
    bench.rates()?;
    bench.light()?;
    bench.lanes()
}

/// Takes the row of the bare sender, to this receiver.
pub(super) fn measure_bare(session: &mut Session, load: &Load, sink: &str) -> anyhow::Result<()> {
    let bench = Bench {
        program: build_example("bench_dispatch")?,
        load,
        folder: PathBuf::new(),
        sink: sink.to_owned(),
    };
    // It keeps nothing, so its store is never opened.
    let bare = bench.order("bare_rate", bench.sqlite("none"));
    session.measure_itself(&[BARE], bench.start(&bare)?)
}

impl Bench<'_> {
    fn rates(&self) -> anyhow::Result<()> {
        let mut session = Session::new("dispatch", self.load);
        let postgres = self.postgres()?;
        let mut stores = vec![("sqlite".to_owned(), self.sqlite("small"))];
        if self.load.fill > 0 {
            let name = format!("sqlite, {} waiting", self.load.fill);
            stores.push((name, self.filled()?));
        }
        if let Some(postgres) = &postgres {
            stores.push(("postgres".to_owned(), postgres.url().to_owned()));
        }
        session.by_turns(|session, load| {
            measure_bare(session, load, &self.sink)?;
            for (name, store) in &stores {
                let settled = Order {
                    rounds: load.rounds,
                    ..self.order("settled_rate", store.clone())
                };
                session.measure_itself(&[name], self.start(&settled)?)?;
            }
            Ok(())
        })?;
        println!(
            "Effects from accept to done, bodies of {} bytes; p50, p99 and max are those of the accept.",
            self.load.body_bytes
        );
        session.finish(BARE)
    }

    /// A database in which effects wait.
    fn filled(&self) -> anyhow::Result<String> {
        let store = self.sqlite("large");
        let fill = Order {
            fill: self.load.fill,
            warmup_ms: 0,
            rounds: 0,
            ..self.order("settled_rate", store.clone())
        };
        let mut filling = self.start(&fill)?;
        while filling.next_signal()?.is_some() {}
        Ok(store)
    }

    fn light(&self) -> anyhow::Result<()> {
        let mut session = Session::new("dispatch-light", self.load);
        let mut verdicts = vec![self.light_on(&mut session, "sqlite", self.sqlite("light"))?];
        if let Some(postgres) = self.postgres()? {
            let url = postgres.url().to_owned();
            verdicts.push(self.light_on(&mut session, "postgres", url)?);
        }
        println!("One at a time, from rest.");
        session.finish("sqlite: round trip")?;
        verdicts.iter().for_each(|verdict| println!("{verdict}"));
        Ok(())
    }

    fn light_on(&self, session: &mut Session, name: &str, store: String) -> anyhow::Result<String> {
        let names = ["round trip", "commit", "accept to delivery"];
        let names = names.map(|what| format!("{name}: {what}"));
        let program = self.start(&self.order("light", store))?;
        session.measure_itself(&names.each_ref().map(String::as_str), program)?;
        let p50 = |name: &String| session.row(name)?.median_us(|round| round.p50_us);
        let [round_trip, commit, delivery] = names.each_ref().map(p50);
        let allowed = round_trip.zip(commit);
        let allowed = allowed.map(|(trip, commit)| ROUND_TRIPS_MAX * trip + COMMITS_MAX * commit);
        Ok(format!(
            "{name}: accept to delivery p50 {}, wanted at most {ROUND_TRIPS_MAX} x {} + {COMMITS_MAX} x {} = {}",
            shown(delivery),
            shown(round_trip),
            shown(commit),
            shown(allowed),
        ))
    }

    fn lanes(&self) -> anyhow::Result<()> {
        let mut session = Session::new("dispatch-lanes", self.load);
        let beside = format!("beside {LANES_DOWN} down");
        let at_first = format!("{beside}, at first");
        let down = |store: String| Order {
            lanes_down: LANES_DOWN,
            ..self.order("lanes", store)
        };
        session.measure_itself(&[&at_first], self.start(&down(self.sqlite("at-first")))?)?;
        // By turns, although that takes minutes: a disk has good ones and bad ones.
        session.by_turns(|session, load| {
            let turn = session.rounds(&beside);
            let alone = Order {
                rounds: load.rounds,
                ..self.order("lanes", self.sqlite(&format!("alone-{turn}")))
            };
            session.measure_itself(&["alone"], self.start(&alone)?)?;
            let settled = Order {
                warmup_ms: self.load.round_ms * ROUNDS_TO_SETTLE,
                rounds: load.rounds,
                ..down(self.sqlite(&format!("settled-{turn}")))
            };
            session.measure_itself(&[&beside], self.start(&settled)?)
        })?;
        let verdict = p99_beside(&session, &beside, "alone");
        let p99 = |name: &str| session.row(name)?.median_us(|round| round.p99_us);
        let at_first = beside_alone(p99(&at_first), p99("alone"));
        println!(
            "Accept to delivery in 100 lanes at a steady pace; what was refused at accept is listed, not timed."
        );
        session.finish("alone")?;
        println!("{verdict}, wanted at most 1.20; {at_first} while they go down");
        Ok(())
    }

    fn order(&self, row: &'static str, store: String) -> Order {
        Order {
            row,
            store,
            sink: self.sink.clone(),
            body_bytes: self.load.body_bytes,
            fill: 0,
            outstanding: OUTSTANDING,
            lanes_down: 0,
            warmup_ms: self.load.warmup_ms,
            round_ms: self.load.round_ms,
            rounds: self.load.rounds,
        }
    }

    fn start(&self, order: &Order) -> anyhow::Result<Generator> {
        Generator::start_program(&mut Command::new(&self.program), order)
    }

    /// A database of its own for each row.
    fn sqlite(&self, name: &str) -> String {
        let path: &Path = &self.folder.join(format!("{name}.db"));
        format!("sqlite:{}", path.display())
    }

    fn postgres(&self) -> anyhow::Result<Option<ThrowAway>> {
        (!self.load.no_postgres).then(ThrowAway::start).transpose()
    }
}

/// A time, or that there was none.
pub(super) fn shown(time_us: Option<u64>) -> String {
    time_us.map_or_else(|| "no answers".to_owned(), time)
}

/// How the p99 of a row compares with another's that was taken by turns with it.
pub(super) fn p99_beside(session: &Session, row: &str, alone: &str) -> String {
    let p99 = |name: &str| session.row(name)?.median_us(|round| round.p99_us);
    let pair = session.row(row).zip(session.row(alone));
    let times = pair.and_then(|(own, other)| own.times_of(other, |round| round.p99_us));
    let times = times.map_or_else(|| "no answers".to_owned(), |times| format!("{times:.2}"));
    format!(
        "p99, median of the rounds: {} {alone}, {} {row}; of pairs of rounds {times}",
        shown(p99(alone)),
        shown(p99(row)),
    )
}

/// A time beside another.
pub(super) fn beside_alone(time_us: Option<u64>, alone_us: Option<u64>) -> String {
    match time_us.zip(alone_us.filter(|alone| *alone > 0)) {
        Some((us, alone)) => format!("{} ({:.2} of it)", time(us), us as f64 / alone as f64),
        None => shown(time_us),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_delivered_never_looks_fast() {
        assert_eq!(beside_alone(None, Some(2_000)), "no answers");
        assert_eq!(
            beside_alone(Some(3_000), Some(2_000)),
            "3.0 ms (1.50 of it)"
        );
        assert_eq!(shown(None), "no answers");
    }
}

//! How long an effect takes in lanes that are well, beside many that are down.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::Duration;

use hapax::clock;
use hapax::config::EffectConfig;
use hapax_ledger::time::Span;
use tokio::task::JoinSet;
use tokio::time::MissedTickBehavior;

use crate::Order;
use crate::arrival::Maker;
use crate::fill::fill;
use crate::round::{Tally, rounds};
use crate::setup::{Bench, Declared, config};
use crate::sink::Sink;

/// Lanes that are well.
const HEALTHY: usize = 100;
/// Between two arrivals: 500 a second, far below what the store can do, and 1,000 in a round of two seconds.
const PACE: Duration = Duration::from_millis(2);
/// Effects that wait in each lane that is down.
const PENDING_PER_LANE: u64 = 5;
/// Waits of a lane that is down, after the first attempt: so many that nothing is given up during the bench.
const RETRIES: usize = 63;

/// Sends at a steady pace in the healthy lanes by turns, each from before its accept until its receiver has it.
pub(crate) async fn run(order: &Order) -> anyhow::Result<()> {
    let sink = Sink::start()?;
    let began = clock::tick();
    let config = config(&order.store, &declared(order, &sink)?)?;
    eprintln!(
        "a config of {} effects was read in {} ms",
        config.effects.len(),
        clock::since(began).as_millis()
    );
    let mut bench = Bench::open(config).await?;
    let maker = Arc::new(Maker::new(order.body_bytes));
    let healthy = bench.effects[..HEALTHY].to_vec();
    let down = bench.effects[HEALTHY..].to_vec();
    if !down.is_empty() {
        let count = down.len() as u64 * PENDING_PER_LANE;
        fill(&bench, &maker, down, count, Span::ZERO).await?;
    }
    bench.dispatch();
    let (bench, sink, tally) = (Arc::new(bench), Arc::new(sink), Arc::new(Tally::default()));
    let pacing = Pacing {
        bench: bench.clone(),
        sink,
        maker,
        tally: tally.clone(),
    };
    let mut under_way = JoinSet::new();
    let tallies: [&Tally; 1] = [&tally];
    let counted = tokio::select! {
        counted = rounds(order, &tallies) => counted,
        never = pacing.run(&healthy, &mut under_way) => never,
    };
    drop(pacing);
    under_way.shutdown().await;
    if let Some(bench) = Arc::into_inner(bench) {
        bench.close().await?;
    }
    counted
}

struct Pacing {
    bench: Arc<Bench>,
    sink: Arc<Sink>,
    maker: Arc<Maker>,
    tally: Arc<Tally>,
}

impl Pacing {
    async fn run(
        &self,
        healthy: &[Arc<EffectConfig>],
        under_way: &mut JoinSet<()>,
    ) -> anyhow::Result<()> {
        let mut pace = tokio::time::interval(PACE);
        // What was late is made up for: load does not go away because the process is busy.
        pace.set_missed_tick_behavior(MissedTickBehavior::Burst);
        let mut lanes = healthy.iter().cycle();
        loop {
            pace.tick().await;
            if let Some(effect) = lanes.next() {
                under_way.spawn(self.one(effect));
            }
            while under_way.try_join_next().is_some() {}
        }
    }

    fn one(&self, effect: &EffectConfig) -> impl Future<Output = ()> + Send + 'static {
        let made = self.maker.due(effect);
        let there = self.sink.expect(made.wire_key);
        let (bench, tally) = (self.bench.clone(), self.tally.clone());
        async move {
            let began = clock::tick();
            if let Err(error) = bench.accept(made.arrival).await {
                tally.broken(error.to_string());
                return;
            }
            if let Ok(when) = there.await {
                tally.done_within(when.saturating_duration_since(began));
            }
        }
    }
}

fn declared(order: &Order, sink: &Sink) -> anyhow::Result<Vec<Declared>> {
    let closed = closed_port()?;
    let well = (0..HEALTHY).map(|number| Declared {
        name: format!("well{number}"),
        to: sink.address,
        more: String::new(),
    });
    let waits = vec!["\"1s\""; RETRIES].join(",");
    let down = (0..order.lanes_down).map(|number| Declared {
        name: format!("down{number}"),
        to: closed,
        more: format!("retry = [\"0s\",{waits}]"),
    });
    Ok(well.chain(down).collect())
}

/// A port that refuses: it was ours a moment ago, and nobody else is given it soon.
fn closed_port() -> anyhow::Result<SocketAddr> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    Ok(listener.local_addr()?)
}

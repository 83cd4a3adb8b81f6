//! How long one takes while nothing else is going on: a request, a commit, and an effect from accept to its receiver.
//!
//! The three go by turns in one process. Taken one after the other they would not compare: on a machine that is not quite idle
//! a loop without pauses waits for its turn more often than one with pauses, and a disk that is never at rest is slower.

use std::time::Duration;

use hapax::clock;
use hapax::config::Config;
use hapax::dispatch::target::Target;
use hapax::dispatch::{Sender, Settings};

use crate::Order;
use crate::arrival::Maker;
use crate::rate::{EFFECT, outgoing, target};
use crate::round::{Tally, rounds};
use crate::setup::{Bench, Declared, config};
use crate::sink::Sink;

/// Before each of the three: all of them begin from rest.
const REST: Duration = Duration::from_millis(1);

/// What is counted of each.
#[derive(Default)]
struct Tallies {
    round_trip: Tally,
    commit: Tally,
    delivery: Tally,
}

/// Prints each round three times: the bare round trip, the commit, and accept to delivery.
pub(crate) async fn run(order: &Order) -> anyhow::Result<()> {
    let sink = Sink::start()?;
    let config = declared(order, &sink)?;
    let target = target(&config)?;
    let mut bench = Bench::open(config).await?;
    bench.dispatch();
    let turns = Turns {
        bench,
        sink,
        maker: Maker::new(order.body_bytes),
        sender: Sender::new(Settings::default())?,
        tallies: Tallies::default(),
    };
    let Tallies {
        round_trip,
        commit,
        delivery,
    } = &turns.tallies;
    let tallies = [round_trip, commit, delivery];
    let counted = tokio::select! {
        counted = rounds(order, &tallies) => counted,
        broken = turns.run(&target, order.body_bytes) => broken,
    };
    turns.bench.close().await?;
    counted
}

struct Turns {
    bench: Bench,
    sink: Sink,
    maker: Maker,
    sender: Sender,
    tallies: Tallies,
}

impl Turns {
    async fn run(&self, target: &Target, body_bytes: usize) -> anyhow::Result<()> {
        for number in 1.. {
            tokio::time::sleep(REST).await;
            let sent = self.sender.send(outgoing(target, number, body_bytes)).await;
            match sent.error {
                None => self.tallies.round_trip.done_within(sent.duration),
                Some(error) => self.tallies.round_trip.broken(error),
            }
            tokio::time::sleep(REST).await;
            let arrival = self.maker.plain();
            let began = clock::tick();
            self.bench.accept(arrival).await?;
            self.tallies.commit.done_within(clock::since(began));
            tokio::time::sleep(REST).await;
            self.deliver(number).await?;
        }
        Ok(())
    }

    /// An effect, from before its accept until its receiver has it; then until it is done, so that nothing of it is left.
    async fn deliver(&self, number: u64) -> anyhow::Result<()> {
        let effect = self.bench.effect(EFFECT)?;
        let made = self.maker.due(&effect);
        let there = self.sink.expect(made.wire_key);
        let began = clock::tick();
        let durable = self.bench.accept(made.arrival).await?;
        let when = there.await?;
        let tally = &self.tallies.delivery;
        match when < durable {
            true => tally.broken("sent before the accept was durable".to_owned()),
            false => tally.done_within(when.saturating_duration_since(began)),
        }
        while self.bench.metrics.effects.done(EFFECT) < number {
            tokio::time::sleep(REST).await;
        }
        Ok(())
    }
}

fn declared(order: &Order, sink: &Sink) -> anyhow::Result<Config> {
    let effect = Declared {
        name: EFFECT.to_owned(),
        to: sink.address,
        more: String::new(),
    };
    config(&order.store, &[effect])
}

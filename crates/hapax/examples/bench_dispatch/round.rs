//! What is counted in a round, and how it is printed.

use std::collections::BTreeMap;
use std::io::Write;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::Context;
use hapax::clock;
use serde::Serialize;

use crate::Order;

/// What is done counts as an answer of this kind: the bench's table knows statuses.
const DONE: u16 = 200;

/// What `xtask load` prints, too.
#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
enum Signal {
    Warm,
    Round(Round),
}

#[derive(Serialize)]
struct Round {
    seconds: f64,
    statuses: BTreeMap<u16, u64>,
    broken: BTreeMap<String, u64>,
    p50_us: u64,
    p99_us: u64,
    max_us: u64,
}

/// Counts of the round that is going on.
#[derive(Default)]
pub(crate) struct Tally {
    counted: Mutex<Counted>,
}

#[derive(Default)]
struct Counted {
    done: u64,
    broken: BTreeMap<String, u64>,
    took_us: Vec<u64>,
}

impl Tally {
    /// So many more are done.
    pub(crate) fn done(&self, count: u64) {
        self.counted().done += count;
    }

    /// One more is done, and took so long.
    pub(crate) fn done_within(&self, time: Duration) {
        self.done(1);
        self.took(time);
    }

    /// One took so long.
    pub(crate) fn took(&self, time: Duration) {
        let micros = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        self.counted().took_us.push(micros);
    }

    /// One went wrong.
    pub(crate) fn broken(&self, why: String) {
        *self.counted().broken.entry(why).or_default() += 1;
    }

    fn counted(&self) -> MutexGuard<'_, Counted> {
        self.counted.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Cuts time into a warm-up and rounds, and prints each as it ends: once for each of the tallies.
pub(crate) async fn rounds(order: &Order, tallies: &[&Tally]) -> anyhow::Result<()> {
    let start = clock::tick();
    let mut began = start;
    for interval in 0..=order.rounds {
        let planned = order.warmup_ms + u64::from(interval) * order.round_ms;
        let end = start + Duration::from_millis(planned);
        tokio::time::sleep_until(end.into()).await;
        let ended = clock::tick();
        let counted = tallies
            .iter()
            .map(|tally| std::mem::take(&mut *tally.counted()));
        let counted: Vec<Counted> = counted.collect();
        match interval {
            0 => tell(&Signal::Warm)?,
            _ => counted
                .into_iter()
                .try_for_each(|one| tell(&Signal::Round(one.round(ended - began))))?,
        }
        began = ended;
    }
    Ok(())
}

impl Counted {
    fn round(mut self, length: Duration) -> Round {
        self.took_us.sort_unstable();
        let rank = |percent: usize| (self.took_us.len() * percent).div_ceil(100).max(1) - 1;
        let at = |percent| self.took_us.get(rank(percent)).copied().unwrap_or(0);
        Round {
            seconds: length.as_secs_f64(),
            p50_us: at(50),
            p99_us: at(99),
            max_us: at(100),
            statuses: BTreeMap::from([(DONE, self.done)]),
            broken: self.broken,
        }
    }
}

fn tell(signal: &Signal) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    serde_json::to_writer(&mut out, signal)?;
    writeln!(out)?;
    out.flush().context("the bench no longer listens")
}

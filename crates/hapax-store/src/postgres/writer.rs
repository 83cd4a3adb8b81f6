//! What the lanes do with a group of arrivals: new keys in one commit, then the rest in another.

use super::Entropy;
use super::accept;
use super::batch::{Job, Work};
use super::known;
use super::moment::LeaseClock;
use super::pool::{Pool, Taken};
use crate::nouns::{Arrival, NewEvent, Receipt};

/// What the rows of an effect weigh, about: a group of few arrivals may still call for many effects.
const EFFECT_BYTES: usize = 512;

/// Stores arrivals, any number of them in one commit.
pub(super) struct Writer {
    pub(super) pool: Pool,
    pub(super) entropy: Entropy,
    pub(super) clock: LeaseClock,
}

impl Work for Writer {
    type Ask = Arrival;
    type Answer = Vec<Receipt>;
    const ASKS: &'static str = "arrivals";

    fn bytes(arrival: &Arrival) -> usize {
        arrival
            .events
            .iter()
            .map(|event| event.body.len() + event.effects.len() * EFFECT_BYTES)
            .sum()
    }

    /// One group. What calls for effects takes the careful path: which of their keys are free is only known once they are taken,
    /// and until then it is open where the event stands.
    async fn step(&self, taken: Taken, jobs: Vec<Job<Writer>>) {
        let (single, mut careful): (Vec<_>, Vec<_>) = jobs
            .into_iter()
            .partition(|job| matches!(&job.ask.events[..], [event] if event.effects.is_empty()));
        if single.is_empty() {
            taken.give_back();
        } else {
            careful.extend(self.accept_new(taken, single).await);
        }
        if !careful.is_empty() {
            self.accept_known(careful).await;
        }
    }
}

impl Writer {
    /// Answers those whose keys were free and gives back the others.
    async fn accept_new(&self, taken: Taken, jobs: Vec<Job<Writer>>) -> Vec<Job<Writer>> {
        let arrivals: Vec<(&Arrival, &NewEvent)> = jobs
            .iter()
            .flat_map(|job| job.ask.events.iter().map(|event| (&job.ask, event)))
            .collect();
        match accept::accept_new(taken, &arrivals, &self.entropy).await {
            Ok(receipts) => {
                let mut held = Vec::new();
                for (job, receipt) in jobs.into_iter().zip(receipts) {
                    match receipt {
                        Some(receipt) => job.answer(Ok(vec![receipt])),
                        None => held.push(job),
                    }
                }
                held
            }
            Err(error) => {
                tracing::error!(%error, arrivals = jobs.len(), "a group of arrivals failed");
                Job::refuse(jobs, &error);
                Vec::new()
            }
        }
    }

    async fn accept_known(&self, jobs: Vec<Job<Writer>>) {
        let arrivals: Vec<&Arrival> = jobs.iter().map(|job| &job.ask).collect();
        match known::accept(&self.pool, &arrivals, &self.entropy, &self.clock).await {
            Ok(receipts) => {
                for (job, receipts) in jobs.into_iter().zip(receipts) {
                    job.answer(Ok(receipts));
                }
            }
            Err(error) => {
                tracing::error!(%error, arrivals = jobs.len(), "a group of arrivals failed");
                Job::refuse(jobs, &error);
            }
        }
    }
}

//! What the lanes do with a group of arrivals: new keys first, with and without effects, then the rest.

use std::collections::HashSet;
use std::sync::atomic::AtomicU32;
use std::sync::{Arc, Mutex, PoisonError};

use super::Entropy;
use super::accept;
use super::batch::{Job, TooMuch, Work};
use super::call;
use super::known;
use super::moment::LeaseClock;
use super::pool::{Pool, Taken};
use super::swift::{self, Swift};
use crate::error::StoreError;
use crate::nouns::{Arrival, NewEvent, Receipt};

/// What the rows of an effect weigh, about: a group of few arrivals may still call for many effects.
const EFFECT_BYTES: usize = 512;

/// Stores arrivals, any number of them in one commit.
pub(super) struct Writer {
    pub(super) pool: Pool,
    pub(super) entropy: Entropy,
    pub(super) clock: LeaseClock,
    /// The store's epoch as it was last seen.
    pub(super) epoch: AtomicU32,
    /// Names of effects that several events were seen to share: the swift way would be tried in vain.
    pub(super) shared: Mutex<HashSet<Arc<str>>>,
}

impl Work for Writer {
    type Ask = Arrival;
    type Answer = Vec<Receipt>;
    const ASKS: &'static str = "arrivals";
    type Way = Taken;
    const BEHIND: Option<usize> = None;

    async fn way(&self, pool: &Pool) -> Result<Taken, StoreError> {
        pool.take().await
    }

    fn too_much(_: &Arrival) -> TooMuch {
        TooMuch::IsRefused
    }

    fn bytes(arrival: &Arrival) -> usize {
        arrival
            .events
            .iter()
            .map(|event| event.body.len() + event.effects.len() * EFFECT_BYTES)
            .sum()
    }

    /// One group: each kind in its own commit, and what finds its key held behind them.
    async fn step(&self, taken: Taken, jobs: Vec<Job<Writer>>) {
        let (mut plain, mut swift) = (Vec::new(), Vec::new());
        let (mut calling, mut careful) = (Vec::new(), Vec::new());
        for job in jobs {
            match &job.ask.events[..] {
                [event] if event.effects.is_empty() => plain.push(job),
                [event] if self.may_be_swift(event) => swift.push(job),
                [_] => calling.push(job),
                _ => careful.push(job),
            }
        }
        let mut free = Some(taken);
        if !plain.is_empty() {
            careful.extend(self.accept_new(free.take(), plain, Path::Plain).await);
        }
        if !swift.is_empty() {
            careful.extend(self.accept_new(free.take(), swift, Path::Swift).await);
        }
        if !calling.is_empty() {
            careful.extend(self.accept_new(free.take(), calling, Path::Calling).await);
        }
        if let Some(taken) = free {
            taken.give_back();
        }
        if !careful.is_empty() {
            self.accept_known(careful).await;
        }
    }
}

/// The way of an arrival whose key is new.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Path {
    /// It calls for nothing.
    Plain,
    /// It calls for effects that nobody else should call for.
    Swift,
    /// It calls for effects.
    Calling,
}

impl Writer {
    /// Answers those whose keys were free and gives back the others.
    async fn accept_new(
        &self,
        free: Option<Taken>,
        jobs: Vec<Job<Writer>>,
        path: Path,
    ) -> Vec<Job<Writer>> {
        let arrivals: Vec<(&Arrival, &NewEvent)> = jobs
            .iter()
            .flat_map(|job| job.ask.events.iter().map(|event| (&job.ask, event)))
            .collect();
        match self.store_new(free, &arrivals, path).await {
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

    async fn store_new(
        &self,
        free: Option<Taken>,
        arrivals: &[(&Arrival, &NewEvent)],
        path: Path,
    ) -> Result<Vec<Option<Receipt>>, StoreError> {
        let taken = match free {
            Some(taken) => taken,
            None => self.pool.take().await?,
        };
        match path {
            Path::Plain => accept::accept_new(taken, arrivals, &self.entropy).await,
            Path::Swift => self.store_swiftly(taken, arrivals).await,
            Path::Calling => {
                call::accept_calling(taken, arrivals, &self.entropy, &self.clock).await
            }
        }
    }

    async fn store_swiftly(
        &self,
        taken: Taken,
        arrivals: &[(&Arrival, &NewEvent)],
    ) -> Result<Vec<Option<Receipt>>, StoreError> {
        let way = swift::accept(
            taken,
            arrivals,
            None,
            &self.entropy,
            &self.clock,
            &self.epoch,
        );
        match way.await? {
            Swift::Stored(receipts) => return Ok(receipts),
            Swift::Shared => self.note_shared(arrivals),
            Swift::Elsewhen => {}
        }
        let taken = self.pool.take().await?;
        call::accept_calling(taken, arrivals, &self.entropy, &self.clock).await
    }

    fn may_be_swift(&self, event: &NewEvent) -> bool {
        let shared = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
        let mut effects = event.effects.iter();
        swift::fits(event) && !effects.any(|effect| shared.contains(&effect.name))
    }

    /// Remembers which effects of a group may be called for by several events: those with a key of their own. There are as many names
    /// as the config has.
    fn note_shared(&self, arrivals: &[(&Arrival, &NewEvent)]) {
        let effects = arrivals.iter().flat_map(|(_, event)| {
            let effects = event.effects.iter();
            effects.filter(|effect| effect.key != event.key)
        });
        let mut shared = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
        shared.extend(effects.map(|effect| effect.name.clone()));
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

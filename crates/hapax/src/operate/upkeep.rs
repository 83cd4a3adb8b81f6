//! Upkeep of the store: deleting what has expired, on its own and when somebody asks.

use std::sync::Arc;
use std::time::Duration;

use hapax_ledger::time::{Span, Time};
use hapax_store::nouns::Reaped;
use hapax_store::{Clock, Store, StoreError};
use tokio::sync::watch;

use super::tokens::PORTAL;
use crate::clock;
use crate::metrics::Metrics;

/// How often the reaper goes round.
const REAP_EVERY: Duration = Duration::from_secs(15 * 60);
/// A pause between two steps of the reaper, so that it takes little of the writer's time.
const REAP_PAUSE: Duration = Duration::from_millis(20);
/// The cross-check reads every row: once a day, and first when the server has settled in.
const CROSS_CHECK_ROUNDS: u32 = 96;
/// After an hour.
const CROSS_CHECK_FIRST: u32 = 4;

/// How long a token of the portal is kept after its end, for whoever asks who had access lately. What it did is in the audit log.
pub const PORTAL_TOKENS_KEPT: Span = Span::from_days(7);

/// Steps that one request carries out: a second or two.
const STEPS_PER_ASK: u32 = 50;

/// Deletes what has expired.
pub struct Upkeep {
    store: Arc<dyn Store>,
    steady: Clock,
}

impl Upkeep {
    /// Over a store.
    pub fn new(store: Arc<dyn Store>) -> Upkeep {
        Upkeep {
            store,
            steady: clock::steady(),
        }
    }

    /// Deleting cannot be undone: a wall clock that jumped ahead of the time that has passed is not believed (I2).
    pub fn now(&self) -> Time {
        clock::now().min((self.steady)())
    }

    /// One step.
    ///
    /// # Errors
    /// If the store cannot.
    pub async fn step(&self) -> Result<Reaped, StoreError> {
        self.store.reap(self.now()).await
    }

    /// Some steps; says whether there is more.
    ///
    /// # Errors
    /// If the store cannot; what was deleted until then stays deleted.
    pub async fn prune(&self) -> Result<Reaped, StoreError> {
        let mut sum = Reaped::default();
        for _ in 0..STEPS_PER_ASK {
            let step = self.step().await?;
            sum.payloads += step.payloads;
            sum.ledgers += step.ledgers;
            sum.identities += step.identities;
            sum.more = step.more;
            if !step.more {
                break;
            }
        }
        Ok(sum)
    }

    /// Deletes tokens of the portal some time after their end. Says how many.
    ///
    /// # Errors
    /// If the store cannot; what was deleted until then stays deleted.
    pub async fn forget_tokens(&self) -> Result<u64, StoreError> {
        let before = self.now() - PORTAL_TOKENS_KEPT;
        let mut sum = 0;
        for _ in 0..STEPS_PER_ASK {
            let forgotten = self.store.forget_tokens(PORTAL, before).await?;
            sum += forgotten;
            if forgotten == 0 {
                break;
            }
        }
        Ok(sum)
    }

    /// Counts what has expired.
    ///
    /// # Errors
    /// If the store cannot.
    pub async fn due(&self) -> Result<Reaped, StoreError> {
        self.store.reapable(self.now()).await
    }

    /// Goes round and deletes what has expired, and now and then looks for keys that got in twice, until told to stop.
    pub async fn run(self: Arc<Self>, metrics: Arc<Metrics>, mut stopping: watch::Receiver<bool>) {
        let mut rounds: u32 = 0;
        loop {
            let pause = match self.step().await {
                Ok(reaped) if reaped.more => REAP_PAUSE,
                Ok(_) => {
                    rounds += 1;
                    if let Err(error) = self.forget_tokens().await {
                        tracing::warn!(%error, "tokens of the portal could not be deleted; trying again");
                    }
                    if rounds % CROSS_CHECK_ROUNDS == CROSS_CHECK_FIRST {
                        self.cross_check(&metrics).await;
                    }
                    REAP_EVERY
                }
                Err(error) => {
                    tracing::warn!(%error, "reaping failed; trying again");
                    REAP_EVERY
                }
            };
            let stop = stopping.wait_for(|stop| *stop);
            if tokio::time::timeout(pause, stop).await.is_ok() {
                return;
            }
        }
    }

    /// Two live events under one key would be a broken promise (B1): it is looked for, and said loudly.
    async fn cross_check(&self, metrics: &Metrics) {
        match self.store.stats().await {
            Ok(stats) => {
                metrics.keys_twice(stats.keys_twice);
                if stats.keys_twice > 0 {
                    tracing::error!(
                        keys = stats.keys_twice,
                        "keys are held by more than one event; please report this"
                    );
                }
            }
            Err(error) => tracing::warn!(%error, "the cross-check could not be made"),
        }
    }
}

//! Runs that were lost become unknown, so that operators see them without anybody asking for the key; and beside that, probes are asked
//! what became of them. Neither waits for the other.

use std::sync::Arc;
use std::time::Duration;

use hapax_store::StoreError;
use hapax_store::nouns::KEYS_PER_STEP_MAX;
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::Guards;
use super::probe::Prober;
use crate::dispatch::Sender;

/// How often lost runs are looked for. A caller who asks for the key sees them sooner.
const SWEEP_EVERY: Duration = Duration::from_secs(1);

/// Looks after keys whose outcome is unknown.
pub struct Sweep {
    guards: Arc<Guards>,
    sender: Arc<Sender>,
}

impl Sweep {
    /// Nothing looked at yet.
    pub fn new(guards: Arc<Guards>, sender: Arc<Sender>) -> Sweep {
        Sweep { guards, sender }
    }

    /// Goes round until `stop` says so. The probes of each guard go round by themselves, so that one that hangs holds up nobody else.
    pub async fn run(self, stop: watch::Receiver<bool>) {
        let mut probing = JoinSet::new();
        for served in self.guards.all() {
            let prober = Prober::new(self.guards.clone(), served.clone(), self.sender.clone());
            probing.spawn(prober.run(stop.clone()));
        }
        self.lose(stop).await;
        while probing.join_next().await.is_some() {}
    }

    async fn lose(&self, mut stop: watch::Receiver<bool>) {
        loop {
            if let Err(error) = self.step().await {
                tracing::warn!(%error, "lost requests could not be looked for; trying again");
            }
            let stopping = stop.wait_for(|stop| *stop);
            if tokio::time::timeout(SWEEP_EVERY, stopping).await.is_ok() {
                return;
            }
        }
    }

    /// One round.
    ///
    /// # Errors
    /// If the store does not answer.
    pub async fn step(&self) -> Result<(), StoreError> {
        loop {
            let lost = self.guards.parts().store.lose_keys().await?;
            for id in &lost {
                tracing::warn!(key = %id, "a guarded request was lost: its outcome is unknown");
            }
            if lost.len() < KEYS_PER_STEP_MAX {
                return Ok(());
            }
        }
    }
}

//! Tells what happened to endpoints and messages, in the same way as alerts are told.

use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use hapax_ledger::time::Time;
use hapax_store::{Store, StoreError};
use tokio::sync::{mpsc, watch};

use super::notice::{self, Told};
use crate::clock;
use crate::config::AlertsConfig;
use crate::dispatch::Dispatcher;
use crate::outbox::Operational;

/// The pause after the store did not take one.
const PAUSE: Duration = Duration::from_secs(1);

/// Stores operational events, which the dispatcher delivers.
pub struct Announcer {
    store: Arc<dyn Store>,
    dispatcher: Dispatcher,
    config: ArcSwap<AlertsConfig>,
}

impl Announcer {
    /// Tells nothing before [`Announcer::run`].
    pub fn new(store: Arc<dyn Store>, dispatcher: Dispatcher, config: AlertsConfig) -> Announcer {
        Announcer {
            store,
            dispatcher,
            config: ArcSwap::from_pointee(config),
        }
    }

    /// Puts another config in force.
    pub fn reload(&self, config: AlertsConfig) {
        self.config.store(Arc::new(config));
    }

    /// Tells what it hears until told to stop.
    pub async fn run(
        self: Arc<Self>,
        mut heard: mpsc::Receiver<Operational>,
        mut stopping: watch::Receiver<bool>,
    ) {
        loop {
            let next = tokio::select! {
                _ = stopping.wait_for(|stop| *stop) => return,
                next = heard.recv() => next,
            };
            let Some(operational) = next else {
                return;
            };
            // One that the store does not take is tried until it does: what happened is not forgotten because the store is away.
            while let Err(error) = self.tell(&operational, clock::now()).await {
                tracing::warn!(%error, event = operational.event_type(), "an operational event could not be stored; trying again");
                tokio::select! {
                    _ = stopping.wait_for(|stop| *stop) => return,
                    () = tokio::time::sleep(PAUSE) => {}
                }
            }
        }
    }

    /// Stores one, if anybody wants to hear it. The same thing is stored once, however often it is told.
    ///
    /// # Errors
    /// If the store does not take it.
    pub async fn tell(&self, operational: &Operational, now: Time) -> Result<(), StoreError> {
        let config = self.config.load_full();
        let Some(effect) = &config.effect else {
            return Ok(());
        };
        let told = Told {
            event_type: operational.event_type(),
            key: operational.key(),
            at: operational.at,
            data: operational.data(),
        };
        let mut arrival = notice::event(told, effect, now);
        let promises = self.dispatcher.promise(&mut arrival);
        let receipts = self.store.accept(arrival).await?;
        promises.keep(&receipts);
        Ok(())
    }
}

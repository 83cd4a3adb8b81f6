//! Tells what happened to endpoints and messages: in the same way as alerts are told, and to the operators' endpoints.

use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use hapax_ledger::time::Time;
use hapax_store::StoreError;
use tokio::sync::{mpsc, watch};

use super::notice::{self, Told};
use crate::clock;
use crate::config::AlertsConfig;
use crate::outbox::message::Outcome;
use crate::outbox::operational::OPERATIONAL_APP;
use crate::outbox::{Operational, Publisher};

/// The pause after the store did not take one.
const PAUSE: Duration = Duration::from_secs(1);

/// Stores operational events, which the dispatcher delivers.
pub struct Announcer {
    publisher: Publisher,
    config: ArcSwap<AlertsConfig>,
}

impl Announcer {
    /// Tells nothing before [`Announcer::run`].
    pub fn new(publisher: Publisher, config: AlertsConfig) -> Announcer {
        Announcer {
            publisher,
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
        self.tell_where_alerts_go(operational, now).await?;
        let registry = &self.publisher.registry;
        let is_wanted = registry.fresh().await?.has_endpoints(OPERATIONAL_APP);
        if let Some(draft) = operational.draft(now).filter(|_| is_wanted) {
            // The catalogue changes under it now and then, but not for ever.
            while self.publisher.publish(&draft).await? == Outcome::Busy {}
        }
        Ok(())
    }

    async fn tell_where_alerts_go(
        &self,
        operational: &Operational,
        now: Time,
    ) -> Result<(), StoreError> {
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
        let dispatcher = &self.publisher.dispatcher;
        let promises = dispatcher.promise(&mut arrival);
        let receipts = self.publisher.store.accept(arrival).await;
        let receipts = receipts.inspect_err(|error| dispatcher.doubt(error))?;
        promises.keep(&receipts);
        Ok(())
    }
}

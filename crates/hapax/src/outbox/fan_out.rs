//! Deliveries that follow their message: made in steps, by any node, until there are no more.

use std::sync::Arc;
use std::time::Duration;

use hapax_store::{Store, StoreError};
use tokio::sync::{Notify, watch};

use crate::dispatch::Dispatcher;

/// How often a node looks for what another one has left behind.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Makes deliveries that follow their message.
pub struct FanOut {
    store: Arc<dyn Store>,
    dispatcher: Dispatcher,
    more: Notify,
}

impl FanOut {
    /// Does nothing before [`FanOut::run`].
    pub fn new(store: Arc<dyn Store>, dispatcher: Dispatcher) -> FanOut {
        FanOut {
            store,
            dispatcher,
            more: Notify::new(),
        }
    }

    /// There is something to do.
    pub fn hurry(&self) {
        self.more.notify_one();
    }

    /// Works until told to stop. Whatever is left then, the next start finds.
    pub async fn run(self: Arc<Self>, mut stopping: watch::Receiver<bool>) {
        loop {
            if let Err(error) = self.step().await {
                tracing::warn!(%error, "deliveries could not be made; trying again");
            }
            tokio::select! {
                _ = stopping.wait_for(|stop| *stop) => return,
                // Either way there may be something to do.
                _ = tokio::time::timeout(LOOK_EVERY, self.more.notified()) => {}
            }
        }
    }

    /// Makes all that there are.
    ///
    /// # Errors
    /// If the store fails; what is made is made.
    pub async fn step(&self) -> Result<(), StoreError> {
        loop {
            let made = self.store.fan_out().await;
            let made = made.inspect_err(|error| self.dispatcher.doubt(error))?;
            self.dispatcher.opened(&made.lanes);
            if !made.more {
                return Ok(());
            }
        }
    }
}

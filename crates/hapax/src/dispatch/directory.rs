//! Where deliveries go, as far as the config does not know: what the dispatcher asks of whoever keeps the endpoints.

use std::sync::Arc;

use async_trait::async_trait;
use hapax_ledger::effect::SkipReason;
use hapax_ledger::outcome::Outcome;
use hapax_ledger::transition::Change;
use hapax_store::StoreError;
use hapax_store::nouns::Effect;

use super::target::Target;

/// What is known of a lane that no effect of the config has.
#[derive(Clone)]
pub enum Found {
    /// Where to send.
    Target(Arc<Target>),
    /// An endpoint that nothing is sent to: what waits for it is skipped.
    Closed(SkipReason),
    /// An endpoint that cannot be sent to although it should be: its secrets do not open. What waits for it goes on waiting.
    Unready,
    /// Perhaps an endpoint, which this node has not heard of or does not know any more.
    Unknown,
    /// Not an endpoint's.
    Nobody,
}

/// A settled attempt at a delivery.
pub struct Settled<'a> {
    /// The delivery as it was claimed.
    pub effect: &'a Effect,
    /// What came back.
    pub outcome: Outcome,
    /// What the ledger made of it.
    pub change: &'a Change,
}

/// The endpoints, by the lane of their deliveries.
#[async_trait]
pub trait Directory: Send + Sync {
    /// What is known of a lane. Asked for every claim, so it waits for nobody.
    fn find(&self, lane: &str) -> Found;

    /// Asks the store for what it does not know yet. What is [`Found::Unknown`] after that is deleted: a delivery is planned by a catalogue
    /// that its endpoint is in.
    async fn refresh(&self) -> Result<(), StoreError>;

    /// This node begins to look after these shards: what it remembers of their lanes may be out of date.
    fn gained(&self, shards: &[u16]);

    /// An attempt is settled.
    async fn settled(&self, settled: Settled<'_>);
}

/// No endpoints at all.
pub struct NoEndpoints;

#[async_trait]
impl Directory for NoEndpoints {
    fn find(&self, _: &str) -> Found {
        Found::Nobody
    }

    async fn refresh(&self) -> Result<(), StoreError> {
        Ok(())
    }

    fn gained(&self, _: &[u16]) {}

    async fn settled(&self, _: Settled<'_>) {}
}

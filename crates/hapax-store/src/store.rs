//! What the program may ask of a store.

use std::sync::Arc;

use async_trait::async_trait;
use hapax_ledger::id::{EffectId, EventId};
use hapax_ledger::lease::Fence;
use hapax_ledger::time::Time;

use crate::error::StoreError;
use crate::nouns::{
    Arrival, ClaimAsk, Claimed, EffectDetail, Event, EventDetail, EventFilter, Listed, Move, Moved,
    Page, PayloadAnswer, Reaped, Receipt, StoreStats,
};

/// A store's clock, by which leases end. It must never go back while the process runs.
pub type Clock = Arc<dyn Fn() -> Time + Send + Sync>;

/// The ledger, kept. Each method is one transaction; many callers share one commit where it is hot.
#[async_trait]
pub trait Store: Send + Sync + 'static {
    /// Stores a verified request: identities, events, delivery and planned effects, all or nothing (B2).
    /// `Ok` means it is durable. Receipts are in the order of the arrival's events.
    async fn accept(&self, arrival: Arrival) -> Result<Vec<Receipt>, StoreError>;

    /// Looks a key up, as the store has it now: how a caller learns what became of an unknown commit.
    async fn sighted(
        &self,
        source: &str,
        key: &str,
        now: Time,
    ) -> Result<Option<EventId>, StoreError>;

    /// One event with all that hangs on it.
    async fn event(&self, id: EventId) -> Result<Option<EventDetail>, StoreError>;

    /// The bytes of one event.
    async fn payload(&self, id: EventId) -> Result<PayloadAnswer, StoreError>;

    /// A page of events, newest first.
    async fn events(&self, filter: EventFilter, page: Page) -> Result<Listed<Event>, StoreError>;

    /// Into how many shards effects are spread; claims name one.
    fn shards(&self) -> u16;

    /// Claims effects that are due in one shard, earliest first. Each claim raises the effect's fence (C1).
    async fn claim(&self, ask: ClaimAsk) -> Result<Vec<Claimed>, StoreError>;

    /// Moves an effect for the worker that shows this fence (C2).
    async fn advance(
        &self,
        effect: EffectId,
        fence: Fence,
        what: Move,
    ) -> Result<Moved, StoreError>;

    /// Frees effects of one shard whose lease has run out, by their class; says how many. Small steps.
    async fn rescue(&self, shard: u16) -> Result<u32, StoreError>;

    /// One effect with its attempts.
    async fn effect(&self, id: EffectId) -> Result<Option<EffectDetail>, StoreError>;

    /// Deletes some of what has expired by `now`: payloads first, identities last (I1). Small, so that nobody waits.
    async fn reap(&self, now: Time) -> Result<Reaped, StoreError>;

    /// Proves that a commit goes through now.
    async fn ready(&self) -> Result<(), StoreError>;

    /// Keeps the hash of an admin token unless one is kept already; says which one holds.
    async fn keep_admin_token(&self, hash: [u8; 32]) -> Result<[u8; 32], StoreError>;

    /// Finishes what was taken and lets go. The store answers *unavailable* from then on.
    async fn close(&self);

    /// Counts, sizes and the cross-check.
    async fn stats(&self) -> Result<StoreStats, StoreError>;
}

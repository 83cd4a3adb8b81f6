//! What the program may ask of a store.

use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use hapax_ledger::id::{EffectId, EventId};
use hapax_ledger::lease::Fence;
use hapax_ledger::time::Time;
use hapax_ledger::transition::{Resolution, Resolver};

use crate::catalog::Catalog;
use crate::error::StoreError;
use crate::keys::Keys;
use crate::nouns::{
    Advanced, Arrival, Beat, Beaten, ClaimAsk, Claims, Command, Commanded, DiskState, Effect,
    EffectCounts, EffectDetail, EffectFilter, Event, EventDetail, EventFacts, EventFilter, LaneDue,
    Listed, Move, OwnClaim, OwnClaimed, Page, Parcel, PayloadAnswer, Reaped, Receipt, Rescued,
    StoreStats,
};
use crate::outbox::Outbox;
use crate::polling::Polls;
use crate::tidings::Tidings;

/// A store's clock, by which leases end. It must never go back while the process runs.
pub type Clock = Arc<dyn Fn() -> Time + Send + Sync>;

/// The ledger, kept. Each method is one transaction; many callers share one commit where it is hot.
#[async_trait]
pub trait Store: Catalog + Keys + Outbox + Polls + Tidings {
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

    /// Into how many shards lanes are spread; claims name one. See [`crate::nouns::lane_shard`].
    fn shards(&self) -> u16;

    /// Says that a node is there, and divides the shards among those that are. A shard has one holder at a time; one whose holder's
    /// lease has ended is free.
    async fn beat(&self, beat: Beat) -> Result<Beaten, StoreError>;

    /// The node is about to stop: its shards are free at once.
    async fn leave(&self, node: &str) -> Result<(), StoreError>;

    /// Lanes of a shard that have claimable effects, now or later, by name and beginning after `after`: at most
    /// [`crate::nouns::LANES_PER_LOOK_MAX`]. Costs by the number of lanes, not of effects.
    async fn due(&self, shard: u16, after: Option<&str>) -> Result<Vec<LaneDue>, StoreError>;

    /// Tells other nodes that there is something to do in these lanes. A hint: it may get lost.
    async fn wake(&self, lanes: Vec<Arc<str>>);

    /// Waits until another node says so, and names the shards. Never ends where there are no other nodes.
    async fn woken(&self) -> Vec<u16>;

    /// Claims effects that are due in some lanes of one shard, earliest first in each. Each claim raises the effect's fence (C1).
    async fn claim(&self, ask: ClaimAsk) -> Result<Claims, StoreError>;

    /// Moves an effect for the worker that shows this fence (C2).
    async fn advance(
        &self,
        effect: EffectId,
        fence: Fence,
        what: Move,
    ) -> Result<Advanced, StoreError>;

    /// Settles what is uncertain.
    async fn resolve(
        &self,
        effect: EffectId,
        resolution: Resolution,
        by: Resolver,
    ) -> Result<Advanced, StoreError>;

    /// Frees effects of these shards whose lease has run out, by their class. Small steps: nothing freed means that there is no
    /// more.
    async fn rescue(&self, shards: Vec<u16>) -> Result<Rescued, StoreError>;

    /// What the requests of these events' effects are made of; `None` where the bytes are gone.
    async fn parcels(&self, events: Vec<EventId>) -> Result<Vec<Option<Parcel>>, StoreError>;

    /// One effect with its attempts.
    async fn effect(&self, id: EffectId) -> Result<Option<EffectDetail>, StoreError>;

    /// A page of effects, newest first.
    async fn effects(
        &self,
        filter: EffectFilter,
        page: Page<EffectId>,
    ) -> Result<Listed<Effect, EffectId>, StoreError>;

    /// How many effects have not ended well.
    async fn effect_counts(&self) -> Result<EffectCounts, StoreError>;

    /// All that a verdict on an event depends on.
    async fn facts(&self, id: EventId) -> Result<Option<EventFacts>, StoreError>;

    /// Carries out what an operator decided, if the ledger allows it: moves of effects, the run and the audit record, all or
    /// nothing (E1, J1). What is decided on is what is locked: nothing moves between the verdict and the deed.
    async fn command(&self, command: Command) -> Result<Commanded, StoreError>;

    /// The bytes of a delivery that brought another body.
    async fn conflict_body(&self, id: EventId, delivery: u32) -> Result<Option<Bytes>, StoreError>;

    /// Lets somebody's own code carry out an effect, unless it is done or somebody is at it. It goes on with
    /// [`Store::advance`]: extend and settle, under the fence.
    async fn claim_own(&self, claim: OwnClaim) -> Result<OwnClaimed, StoreError>;

    /// Makes sure that what was deleted is not left behind in a file of its own. To be asked after something was erased. A database
    /// server looks after its files itself.
    async fn scrub(&self) -> Result<(), StoreError> {
        Ok(())
    }

    /// Deletes some of what has expired by `now`: payloads first, then ledgers, identities last (I1). Small, so that nobody waits.
    async fn reap(&self, now: Time) -> Result<Reaped, StoreError>;

    /// Counts what [`Store::reap`] would delete by `now`, all rounds together. Reads everything.
    async fn reapable(&self, now: Time) -> Result<Reaped, StoreError>;

    /// Copies the store as it is now into a file beside its own, whose name ends so: consistent, and while others write. Whoever asked
    /// deletes it. `None` where a database server has better tools.
    async fn backup(&self, _suffix: &str) -> Result<Option<PathBuf>, StoreError> {
        Ok(None)
    }

    /// Proves that a commit goes through now.
    async fn ready(&self) -> Result<(), StoreError>;

    /// Keeps the hash of an admin token unless one is kept already; says which one holds.
    async fn keep_admin_token(&self, hash: [u8; 32]) -> Result<[u8; 32], StoreError>;

    /// Finishes what was taken and lets go. The store answers *unavailable* from then on.
    async fn close(&self);

    /// The disk it is on, where that is its own to watch.
    fn disk(&self) -> Option<DiskState> {
        None
    }

    /// Counts, sizes and the cross-check.
    async fn stats(&self) -> Result<StoreStats, StoreError>;
}

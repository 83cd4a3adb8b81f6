//! The store in memory: the oracle that the others are compared with, and the simulator's store.
//!
//! Written to be read, not to be fast: a few maps, one lock, every rule in the open. What others keep level step by step (an
//! event's status, an effect's gate) is computed here anew after every change, for everything.
//!
//! - `state`: events, identities, deliveries, bytes
//! - `effects`: the ledger's machine over a map
//! - `order`: chains and gates
//! - `reads`: effects as they are read
//! - `facts`: what verdicts depend on; `command`: what operators decide; `own`: claims by the user's own code
//! - `keys`: keys of guarded requests
//! - `catalog`: tokens, the audit log, replays
//! - `outbox`: applications, endpoints, types of events; `message`: what is published
//! - `listing`: pages

mod catalog;
mod command;
mod effects;
mod facts;
mod keys;
mod listing;
mod message;
mod order;
mod outbox;
mod own;
mod poll;
mod reads;
mod state;
mod tiding;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use bytes::Bytes;
use hapax_ledger::id::{EffectId, EventId};
use hapax_ledger::lease::Fence;
use hapax_ledger::time::Time;
use hapax_ledger::transition::{Resolution, Resolver};

use self::state::{Row, State};
use crate::deeds;
use crate::error::StoreError;
use crate::nouns::{
    Advanced, Arrival, Beat, Beaten, ClaimAsk, Claims, Command, Commanded, Effect, EffectCounts,
    EffectDetail, EffectFilter, Event, EventDetail, EventFacts, EventFilter, LaneDue, Listed, Move,
    OwnClaim, OwnClaimed, Page, Parcel, PayloadAnswer, Reaped, Receipt, Rescued, StoreStats,
};
use crate::store::{Clock, Store};

/// A store in memory.
pub struct ModelStore {
    state: Mutex<State>,
    clock: Clock,
}

impl ModelStore {
    /// An empty store whose leases end by this clock.
    pub fn new(clock: Clock) -> ModelStore {
        ModelStore {
            state: Mutex::default(),
            clock,
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl Store for ModelStore {
    async fn accept(&self, arrival: Arrival) -> Result<Vec<Receipt>, StoreError> {
        let mut state = self.lock();
        let now = (self.clock)();
        Ok(arrival
            .events
            .iter()
            .map(|new| state.accept(&arrival, new, now))
            .collect())
    }

    async fn sighted(
        &self,
        source: &str,
        key: &str,
        now: Time,
    ) -> Result<Option<EventId>, StoreError> {
        let state = self.lock();
        let row = state
            .keys
            .get(&(source.to_owned(), key.to_owned()))
            .and_then(|id| state.events.get(id));
        Ok(row
            .map(Row::identity)
            .filter(|identity| now < identity.expires_at)
            .map(|identity| identity.event))
    }

    async fn event(&self, id: EventId) -> Result<Option<EventDetail>, StoreError> {
        let state = self.lock();
        Ok(state.events.get(&id).map(|row| EventDetail {
            event: row.event.clone(),
            deliveries: row.deliveries.clone(),
            effects: state.effects.of_event(id),
            runs: row.runs.clone(),
        }))
    }

    async fn payload(&self, id: EventId) -> Result<PayloadAnswer, StoreError> {
        Ok(match self.lock().events.get(&id) {
            Some(Row {
                payload: Some(payload),
                ..
            }) => PayloadAnswer::Kept(payload.clone()),
            Some(_) => PayloadAnswer::Reaped,
            None => PayloadAnswer::NoEvent,
        })
    }

    async fn events(&self, filter: EventFilter, page: Page) -> Result<Listed<Event>, StoreError> {
        Ok(self.lock().list(&filter, page))
    }

    fn shards(&self) -> u16 {
        1
    }

    async fn beat(&self, _beat: Beat) -> Result<Beaten, StoreError> {
        Ok(Beaten {
            now: (self.clock)(),
            nodes: 1,
            held: vec![0],
        })
    }

    async fn leave(&self, _node: &str) -> Result<(), StoreError> {
        Ok(())
    }

    async fn due(&self, _shard: u16, after: Option<&str>) -> Result<Vec<LaneDue>, StoreError> {
        Ok(self.lock().effects.due(after))
    }

    async fn wake(&self, _lanes: Vec<Arc<str>>) {}

    async fn woken(&self) -> Vec<u16> {
        std::future::pending().await
    }

    async fn claim(&self, ask: ClaimAsk) -> Result<Claims, StoreError> {
        Ok(self.lock().claim(&ask, (self.clock)()))
    }

    async fn advance(
        &self,
        effect: EffectId,
        fence: Fence,
        what: Move,
    ) -> Result<Advanced, StoreError> {
        Ok(self.lock().advance(effect, fence, what, (self.clock)()))
    }

    async fn resolve(
        &self,
        effect: EffectId,
        resolution: Resolution,
        by: Resolver,
    ) -> Result<Advanced, StoreError> {
        Ok(self.lock().resolve(effect, resolution, by, (self.clock)()))
    }

    async fn rescue(&self, _shards: Vec<u16>) -> Result<Rescued, StoreError> {
        Ok(self.lock().rescue((self.clock)()))
    }

    async fn parcels(&self, events: Vec<EventId>) -> Result<Vec<Option<Parcel>>, StoreError> {
        let state = self.lock();
        Ok(events
            .into_iter()
            .map(|event| state.parcel(event))
            .collect())
    }

    async fn effects(
        &self,
        filter: EffectFilter,
        page: Page<EffectId>,
    ) -> Result<Listed<Effect, EffectId>, StoreError> {
        Ok(self.lock().list_effects(&filter, page))
    }

    async fn effect_counts(&self) -> Result<EffectCounts, StoreError> {
        Ok(self.lock().effects.counts())
    }

    async fn effect(&self, id: EffectId) -> Result<Option<EffectDetail>, StoreError> {
        Ok(self.lock().effects.detail(id))
    }

    async fn facts(&self, id: EventId) -> Result<Option<EventFacts>, StoreError> {
        Ok(self.lock().facts(id, (self.clock)()))
    }

    async fn command(&self, command: Command) -> Result<Commanded, StoreError> {
        deeds::sound(&command)?;
        Ok(self.lock().command(&command, (self.clock)()))
    }

    async fn conflict_body(&self, id: EventId, delivery: u32) -> Result<Option<Bytes>, StoreError> {
        let state = self.lock();
        let row = state.events.get(&id);
        Ok(row.and_then(|row| row.conflict_bodies.get(&delivery).cloned()))
    }

    async fn claim_own(&self, claim: OwnClaim) -> Result<OwnClaimed, StoreError> {
        Ok(self.lock().claim_own(&claim, (self.clock)()))
    }

    async fn reap(&self, now: Time) -> Result<Reaped, StoreError> {
        let mut state = self.lock();
        let reaped = state.reap(now);
        Ok(Reaped {
            keys: state.guarded.reap(now.min((self.clock)())),
            ..reaped
        })
    }

    async fn reapable(&self, now: Time) -> Result<Reaped, StoreError> {
        let state = self.lock();
        Ok(Reaped {
            keys: state.guarded.reapable(now.min((self.clock)())),
            ..state.reapable(now)
        })
    }

    async fn ready(&self) -> Result<(), StoreError> {
        Ok(())
    }

    async fn keep_admin_token(&self, hash: [u8; 32]) -> Result<[u8; 32], StoreError> {
        Ok(*self.lock().admin_token.get_or_insert(hash))
    }

    async fn close(&self) {}

    async fn stats(&self) -> Result<StoreStats, StoreError> {
        let state = self.lock();
        let payloads = state.events.values().filter(|row| row.payload.is_some());
        Ok(StoreStats {
            events: state.events.len() as u64,
            payloads: payloads.count() as u64,
            keys: state.guarded.count(),
            bytes: 0,
            keys_twice: 0,
        })
    }
}

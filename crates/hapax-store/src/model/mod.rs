//! The store in memory: the oracle that the others are compared with, and the simulator's store.
//!
//! Written to be read, not to be fast: one map, one lock, every rule in the open.

mod effects;

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use hapax_ledger::event::{DeliveryOutcome, EventStatus};
use hapax_ledger::id::{EffectId, EventId, RawId};
use hapax_ledger::identity::{self, Identity, Sighting};
use hapax_ledger::lease::Fence;
use hapax_ledger::time::{Span, Time};

use crate::error::StoreError;
use crate::nouns::{
    Arrival, CONFLICT_BODIES_MAX, ClaimAsk, Claimed, DELIVERIES_KEPT_MAX, Delivery, EffectDetail,
    Event, EventDetail, EventFilter, Listed, Move, Moved, NewEvent, PAGE_MAX, Page, PageFrom,
    Payload, PayloadAnswer, Reaped, Receipt, Receipted, StoreStats,
};
use crate::store::{Clock, Store};

/// A store in memory.
pub struct ModelStore {
    state: Mutex<State>,
    clock: Clock,
}

#[derive(Default)]
struct State {
    admin_token: Option<[u8; 32]>,
    rows: u64,
    events: BTreeMap<EventId, Row>,
    keys: HashMap<(String, String), EventId>,
    effects: effects::Effects,
}

struct Row {
    event: Event,
    compare_hash: hapax_ledger::key::BodyHash,
    payload: Option<Payload>,
    payload_until: Time,
    retry_window: Span,
    deliveries: Vec<Delivery>,
    conflict_bodies: Vec<bytes::Bytes>,
}

impl Row {
    fn identity(&self) -> Identity {
        Identity {
            event: self.event.id,
            compare_hash: self.compare_hash,
            first_seen: self.event.received_at,
            last_seen: self
                .deliveries
                .last()
                .map_or(self.event.received_at, |delivery| delivery.at),
            expires_at: if self.event.status.is_settled() {
                self.event.identity_expires_at
            } else {
                Time::MAX
            },
        }
    }
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

impl State {
    fn accept(&mut self, arrival: &Arrival, new: &NewEvent, now: Time) -> Receipt {
        let key = (arrival.source.to_string(), new.key.clone());
        let known = self
            .keys
            .get(&key)
            .and_then(|id| self.events.get(id))
            .map(Row::identity);
        match identity::decide(known.as_ref(), new.compare_hash, arrival.at) {
            Sighting::New | Sighting::Expired => self.insert(arrival, new, key, now),
            Sighting::Duplicate { conflict } => {
                let row = known.and_then(|known| self.events.get_mut(&known.event));
                repeat(
                    row.expect("a duplicate has an event"),
                    arrival,
                    new,
                    conflict,
                )
            }
        }
    }

    fn insert(
        &mut self,
        arrival: &Arrival,
        new: &NewEvent,
        key: (String, String),
        now: Time,
    ) -> Receipt {
        self.rows += 1;
        let id = EventId(RawId::new(arrival.at, 0, self.rows));
        let rows = &mut self.rows;
        let claims = self.effects.plan(now, id, &new.effects, || {
            *rows += 1;
            EffectId(RawId::new(arrival.at, 0, *rows))
        });
        let (status, outcome) = match &new.review {
            Some(_) => (EventStatus::NeedsReview, DeliveryOutcome::FailedValidation),
            None => (self.effects.status(id), DeliveryOutcome::Accepted),
        };
        let event = Event {
            id,
            source: arrival.source.clone(),
            event_type: new.event_type.clone(),
            key: new.key.clone(),
            key_origin: new.key_origin,
            provider_event_id: new.provider_event_id.clone(),
            object_id: new.object_id.clone(),
            entity: new.entity.clone(),
            version: new.version.clone(),
            status,
            received_at: arrival.at,
            review: new.review.clone(),
            delivery_count: 1,
            duplicate_count: 0,
            conflict_count: 0,
            body_hash: new.body_hash,
            identity_expires_at: identity::expiry(
                arrival.at,
                arrival.at,
                new.keep.identity,
                new.keep.retry_window,
            ),
        };
        let row = Row {
            event,
            compare_hash: new.compare_hash,
            payload: Some(Payload {
                body: new.body.clone(),
                content_type: new.content_type.clone(),
            }),
            payload_until: arrival.at + new.keep.payload,
            retry_window: new.keep.retry_window,
            deliveries: vec![delivery(arrival, new, outcome, false)],
            conflict_bodies: Vec::new(),
        };
        self.events.insert(id, row);
        self.keys.insert(key, id);
        Receipt {
            event: id,
            sighting: Receipted::New,
            needs_review: new.review.is_some(),
            claims,
        }
    }

    fn reap(&mut self, now: Time) -> Reaped {
        let mut reaped = Reaped::default();
        for row in self
            .events
            .values_mut()
            .filter(|row| row.event.status.is_settled())
        {
            let expired = row.payload_until <= now || row.event.identity_expires_at <= now;
            if expired && row.payload.take().is_some() {
                row.conflict_bodies.clear();
                reaped.payloads += 1;
            }
        }
        let gone: Vec<EventId> = self
            .events
            .values()
            .filter(|row| row.event.status.is_settled() && row.event.identity_expires_at <= now)
            .map(|row| row.event.id)
            .collect();
        for id in &gone {
            self.events.remove(id);
            self.effects.forget_event(*id);
        }
        self.keys.retain(|_, id| !gone.contains(id));
        reaped.identities = gone.len() as u32;
        reaped
    }

    /// Brings every event's status level with its effects; one that waits for a person does so whatever they say.
    fn settle_statuses(&mut self) {
        for (id, row) in &mut self.events {
            if row.event.review.is_none() {
                row.event.status = self.effects.status(*id);
            }
        }
    }

    fn list(&self, filter: &EventFilter, page: Page) -> Listed<Event> {
        let limit = page.limit.clamp(1, PAGE_MAX) as usize;
        let fitting = |row: &&Row| filter.fits(&row.event);
        let (mut rows, next): (Vec<Event>, _) = match page.from {
            PageFrom::NewerThan(id) => {
                let newer = self
                    .events
                    .range(id..)
                    .skip_while(|(at, _)| **at == id)
                    .map(|(_, row)| row);
                let mut rows: Vec<Event> = newer
                    .filter(fitting)
                    .take(limit)
                    .map(|row| row.event.clone())
                    .collect();
                rows.reverse();
                let next = rows.last().map(|event| event.id);
                (rows, next)
            }
            PageFrom::Newest => self.older(self.events.range(..), filter, limit),
            PageFrom::OlderThan(id) => self.older(self.events.range(..id), filter, limit),
        };
        rows.truncate(limit);
        Listed { rows, next }
    }

    fn older<'a>(
        &self,
        range: impl DoubleEndedIterator<Item = (&'a EventId, &'a Row)>,
        filter: &EventFilter,
        limit: usize,
    ) -> (Vec<Event>, Option<EventId>) {
        let mut rows = Vec::new();
        let mut last = None;
        for (id, row) in range.rev() {
            if rows.len() == limit {
                return (rows, last);
            }
            last = Some(*id);
            if filter.fits(&row.event) {
                rows.push(row.event.clone());
            }
        }
        (rows, None)
    }
}

fn delivery(
    arrival: &Arrival,
    new: &NewEvent,
    outcome: DeliveryOutcome,
    conflict: bool,
) -> Delivery {
    Delivery {
        at: arrival.at,
        outcome,
        proof: arrival.proof.clone(),
        body_hash: new.body_hash,
        conflict,
    }
}

fn repeat(row: &mut Row, arrival: &Arrival, new: &NewEvent, conflict: bool) -> Receipt {
    if row.event.duplicate_count >= DELIVERIES_KEPT_MAX {
        if let Some(last) = row.deliveries.last_mut() {
            last.at = arrival.at;
        }
    } else {
        row.deliveries
            .push(delivery(arrival, new, DeliveryOutcome::Duplicate, conflict));
        if conflict && row.event.conflict_count < CONFLICT_BODIES_MAX {
            row.conflict_bodies.push(new.body.clone());
        }
    }
    row.event.delivery_count += 1;
    row.event.duplicate_count += 1;
    row.event.conflict_count += u32::from(conflict);
    row.event.identity_expires_at = row
        .event
        .identity_expires_at
        .max(arrival.at + row.retry_window);
    Receipt {
        event: row.event.id,
        sighting: if conflict {
            Receipted::Conflict
        } else {
            Receipted::Duplicate
        },
        needs_review: row.event.status == EventStatus::NeedsReview,
        claims: Vec::new(),
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

    async fn claim(&self, ask: ClaimAsk) -> Result<Vec<Claimed>, StoreError> {
        let mut state = self.lock();
        let claimed = state.effects.claim((self.clock)(), &ask);
        state.settle_statuses();
        Ok(claimed)
    }

    async fn advance(
        &self,
        effect: EffectId,
        fence: Fence,
        what: Move,
    ) -> Result<Moved, StoreError> {
        let mut state = self.lock();
        let moved = state.effects.advance((self.clock)(), effect, fence, what);
        state.settle_statuses();
        Ok(moved)
    }

    async fn rescue(&self, _shard: u16) -> Result<u32, StoreError> {
        let mut state = self.lock();
        let freed = state.effects.rescue((self.clock)());
        state.settle_statuses();
        Ok(freed)
    }

    async fn effect(&self, id: EffectId) -> Result<Option<EffectDetail>, StoreError> {
        Ok(self.lock().effects.detail(id))
    }

    async fn reap(&self, now: Time) -> Result<Reaped, StoreError> {
        Ok(self.lock().reap(now))
    }

    async fn ready(&self) -> Result<(), StoreError> {
        Ok(())
    }

    async fn keep_admin_token(&self, hash: [u8; 32]) -> Result<[u8; 32], StoreError> {
        Ok(*self.lock().admin_token.get_or_insert(hash))
    }

    async fn close(&self) {}

    async fn stats(&self) -> Result<StoreStats, StoreError> {
        Ok(StoreStats {
            events: self.lock().events.len() as u64,
            bytes: 0,
            keys_twice: 0,
        })
    }
}

//! Events in memory: identities, deliveries, bytes, and what effects mean for them.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use bytes::Bytes;
use hapax_ledger::event::{DeliveryOutcome, EventStatus};
use hapax_ledger::id::{EffectId, EventId, RawId};
use hapax_ledger::identity::{self, Identity, Sighting};
use hapax_ledger::lease::Fence;
use hapax_ledger::time::{Span, Time};
use hapax_ledger::transition::{Resolution, Resolver};

use super::catalog::Catalog;
use super::effects::{Effects, Planning};
use super::keys::Keys;
use super::message::ToCome;
use super::{listing, outbox};
use crate::nouns::{
    About, Advanced, Arrival, CONFLICT_BODIES_MAX, ClaimAsk, Claims, DELIVERIES_KEPT_MAX, Delivery,
    Effect, EffectFilter, Event, EventFilter, LaneRoom, Listed, Move, NewEvent, OnFailed, Page,
    Parcel, Payload, Reaped, Receipt, Receipted, Rescued, Run,
};

/// All that the model knows.
#[derive(Default)]
pub(super) struct State {
    pub(super) admin_token: Option<[u8; 32]>,
    pub(super) rows: u64,
    pub(super) events: BTreeMap<EventId, Row>,
    pub(super) keys: HashMap<(String, String), EventId>,
    pub(super) effects: Effects,
    pub(super) catalog: Catalog,
    pub(super) guarded: Keys,
    pub(super) outbox: outbox::Kept,
}

pub(super) struct Row {
    pub(super) event: Event,
    compare_hash: hapax_ledger::key::BodyHash,
    pub(super) payload: Option<Payload>,
    /// [`Time::MIN`]: erased.
    payload_until: Time,
    /// [`Time::MIN`]: reaped.
    pub(super) ledger_until: Time,
    retry_window: Span,
    pub(super) deliveries: Vec<Delivery>,
    /// By the number of the delivery.
    pub(super) conflict_bodies: BTreeMap<u32, Bytes>,
    pub(super) runs: Vec<Run>,
    /// Of a message.
    pub(super) about: Option<About>,
    /// Of a message whose deliveries are not all made.
    pub(super) to_come: Option<ToCome>,
    /// Of a message that was sent later, for those who ask: its turn.
    pub(super) turn: Option<i64>,
}

impl Row {
    pub(super) fn identity(&self) -> Identity {
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

impl State {
    /// Stores one event of an arrival.
    pub(super) fn accept(&mut self, arrival: &Arrival, new: &NewEvent, now: Time) -> Receipt {
        let key = (arrival.source.to_string(), new.key.clone());
        let known = self
            .keys
            .get(&key)
            .and_then(|id| self.events.get(id))
            .map(Row::identity);
        let sighting = identity::decide(known.as_ref(), new.compare_hash, arrival.at);
        let receipt = match (sighting, known) {
            (Sighting::Duplicate { conflict }, Some(known)) => {
                let revived = match (new.on_failed, conflict) {
                    (OnFailed::Retry, false) => self.effects.revive(known.event, now),
                    (OnFailed::Link, _) | (OnFailed::Retry, true) => Vec::new(),
                };
                let row = self.events.get_mut(&known.event);
                let row = row.expect("a duplicate has an event");
                Receipt {
                    revived,
                    ..repeat(row, arrival, new, conflict)
                }
            }
            (Sighting::New | Sighting::Expired | Sighting::Duplicate { .. }, _) => {
                self.insert(arrival, new, key, now)
            }
        };
        self.settle();
        receipt
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
        let planning = Planning {
            now,
            event: id,
            received_at: arrival.at,
            event_type: new.event_type.as_deref().unwrap_or_default(),
        };
        let rows = &mut self.rows;
        let claims = self.effects.plan(&planning, &new.effects, || {
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
            ledger_until: arrival.at + new.keep.ledger,
            retry_window: new.keep.retry_window,
            deliveries: vec![delivery(arrival, new, outcome, false, 0)],
            conflict_bodies: BTreeMap::new(),
            runs: Vec::new(),
            about: None,
            to_come: None,
            turn: None,
        };
        self.events.insert(id, row);
        self.keys.insert(key, id);
        Receipt {
            event: id,
            sighting: Receipted::New,
            needs_review: new.review.is_some(),
            claims,
            revived: Vec::new(),
        }
    }

    /// I1: has everything ended? One dead effect makes an event dead while others of it may still be on their way.
    fn is_over(&self, row: &Row) -> bool {
        row.event.status.is_settled()
            && row.to_come.is_none()
            && !self.effects.has_live(row.event.id)
    }

    pub(super) fn reap(&mut self, now: Time) -> Reaped {
        let mut reaped = Reaped::default();
        let over = self.events.values().filter(|row| self.is_over(row));
        let over: Vec<EventId> = over.map(|row| row.event.id).collect();
        let mut gone = Vec::new();
        for id in over {
            let Some(row) = self.events.get_mut(&id) else {
                continue;
            };
            let identity_expired = row.event.identity_expires_at <= now;
            let ledger_expired = row.ledger_until <= now;
            let expired = row.payload_until <= now || ledger_expired || identity_expired;
            if expired && row.payload.take().is_some() {
                row.conflict_bodies.clear();
                reaped.payloads += 1;
            }
            if identity_expired {
                gone.push(id);
            } else if ledger_expired && row.ledger_until != Time::MIN {
                self.trim(id);
                reaped.ledgers += 1;
            }
        }
        for id in &gone {
            if let Some(row) = self.events.remove(id) {
                self.outbox
                    .forget_number(&row.event.source, row.about.as_ref());
            }
            self.trim_attempts(*id);
            self.effects.forget_event(*id);
        }
        self.keys.retain(|_, id| !gone.contains(id));
        reaped.identities = gone.len() as u32;
        self.reap_catalogue(now);
        self.effects.reap_tallies(now);
        self.reap_consumers(now);
        reaped
    }

    pub(super) fn reapable(&self, now: Time) -> Reaped {
        let mut due = Reaped::default();
        for row in self.events.values().filter(|row| self.is_over(row)) {
            let identity = row.event.identity_expires_at <= now;
            let ledger = row.ledger_until <= now;
            let bytes = row.payload_until <= now || ledger || identity;
            due.payloads += u32::from(bytes && row.payload.is_some());
            due.ledgers += u32::from(ledger && !identity && row.ledger_until != Time::MIN);
            due.identities += u32::from(identity);
        }
        due
    }

    /// What happened to an event goes, but for its first and its latest delivery. Of attempts only those that no other event tells of.
    fn trim(&mut self, id: EventId) {
        let Some(row) = self.events.get_mut(&id) else {
            return;
        };
        row.ledger_until = Time::MIN;
        row.runs.clear();
        if row.deliveries.len() > 2 {
            row.deliveries.drain(1..row.deliveries.len() - 1);
        }
        self.trim_attempts(id);
    }

    /// Attempts of what an event calls for go if no event tells of them any more, whichever was the last to.
    fn trim_attempts(&mut self, id: EventId) {
        let events = &self.events;
        let told = |other: &EventId| {
            events
                .get(other)
                .is_some_and(|row| row.ledger_until != Time::MIN)
        };
        self.effects.trim(id, told);
    }

    /// The event's bytes go, and all that was said about them.
    pub(super) fn erase(&mut self, id: EventId) {
        let Some(row) = self.events.get_mut(&id) else {
            return;
        };
        row.payload = None;
        row.payload_until = Time::MIN;
        row.conflict_bodies.clear();
        for run in &mut row.runs {
            run.snapshot = None;
        }
        self.effects.erase(id);
    }

    pub(super) fn claim(&mut self, ask: &ClaimAsk, now: Time) -> Claims {
        let claimed = self.effects.claim(now, ask);
        self.settle();
        let due = |room: &LaneRoom| self.effects.due_in(&room.lane);
        Claims {
            next: ask.lanes.iter().map(due).collect(),
            claimed,
        }
    }

    pub(super) fn advance(
        &mut self,
        effect: EffectId,
        fence: Fence,
        what: Move,
        now: Time,
    ) -> Advanced {
        let (moved, review) = self.effects.advance(now, effect, fence, what);
        let first = self.effects.first_event(effect);
        if let Some(review) = review
            && let Some(row) = first.and_then(|event| self.events.get_mut(&event))
        {
            // What was asked first stays: a person has not looked at it yet.
            row.event.review.get_or_insert(review);
            row.event.status = EventStatus::NeedsReview;
        }
        let opened = self.settle();
        Advanced { moved, opened }
    }

    pub(super) fn resolve(
        &mut self,
        effect: EffectId,
        resolution: Resolution,
        by: Resolver,
        now: Time,
    ) -> Advanced {
        let moved = self.effects.resolve(now, effect, resolution, by);
        let opened = self.settle();
        Advanced { moved, opened }
    }

    pub(super) fn rescue(&mut self, now: Time) -> Rescued {
        let freed = self.effects.rescue(now);
        let opened = self.settle();
        let effects = freed
            .into_iter()
            .filter_map(|id| self.effects.detail(id))
            .map(|detail| detail.effect)
            .collect();
        Rescued { effects, opened }
    }

    /// Brings gates and every event's status level with the effects; an event that waits for a person does so whatever they
    /// say. Gives the lanes in which a gate opened.
    pub(super) fn settle(&mut self) -> Vec<Arc<str>> {
        for (id, row) in &mut self.events {
            if row.event.review.is_none() {
                row.event.status = self.effects.status(*id);
            }
            if row.event.review.is_none() && row.to_come.is_some() {
                // What is still to be made waits like any other.
                row.event.status = row.event.status.max(EventStatus::Pending);
            }
        }
        self.effects.settle_gates()
    }

    pub(super) fn list(&self, filter: &EventFilter, page: Page) -> Listed<Event> {
        listing::page(&self.events, page, |row| {
            filter.fits(&row.event).then(|| row.event.clone())
        })
    }

    pub(super) fn list_effects(
        &self,
        filter: &EffectFilter,
        page: Page<EffectId>,
    ) -> Listed<Effect, EffectId> {
        listing::page(&self.effects.rows, page, |row| {
            let event = self.events.get(&row.effect.event);
            let source = event.map(|row| &*row.event.source);
            filter
                .fits(&row.effect, row.received_at, source)
                .then(|| row.effect.clone())
        })
    }

    pub(super) fn parcel(&self, event: EventId) -> Option<Parcel> {
        let row = self.events.get(&event)?;
        let payload = row.payload.clone()?;
        Some(Parcel {
            source: row.event.source.clone(),
            event_type: row.event.event_type.clone(),
            key: row.event.key.clone(),
            object_id: row.event.object_id.clone(),
            received_at: row.event.received_at,
            content_type: payload.content_type,
            body: payload.body,
            about: row.about.clone(),
        })
    }
}

fn delivery(
    arrival: &Arrival,
    new: &NewEvent,
    outcome: DeliveryOutcome,
    conflict: bool,
    number: u32,
) -> Delivery {
    Delivery {
        at: arrival.at,
        outcome,
        proof: arrival.proof.clone(),
        body_hash: new.body_hash,
        conflict,
        number,
        decided: None,
    }
}

fn repeat(row: &mut Row, arrival: &Arrival, new: &NewEvent, conflict: bool) -> Receipt {
    if row.event.duplicate_count >= DELIVERIES_KEPT_MAX {
        if let Some(last) = row.deliveries.last_mut() {
            last.at = arrival.at;
        }
    } else {
        let number = row.event.duplicate_count + 1;
        let outcome = DeliveryOutcome::Duplicate;
        row.deliveries
            .push(delivery(arrival, new, outcome, conflict, number));
        // Bytes are kept no longer than those of the event itself.
        let kept = arrival.at < row.payload_until || !row.event.status.is_settled();
        let kept = kept && row.payload_until != Time::MIN;
        if conflict && kept && row.event.conflict_count < CONFLICT_BODIES_MAX {
            row.conflict_bodies.insert(number, new.body.clone());
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
        revived: Vec::new(),
    }
}

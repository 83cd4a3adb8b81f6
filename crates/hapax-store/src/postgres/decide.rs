//! What a group of arrivals means, given who holds their keys: rows to write, decided in memory, one arrival after the other.
//!
//! No SQL here. The keys are locked while this runs, so what it was given stays true until the commit.

use std::collections::{BTreeMap, BTreeSet};

use hapax_ledger::event::EventStatus;
use hapax_ledger::id::EventId;
use hapax_ledger::identity::{self, Identity, Sighting};
use hapax_ledger::key::{BodyHash, KeyHash};
use hapax_ledger::time::{Span, Time};

use super::Entropy;
use super::accept::{key_order, new_id, new_receipt, new_row};
use super::columns::{DeliveryRow, EventRow};
use super::plan::Calling;
use crate::error::{StoreError, StoreErrorKind};
use crate::nouns::{
    Arrival, CONFLICT_BODIES_MAX, DELIVERIES_KEPT_MAX, NewEvent, OnFailed, Receipt, Receipted,
};

/// A key with its shard and scope, in locking order.
pub(super) type Key<'a> = (u16, &'a str, KeyHash);

/// The event that holds a key.
pub(super) struct Holder {
    pub(super) event: EventId,
    pub(super) key: String,
    pub(super) compare_hash: BodyHash,
    pub(super) at: Time,
    pub(super) status: EventStatus,
    pub(super) retry_window: Span,
    pub(super) expires_at: Time,
    /// The number of its last delivery; the first is number zero.
    pub(super) last: u32,
    pub(super) conflicts: u32,
    pub(super) payload_until: Time,
    pub(super) event_row: Place,
    pub(super) last_row: Place,
}

/// Where a row is that may have to be changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// In the database.
    Stored,
    /// Among the rows to be written, there.
    Pending(usize),
}

/// What is known of one key.
pub(super) struct Slot {
    /// The id under which the key was taken for us, until the event is there.
    pub(super) reserved: Option<EventId>,
    /// What the identity's row says.
    pub(super) stored: Option<EventId>,
    /// Who holds it, by now.
    pub(super) holder: Option<Holder>,
}

/// The last delivery's row stands for all later ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Rolled {
    pub(super) from: u32,
    pub(super) to: u32,
    pub(super) at: Time,
    pub(super) conflicts: u32,
}

/// What has to be done about effects, in the order of arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Deed {
    /// A new event, in that row, calls for its effects.
    Call { row: usize },
    /// A repeat, with that receipt of the group, brings back what of its event was given up.
    Retry { event: EventId, receipt: usize },
}

/// All that has to be written.
#[derive(Default)]
pub(super) struct Decisions<'a> {
    pub(super) deeds: Vec<Deed>,
    receipts: usize,
    pub(super) events: Vec<EventRow<'a>>,
    pub(super) deliveries: Vec<DeliveryRow<'a>>,
    pub(super) rolled: BTreeMap<EventId, Rolled>,
    pub(super) extended: BTreeMap<EventId, Time>,
}

impl Holder {
    /// May any of its effects have been given up? What is new in this group may call for one that was.
    fn may_have_failed(&self) -> bool {
        let worst = matches!(self.status, EventStatus::Dead | EventStatus::NeedsReview);
        worst || matches!(self.event_row, Place::Pending(_))
    }

    /// Is another body that comes now kept? No longer than the event's own, and only so many.
    fn keeps_bodies(&self, now: Time) -> bool {
        let kept = now < self.payload_until || !self.status.is_settled();
        let kept = kept && self.payload_until != Time::MIN;
        kept && self.conflicts < CONFLICT_BODIES_MAX
    }

    pub(super) fn identity(&self) -> Identity {
        Identity {
            event: self.event,
            compare_hash: self.compare_hash,
            first_seen: self.at,
            last_seen: self.at,
            // What is not settled holds its key (I1).
            expires_at: if self.status.is_settled() {
                self.expires_at
            } else {
                Time::MAX
            },
        }
    }
}

impl<'a> Decisions<'a> {
    /// Is there anything to be done about effects?
    pub(super) fn concerns_effects(&self) -> bool {
        self.deeds.iter().any(|deed| match deed {
            Deed::Call { row } => !self.events[*row].event.effects.is_empty(),
            Deed::Retry { .. } => true,
        })
    }

    /// What the new events call for.
    pub(super) fn calling(&self) -> impl Iterator<Item = Calling<'a>> {
        self.events.iter().map(EventRow::calling)
    }

    /// Stored events whose effects a repeat brings back.
    pub(super) fn retried(&self) -> BTreeSet<EventId> {
        let new = |event: &EventId| self.events.iter().any(|row| row.id == *event);
        let retried = self.deeds.iter().filter_map(|deed| match deed {
            Deed::Retry { event, .. } => Some(*event),
            Deed::Call { .. } => None,
        });
        retried.filter(|event| !new(event)).collect()
    }

    /// Decides one arrival, after all that came before it.
    pub(super) fn arrive(
        &mut self,
        arrival: &'a Arrival,
        slots: &mut BTreeMap<Key<'a>, Slot>,
        entropy: &Entropy,
    ) -> Result<Vec<Receipt>, StoreError> {
        let mut receipts = Vec::with_capacity(arrival.events.len());
        for event in &arrival.events {
            let slot = slots
                .get_mut(&key_order(arrival, event))
                .expect("every key of the group has its slot");
            receipts.push(self.sight(arrival, event, slot, entropy)?);
            self.receipts += 1;
        }
        Ok(receipts)
    }

    fn sight(
        &mut self,
        arrival: &'a Arrival,
        event: &'a NewEvent,
        slot: &mut Slot,
        entropy: &Entropy,
    ) -> Result<Receipt, StoreError> {
        if slot
            .holder
            .as_ref()
            .is_some_and(|holder| holder.key != event.key)
        {
            return Err(StoreError::new(
                StoreErrorKind::Corrupt,
                "two keys share one 128-bit hash",
            ));
        }
        let known = slot.holder.as_ref().map(Holder::identity);
        match (
            identity::decide(known.as_ref(), event.compare_hash, arrival.at),
            &mut slot.holder,
        ) {
            (Sighting::Duplicate { conflict }, Some(holder)) => {
                Ok(self.repeat(arrival, event, holder, conflict))
            }
            (Sighting::New | Sighting::Expired, _) | (Sighting::Duplicate { .. }, None) => {
                let id = slot
                    .reserved
                    .take()
                    .unwrap_or_else(|| new_id(arrival.at, event.key_hash, entropy));
                slot.holder = Some(self.insert(arrival, event, id));
                Ok(new_receipt(event, id))
            }
        }
    }

    pub(super) fn insert(
        &mut self,
        arrival: &'a Arrival,
        event: &'a NewEvent,
        id: EventId,
    ) -> Holder {
        let row = new_row(arrival, event, id);
        self.deeds.push(Deed::Call {
            row: self.events.len(),
        });
        let holder = Holder {
            event: id,
            key: event.key.clone(),
            compare_hash: event.compare_hash,
            at: arrival.at,
            status: row.status,
            retry_window: event.keep.retry_window,
            expires_at: row.expires_at,
            last: 0,
            conflicts: 0,
            payload_until: arrival.at + event.keep.payload,
            event_row: Place::Pending(self.events.len()),
            last_row: Place::Stored,
        };
        self.events.push(row);
        holder
    }

    fn repeat(
        &mut self,
        arrival: &'a Arrival,
        event: &'a NewEvent,
        holder: &mut Holder,
        conflict: bool,
    ) -> Receipt {
        let keep_body = conflict && holder.keeps_bodies(arrival.at);
        holder.conflicts += u32::from(conflict);
        holder.last += 1;
        if holder.last > DELIVERIES_KEPT_MAX {
            self.roll(holder, arrival.at);
        } else {
            holder.last_row = Place::Pending(self.deliveries.len());
            self.deliveries.push(DeliveryRow {
                event: holder.event,
                n: holder.last,
                at: arrival.at,
                conflict,
                conflicts: holder.conflicts,
                arrival,
                repeated: event,
                keep_body,
            });
        }
        self.outlive_the_sender(holder, arrival.at);
        if event.on_failed == OnFailed::Retry && !conflict && holder.may_have_failed() {
            self.deeds.push(Deed::Retry {
                event: holder.event,
                receipt: self.receipts,
            });
        }
        Receipt {
            event: holder.event,
            sighting: if conflict {
                Receipted::Conflict
            } else {
                Receipted::Duplicate
            },
            needs_review: holder.status == EventStatus::NeedsReview,
            claims: Vec::new(),
            revived: Vec::new(),
        }
    }

    /// Moves the last delivery's row on instead of adding one.
    fn roll(&mut self, holder: &Holder, at: Time) {
        match holder.last_row {
            Place::Pending(row) => {
                let row = &mut self.deliveries[row];
                (row.n, row.at, row.conflicts) = (holder.last, at, holder.conflicts);
            }
            Place::Stored => {
                let first = Rolled {
                    from: holder.last - 1,
                    to: 0,
                    at,
                    conflicts: 0,
                };
                let rolled = self.rolled.entry(holder.event).or_insert(first);
                *rolled = Rolled {
                    from: rolled.from,
                    to: holder.last,
                    at,
                    conflicts: holder.conflicts,
                };
            }
        }
    }

    /// A late sighting moves the identity's end, so that it outlives the sender's retries (B5).
    fn outlive_the_sender(&mut self, holder: &mut Holder, now: Time) {
        let wanted = now + holder.retry_window;
        if wanted <= holder.expires_at {
            return;
        }
        holder.expires_at = wanted;
        match holder.event_row {
            Place::Pending(row) => self.events[row].expires_at = wanted,
            Place::Stored => {
                self.extended.insert(holder.event, wanted);
            }
        }
    }
}

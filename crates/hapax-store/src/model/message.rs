//! Messages in memory: published, fanned out, read back.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use hapax_ledger::effect::EffectState;
use hapax_ledger::id::{EffectId, EndpointId, EventId};
use hapax_ledger::identity::{self, Sighting};
use hapax_ledger::outcome::Outcome;
use hapax_ledger::time::Time;

use super::effects::{self, Effects};
use super::listing;
use super::state::{Row, State};
use crate::nouns::{
    Deliveries, FAN_OUT_STEP, FannedOut, LaterDelivery, Listed, Message, MessageFilter, NewMessage,
    Page, Posted, PostedFilter, Published, Receipt, Receipted, TALLIES_KEPT, Tally, Tried,
    TriedPlace, WAITING_COUNTED_MAX, is_endpoint_lane,
};
use crate::posting::{self, Template};

/// Deliveries of a message that are still to be made.
pub(super) struct ToCome {
    template: Template,
    entity: Option<String>,
    later: VecDeque<LaterDelivery>,
}

impl ToCome {
    pub(super) fn len(&self) -> u64 {
        self.later.len() as u64
    }
}

impl State {
    pub(super) fn publish(&mut self, mut message: NewMessage, now: Time) -> Published {
        posting::arrival(&mut message);
        let arrival = &message.arrival;
        let Some(new) = arrival.events.first() else {
            return Published::Outdated;
        };
        let key = (arrival.source.to_string(), new.key.clone());
        let known = self.keys.get(&key).and_then(|id| self.events.get(id));
        let identity = known.map(Row::identity);
        match (
            identity::decide(identity.as_ref(), new.compare_hash, arrival.at),
            known,
        ) {
            // Whoever publishes hears of it at once, so that nobody else has to look at it.
            (Sighting::Duplicate { conflict: true }, Some(known)) => {
                Published::Stored(known.conflict())
            }
            (Sighting::Duplicate { .. }, Some(_)) => {
                Published::Stored(self.accept(arrival, new, now))
            }
            _ if message.revision != self.outbox.revision => Published::Outdated,
            _ => Published::Stored(self.publish_new(message, now)),
        }
    }

    fn publish_new(&mut self, mut message: NewMessage, now: Time) -> Receipt {
        let (mut arrival, mut later) = (message.arrival.clone(), message.later.clone());
        let planned = arrival.events[0].effects.len();
        let template = Template::of(&arrival.events[0], now);
        let entity = posting::entity(&arrival.events[0]).map(str::to_owned);
        if entity.is_some() && self.is_fanning_out(&arrival.source, &entity) {
            (arrival, later) = posting::in_line(&message);
        }
        if let Some(key) = message.about.numbered_by() {
            let number = self
                .outbox
                .numbers
                .entry((arrival.source.to_string(), key.to_owned()))
                .or_default();
            *number += 1;
            message.about.sequence = Some(*number);
        }
        let mut receipt = self.accept(&arrival, &arrival.events[0], now);
        receipt.claims.resize(planned, None);
        if let Some(row) = self.events.get_mut(&receipt.event) {
            row.about = Some(message.about);
            row.to_come = template
                .filter(|_| !later.is_empty())
                .map(|template| ToCome {
                    template,
                    entity,
                    later: later.into(),
                });
        }
        self.settle();
        receipt
    }

    fn is_fanning_out(&self, source: &str, entity: &Option<String>) -> bool {
        let mut rows = self.events.values();
        rows.any(|row| {
            let to_come = row.to_come.as_ref();
            *row.event.source == *source && to_come.is_some_and(|other| other.entity == *entity)
        })
    }

    /// One step of the earliest message whose deliveries are still to be made.
    pub(super) fn fan_out(&mut self, now: Time) -> FannedOut {
        let mut earliest: Vec<&mut Row> = self
            .events
            .values_mut()
            .filter(|row| row.to_come.is_some())
            .collect();
        earliest.sort_by_key(|row| row.event.id.0.row());
        let Some(row) = earliest.into_iter().next() else {
            return FannedOut::default();
        };
        let event = row.event.id;
        let Some(to_come) = &mut row.to_come else {
            return FannedOut::default();
        };
        let step = to_come.later.len().min(FAN_OUT_STEP);
        let template = &to_come.template;
        let made = to_come.later.drain(..step);
        let made: Vec<_> = made.map(|later| template.delivery(later, now)).collect();
        if to_come.later.is_empty() {
            row.to_come = None;
        }
        self.plan(event, &made, now);
        self.settle();
        let lanes = made.into_iter().map(|effect| effect.lane);
        FannedOut {
            lanes: lanes
                .filter(|lane| self.effects.due_in(lane).is_some())
                .collect(),
            more: self.events.values().any(|row| row.to_come.is_some()),
        }
    }

    pub(super) fn message(&self, id: EventId) -> Option<Message> {
        self.events.get(&id)?.message()
    }

    pub(super) fn messages(&self, filter: &MessageFilter, page: Page) -> Listed<Message> {
        listing::page(&self.events, page, |row| {
            row.message().filter(|message| filter.fits(message))
        })
    }

    /// The deliveries that are meant, by their ids.
    fn all_posted(&self, which: &Deliveries, filter: &PostedFilter) -> BTreeMap<EffectId, Posted> {
        let rows = self.effects.rows.values().filter(|row| match which {
            Deliveries::To(endpoint) => *row.effect.lane == *endpoint.to_string(),
            Deliveries::Of(event) => {
                row.events.contains(event) && is_endpoint_lane(&row.effect.lane)
            }
        });
        let posted = rows.map(|row| Posted {
            message: self.message(row.effect.event),
            effect: row.effect.clone(),
        });
        posted
            .filter(|posted| filter.fits(posted))
            .map(|posted| (posted.effect.id, posted))
            .collect()
    }

    pub(super) fn posted(
        &self,
        which: &Deliveries,
        filter: &PostedFilter,
        page: Page<EffectId>,
    ) -> Listed<Posted, EffectId> {
        let all = self.all_posted(which, filter);
        listing::page(&all, page, |posted| Some(posted.clone()))
    }

    pub(super) fn tried(
        &self,
        which: &Deliveries,
        filter: &PostedFilter,
        page: Page<TriedPlace>,
    ) -> Listed<Tried, TriedPlace> {
        let mut all = BTreeMap::new();
        for (effect, posted) in self.all_posted(which, filter) {
            let attempts = self.effects.rows.get(&effect);
            for attempt in attempts.into_iter().flat_map(|row| &row.attempts) {
                let fence = attempt.fence.as_u64();
                let tried = Tried {
                    posted: posted.clone(),
                    attempt: attempt.clone(),
                };
                all.insert(TriedPlace { effect, fence }, tried);
            }
        }
        listing::page(&all, page, |tried| Some(tried.clone()))
    }

    /// Where events come from that are known.
    pub(super) fn sources(&self) -> Vec<Arc<str>> {
        let events = self.events.values();
        events.map(|row| row.event.source.clone()).collect()
    }
}

impl Row {
    pub(super) fn message(&self) -> Option<Message> {
        let about = self.about.clone()?;
        Some(Message {
            event: self.event.clone(),
            about,
        })
    }

    /// What is said of another body under the same key.
    fn conflict(&self) -> Receipt {
        Receipt {
            event: self.event.id,
            sighting: Receipted::Conflict,
            needs_review: false,
            claims: Vec::new(),
            revived: Vec::new(),
        }
    }
}

impl Effects {
    /// An attempt has ended.
    pub(super) fn tally(&mut self, lane: &Arc<str>, now: Time, outcome: Outcome, gave_up: bool) {
        if is_endpoint_lane(lane) {
            let none = Tally::of(now);
            let tally = self.tallies.entry((lane.clone(), none.hour));
            tally.or_insert(none).count(outcome, gave_up);
        }
    }

    pub(super) fn tallies(&self, endpoint: EndpointId, since: Time, until: Time) -> Vec<Tally> {
        let lane = endpoint.to_string();
        let all = self.tallies.iter();
        let these = all.filter(|((of, hour), _)| **of == *lane && *hour >= since && *hour < until);
        these.map(|(_, tally)| *tally).collect()
    }

    pub(super) fn reap_tallies(&mut self, now: Time) {
        self.tallies
            .retain(|(_, hour), _| *hour + TALLIES_KEPT > now);
    }

    pub(super) fn waiting(&self, endpoint: EndpointId) -> (u64, u64) {
        let lane = endpoint.to_string();
        let count = |state| {
            let rows = self.rows.values();
            let here = rows.filter(|row: &&effects::Row| *row.effect.lane == *lane);
            let count = here.filter(|row| row.effect.record.state == state).count();
            (count as u64).min(WAITING_COUNTED_MAX)
        };
        (count(EffectState::Pending), count(EffectState::Claimed))
    }

    /// Lanes of all effects that are known.
    pub(super) fn lanes(&self) -> Vec<String> {
        let rows = self.rows.values();
        rows.map(|row| row.effect.lane.to_string()).collect()
    }
}

//! What is read of effects: details, an event's, lanes that have something to do, counts.

use std::collections::BTreeMap;
use std::sync::Arc;

use hapax_ledger::effect::EffectState;
use hapax_ledger::event::EventStatus;
use hapax_ledger::id::{EffectId, EventId};
use hapax_ledger::order::Gate;
use hapax_ledger::status::Hold;
use hapax_ledger::time::Time;

use super::effects::{Effects, Row};
use crate::nouns::{Effect, EffectCounts, EffectDetail, LANES_PER_LOOK_MAX, LaneDue};

impl Effects {
    pub(super) fn detail(&self, id: EffectId) -> Option<EffectDetail> {
        let row = self.rows.get(&id)?;
        Some(EffectDetail {
            effect: row.effect.clone(),
            attempts: row.attempts.clone(),
            events: row.events_in_order(),
            snapshot: row.snapshot.clone(),
        })
    }

    /// The first of the events that call for it and are still known: see [`Row::events_in_order`].
    pub(super) fn first_event(&self, id: EffectId) -> Option<EventId> {
        self.rows.get(&id)?.events_in_order().first().copied()
    }

    /// An event's effects: its own in plan order, then those it shares with an earlier event.
    pub(super) fn of_event(&self, event: EventId) -> Vec<Effect> {
        let mut effects: Vec<Effect> = self
            .rows
            .values()
            .filter(|row| row.events.contains(&event))
            .map(|row| row.effect.clone())
            .collect();
        effects.sort_by_key(|effect| (effect.event != event, effect.id));
        effects
    }

    pub(super) fn status(&self, event: EventId) -> EventStatus {
        let states = self
            .of_event(event)
            .into_iter()
            .map(|effect| (effect.record.state, effect.record.skip));
        EventStatus::of_effects(states, Hold::Free)
    }

    /// Is something that the event calls for still on its way?
    pub(super) fn has_live(&self, event: EventId) -> bool {
        let mut rows = self.rows.values();
        rows.any(|row| row.is_live() && row.events.contains(&event))
    }

    /// Lanes with something claimable, by name.
    pub(super) fn due(&self, after: Option<&str>) -> Vec<LaneDue> {
        let mut lanes: BTreeMap<Arc<str>, Time> = BTreeMap::new();
        for effect in self.rows.values().map(|row| &row.effect) {
            let claimable =
                effect.record.state == EffectState::Pending && effect.gate == Gate::Open;
            if claimable && after.is_none_or(|after| *effect.lane > *after) {
                let at = lanes.entry(effect.lane.clone()).or_insert(Time::MAX);
                *at = effect.record.next_attempt_at.min(*at);
            }
        }
        let due = lanes.into_iter().map(|(lane, at)| LaneDue { lane, at });
        due.take(LANES_PER_LOOK_MAX as usize).collect()
    }

    /// When the earliest is due of what can be claimed in a lane.
    pub(super) fn due_in(&self, lane: &str) -> Option<Time> {
        let here = self.rows.values().map(|row| &row.effect);
        here.filter(|effect| *effect.lane == *lane && effect.gate == Gate::Open)
            .filter(|effect| effect.record.state == EffectState::Pending)
            .map(|effect| effect.record.next_attempt_at)
            .min()
    }

    pub(super) fn counts(&self) -> EffectCounts {
        let count = |state| {
            let rows = self.rows.values();
            rows.filter(|row| row.effect.record.state == state).count() as u64
        };
        EffectCounts {
            pending: count(EffectState::Pending),
            claimed: count(EffectState::Claimed),
            uncertain: count(EffectState::Uncertain),
            dead: count(EffectState::Dead),
        }
    }
}

impl Row {
    /// The events that call for it, as far as they are known: the one that called for it first, then the others in the order in
    /// which they came. One that was planned late may have come before.
    fn events_in_order(&self) -> Vec<EventId> {
        let mut events = self.events.clone();
        events.sort_by_key(|event| (*event != self.effect.event, event.0.row()));
        events
    }
}

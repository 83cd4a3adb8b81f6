//! Planning effects with the events that call for them: each is new, or linked where its key exists already (D6).
//!
//! Part of an accept's transaction. Keys of effects are taken after keys of events, chains after both, and all in one order, as
//! everywhere. An effect that exists is locked until the commit: it can neither move nor be reaped before it is linked, so the
//! event starts out where its effects really stand.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;

use hapax_ledger::claim::{ClaimVerdict, born_started};
use hapax_ledger::effect::{EffectRecord, EffectState, SkipReason};
use hapax_ledger::event::EventStatus;
use hapax_ledger::id::{EffectId, EventId};
use hapax_ledger::key::KeyHash;
use hapax_ledger::order::{ChainPlace, Gate, LifeStep, gate};
use hapax_ledger::status::Hold;
use hapax_ledger::time::Time;
use hapax_ledger::transition::EffectStep;

use super::chain::{Chain, Seat, chain_of};
use super::columns::EventRow;
use super::decide::Deed;
use super::effect_columns::EffectRow;
use super::effect_id::new_effect_id;
use super::held::{Hand, Held};
use super::moment::Moment;
use super::{Entropy, SHARDS};
use crate::error::{StoreError, StoreErrorKind};
use crate::nouns::{
    Claimed, EFFECTS_PER_EVENT_MAX, Effect, NewEffect, OwnClaim, Receipt, Receipted,
};

/// The key of an effect with its shard, in locking order.
pub(super) type Key = (u16, KeyHash);
/// The rows of all effects that events call for, each once.
pub(super) type Wanted<'a> = BTreeMap<Key, EffectRow<'a>>;

pub(super) use super::effect_columns::EffectRow as Row;

pub(super) fn key_of(new: &NewEffect) -> Key {
    (new.key_hash.shard(SHARDS), new.key_hash)
}

/// An event and the effects it calls for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Calling<'a> {
    pub(super) event: EventId,
    /// When it was received.
    pub(super) at: Time,
    pub(super) event_type: Option<&'a str>,
    pub(super) effects: &'a [NewEffect],
    /// The place of the first of them in the event's plan.
    pub(super) from: usize,
}

/// Do these fit into the plan of one event?
pub(super) fn fits(effects: &[NewEffect]) -> Result<(), StoreError> {
    match effects.len() > EFFECTS_PER_EVENT_MAX {
        true => Err(too_many()),
        false => Ok(()),
    }
}

/// There is no place left in the plan of an event.
pub(super) fn too_many() -> StoreError {
    StoreError::new(
        StoreErrorKind::Unavailable,
        "an event calls for more effects than fit",
    )
}

/// What these events call for. Where two call for the same, the first of them does.
pub(super) fn wanted<'a>(
    events: impl IntoIterator<Item = Calling<'a>>,
    entropy: &Entropy,
) -> Wanted<'a> {
    let mut wanted = Wanted::new();
    for calling in events {
        let plan = calling.effects;
        let first = first_places(plan);
        let place_of = |at: &u16| first.get(&key_of(plan.get(usize::from(*at))?)).copied();
        for (place, new) in plan.iter().enumerate() {
            wanted.entry(key_of(new)).or_insert_with(|| EffectRow {
                id: new_effect_id(calling.at, new, entropy),
                event: calling.event,
                place: calling.from + place,
                after: new.after.iter().filter_map(place_of).collect(),
                new,
            });
        }
    }
    wanted
}

/// Where each effect of a plan stands first: a plan may call for one twice.
fn first_places(plan: &[NewEffect]) -> BTreeMap<Key, u16> {
    let mut first = BTreeMap::new();
    for (place, new) in plan.iter().enumerate() {
        first.entry(key_of(new)).or_insert(place as u16);
    }
    first
}

/// What the effects of a group come to.
pub(super) struct Plan {
    /// Who holds which key by now.
    pub(super) keys: BTreeMap<Key, EffectId>,
    /// Effects that are new, in the order of their ids.
    pub(super) new: BTreeMap<EffectId, Held>,
    /// Effects that were there, locked, and the chains of all.
    pub(super) hand: Hand,
    /// What events that came again had called for.
    pub(super) called: BTreeMap<EventId, Vec<EffectId>>,
    /// Events that call for what another called for first, and where in their plan.
    pub(super) links: BTreeMap<(EventId, EffectId), u16>,
    /// Events that were there and get one more effect: nothing that they call for is alone.
    pub(super) joined: BTreeSet<EventId>,
    after: BTreeMap<EffectId, Vec<EffectId>>,
    statuses: BTreeMap<EventId, EventStatus>,
    claims: BTreeMap<EventId, Vec<Option<Claimed>>>,
    revived: BTreeMap<usize, Vec<Arc<str>>>,
}

impl Plan {
    /// Nothing is planned yet; these of the effects that are wanted are new.
    pub(super) fn new(wanted: &Wanted<'_>, fresh: &HashSet<EffectId>, moment: Moment) -> Plan {
        let new = wanted.iter().filter(|(_, row)| fresh.contains(&row.id));
        Plan {
            keys: new.clone().map(|(key, row)| (*key, row.id)).collect(),
            new: new
                .map(|(_, row)| (row.id, new_effect(row, moment)))
                .collect(),
            hand: Hand::new(moment, []),
            called: BTreeMap::new(),
            links: BTreeMap::new(),
            joined: BTreeSet::new(),
            after: BTreeMap::new(),
            statuses: BTreeMap::new(),
            claims: BTreeMap::new(),
            revived: BTreeMap::new(),
        }
    }

    fn held(&self, id: EffectId) -> Option<&Held> {
        self.new.get(&id).or_else(|| self.hand.held.get(&id))
    }

    /// Does what was decided, in order, and then says where that leaves new events and new effects.
    pub(super) fn carry_out(
        &mut self,
        events: &mut [EventRow<'_>],
        deeds: &[Deed],
    ) -> Result<(), StoreError> {
        for deed in deeds {
            match deed {
                Deed::Call { row } => self.call(&events[*row].calling())?,
                Deed::Retry { event, receipt } => self.revive(*event, *receipt),
            }
        }
        self.open_gates();
        for row in events {
            self.conclude(row);
        }
        Ok(())
    }

    /// Lets somebody's own code carry out an effect, new or not.
    pub(super) fn claim_own(&mut self, id: EffectId, claim: &OwnClaim) -> Option<ClaimVerdict> {
        let Some(held) = self.new.remove(&id) else {
            return self.hand.claim_own(id, claim);
        };
        let mut hand = Hand::new(self.hand.moment(), [held]);
        let verdict = hand.claim_own(id, claim);
        self.new.append(&mut hand.held);
        verdict
    }

    /// One event calls for its effects.
    pub(super) fn call(&mut self, calling: &Calling<'_>) -> Result<(), StoreError> {
        let corrupt = |what| StoreError::new(StoreErrorKind::Corrupt, what);
        let (event, plan) = (calling.event, calling.effects);
        let mut ids = Vec::with_capacity(plan.len());
        for (place, new) in plan.iter().enumerate() {
            let id = self.keys.get(&key_of(new)).copied();
            let held = id.and_then(|id| self.held(id));
            let effect = &held
                .ok_or_else(|| corrupt("an effect's key is held by an effect that is not there"))?
                .effect;
            if effect.name != new.name || effect.key != new.key {
                return Err(corrupt("two keys share one 128-bit hash"));
            }
            let (id, ours) = (effect.id, effect.event == event);
            if ours && !ids.contains(&id) {
                self.seat(id, calling.event_type);
            } else if !ours {
                let place = (calling.from + place) as u16;
                self.links.entry((event, id)).or_insert(place);
            }
            ids.push(id);
        }
        for (place, new) in plan.iter().enumerate() {
            let first = ids.iter().position(|id| *id == ids[place]) == Some(place);
            if first
                && self
                    .new
                    .get(&ids[place])
                    .is_some_and(|held| held.effect.event == event)
            {
                let after = new.after.iter();
                let after = after.filter_map(|at| ids.get(usize::from(*at)).copied());
                self.after.insert(ids[place], after.collect());
            }
        }
        self.called.insert(event, ids);
        Ok(())
    }

    /// A new effect joins its chain. What had ended the entity before it is frozen with it.
    fn seat(&mut self, id: EffectId, event_type: Option<&str>) {
        let Some(held) = self.new.get_mut(&id) else {
            return;
        };
        let Some(order) = &held.effect.order else {
            return;
        };
        let hash = chain_of(&held.effect.name, &order.entity);
        let chain: &mut Chain = self.hand.chains.entry(hash).or_default();
        held.seat = Some(Seat {
            chain: hash,
            turn: chain.next_turn,
            ended_by: chain.ended_by.clone(),
        });
        chain.next_turn += 1;
        chain.effects += 1;
        match order.life_step {
            LifeStep::Ordinary => {}
            LifeStep::Ends => chain.ended_by = Some(event_type.unwrap_or_default().to_owned()),
            LifeStep::Reopens => chain.ended_by = None,
        }
        self.hand.written_chains.insert(hash);
    }

    /// A repeat brings back what of its event was given up.
    fn revive(&mut self, event: EventId, receipt: usize) {
        let now = self.hand.now;
        let mut lanes: BTreeSet<Arc<str>> = BTreeSet::new();
        for id in self.called.get(&event).cloned().unwrap_or_default() {
            let Some(held) = self.hand.held.get(&id) else {
                continue;
            };
            if held.effect.record.state == EffectState::Dead {
                lanes.insert(held.effect.lane.clone());
                if let Some(seat) = held.seat.clone()
                    && let Some(chain) = self.hand.chains.get_mut(&seat.chain)
                {
                    let head = chain.head.get_or_insert(seat.turn);
                    *head = seat.turn.min(*head);
                }
                self.hand.take_step(id, &EffectStep::Revive { now });
            }
        }
        self.revived.insert(receipt, lanes.into_iter().collect());
    }

    /// Says which of the new effects may be claimed: those that come after nothing unfinished, and are first in their chain.
    pub(super) fn open_gates(&mut self) {
        let state = |plan: &Plan, id: &EffectId| Some(plan.held(*id)?.effect.record.state);
        let mut turns: Vec<(KeyHash, i64, EffectId)> = Vec::new();
        let mut gates: BTreeMap<EffectId, Gate> = BTreeMap::new();
        for (id, held) in &self.new {
            turns.extend(held.seat.as_ref().map(|seat| (seat.chain, seat.turn, *id)));
            let after = self.after.get(id).into_iter().flatten();
            let states: Vec<EffectState> = after.filter_map(|id| state(self, id)).collect();
            gates.insert(*id, gate(held.effect.gate, states, ChainPlace::Free));
        }
        turns.sort_unstable();
        for (hash, turn, id) in turns {
            let chain = self.hand.chains.get_mut(&hash);
            let first = chain.is_none_or(|chain| *chain.head.get_or_insert(turn) == turn);
            let order = self
                .new
                .get(&id)
                .and_then(|held| held.effect.order.as_ref());
            if !first && order.is_some_and(|order| order.serial) {
                gates.insert(id, Gate::Waiting);
            }
        }
        for (id, gate) in gates {
            if let Some(held) = self.new.get_mut(&id) {
                held.effect.gate = gate;
            }
        }
    }

    /// Where a new event stands, and which of its effects were born claimed.
    fn conclude(&mut self, row: &mut EventRow<'_>) {
        let Some(ids) = self.called.get(&row.id).filter(|ids| !ids.is_empty()) else {
            return;
        };
        let mut states: Vec<(EffectState, Option<SkipReason>)> = Vec::with_capacity(ids.len());
        let mut claims = Vec::with_capacity(ids.len());
        for (place, id) in ids.iter().enumerate() {
            let record = self.held(*id).map(|held| &held.effect.record);
            states.extend(record.map(|record| (record.state, record.skip)));
            let first = ids.iter().position(|other| other == id) == Some(place);
            let born = self
                .new
                .get(id)
                .filter(|held| first && held.effect.event == row.id && held.effect.record.started);
            claims.push(born.map(|held| Claimed {
                effect: held.effect.clone(),
                snapshot: None,
            }));
        }
        if row.event.review.is_none() {
            row.status = EventStatus::of_effects(states, Hold::Free);
        }
        self.statuses.insert(row.id, row.status);
        self.claims.insert(row.id, claims);
    }

    /// Completes what was said of the group's events before their effects were known; `number` counts all its receipts.
    pub(super) fn complete(&mut self, number: usize, receipt: &mut Receipt) {
        match receipt.sighting {
            Receipted::New => {
                receipt.claims = self.claims.remove(&receipt.event).unwrap_or_default();
            }
            Receipted::Duplicate | Receipted::Conflict => {
                if let Some(status) = self.statuses.get(&receipt.event) {
                    receipt.needs_review = *status == EventStatus::NeedsReview;
                }
                receipt.revived = self.revived.remove(&number).unwrap_or_default();
            }
        }
    }
}

/// An effect as it is born: claimed and started where that may be (the lease is by the database's clock), or waiting.
fn new_effect(row: &EffectRow<'_>, moment: Moment) -> Held {
    let new = row.new;
    let planned = EffectRecord::planned(new.repeat, moment.now + new.wait);
    let may_wait = !new.after.is_empty() || new.order.is_some();
    let born = new.born.as_ref().filter(|_| !may_wait).and_then(|born| {
        let record = born_started(&planned, moment.now, moment.epoch, born.lease)?;
        Some((record, born.node.clone()))
    });
    let (record, node) = born.map_or((planned, None), |(record, node)| (record, Some(node)));
    let effect = Effect {
        id: row.id,
        event: row.event,
        name: new.name.clone(),
        key: new.key.clone(),
        lane: new.lane.clone(),
        record,
        gate: Gate::Open,
        order: new.order.clone(),
        released: false,
        last: None,
    };
    Held {
        effect,
        attempts_max: new.attempts_max,
        started_at: node.as_ref().map(|_| moment.now),
        node,
        comes_after: !row.after.is_empty(),
        seat: None,
    }
}

//! Starts: whether an effect that has an order may go now, given what is known of its entity (F1, F2).
//!
//! No SQL here. The chain is locked while this runs, so nobody else of it starts or ends meanwhile.

use std::cmp::Ordering;

use bytes::Bytes;
use hapax_ledger::effect::{EffectState, SkipReason};
use hapax_ledger::id::EffectId;
use hapax_ledger::lease::Fence;
use hapax_ledger::order::{EntityKnown, Gate, OrderVerdict, decide};
use hapax_ledger::transition::{Change, EffectStep, Rejected, step};
use hapax_ledger::version::Version;

use super::held::{Hand, Held};
use crate::nouns::{Moved, Review};

impl Hand {
    /// Starts an effect if its order lets it; `change` is what the machine says to that.
    pub(super) fn start(
        &mut self,
        id: EffectId,
        fence: Fence,
        change: Change,
        snapshot: Option<&Bytes>,
    ) -> Moved {
        let now = self.now;
        let given_back = |hand: &Hand| hand.try_step(id, &EffectStep::Release { fence, due: now });
        match self.verdict(id) {
            OrderVerdict::Go => self.go(id, &change, snapshot),
            OrderVerdict::Wait { behind } => match given_back(self) {
                Ok(released) => {
                    self.hold_back(id, &released, Gate::Waiting);
                    Moved::Waits(behind)
                }
                Err(rejected) => Moved::Refused(rejected),
            },
            OrderVerdict::Stale => {
                let reason = SkipReason::Stale;
                match self.try_step(id, &EffectStep::SkipClaimed { fence, reason }) {
                    Ok(skipped) => {
                        self.become_(id, &skipped);
                        Moved::Stale(skipped)
                    }
                    Err(rejected) => Moved::Refused(rejected),
                }
            }
            OrderVerdict::Review { why } => match given_back(self) {
                Ok(released) => {
                    self.hold_for_review(id, &released, Review::of_order(&why));
                    Moved::Review(why)
                }
                Err(rejected) => Moved::Refused(rejected),
            },
        }
    }

    fn try_step(&self, id: EffectId, wanted: &EffectStep) -> Result<Change, Rejected> {
        let held = self.held.get(&id).ok_or(Rejected::NotApplicable)?;
        step(&held.effect.record, wanted)
    }

    /// It starts: from here on the chain knows it.
    fn go(&mut self, id: EffectId, change: &Change, snapshot: Option<&Bytes>) -> Moved {
        if let Some(held) = self.held.get_mut(&id) {
            held.started_at = Some(self.now);
        }
        if let Some(snapshot) = snapshot {
            self.snapshots.insert(id, snapshot.clone());
        }
        self.note_start(id);
        self.become_(id, change)
    }

    fn note_start(&mut self, id: EffectId) {
        let Some(held) = self.held.get(&id) else {
            return;
        };
        let Some(seat) = &held.seat else { return };
        let Some(chain) = self.chains.get_mut(&seat.chain) else {
            return;
        };
        let order = held.effect.order.as_ref();
        let version = order.and_then(|order| order.version.as_deref());
        let further = chain.started.is_none_or(|(highest, _)| seat.turn > highest);
        let newer = version.filter(|version| {
            let highest = chain.version.as_deref();
            highest.is_none_or(|highest| compare(version, highest) == Ordering::Greater)
        });
        let runs_anew = chain.running != Some(seat.turn);
        if further {
            chain.started = Some((seat.turn, id));
        }
        if runs_anew {
            chain.running = Some(seat.turn);
        }
        if let Some(version) = newer {
            chain.version = Some(version.to_owned());
        }
        if further || runs_anew || newer.is_some() {
            self.written_chains.insert(seat.chain);
        }
    }

    /// The claim is given back, and nobody may claim it until its gate opens.
    fn hold_back(&mut self, id: EffectId, released: &Change, gate: Gate) {
        self.become_(id, released);
        if let Some(held) = self.held.get_mut(&id) {
            held.effect.gate = gate;
        }
    }

    /// The claim is given back for a person to look at, and the event that called for the effect first says why.
    pub(super) fn hold_for_review(&mut self, id: EffectId, released: &Change, review: Review) {
        self.hold_back(id, released, Gate::Review);
        if let Some(held) = self.held.get(&id) {
            self.reviews.push((id, held.effect.event, review));
        }
    }

    /// What its order says if it started now.
    pub(super) fn verdict(&self, id: EffectId) -> OrderVerdict {
        let Some(held) = self.held.get(&id) else {
            return OrderVerdict::Go;
        };
        let Some((order, seat)) = held.effect.order.as_ref().zip(held.seat.as_ref()) else {
            return OrderVerdict::Go;
        };
        let chain = self.chains.get(&seat.chain);
        let started = chain.and_then(|chain| chain.started);
        let later = started.filter(|(turn, _)| *turn > seat.turn);
        let known = EntityKnown {
            predecessors: &self.before_now(held),
            under_way: self.under_way_now(held),
            later_started: later.map(|(_, effect)| effect),
            highest_started: chain.and_then(|chain| chain.version.as_deref()),
            ended_by: seat.ended_by.as_deref(),
            released: held.effect.released,
        };
        decide(order, &known)
    }

    /// Those before it, as they stand by now: earlier moves of the group may have ended some.
    fn before_now(&self, held: &Held) -> Vec<(EffectId, EffectState)> {
        let ahead = self.ahead.get(&held.effect.id);
        let before = ahead.into_iter().flat_map(|ahead| &ahead.before);
        let now = before.map(|(id, read)| (*id, self.state_now(*id).unwrap_or(*read)));
        now.collect()
    }

    /// A later one that is still under way.
    fn under_way_now(&self, held: &Held) -> Option<EffectId> {
        let later = self.ahead.get(&held.effect.id)?.under_way?;
        let state = self.state_now(later).unwrap_or(EffectState::Claimed);
        (state == EffectState::Claimed).then_some(later)
    }

    /// The state of an effect that is held here.
    fn state_now(&self, id: EffectId) -> Option<EffectState> {
        self.held.get(&id).map(|held| held.effect.record.state)
    }
}

fn compare(version: &str, highest: &str) -> Ordering {
    Version::parse(version).cmp(&Version::parse(highest))
}

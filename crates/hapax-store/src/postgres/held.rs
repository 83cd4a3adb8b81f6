//! Effects that a transaction has locked, and what becomes of them: the ledger's machine, run in memory.
//!
//! No SQL here. The rows are locked while this runs, so what it was given stays true until the commit. Several moves of one
//! effect may be in one group: each sees what the one before it did. Starts of effects that have an order are in
//! [`super::turn`].

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bytes::Bytes;
use hapax_ledger::claim::ClaimVerdict;
use hapax_ledger::effect::{EffectRecord, EffectState};
use hapax_ledger::id::{EffectId, EventId};
use hapax_ledger::key::KeyHash;
use hapax_ledger::lease::Fence;
use hapax_ledger::order::Gate;
use hapax_ledger::outcome::{Lost, Outcome};
use hapax_ledger::time::Time;
use hapax_ledger::transition::{Change, EffectStep, Rejected, step};

use super::chain::{Ahead, Chain, Seat};
use super::moment::Moment;
use crate::nouns::{Attempt, ClaimAsk, Claimed, Effect, Move, Moved, OwnClaim, Review, Said};
use crate::own;

/// An effect with what only the store needs to know of it.
pub(super) struct Held {
    pub(super) effect: Effect,
    pub(super) attempts_max: u32,
    pub(super) node: Option<Arc<str>>,
    pub(super) started_at: Option<Time>,
    /// Are there others of its event that must be done first?
    pub(super) comes_after: bool,
    /// Where it stands in its chain, if it has an order.
    pub(super) seat: Option<Seat>,
}

impl Held {
    /// Can others make it wait?
    fn may_wait(&self) -> bool {
        self.comes_after || self.seat.is_some()
    }
}

/// A settlement from a worker that was fenced off: changes nothing, and is kept (C2).
pub(super) struct Late {
    pub(super) effect: EffectId,
    pub(super) fence: Fence,
    pub(super) outcome: Outcome,
    pub(super) error: Option<String>,
}

/// The locked effects, and all that has to be written about them.
pub(super) struct Hand {
    pub(super) now: Time,
    epoch: u32,
    pub(super) held: BTreeMap<EffectId, Held>,
    /// The chains of those that have an order, locked too.
    pub(super) chains: BTreeMap<KeyHash, Chain>,
    /// Of effects that may be started, those of their chain that may be in their way.
    pub(super) ahead: BTreeMap<EffectId, Ahead>,
    written: BTreeSet<EffectId>,
    pub(super) written_chains: BTreeSet<KeyHash>,
    shown: BTreeSet<EffectId>,
    turned: BTreeSet<EffectId>,
    /// Chains in which one has ended, come back, or been let go.
    pub(super) moved_on: BTreeSet<KeyHash>,
    /// Effects that a person let go ahead, whatever their order says.
    pub(super) released: BTreeSet<EffectId>,
    /// So many have come back.
    pub(super) came_back: usize,
    /// Effects for which a person has to look at their event, and the event that called for each first.
    pub(super) reviews: Vec<(EffectId, EventId, Review)>,
    /// What was fetched to be sent along.
    pub(super) snapshots: BTreeMap<EffectId, Bytes>,
    /// Attempts that have ended.
    pub(super) ended: Vec<(EffectId, Attempt)>,
    /// Settlements that came too late, the first of each attempt first.
    pub(super) late: Vec<Late>,
}

/// Do later ones of its chain wait for it?
const fn is_live(state: EffectState) -> bool {
    match state {
        EffectState::Pending | EffectState::Claimed | EffectState::Uncertain => true,
        EffectState::Done | EffectState::Dead | EffectState::Skipped => false,
    }
}

/// Does it let those go that come after it?
const fn lets_go(state: EffectState) -> bool {
    matches!(state, EffectState::Done | EffectState::Skipped)
}

impl Hand {
    /// These effects, at this moment.
    pub(super) fn new(moment: Moment, held: impl IntoIterator<Item = Held>) -> Hand {
        let held = held.into_iter().map(|held| (held.effect.id, held));
        Hand {
            now: moment.now,
            epoch: moment.epoch,
            held: held.collect(),
            chains: BTreeMap::new(),
            ahead: BTreeMap::new(),
            written: BTreeSet::new(),
            written_chains: BTreeSet::new(),
            shown: BTreeSet::new(),
            turned: BTreeSet::new(),
            moved_on: BTreeSet::new(),
            released: BTreeSet::new(),
            came_back: 0,
            reviews: Vec::new(),
            snapshots: BTreeMap::new(),
            ended: Vec::new(),
            late: Vec::new(),
        }
    }

    /// When it is, for these effects.
    pub(super) fn moment(&self) -> Moment {
        Moment {
            now: self.now,
            epoch: self.epoch,
        }
    }

    /// Claims an effect if the ledger says that it may be.
    pub(super) fn claim(
        &mut self,
        id: EffectId,
        ask: &ClaimAsk,
        snapshot: Option<Bytes>,
    ) -> Option<Claimed> {
        let wanted = EffectStep::Claim {
            now: self.now,
            epoch: self.epoch,
            lease: ask.lease,
        };
        let held = self.held.get_mut(&id)?;
        let change = step(&held.effect.record, &wanted).ok()?;
        held.node = Some(ask.node.clone());
        held.started_at = None;
        self.become_(id, &change);
        let effect = self.held.get(&id)?.effect.clone();
        Some(Claimed { effect, snapshot })
    }

    /// Lets somebody's own code carry out an effect, after the rescue if its lease had run out. `None` if it is not here.
    pub(super) fn claim_own(&mut self, id: EffectId, claim: &OwnClaim) -> Option<ClaimVerdict> {
        // Others may be locked along with it, and are not asked for.
        self.expire(id);
        let record = self.held.get(&id)?.effect.record;
        let (next, verdict) = own::claim(&record, claim, self.now, self.epoch);
        if let (ClaimVerdict::Claimed { .. }, Some(held)) = (&verdict, self.held.get_mut(&id)) {
            held.node = Some(claim.actor.clone());
            held.started_at = Some(self.now);
        }
        if next != record {
            self.keep(id, next);
        }
        Some(verdict)
    }

    /// Moves an effect for the worker that shows this fence.
    pub(super) fn advance(&mut self, id: EffectId, fence: Fence, what: &Move) -> Moved {
        let Some(held) = self.held.get(&id) else {
            return Moved::NoEffect;
        };
        let change = match step(&held.effect.record, &what.step(fence, self.now)) {
            Ok(change) => change,
            Err(rejected) => return self.refuse(id, fence, what, rejected),
        };
        match what {
            Move::Start(snapshot) => self.start(id, fence, change, snapshot.as_ref()),
            Move::Settle(settlement) => {
                self.end(id, settlement.outcome, settlement.said.kept(), change)
            }
            Move::Review(review) => {
                self.hold_for_review(id, &change, review.clone());
                Moved::Done(change)
            }
            Move::Extend(_) | Move::Release(_) | Move::Skip(_) | Move::Tighten(_) => {
                self.become_(id, &change)
            }
        }
    }

    fn refuse(&mut self, effect: EffectId, fence: Fence, what: &Move, rejected: Rejected) -> Moved {
        if let (Move::Settle(settlement), Rejected::StaleFence) = (what, rejected) {
            self.late.push(Late {
                effect,
                fence,
                outcome: settlement.outcome,
                error: settlement.said.error.clone(),
            });
        }
        Moved::Refused(rejected)
    }

    /// Takes a step that is no worker's.
    pub(super) fn take_step(&mut self, id: EffectId, wanted: &EffectStep) -> Moved {
        let Some(held) = self.held.get(&id) else {
            return Moved::NoEffect;
        };
        match step(&held.effect.record, wanted) {
            Ok(change) => self.become_(id, &change),
            Err(rejected) => Moved::Refused(rejected),
        }
    }

    /// A person lets it go ahead, whatever its order says.
    pub(super) fn release(&mut self, id: EffectId) {
        if let Some(held) = self.held.get_mut(&id).filter(|held| held.seat.is_some()) {
            held.effect.released = true;
            self.released.insert(id);
        }
    }

    /// It waits for no person any more: its gate is what the others make of it.
    pub(super) fn gate_anew(&mut self, id: EffectId) {
        let Some(held) = self.held.get_mut(&id) else {
            return;
        };
        if held.effect.gate == Gate::Review {
            // What others can make wait is looked at with them, before the commit.
            held.effect.gate = match held.may_wait() {
                true => Gate::Waiting,
                false => Gate::Open,
            };
            self.written.insert(id);
        }
    }

    /// Frees every effect that is held beyond its lease; says which.
    pub(super) fn expire_all(&mut self) -> Vec<EffectId> {
        let all: Vec<EffectId> = self.held.keys().copied().collect();
        all.into_iter().filter(|id| self.expire(*id)).collect()
    }

    /// Frees an effect if it is held beyond its lease; says whether it was.
    fn expire(&mut self, id: EffectId) -> bool {
        let Some(held) = self.held.get(&id) else {
            return false;
        };
        let (now, attempts_max) = (self.now, held.attempts_max);
        let record = held.effect.record;
        let Ok(change) = step(&record, &EffectStep::Expire { now, attempts_max }) else {
            return false;
        };
        let why = Lost::LostLease;
        match record.started {
            true => self.end(id, Outcome::Lost { why }, Said::default(), change),
            false => self.become_(id, &change),
        };
        true
    }

    /// Effects whose row has to be written.
    pub(super) fn written(&self) -> impl Iterator<Item = &Held> {
        self.written.iter().filter_map(|id| self.held.get(id))
    }

    /// Effects whose events may stand elsewhere now (D7), and whether others of these events may have waited for them.
    pub(super) fn shown(&self) -> impl Iterator<Item = (&Effect, bool)> {
        let shown = self.shown.iter().filter_map(|id| self.held.get(id));
        shown.map(|held| (&held.effect, self.turned.contains(&held.effect.id)))
    }

    /// Pending effects that others can make wait. Nobody else could change their gates while they were held here.
    pub(super) fn gated(&self) -> impl Iterator<Item = &Effect> {
        let gated = self
            .held
            .values()
            .filter(|held| held.may_wait() && held.effect.record.state == EffectState::Pending);
        gated.map(|held| &held.effect)
    }

    pub(super) fn become_(&mut self, id: EffectId, change: &Change) -> Moved {
        self.keep(id, change.next);
        Moved::Done(*change)
    }

    /// The ledger says that this is its record now.
    fn keep(&mut self, id: EffectId, next: EffectRecord) {
        if let Some(held) = self.held.get_mut(&id) {
            let before = held.effect.record;
            if (before.state, before.skip) != (next.state, next.skip) {
                self.shown.insert(id);
            }
            if lets_go(before.state) != lets_go(next.state) {
                self.turned.insert(id);
            }
            // While it was held, an earlier one may have come back, and waits for it.
            let let_go = before.state == EffectState::Claimed && next.state != EffectState::Claimed;
            let ended_or_back = is_live(before.state) != is_live(next.state);
            if let_go || ended_or_back {
                self.moved_on
                    .extend(held.seat.as_ref().map(|seat| seat.chain));
            }
            self.came_back += usize::from(ended_or_back && is_live(next.state));
            held.effect.record = next;
            self.written.insert(id);
        }
    }

    /// The attempt under way has ended.
    pub(super) fn end(
        &mut self,
        id: EffectId,
        outcome: Outcome,
        said: Said,
        change: Change,
    ) -> Moved {
        if let Some(held) = self.held.get_mut(&id) {
            let record = held.effect.record;
            held.effect.last = Some(outcome);
            let attempt = Attempt {
                generation: record.generation,
                number: record.attempts,
                fence: record.fence,
                node: held.node.clone().unwrap_or_else(|| "".into()),
                started_at: held.started_at.take().unwrap_or(self.now),
                ended_at: self.now,
                outcome,
                late: None,
                said,
            };
            self.ended.push((id, attempt));
        }
        self.become_(id, &change)
    }
}

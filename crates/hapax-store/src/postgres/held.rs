//! Effects that a transaction has locked, and what becomes of them: the ledger's machine, run in memory.
//!
//! No SQL here. The rows are locked while this runs, so what it was given stays true until the commit. Several moves of one
//! effect may be in one group: each sees what the one before it did.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use hapax_ledger::effect::EffectRecord;
use hapax_ledger::id::EffectId;
use hapax_ledger::lease::Fence;
use hapax_ledger::outcome::{Lost, Outcome};
use hapax_ledger::time::Time;
use hapax_ledger::transition::{Change, EffectStep, Rejected, step};

use super::moment::Moment;
use crate::nouns::{Attempt, ClaimAsk, Claimed, Effect, Move, Moved};

/// An effect with what only the store needs to know of it.
pub(super) struct Held {
    pub(super) effect: Effect,
    pub(super) attempts_max: u32,
    pub(super) node: Option<Arc<str>>,
    pub(super) started_at: Option<Time>,
}

/// A settlement from a worker that was fenced off: changes nothing, and is kept (C2).
pub(super) struct Late {
    pub(super) effect: EffectId,
    pub(super) fence: Fence,
    pub(super) outcome: Outcome,
}

/// The locked effects, and all that has to be written about them.
pub(super) struct Hand {
    pub(super) now: Time,
    epoch: u32,
    held: BTreeMap<EffectId, Held>,
    written: BTreeSet<EffectId>,
    shown: BTreeSet<EffectId>,
    /// Attempts that have ended.
    pub(super) ended: Vec<(EffectId, Attempt)>,
    /// Settlements that came too late, the first of each attempt first.
    pub(super) late: Vec<Late>,
}

impl Hand {
    /// These effects, at this moment.
    pub(super) fn new(moment: Moment, held: impl IntoIterator<Item = Held>) -> Hand {
        Hand {
            now: moment.now,
            epoch: moment.epoch,
            held: held
                .into_iter()
                .map(|held| (held.effect.id, held))
                .collect(),
            written: BTreeSet::new(),
            shown: BTreeSet::new(),
            ended: Vec::new(),
            late: Vec::new(),
        }
    }

    /// Claims an effect if the ledger says that it may be.
    pub(super) fn claim(&mut self, id: EffectId, ask: &ClaimAsk) -> Option<Claimed> {
        let held = self.held.get_mut(&id)?;
        let wanted = EffectStep::Claim {
            now: self.now,
            epoch: self.epoch,
            lease: ask.lease,
        };
        let change = step(&held.effect.record, &wanted).ok()?;
        held.node = Some(ask.node.clone());
        held.started_at = None;
        self.become_(id, &change);
        let held = self.held.get(&id)?;
        Some(Claimed {
            effect: held.effect.clone(),
        })
    }

    /// Moves an effect for the worker that shows this fence.
    pub(super) fn advance(&mut self, id: EffectId, fence: Fence, what: Move) -> Moved {
        let now = self.now;
        let Some(held) = self.held.get_mut(&id) else {
            return Moved::NoEffect;
        };
        let wanted = what.step(fence, now);
        match (step(&held.effect.record, &wanted), what) {
            (Ok(change), Move::Settle(outcome, _)) => self.end(id, outcome, change),
            (Ok(change), Move::Start) => {
                held.started_at = Some(now);
                self.become_(id, &change)
            }
            (Ok(change), Move::Extend(_) | Move::Release(_) | Move::Skip(_)) => {
                self.become_(id, &change)
            }
            (Err(rejected @ Rejected::StaleFence), Move::Settle(outcome, _)) => {
                self.late.push(Late {
                    effect: id,
                    fence,
                    outcome,
                });
                Moved::Refused(rejected)
            }
            (Err(rejected), _) => Moved::Refused(rejected),
        }
    }

    /// Frees every effect that is held beyond its lease; says how many.
    pub(super) fn expire_all(&mut self) -> u32 {
        let now = self.now;
        let changes: Vec<(EffectId, EffectRecord, Change)> = self
            .held
            .values()
            .filter_map(|held| {
                let attempts_max = held.attempts_max;
                let record = held.effect.record;
                let change = step(&record, &EffectStep::Expire { now, attempts_max }).ok()?;
                Some((held.effect.id, record, change))
            })
            .collect();
        let freed = changes.len() as u32;
        for (id, before, change) in changes {
            let why = Lost::LostLease;
            match before.started {
                true => self.end(id, Outcome::Lost { why }, change),
                false => self.become_(id, &change),
            };
        }
        freed
    }

    /// Effects whose row has to be written.
    pub(super) fn written(&self) -> impl Iterator<Item = &Held> {
        self.written.iter().filter_map(|id| self.held.get(id))
    }

    /// Effects whose events may stand elsewhere now (D7).
    pub(super) fn shown(&self) -> impl Iterator<Item = &Effect> {
        self.shown
            .iter()
            .filter_map(|id| self.held.get(id))
            .map(|held| &held.effect)
    }

    fn become_(&mut self, id: EffectId, change: &Change) -> Moved {
        if let Some(held) = self.held.get_mut(&id) {
            let (before, next) = (held.effect.record, change.next);
            if (before.state, before.skip) != (next.state, next.skip) {
                self.shown.insert(id);
            }
            held.effect.record = next;
            self.written.insert(id);
        }
        Moved::Done(*change)
    }

    /// The attempt under way has ended.
    fn end(&mut self, id: EffectId, outcome: Outcome, change: Change) -> Moved {
        if let Some(held) = self.held.get_mut(&id) {
            let record = held.effect.record;
            let attempt = Attempt {
                generation: record.generation,
                number: record.attempts,
                fence: record.fence,
                node: held.node.clone().unwrap_or_else(|| "".into()),
                started_at: held.started_at.take().unwrap_or(self.now),
                ended_at: self.now,
                outcome,
                late: None,
            };
            self.ended.push((id, attempt));
        }
        self.become_(id, &change)
    }
}

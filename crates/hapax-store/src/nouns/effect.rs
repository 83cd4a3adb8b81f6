//! Effects: claims on them, moves of them, and what is read back.

use std::sync::Arc;

use hapax_ledger::effect::{EffectRecord, SkipReason};
use hapax_ledger::id::{EffectId, EventId};
use hapax_ledger::lease::Fence;
use hapax_ledger::outcome::Outcome;
use hapax_ledger::retry::Next;
use hapax_ledger::time::{Span, Time};
use hapax_ledger::transition::{Change, EffectStep, Rejected};

/// A node asking for work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClaimAsk {
    /// Of this shard; see [`crate::Store::shards`].
    pub shard: u16,
    /// Who asks.
    pub node: Arc<str>,
    /// At most so many.
    pub limit: u32,
    /// For how long.
    pub lease: Span,
}

/// What a worker wants to do with the effect it holds. The store's clock says when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Move {
    /// Make an attempt durable, before a byte leaves (D1).
    Start,
    /// Keep it longer, from now.
    Extend(Span),
    /// Give an unstarted claim back, due again after so long.
    Release(Span),
    /// Say how the attempt ended, and when to try again if it has to be.
    Settle(Outcome, Next),
    /// Not carry it out.
    Skip(SkipReason),
}

impl Move {
    /// The step of the ledger's machine that it asks for, at this time by the store's clock.
    pub(crate) fn step(self, fence: Fence, now: Time) -> EffectStep {
        match self {
            Move::Start => EffectStep::Start { fence, now },
            Move::Extend(lease) => EffectStep::Extend {
                fence,
                now,
                until: now + lease,
            },
            Move::Release(after) => EffectStep::Release {
                fence,
                due: now + after,
            },
            Move::Settle(outcome, next) => EffectStep::Settle {
                fence,
                now,
                outcome,
                next,
            },
            Move::Skip(reason) => EffectStep::SkipClaimed { fence, reason },
        }
    }
}

/// What became of a move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moved {
    /// It counts.
    Done(Change),
    /// It changes nothing; a late settlement is kept as evidence all the same (C2).
    Refused(Rejected),
    /// There is no such effect.
    NoEffect,
}

/// One attempt that has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attempt {
    /// The generation it belongs to.
    pub generation: u32,
    /// Its number in the generation.
    pub number: u32,
    /// The fence under which it ran.
    pub fence: Fence,
    /// Who made it.
    pub node: Arc<str>,
    /// When it started.
    pub started_at: Time,
    /// When it ended.
    pub ended_at: Time,
    /// How it ended.
    pub outcome: Outcome,
    /// What its worker said after somebody else had taken over.
    pub late: Option<(Time, Outcome)>,
}

/// An effect with its attempts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EffectDetail {
    /// The effect.
    pub effect: Effect,
    /// Its ended attempts, oldest first.
    pub attempts: Vec<Attempt>,
}

/// A claim: the right to attempt one effect until its record's lease ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claimed {
    /// The effect, as claimed: its fence has to be shown with every move.
    pub effect: Effect,
}

/// An effect as it is read back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Effect {
    /// Its id.
    pub id: EffectId,
    /// The event that called for it first.
    pub event: EventId,
    /// Its name.
    pub name: Arc<str>,
    /// Its key.
    pub key: String,
    /// Its lane.
    pub lane: Arc<str>,
    /// All that decides what may be done with it.
    pub record: EffectRecord,
}

//! Effects: claims on them, moves of them, and what is read back.

use std::sync::Arc;

use bytes::Bytes;
use hapax_ledger::effect::{EffectRecord, EffectState, Repeat, SkipReason};
use hapax_ledger::id::{EffectId, EventId};
use hapax_ledger::lease::Fence;
use hapax_ledger::order::{Gate, PlannedOrder, ReviewWhy};
use hapax_ledger::outcome::Outcome;
use hapax_ledger::retry::Next;
use hapax_ledger::time::{Span, Time};
use hapax_ledger::transition::{Change, EffectStep, Rejected};

use super::arrival::Review;
use super::lane::LaneRoom;
use super::outbox::About;

/// At most so much of an answer is kept with its attempt.
pub const EXCERPT_BYTES_MAX: usize = 8 * 1024;
/// At most so much of a snapshot is kept with its effect.
pub const SNAPSHOT_BYTES_MAX: usize = 256 * 1024;

/// A node asking for work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClaimAsk {
    /// Of this shard; see [`crate::Store::shards`].
    pub shard: u16,
    /// Who asks.
    pub node: Arc<str>,
    /// For how long.
    pub lease: Span,
    /// From these lanes, at most so many from each.
    pub lanes: Vec<LaneRoom>,
}

/// What a worker wants to do with the effect it holds. The store's clock says when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Move {
    /// Make an attempt durable, before a byte leaves (D1), with the snapshot that goes along if there is one. Where the effect
    /// has an order, this is where it is decided: see [`Moved`].
    Start(Option<Bytes>),
    /// Keep it longer, from now.
    Extend(Span),
    /// Give an unstarted claim back, due again after so long.
    Release(Span),
    /// Say how the attempt ended, and when to try again if it has to be.
    Settle(Settlement),
    /// Not carry it out.
    Skip(SkipReason),
    /// Have a person look at an unstarted claim first: the event says why.
    Review(Review),
    /// The config's class is stricter now than the one that was frozen: from here on it counts. What may already have been
    /// applied becomes uncertain.
    Tighten(Repeat),
}

/// How an attempt ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settlement {
    /// What came back.
    pub outcome: Outcome,
    /// When to try again, by [`EffectRecord::next_after`].
    pub next: Next,
    /// What else is worth keeping.
    pub said: Said,
}

impl Settlement {
    /// An end about which there is nothing more to say.
    pub fn new(outcome: Outcome, next: Next) -> Settlement {
        Settlement {
            outcome,
            next,
            said: Said::default(),
        }
    }
}

/// What the receiver or the connection said, already without secrets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Said {
    /// The beginning of the answer's body; see [`EXCERPT_BYTES_MAX`].
    pub excerpt: Option<Bytes>,
    /// The size of the whole body, as far as it is known.
    pub body_bytes: Option<u64>,
    /// What went wrong, in words.
    pub error: Option<String>,
}

impl Said {
    /// As much of it as is kept.
    pub(crate) fn kept(&self) -> Said {
        let excerpt = self.excerpt.as_ref();
        Said {
            excerpt: excerpt.map(|all| all.slice(..all.len().min(EXCERPT_BYTES_MAX))),
            ..self.clone()
        }
    }
}

impl Move {
    /// The step of the ledger's machine that it asks for, at this time by the store's clock.
    pub(crate) fn step(&self, fence: Fence, now: Time) -> EffectStep {
        match self {
            Move::Start(_) => EffectStep::Start { fence, now },
            Move::Extend(lease) => EffectStep::Extend {
                fence,
                now,
                until: now + *lease,
            },
            Move::Release(after) => EffectStep::Release {
                fence,
                due: now + *after,
            },
            Move::Settle(settlement) => EffectStep::Settle {
                fence,
                now,
                outcome: settlement.outcome,
                next: settlement.next,
            },
            Move::Skip(reason) => EffectStep::SkipClaimed {
                fence,
                reason: *reason,
            },
            Move::Review(_) => EffectStep::Release { fence, due: now },
            Move::Tighten(repeat) => EffectStep::Tighten {
                fence,
                repeat: *repeat,
            },
        }
    }
}

/// A move, and what it set free.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Advanced {
    /// What became of it.
    pub moved: Moved,
    /// Lanes in which something that waited for this effect is now claimable.
    pub opened: Vec<Arc<str>>,
}

/// What became of a move.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Moved {
    /// It counts.
    Done(Change),
    /// A start that has to wait for this one: the claim is given back, and its gate opens by itself.
    Waits(EffectId),
    /// A start that comes too late: something newer of its entity was started. It is skipped now (F2).
    Stale(Change),
    /// A start that needs a person first: the claim is given back, and the event says why.
    Review(ReviewWhy),
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
    /// What the receiver or the connection said.
    pub said: Said,
}

/// An effect with its attempts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EffectDetail {
    /// The effect.
    pub effect: Effect,
    /// Its ended attempts, oldest first.
    pub attempts: Vec<Attempt>,
    /// Every event that calls for it, the first one first.
    pub events: Vec<EventId>,
    /// The snapshot that goes along, if one was taken.
    pub snapshot: Option<Bytes>,
}

/// A claim: the right to attempt one effect until its record's lease ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claimed {
    /// The effect, as claimed: its fence has to be shown with every move.
    pub effect: Effect,
    /// The snapshot that was frozen at an earlier attempt.
    pub snapshot: Option<Bytes>,
}

/// What a claim brought.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Claims {
    /// What is now ours.
    pub claimed: Vec<Claimed>,
    /// For each lane that was asked for, when the earliest is due of what can be claimed there and was not.
    pub next: Vec<Option<Time>>,
}

/// What a rescue freed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rescued {
    /// The effects as they are now: pending, uncertain or dead.
    pub effects: Vec<Effect>,
    /// Lanes in which something that waited for one of them is now claimable.
    pub opened: Vec<Arc<str>>,
}

/// What an effect's request is made of, beside the effect itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parcel {
    /// Where the event came in.
    pub source: Arc<str>,
    /// What happened.
    pub event_type: Option<String>,
    /// Its key.
    pub key: String,
    /// The business object that it is about.
    pub object_id: Option<String>,
    /// When it was first received.
    pub received_at: Time,
    /// The request's content type.
    pub content_type: Option<String>,
    /// The bytes as they came.
    pub body: Bytes,
    /// Of a message: what its publisher said about it.
    pub about: Option<About>,
}

/// Effects that have not ended well, by state. What is done or skipped is counted as it happens, not here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EffectCounts {
    /// Waiting for their time or their turn.
    pub pending: u64,
    /// Held by a worker.
    pub claimed: u64,
    /// Waiting for a probe or a person.
    pub uncertain: u64,
    /// Given up.
    pub dead: u64,
}

/// Which effects to list; what is `None` does not narrow.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EffectFilter {
    /// Standing there.
    pub state: Option<EffectState>,
    /// Called this.
    pub name: Option<String>,
    /// First called for by an event of this source.
    pub source: Option<String>,
    /// Of this lane.
    pub lane: Option<String>,
    /// Of events received at or after.
    pub since: Option<Time>,
    /// Of events received before.
    pub until: Option<Time>,
}

impl EffectFilter {
    /// Does an effect fit whose first event was received then and came from this source? An event that is gone had none.
    pub fn fits(&self, effect: &Effect, received_at: Time, source: Option<&str>) -> bool {
        self.fits_itself(effect, received_at)
            && self
                .source
                .as_deref()
                .is_none_or(|wanted| Some(wanted) == source)
    }

    /// The same but for the source, which stands elsewhere.
    pub(crate) fn fits_itself(&self, effect: &Effect, received_at: Time) -> bool {
        self.state.is_none_or(|state| effect.record.state == state)
            && self
                .name
                .as_deref()
                .is_none_or(|name| *effect.name == *name)
            && self
                .lane
                .as_deref()
                .is_none_or(|lane| *effect.lane == *lane)
            && self.since.is_none_or(|since| received_at >= since)
            && self.until.is_none_or(|until| received_at < until)
    }
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
    /// May it be claimed, as far as others are concerned? Says nothing once it has ended.
    pub gate: Gate,
    /// Its order, if it has one.
    pub order: Option<PlannedOrder>,
    /// A person has looked and let it go ahead, whatever its order says.
    pub released: bool,
    /// How its latest attempt ended.
    pub last: Option<Outcome>,
}

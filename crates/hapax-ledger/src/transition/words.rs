//! The words of the effect machine: what can happen to an effect, what it did, and why it did nothing.

use crate::effect::{EffectRecord, Repeat, SkipReason};
use crate::lease::{Fence, Lease};
use crate::outcome::Outcome;
use crate::retry::Next;
use crate::time::{Span, Time};

/// Something that happens to an effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EffectStep {
    /// A worker wants it.
    Claim {
        /// By the store's clock.
        now: Time,
        /// The store's.
        epoch: u32,
        /// How long.
        lease: Span,
    },
    /// The worker makes its attempt durable; only then may a byte leave (D1).
    Start {
        /// Of its claim.
        fence: Fence,
        /// By the store's clock.
        now: Time,
    },
    /// The worker needs longer.
    Extend {
        /// Of its claim.
        fence: Fence,
        /// By the store's clock.
        now: Time,
        /// New end of the lease.
        until: Time,
    },
    /// The worker gives an unstarted claim back: it waits for others, or the node shuts down.
    Release {
        /// Of its claim.
        fence: Fence,
        /// Due again then.
        due: Time,
    },
    /// The worker says how its attempt ended.
    Settle {
        /// Of its claim.
        fence: Fence,
        /// By the store's clock.
        now: Time,
        /// What came back.
        outcome: Outcome,
        /// By [`crate::effect::EffectRecord::next_after`].
        next: Next,
    },
    /// The config's class is stricter now than the frozen one: an unstarted claim goes on under it.
    Tighten {
        /// Of its claim.
        fence: Fence,
        /// The config's class.
        repeat: Repeat,
    },
    /// Rescue: the lease ran out and its worker is not heard of.
    Expire {
        /// By the store's clock.
        now: Time,
        /// Of the schedule.
        attempts_max: u32,
    },
    /// Rescue after a restart: older leases are void at once where the process itself is the clock (C3).
    Void {
        /// By the store's clock.
        now: Time,
        /// Of the schedule.
        attempts_max: u32,
    },
    /// The store was restored from a backup: what it calls unfinished may have been sent since (C1).
    Restore {
        /// By the store's clock.
        now: Time,
    },
    /// A person or a probe settles what is uncertain.
    Resolve {
        /// What became of it.
        resolution: Resolution,
        /// Who says so.
        by: Resolver,
        /// By the store's clock.
        now: Time,
    },
    /// An operator wants it sent once more, as a new generation under a new key.
    Force {
        /// By the store's clock.
        now: Time,
    },
    /// It shall not be carried out.
    Skip {
        /// Why.
        reason: SkipReason,
    },
    /// The worker that holds it finds that it shall not be carried out.
    SkipClaimed {
        /// Of its claim.
        fence: Fence,
        /// Why.
        reason: SkipReason,
    },
    /// Try again now what was given up, or waits for its next attempt.
    Revive {
        /// By the store's clock.
        now: Time,
    },
}

/// What became of an uncertain effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resolution {
    /// It was applied.
    Applied,
    /// It was not: send it.
    NotApplied,
    /// It does not matter any more.
    Skip,
}

/// Who resolves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resolver {
    /// A person, with a reason.
    Person,
    /// The effect's probe. Its "no" counts only once nothing can still be on its way (D4).
    Probe {
        /// How long a request of this effect may take.
        timeout: Span,
        /// When it was asked, by the store's clock: it says how things stood then, not when its answer is kept.
        asked: Time,
    },
}

/// What a step did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change {
    /// The record from now on.
    pub next: EffectRecord,
    /// What to call it in the timeline.
    pub did: Did,
}

/// What happened, for the timeline and for whoever asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Did {
    /// A worker holds it.
    Claimed(Lease),
    /// This attempt is durable and may leave.
    Started {
        /// Its number in the generation.
        attempt: u32,
    },
    /// It goes on under the stricter class.
    Tightened,
    /// The lease ends later.
    Extended {
        /// When.
        until: Time,
    },
    /// It is applied.
    Done,
    /// It waits for its next attempt.
    Waits {
        /// Until then.
        until: Time,
    },
    /// Nobody can tell; it is held.
    Uncertain,
    /// Given up.
    Dead,
    /// Not to be carried out.
    Skipped(SkipReason),
    /// A new generation waits to be sent.
    Forced {
        /// Its number.
        generation: u32,
    },
}

/// Why a step does nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Rejected {
    /// The fence is not the latest claim's. Nothing changes; the report is kept as evidence (C2).
    #[error("stale fence: the effect was claimed again or rescued since")]
    StaleFence,
    /// The lease is over, and another worker may take the effect at any moment.
    #[error("the lease has run out")]
    LeaseOver,
    /// Final for this generation.
    #[error("already done")]
    AlreadyDone,
    /// Its time has not come.
    #[error("not due yet")]
    NotDue {
        /// When it will be.
        at: Time,
    },
    /// A worker holds it.
    #[error("in flight")]
    InFlight {
        /// Until then at least.
        until: Time,
    },
    /// Its lease ran out; it has to be rescued first.
    #[error("waits to be rescued")]
    NeedsRescue,
    /// Nobody can tell whether it was applied.
    #[error("uncertain: resolve it first")]
    Uncertain,
    /// Given up.
    #[error("dead: revive it first")]
    Dead,
    /// Deliberately not carried out.
    #[error("skipped")]
    Skipped,
    /// One claim makes one attempt, and this one has.
    #[error("already started")]
    AlreadyStarted,
    /// There is no attempt to settle.
    #[error("not started")]
    NotStarted,
    /// A probe's "no" does not count before then.
    #[error("too early to believe the probe")]
    TooEarly {
        /// It counts from then on.
        until: Time,
    },
    /// The step has no meaning in this state.
    #[error("does not apply to an effect in this state")]
    NotApplicable,
}

impl EffectStep {
    /// The fence that a worker shows with a step; `None` for steps that are not a worker's.
    pub(super) const fn fence(&self) -> Option<Fence> {
        match *self {
            EffectStep::Start { fence, .. }
            | EffectStep::Extend { fence, .. }
            | EffectStep::Release { fence, .. }
            | EffectStep::Settle { fence, .. }
            | EffectStep::Tighten { fence, .. }
            | EffectStep::SkipClaimed { fence, .. } => Some(fence),
            EffectStep::Claim { .. }
            | EffectStep::Expire { .. }
            | EffectStep::Void { .. }
            | EffectStep::Restore { .. }
            | EffectStep::Resolve { .. }
            | EffectStep::Force { .. }
            | EffectStep::Skip { .. }
            | EffectStep::Revive { .. } => None,
        }
    }
}

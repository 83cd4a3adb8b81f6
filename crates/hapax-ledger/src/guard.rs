//! The guard's decisions: what becomes of a request that carries an `Idempotency-Key`?
//!
//! Checks go in this order: the key's syntax, the fingerprint, the state. So a key that is reused for another request
//! is refused also while the first is still running (H2), and at most one execution is ever under way (H1).

use crate::event::words;
use crate::fingerprint::Fingerprint;
use crate::lease::{Fence, Lease};
use crate::time::{Span, Time};

mod key;
mod policy;

pub use key::{GuardKey, KEY_BYTES_MAX, KeyForm, KeyProblem, parse_key, write_key};
pub use policy::{
    Body, Ending, GuardPolicy, OnUnknown, Preset, Settlement, TTL_DEFAULT, TTL_MIN, TtlTooShort,
    check_ttl, settlement,
};

/// How long after a lost lease a run still counts as running: the upstream may be finishing what it was sent.
pub const LEASE_GRACE: Span = Span::from_secs(5);

words!(
    /// Where a guarded key stands.
    GuardState {
        /// A request is being carried out.
        Running = 0, "running";
        /// Its answer is stored.
        Completed = 1, "completed";
        /// It was answered, but the body was too large or a stream: never run again, and not replayed either.
        NotKept = 2, "not_kept";
        /// Nobody knows what became of it. Never expires by itself (H4).
        Unknown = 3, "unknown";
        /// It provably did not run: the key is free again.
        Released = 4, "released";
    }
);

/// What is kept of a guarded key to decide by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GuardRecord {
    /// Where it stands.
    pub state: GuardState,
    /// Of the request that holds the key.
    pub fingerprint: Fingerprint,
    /// Of the latest run.
    pub fence: Fence,
    /// When the latest lease ends, or ended.
    pub lease_until: Time,
    /// From here on an answer is not given again.
    pub expires_at: Time,
    /// How long after that the key is said to have expired, before it is free.
    pub grace: Span,
}

impl GuardRecord {
    /// From here on a run of which nothing was heard counts as lost.
    pub fn lost_at(&self) -> Time {
        self.lease_until + LEASE_GRACE
    }

    /// From here on an answered key is free, and nothing of it has to be kept.
    pub fn free_at(&self) -> Time {
        self.expires_at + self.grace
    }

    /// The record as it stands now: a run that counts as lost is one whose outcome is unknown, whether or not anybody has written
    /// that down.
    pub fn as_of(&self, now: Time) -> GuardRecord {
        match self.state {
            GuardState::Running if now >= self.lost_at() => GuardRecord {
                state: GuardState::Unknown,
                ..*self
            },
            GuardState::Running
            | GuardState::Completed
            | GuardState::NotKept
            | GuardState::Unknown
            | GuardState::Released => *self,
        }
    }

    /// May it be forgotten? What is running or unknown never is (H4).
    pub fn is_over(&self, now: Time) -> bool {
        match self.state {
            GuardState::Running | GuardState::Unknown => false,
            GuardState::Completed | GuardState::NotKept | GuardState::Released => {
                now >= self.free_at()
            }
        }
    }
}

/// A request that arrives with a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GuardClaim {
    /// Of the request.
    pub fingerprint: Fingerprint,
    /// By the store's clock.
    pub now: Time,
    /// The store's.
    pub epoch: u32,
    /// How long its run may take before it has to be extended.
    pub lease: Span,
    /// The route's rule for unknown outcomes.
    pub on_unknown: OnUnknown,
    /// How long an answer is kept.
    pub ttl: Span,
    /// How long an expired key is said to have expired.
    pub grace: Span,
}

/// What becomes of the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GuardDecision {
    /// It runs, under this record.
    Run(GuardRecord),
    /// It gets the stored answer.
    Replay,
    /// It was answered before, and the body was not kept.
    NotKept,
    /// The first one is still running.
    InProgress {
        /// Ask again then.
        until: Time,
    },
    /// What became of the first one is not known; the record says so from now on.
    OutcomeUnknown(GuardRecord),
    /// It was answered, and the answer ran out not long ago: whoever still retries is told so instead of being run a second time.
    Expired,
    /// The key belongs to another request.
    Mismatch,
}

/// Decides about a request, given what is kept under its key.
pub fn decide(existing: Option<&GuardRecord>, claim: &GuardClaim) -> GuardDecision {
    let Some(record) = existing else {
        return GuardDecision::Run(first(claim));
    };
    let record = record.as_of(claim.now);
    if record.state == GuardState::Released || record.is_over(claim.now) {
        return GuardDecision::Run(run(record.fence, claim));
    }
    if record.fingerprint != claim.fingerprint {
        return GuardDecision::Mismatch;
    }
    match (record.state, claim.on_unknown) {
        (GuardState::Completed | GuardState::NotKept, _) if claim.now >= record.expires_at => {
            GuardDecision::Expired
        }
        (GuardState::Completed, _) => GuardDecision::Replay,
        (GuardState::NotKept, _) => GuardDecision::NotKept,
        (GuardState::Running, _) => GuardDecision::InProgress {
            until: record.lost_at(),
        },
        (GuardState::Unknown, OnUnknown::Hold) => GuardDecision::OutcomeUnknown(record),
        (GuardState::Unknown, OnUnknown::Keyed | OnUnknown::Atomic)
        // Free, and so handled above.
        | (GuardState::Released, _) => GuardDecision::Run(run(record.fence, claim)),
    }
}

/// The record of a key that nobody holds: it runs.
pub fn first(claim: &GuardClaim) -> GuardRecord {
    run(Fence::NONE, claim)
}

fn run(last: Fence, claim: &GuardClaim) -> GuardRecord {
    GuardRecord {
        state: GuardState::Running,
        fingerprint: claim.fingerprint,
        fence: last.next(claim.epoch),
        lease_until: claim.now + claim.lease,
        expires_at: claim.now + claim.ttl,
        grace: claim.grace,
    }
}

/// Something that happens to a guarded key after its claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GuardStep {
    /// The run needs longer.
    Extend {
        /// Of its claim.
        fence: Fence,
        /// By the store's clock.
        now: Time,
        /// New end of the lease.
        until: Time,
    },
    /// The run ended.
    Finish {
        /// Of its claim.
        fence: Fence,
        /// By the store's clock.
        now: Time,
        /// What is kept of it.
        settlement: Settlement,
        /// How long an answer is kept.
        ttl: Span,
    },
    /// The run ended, and nobody knows whether that was heard: it changes nothing, and is refused unless it was.
    Confirm {
        /// Of its claim.
        fence: Fence,
        /// What was kept of it.
        settlement: Settlement,
    },
    /// The sweep met a run that was lost.
    Lose {
        /// By the store's clock.
        now: Time,
    },
    /// A person or a probe found out that it was carried out.
    ResolveExecuted {
        /// Of the run that they know about: what they know of one says nothing of the next.
        fence: Fence,
        /// By the store's clock.
        now: Time,
        /// How long the key stays taken.
        ttl: Span,
    },
    /// A person or a probe found out that it was not.
    ResolveNotExecuted {
        /// Of the run that they know about.
        fence: Fence,
        /// By the store's clock.
        now: Time,
    },
}

/// Why a step does nothing to a guarded key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GuardRejected {
    /// Another run has the key, or this one was given up.
    #[error("stale fence: the key was claimed again or given up since")]
    StaleFence,
    /// The lease is over.
    #[error("the lease has run out")]
    LeaseOver,
    /// It is still running.
    #[error("in progress")]
    InProgress,
    /// The step has no meaning in this state.
    #[error("does not apply to a key in this state")]
    NotApplicable,
}

/// Moves a guarded key, or says why not.
pub fn step(record: &GuardRecord, step: &GuardStep) -> Result<GuardRecord, GuardRejected> {
    use GuardState as S;
    use GuardStep as E;
    let lease = Lease {
        fence: record.fence,
        until: record.lease_until,
    };
    match (record.state, *step) {
        (
            _,
            E::Extend { fence, .. }
            | E::Finish { fence, .. }
            | E::Confirm { fence, .. }
            | E::ResolveExecuted { fence, .. }
            | E::ResolveNotExecuted { fence, .. },
        ) if fence != record.fence => Err(GuardRejected::StaleFence),
        (S::Running, E::Extend { now, .. }) if lease.expired(now) => Err(GuardRejected::LeaseOver),
        (S::Running, E::Extend { until, .. }) => Ok(GuardRecord {
            lease_until: until.max(record.lease_until),
            ..*record
        }),
        // An answer that comes late but before anybody ran again is the answer.
        (
            S::Running | S::Unknown,
            E::Finish {
                now,
                settlement,
                ttl,
                ..
            },
        ) => Ok(GuardRecord {
            state: settled(settlement),
            expires_at: now + ttl,
            ..*record
        }),
        (state, E::Confirm { settlement, .. }) if state == settled(settlement) => Ok(*record),
        (S::Running, E::Lose { now }) if now < record.lost_at() => Err(GuardRejected::InProgress),
        (S::Running, E::Lose { .. }) => Ok(GuardRecord {
            state: S::Unknown,
            ..*record
        }),
        // Somebody may know before the sweep has come by.
        (S::Running, E::ResolveExecuted { now, .. } | E::ResolveNotExecuted { now, .. })
            if now < record.lost_at() =>
        {
            Err(GuardRejected::InProgress)
        }
        (S::Running | S::Unknown, E::ResolveExecuted { now, ttl, .. }) => Ok(GuardRecord {
            state: S::NotKept,
            expires_at: now + ttl,
            ..*record
        }),
        // It is shown for a while, as other keys are that came to nothing.
        (S::Running | S::Unknown, E::ResolveNotExecuted { now, .. }) => Ok(GuardRecord {
            state: S::Released,
            expires_at: record.expires_at.max(now),
            ..*record
        }),
        (_, E::Confirm { .. })
        | (S::Completed | S::NotKept | S::Released, E::Extend { .. } | E::Finish { .. }) => {
            Err(GuardRejected::StaleFence)
        }
        _ => Err(GuardRejected::NotApplicable),
    }
}

const fn settled(settlement: Settlement) -> GuardState {
    match settlement {
        Settlement::Store(Body::Kept) => GuardState::Completed,
        Settlement::Store(Body::NotKept) => GuardState::NotKept,
        Settlement::Release => GuardState::Released,
        Settlement::Unknown => GuardState::Unknown,
    }
}

#[cfg(test)]
mod tests;

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

pub use key::{GuardKey, KEY_BYTES_MAX, KeyProblem, parse_key};
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
    /// From here on an answered or released key is free.
    pub expires_at: Time,
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
    /// The key belongs to another request.
    Mismatch,
}

/// Decides about a request, given what is kept under its key.
pub fn decide(existing: Option<&GuardRecord>, claim: &GuardClaim) -> GuardDecision {
    let Some(record) = existing else {
        return GuardDecision::Run(run(Fence::NONE, claim));
    };
    let free = match record.state {
        GuardState::Released => true,
        GuardState::Completed | GuardState::NotKept => claim.now >= record.expires_at,
        GuardState::Running | GuardState::Unknown => false,
    };
    if free {
        return GuardDecision::Run(run(record.fence, claim));
    }
    if record.fingerprint != claim.fingerprint {
        return GuardDecision::Mismatch;
    }
    let lost_at = record.lease_until + LEASE_GRACE;
    match (record.state, claim.on_unknown) {
        (GuardState::Completed, _) => GuardDecision::Replay,
        (GuardState::NotKept, _) => GuardDecision::NotKept,
        (GuardState::Running, _) if claim.now < lost_at => {
            GuardDecision::InProgress { until: lost_at }
        }
        (GuardState::Running | GuardState::Unknown, OnUnknown::Keyed | OnUnknown::Atomic) => {
            GuardDecision::Run(run(record.fence, claim))
        }
        (GuardState::Running | GuardState::Unknown, OnUnknown::Hold) => {
            GuardDecision::OutcomeUnknown(GuardRecord {
                state: GuardState::Unknown,
                ..*record
            })
        }
        // Free, and so handled above.
        (GuardState::Released, _) => GuardDecision::Run(run(record.fence, claim)),
    }
}

fn run(last: Fence, claim: &GuardClaim) -> GuardRecord {
    GuardRecord {
        state: GuardState::Running,
        fingerprint: claim.fingerprint,
        fence: last.next(claim.epoch),
        lease_until: claim.now + claim.lease,
        expires_at: claim.now + claim.ttl,
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
    /// The sweep met a run that was lost.
    Lose {
        /// By the store's clock.
        now: Time,
    },
    /// A person or a probe found out that it was carried out.
    ResolveExecuted {
        /// By the store's clock.
        now: Time,
        /// How long the key stays taken.
        ttl: Span,
    },
    /// A person or a probe found out that it was not.
    ResolveNotExecuted,
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
        (_, E::Extend { fence, .. } | E::Finish { fence, .. }) if fence != record.fence => {
            Err(GuardRejected::StaleFence)
        }
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
        (S::Running, E::Lose { now }) if now < record.lease_until + LEASE_GRACE => {
            Err(GuardRejected::InProgress)
        }
        (S::Running, E::Lose { .. }) => Ok(GuardRecord {
            state: S::Unknown,
            ..*record
        }),
        (S::Unknown, E::ResolveExecuted { now, ttl }) => Ok(GuardRecord {
            state: S::NotKept,
            expires_at: now + ttl,
            ..*record
        }),
        (S::Unknown, E::ResolveNotExecuted) => Ok(GuardRecord {
            state: S::Released,
            ..*record
        }),
        (S::Completed | S::NotKept | S::Released, E::Extend { .. } | E::Finish { .. }) => {
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

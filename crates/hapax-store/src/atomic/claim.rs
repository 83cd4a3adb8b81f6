//! A key is claimed: who may run, and what everybody else hears.

use std::sync::Arc;

use bytes::Bytes;
use hapax_ledger::fingerprint::Fingerprint;
use hapax_ledger::guard::{
    GuardClaim, GuardDecision, GuardRecord, GuardState, OnUnknown, TTL_DEFAULT, decide,
};
use hapax_ledger::key::{KeyHash, KeyKind};
use hapax_ledger::time::{Span, Time};

use super::error::AtomicError;
use super::row::{self, Kept, Seen, Written};
use super::run::Run;
use super::tx::{AtomicTx, Dialect};

/// How long a run that has committed a phase may take to the next one before it counts as lost.
pub const LEASE_DEFAULT: Span = Span::from_secs(30);
/// How long an expired key is said to have expired before it may run again.
const GRACE_DEFAULT: Span = Span::from_hours(24);
/// A key may be taken and given up between two looks at it. Not so often.
const LOOKS_MAX: usize = 4;
/// Fences need no epochs here: they are kept with the key, in the same database.
const EPOCH: u32 = 0;

/// A request that arrives with a key.
#[derive(Clone, Debug)]
pub struct Claim {
    /// What the key is found by.
    pub key_hash: KeyHash,
    /// What it is unique in; kept for people.
    pub scope: Arc<str>,
    /// The key as its caller meant it; kept for people.
    pub key: Arc<str>,
    /// Of the request: another one under the same key is refused (H2).
    pub fingerprint: Fingerprint,
    /// How long it may take from one phase to the next.
    pub lease: Span,
    /// How long an answer is kept, from the claim on.
    pub ttl: Span,
    /// How long after that the key is said to have expired.
    pub grace: Span,
}

impl Claim {
    /// A claim with the usual times: answers are kept for 72 h, and keys refused as expired for 24 h more.
    pub fn new(
        scope: impl Into<Arc<str>>,
        key: impl Into<Arc<str>>,
        fingerprint: Fingerprint,
    ) -> Claim {
        let (scope, key) = (scope.into(), key.into());
        Claim {
            key_hash: KeyHash::of(KeyKind::Guard, &scope, &key),
            scope,
            key,
            fingerprint,
            lease: LEASE_DEFAULT,
            ttl: TTL_DEFAULT,
            grace: GRACE_DEFAULT,
        }
    }
}

/// A recovery point: what was done so far, and what is needed to go on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Phase {
    /// The handler's name for it.
    pub name: String,
    /// Whatever the handler wants to know again.
    pub data: Bytes,
}

/// What becomes of a claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Claimed {
    /// The work runs, in this transaction.
    Fresh(Run),
    /// An earlier run was lost after it had committed this phase: the work goes on behind it.
    Resume(Run, Phase),
    /// The work was done; this is its answer.
    Replay {
        /// As it was given to [`super::finish`].
        answer: Bytes,
        /// It is not given again from then on.
        expires_at: Time,
    },
    /// The work was done, and it was settled without an answer.
    NotKept {
        /// The key is taken until then.
        expires_at: Time,
    },
    /// Somebody is doing it now. On SQLite also: somebody is writing, and did not end in time.
    InProgress {
        /// How long it may still take, if that is known.
        remaining: Option<Span>,
    },
    /// The key belongs to another request. One that has not committed anything yet is not known; then this request hears
    /// [`Claimed::InProgress`], and is refused when it comes again.
    Mismatch,
    /// The work was done, and its answer ran out not long ago.
    Expired,
}

/// Takes a key for this transaction, or says what becomes of the request. It comes first in the transaction: what was written before it
/// would be committed along with a replay.
///
/// # Errors
/// If the database refuses; the transaction is to be rolled back.
pub async fn claim<T: AtomicTx>(tx: &mut T, claim: &Claim) -> Result<Claimed, AtomicError> {
    if T::DIALECT == Dialect::Sqlite && !row::lock(tx, claim.key_hash).await? {
        return Ok(Claimed::InProgress { remaining: None });
    }
    for _ in 0..LOOKS_MAX {
        let Seen { now, kept } = row::read(tx, claim.key_hash).await?;
        let asked = GuardClaim {
            fingerprint: claim.fingerprint,
            now,
            epoch: EPOCH,
            lease: claim.lease,
            on_unknown: OnUnknown::Atomic,
            ttl: claim.ttl,
            grace: claim.grace,
        };
        match (decide(kept.as_ref().map(|kept| &kept.record), &asked), kept) {
            (GuardDecision::Run(record), kept) => {
                if !row::lock(tx, claim.key_hash).await? {
                    return Ok(Claimed::InProgress { remaining: None });
                }
                if let Some(claimed) = run(tx, claim, record, kept, now).await? {
                    return Ok(claimed);
                }
            }
            (decision, Some(kept)) => return said(decision, kept, now),
            (_, None) => return Err(AtomicError::Form),
        }
    }
    Err(AtomicError::Unsettled)
}

/// Writes the run down; `None` if somebody was here since the key was read.
async fn run<T: AtomicTx>(
    tx: &mut T,
    claim: &Claim,
    record: GuardRecord,
    kept: Option<Kept>,
    now: Time,
) -> Result<Option<Claimed>, AtomicError> {
    let run = Run {
        key_hash: claim.key_hash,
        record,
        began_at: now,
        lease: claim.lease,
        ttl: claim.ttl,
    };
    let Some(kept) = kept else {
        let new = row::insert(tx, claim, &record).await?;
        return Ok(new.then_some(Claimed::Fresh(run)));
    };
    // A key that was free begins anew; one whose run was lost goes on.
    let lost = kept.record.as_of(now).state == GuardState::Unknown;
    let phase = kept.phase.filter(|_| lost);
    let written = Written {
        record: &record,
        phase: phase.as_ref().map(|phase| (&*phase.name, &*phase.data)),
        answer: None,
    };
    let was = (kept.record.fence, kept.record.state);
    if !row::write(tx, claim.key_hash, was, written).await? {
        return Ok(None);
    }
    Ok(Some(match phase {
        Some(phase) => Claimed::Resume(run, phase),
        None => Claimed::Fresh(run),
    }))
}

fn said(decision: GuardDecision, kept: Kept, now: Time) -> Result<Claimed, AtomicError> {
    let expires_at = kept.record.expires_at;
    Ok(match decision {
        GuardDecision::Replay => Claimed::Replay {
            answer: kept.answer.ok_or(AtomicError::Form)?,
            expires_at,
        },
        GuardDecision::NotKept => Claimed::NotKept { expires_at },
        GuardDecision::InProgress { until } => Claimed::InProgress {
            remaining: Some(until.since(now)),
        },
        GuardDecision::Mismatch => Claimed::Mismatch,
        GuardDecision::Expired => Claimed::Expired,
        // Handled by the caller, and ruled out by `OnUnknown::Atomic`.
        GuardDecision::Run(_) | GuardDecision::OutcomeUnknown(_) => return Err(AtomicError::Form),
    })
}

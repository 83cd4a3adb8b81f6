//! A run, and what it may write: a phase, and its end.

use hapax_ledger::guard::{
    Body, GuardRecord, GuardRejected, GuardState, GuardStep, Settlement, step,
};
use hapax_ledger::key::KeyHash;
use hapax_ledger::time::{Span, Time};

use super::error::AtomicError;
use super::row::{self, Written};
use super::tx::AtomicTx;

/// The right to run. It holds when the transaction that it was given in commits.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "a run that is committed without its end runs again"]
pub struct Run {
    pub(super) key_hash: KeyHash,
    pub(super) record: GuardRecord,
    pub(super) began_at: Time,
    pub(super) lease: Span,
    pub(super) ttl: Span,
}

impl Run {
    /// What its key is found by.
    pub fn key_hash(&self) -> KeyHash {
        self.key_hash
    }

    /// When its answer will expire.
    pub fn expires_at(&self) -> Time {
        self.began_at + self.ttl
    }
}

/// Names a recovery point: it commits with what this transaction has done, and if the run is lost later, the next one begins behind it. The
/// lease begins anew; the next transaction of this run should be committed within it.
///
/// # Errors
/// If the run has lost its key, or the database refuses; the transaction is to be rolled back.
pub async fn phase<T: AtomicTx>(
    tx: &mut T,
    run: &mut Run,
    name: &str,
    data: &[u8],
) -> Result<(), AtomicError> {
    let seen = row::read(tx, run.key_hash).await?;
    let kept = seen.kept.ok_or(GuardRejected::StaleFence)?;
    let extend = GuardStep::Extend {
        fence: run.record.fence,
        now: seen.now,
        until: seen.now + run.lease,
    };
    let record = step(&kept.record, &extend)?;
    let written = Written {
        record: &record,
        phase: Some((name, data)),
        answer: None,
    };
    write(tx, run, written).await?;
    run.record = record;
    Ok(())
}

/// Ends a run with its answer, which every later claim of the key gets; without one, they hear that it is done. The caller commits, and
/// then, not before, gives the answer out.
///
/// # Errors
/// If the run has lost its key, or the database refuses; the transaction is to be rolled back.
pub async fn finish<T: AtomicTx>(
    tx: &mut T,
    run: Run,
    answer: Option<&[u8]>,
) -> Result<(), AtomicError> {
    let body = match answer {
        Some(_) => Body::Kept,
        None => Body::NotKept,
    };
    let finish = GuardStep::Finish {
        fence: run.record.fence,
        now: run.began_at,
        settlement: Settlement::Store(body),
        ttl: run.ttl,
    };
    let record = step(&run.record, &finish)?;
    let written = Written {
        record: &record,
        phase: None,
        answer,
    };
    write(tx, &run, written).await
}

/// Under the run's fence: whoever has taken the key since has a higher one.
async fn write<T: AtomicTx>(
    tx: &mut T,
    run: &Run,
    written: Written<'_>,
) -> Result<(), AtomicError> {
    let was = (run.record.fence, GuardState::Running);
    match row::write(tx, run.key_hash, was, written).await? {
        true => Ok(()),
        false => Err(GuardRejected::StaleFence.into()),
    }
}

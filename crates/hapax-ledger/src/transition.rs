//! The effect machine: one function from a record and a step to the next record, or to a refusal.
//!
//! Every store runs this same function inside its transaction, so there is one place where it is decided what may be
//! sent. Two rules carry the product: `done` is final for its generation (D2), and a `once` effect whose attempt
//! ended without a definite answer stays `uncertain` until somebody knows better (D3, D4).

use crate::effect::{EffectRecord, EffectState, Repeat, SkipReason};
use crate::outcome::{Evidence, Outcome, classify};
use crate::retry::Next;
use crate::time::{Span, Time};

mod words;

pub use words::{Change, Did, EffectStep, Rejected, Resolution, Resolver};

/// How long after the last lease and a request's timeout a probe's "no" is believed: a request may still be in the receiver's queue.
pub const PROBE_GRACE: Span = Span::from_secs(30);

/// Moves an effect, or says why not. The only place where an effect's state changes.
pub fn step(record: &EffectRecord, step: &EffectStep) -> Result<Change, Rejected> {
    use EffectState as S;
    use EffectStep as E;
    match (record.state, *step) {
        (S::Pending, E::Claim { now, epoch, lease }) => claim(record, now, epoch, lease),
        (S::Pending | S::Dead, E::Skip { reason }) => Ok(skip(record, reason)),
        (S::Pending, E::Revive { now }) => Ok(wait(record, record.next_attempt_at.min(now))),
        (S::Pending | S::Claimed, E::Restore { now }) => Ok(restore(record, now)),

        (S::Claimed, shown) if shown.fence().is_some_and(|fence| fence != record.fence) => {
            Err(Rejected::StaleFence)
        }
        (S::Claimed, E::Start { now, .. }) => start(record, now),
        (S::Claimed, E::Extend { now, until, .. }) => extend(record, now, until),
        (S::Claimed, E::Release { .. } | E::SkipClaimed { .. } | E::Tighten { .. })
            if record.started =>
        {
            Err(Rejected::AlreadyStarted)
        }
        (S::Claimed, E::Tighten { repeat, .. }) => Ok(tighten(record, repeat)),
        (S::Claimed, E::Release { due, .. }) => Ok(wait(record, due)),
        (S::Claimed, E::SkipClaimed { reason, .. }) => Ok(skip(record, reason)),
        (
            S::Claimed,
            E::Settle {
                now, outcome, next, ..
            },
        ) => settle(record, now, outcome, next),
        (S::Claimed, E::Expire { now, .. }) if !record.lease().expired(now) => Err(held(record)),
        (S::Claimed, E::Expire { now, attempts_max } | E::Void { now, attempts_max }) => {
            Ok(rescue(record, now, attempts_max))
        }
        (S::Claimed, E::Claim { now, .. }) if record.lease().expired(now) => {
            Err(Rejected::NeedsRescue)
        }

        (
            S::Uncertain,
            E::Resolve {
                resolution,
                by,
                now,
            },
        ) => resolve(record, resolution, by, now),
        (S::Dead, E::Revive { now }) => Ok(new_pass(record, now)),
        (S::Skipped, E::Revive { now }) if record.skip == Some(SkipReason::EndpointDisabled) => {
            Ok(new_pass(record, now))
        }
        (S::Done | S::Uncertain | S::Dead | S::Skipped, E::Force { now }) => Ok(force(record, now)),
        (_, refused) => Err(reject(record, &refused)),
    }
}

fn held(record: &EffectRecord) -> Rejected {
    Rejected::InFlight {
        until: record.lease_until,
    }
}

/// The last arm: why this step is not for this state.
fn reject(record: &EffectRecord, step: &EffectStep) -> Rejected {
    match (record.state, step.fence()) {
        (EffectState::Done, Some(fence)) if fence == record.fence => Rejected::AlreadyDone,
        (_, Some(_)) => Rejected::StaleFence,
        (EffectState::Done, None) => Rejected::AlreadyDone,
        (EffectState::Claimed, None) => held(record),
        (EffectState::Pending, None) => Rejected::NotApplicable,
        (EffectState::Uncertain, None) => Rejected::Uncertain,
        (EffectState::Dead, None) => Rejected::Dead,
        (EffectState::Skipped, None) => Rejected::Skipped,
    }
}

fn claim(record: &EffectRecord, now: Time, epoch: u32, lease: Span) -> Result<Change, Rejected> {
    if now < record.next_attempt_at {
        return Err(Rejected::NotDue {
            at: record.next_attempt_at,
        });
    }
    let next = EffectRecord {
        state: EffectState::Claimed,
        fence: record.fence.next(epoch),
        lease_until: now + lease,
        started: false,
        ..*record
    };
    Ok(Change {
        next,
        did: Did::Claimed(next.lease()),
    })
}

fn start(record: &EffectRecord, now: Time) -> Result<Change, Rejected> {
    if record.started {
        return Err(Rejected::AlreadyStarted);
    }
    if record.lease().expired(now) {
        return Err(Rejected::LeaseOver);
    }
    let attempt = record.attempts.saturating_add(1);
    let next = EffectRecord {
        started: true,
        attempts: attempt,
        ..*record
    };
    Ok(Change {
        next,
        did: Did::Started { attempt },
    })
}

fn extend(record: &EffectRecord, now: Time, until: Time) -> Result<Change, Rejected> {
    if record.lease().expired(now) {
        return Err(Rejected::LeaseOver);
    }
    // An extension never shortens: the worker counted on what it was given.
    let until = until.max(record.lease_until);
    let next = EffectRecord {
        lease_until: until,
        ..*record
    };
    Ok(Change {
        next,
        did: Did::Extended { until },
    })
}

/// An unstarted claim goes on under the stricter class, but not if an earlier attempt may have been applied: under `once` that
/// is for a probe or a person to say.
fn tighten(record: &EffectRecord, current: Repeat) -> Change {
    let next = EffectRecord {
        repeat: record.repeat.stricter(current),
        ..*record
    };
    match (next.repeat, next.ambiguous) {
        (Repeat::Once, true) => uncertain(&next),
        (Repeat::Once | Repeat::Keyed | Repeat::Converges, _) => Change {
            next,
            did: Did::Tightened,
        },
    }
}

/// A settle with the current fence counts even after the lease: nobody has taken over, and it is the truth.
fn settle(
    record: &EffectRecord,
    now: Time,
    outcome: Outcome,
    next: Next,
) -> Result<Change, Rejected> {
    if !record.started {
        return Err(Rejected::NotStarted);
    }
    Ok(match (classify(outcome), record.repeat, next) {
        (Evidence::Applied, _, _) => done(record),
        (Evidence::Ambiguous, Repeat::Once, _) => uncertain(record),
        (Evidence::Ambiguous, _, Next::At(delay)) => wait(&unsure(record), now + delay),
        (Evidence::Ambiguous, _, Next::Exhausted) => dead(&unsure(record)),
        (Evidence::Refused { .. } | Evidence::NotApplied, _, Next::At(delay)) => {
            wait(record, now + delay)
        }
        (Evidence::Refused { .. } | Evidence::NotApplied, _, Next::Exhausted) => dead(record),
    })
}

/// A worker was lost. What it had not started is simply free again; what it had is ambiguous. The receiver did nothing
/// wrong, so the next attempt is due at once; but an effect that takes its worker down each time comes to an end.
fn rescue(record: &EffectRecord, now: Time, attempts_max: u32) -> Change {
    match (record.started, record.repeat) {
        (false, _) => wait(record, now),
        (true, Repeat::Once) => uncertain(record),
        (true, _) if record.attempts_in_pass() >= attempts_max => dead(&unsure(record)),
        (true, _) => wait(&unsure(record), now),
    }
}

fn restore(record: &EffectRecord, now: Time) -> Change {
    match record.repeat {
        Repeat::Once => uncertain(record),
        Repeat::Keyed | Repeat::Converges => wait(&unsure(record), record.next_attempt_at.max(now)),
    }
}

fn resolve(
    record: &EffectRecord,
    resolution: Resolution,
    by: Resolver,
    now: Time,
) -> Result<Change, Rejected> {
    match (resolution, by) {
        (Resolution::Applied, _) => Ok(done(record)),
        (Resolution::Skip, _) => Ok(skip(record, SkipReason::Operator)),
        // Nobody is asked after the answer, whatever somebody's idea of the store's clock says.
        (Resolution::NotApplied, Resolver::Probe { timeout, asked })
            if asked.min(now) < believed_from(record, timeout) =>
        {
            Err(Rejected::TooEarly {
                until: believed_from(record, timeout),
            })
        }
        (Resolution::NotApplied, _) => {
            let known = EffectRecord {
                ambiguous: false,
                ..*record
            };
            Ok(new_pass(&known, now))
        }
    }
}

/// From when on nothing of this effect can be on its way any more. A request that left just before the lease ended may take its whole timeout.
fn believed_from(record: &EffectRecord, timeout: Span) -> Time {
    record.lease_until + timeout + PROBE_GRACE
}

fn force(record: &EffectRecord, now: Time) -> Change {
    let generation = record.generation.saturating_add(1);
    let next = EffectRecord {
        generation,
        fence: record.fence,
        lease_until: record.lease_until,
        ..EffectRecord::planned(record.repeat, now)
    };
    Change {
        next,
        did: Did::Forced { generation },
    }
}

fn new_pass(record: &EffectRecord, now: Time) -> Change {
    let fresh = EffectRecord {
        pass_from: record.attempts,
        skip: None,
        ..*record
    };
    wait(&fresh, now)
}

fn unsure(record: &EffectRecord) -> EffectRecord {
    EffectRecord {
        ambiguous: true,
        ..*record
    }
}

fn wait(record: &EffectRecord, until: Time) -> Change {
    let next = EffectRecord {
        state: EffectState::Pending,
        started: false,
        next_attempt_at: until,
        ..*record
    };
    Change {
        next,
        did: Did::Waits { until },
    }
}

fn end(record: &EffectRecord, state: EffectState, did: Did) -> Change {
    let next = EffectRecord {
        state,
        started: false,
        ..*record
    };
    Change { next, did }
}

fn done(record: &EffectRecord) -> Change {
    end(record, EffectState::Done, Did::Done)
}

fn uncertain(record: &EffectRecord) -> Change {
    end(&unsure(record), EffectState::Uncertain, Did::Uncertain)
}

fn dead(record: &EffectRecord) -> Change {
    end(record, EffectState::Dead, Did::Dead)
}

fn skip(record: &EffectRecord, reason: SkipReason) -> Change {
    let skipped = EffectRecord {
        skip: Some(reason),
        ..*record
    };
    end(&skipped, EffectState::Skipped, Did::Skipped(reason))
}

#[cfg(test)]
mod tests;

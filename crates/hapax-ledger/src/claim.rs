//! The ledger for the user's own code: claim an effect, run it, say how it went.
//!
//! Whoever claims here starts at once: the handler may do its work the moment it has the answer. So the claim is also
//! the durable STARTED, and a handler that is never heard of again leaves a `once` effect uncertain.

use crate::effect::{EffectRecord, EffectState};
use crate::lease::Fence;
use crate::time::{Span, Time};
use crate::transition::{EffectStep, Rejected, step};

/// What a handler that asks for an effect is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClaimVerdict {
    /// It is yours: run it, and settle with this fence.
    Claimed {
        /// Shown with every later call.
        fence: Fence,
        /// When the lease ends.
        until: Time,
    },
    /// It was applied before: do nothing, use the stored result.
    Done,
    /// Somebody has it, or its next attempt is not due: ask again then.
    InFlight {
        /// Not before.
        until: Time,
    },
    /// Nobody can tell whether it was applied: do nothing until it is resolved.
    Uncertain,
    /// It was given up; an operator can revive it.
    Dead,
    /// It was deliberately skipped: do nothing.
    Skipped,
}

/// A handler's claim as one transaction: rescue if the last holder is gone, claim, start.
///
/// Gives the record to keep, and the verdict. The record differs from the given one also when nothing was claimed, if the
/// rescue found the effect uncertain or used up.
pub fn claim_for_handler(
    record: &EffectRecord,
    now: Time,
    epoch: u32,
    lease: Span,
    attempts_max: u32,
) -> (EffectRecord, ClaimVerdict) {
    let mut current = *record;
    if current.state == EffectState::Claimed {
        // Refused while the lease stands; then the claim below says who holds it.
        if let Ok(change) = step(&current, &EffectStep::Expire { now, attempts_max }) {
            current = change.next;
        }
    }
    let claimed = step(&current, &EffectStep::Claim { now, epoch, lease }).and_then(|change| {
        let fence = change.next.fence;
        step(&change.next, &EffectStep::Start { fence, now })
    });
    match claimed {
        Ok(change) => {
            let record = change.next;
            let verdict = ClaimVerdict::Claimed {
                fence: record.fence,
                until: record.lease_until,
            };
            (record, verdict)
        }
        Err(rejected) => (current, refusal(current.state, rejected, now)),
    }
}

fn refusal(state: EffectState, rejected: Rejected, now: Time) -> ClaimVerdict {
    match (state, rejected) {
        (_, Rejected::NotDue { at: until } | Rejected::InFlight { until }) => {
            ClaimVerdict::InFlight { until }
        }
        (EffectState::Done, _) => ClaimVerdict::Done,
        (EffectState::Uncertain, _) => ClaimVerdict::Uncertain,
        (EffectState::Dead, _) => ClaimVerdict::Dead,
        (EffectState::Skipped, _) => ClaimVerdict::Skipped,
        // Only a lease of no length gets here: it was over before it began.
        (EffectState::Pending | EffectState::Claimed, _) => ClaimVerdict::InFlight { until: now },
    }
}

/// An effect that is born claimed and started in the accept commit, so that the happy path costs two writes. `None` for a
/// `once` effect, which takes an explicit STARTED of its own, and where the lease has no length. Whoever wants it so has seen that
/// it is due; a store whose clock is behind theirs does not doubt it.
pub fn born_started(
    record: &EffectRecord,
    now: Time,
    epoch: u32,
    lease: Span,
) -> Option<EffectRecord> {
    if record.repeat == crate::effect::Repeat::Once {
        return None;
    }
    let due = EffectRecord {
        next_attempt_at: record.next_attempt_at.min(now),
        ..*record
    };
    let claimed = step(&due, &EffectStep::Claim { now, epoch, lease })
        .ok()?
        .next;
    let started = step(
        &claimed,
        &EffectStep::Start {
            fence: claimed.fence,
            now,
        },
    );
    started.ok().map(|change| change.next)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::effect::Repeat;

    const LEASE: Span = Span::from_secs(30);

    fn at(seconds: i64) -> Time {
        Time::from_secs(seconds)
    }

    #[test]
    fn a_lost_handler_leaves_a_once_effect_uncertain_and_a_keyed_one_free() {
        for (repeat, expected) in [
            (Repeat::Once, EffectState::Uncertain),
            (Repeat::Keyed, EffectState::Claimed),
        ] {
            let planned = EffectRecord::planned(repeat, at(0));
            let (held, first) = claim_for_handler(&planned, at(0), 1, LEASE, 7);
            assert!(matches!(first, ClaimVerdict::Claimed { .. }));
            let (_, second) = claim_for_handler(&held, at(29), 1, LEASE, 7);
            assert_eq!(second, ClaimVerdict::InFlight { until: at(30) });
            let (after, verdict) = claim_for_handler(&held, at(30), 1, LEASE, 7);
            assert_eq!(after.state, expected, "{verdict:?}");
            assert_eq!(verdict == ClaimVerdict::Uncertain, repeat == Repeat::Once);
        }
    }

    #[test]
    fn every_ended_state_has_its_answer() {
        let table = [
            (EffectState::Done, ClaimVerdict::Done),
            (EffectState::Uncertain, ClaimVerdict::Uncertain),
            (EffectState::Dead, ClaimVerdict::Dead),
            (EffectState::Skipped, ClaimVerdict::Skipped),
        ];
        for (state, verdict) in table {
            let record = EffectRecord {
                state,
                ..EffectRecord::planned(Repeat::Keyed, at(0))
            };
            assert_eq!(
                claim_for_handler(&record, at(1), 1, LEASE, 7),
                (record, verdict)
            );
        }
        let later = EffectRecord::planned(Repeat::Keyed, at(9));
        let (_, verdict) = claim_for_handler(&later, at(1), 1, LEASE, 7);
        assert_eq!(verdict, ClaimVerdict::InFlight { until: at(9) });
    }

    #[test]
    fn only_repeatable_effects_are_born_started() {
        let born = |repeat| born_started(&EffectRecord::planned(repeat, at(0)), at(0), 1, LEASE);
        assert_eq!(born(Repeat::Once), None);
        let keyed = born(Repeat::Keyed).expect("keyed effects are");
        assert!(keyed.started && keyed.attempts == 1 && keyed.state == EffectState::Claimed);
    }
}

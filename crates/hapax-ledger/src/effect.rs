//! Effects: how each behaves when repeated, where it stands, and all that is kept of it to decide by.

use crate::event::words;
use crate::lease::{Fence, Lease};
use crate::outcome::{Evidence, Outcome, classify};
use crate::retry::{Next, Schedule};
use crate::time::Time;

words!(
    /// What happens if the same effect is carried out twice.
    Repeat {
        /// Sets a target state: repeating is harmless.
        Converges = 0, "converges";
        /// The receiver dedupes on the key that Hapax sends.
        Keyed = 1, "keyed";
        /// Neither: a second send is a second effect.
        Once = 2, "once";
    }
);

impl Repeat {
    /// Of two classes the one that allows less: what counts when the config changed after accept.
    pub fn stricter(self, other: Repeat) -> Repeat {
        self.max(other)
    }
}

words!(
    /// Where an effect stands.
    EffectState {
        /// Waits for its turn.
        Pending = 0, "pending";
        /// A worker holds it.
        Claimed = 1, "claimed";
        /// Applied: final for this generation.
        Done = 2, "done";
        /// Nobody can tell whether it was applied; nothing is sent until a probe or a person decides.
        Uncertain = 3, "uncertain";
        /// Given up after the whole schedule.
        Dead = 4, "dead";
        /// Deliberately not carried out, with a recorded reason.
        Skipped = 5, "skipped";
    }
);

words!(
    /// Why an effect was deliberately not carried out.
    SkipReason {
        /// A person said so.
        Operator = 0, "operator";
        /// The order guard found something newer already started.
        Stale = 1, "stale";
        /// Its endpoint is disabled.
        EndpointDisabled = 2, "endpoint_disabled";
        /// Its endpoint was deleted.
        EndpointDeleted = 3, "endpoint_deleted";
        /// The event's review was dismissed.
        Dismissed = 4, "dismissed";
        /// The event's bytes were erased before it was sent.
        Erased = 5, "erased";
    }
);

/// All that decides what may be done with an effect. Stores keep it as columns; [`crate::transition::step`] moves it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EffectRecord {
    /// Its class, frozen at accept.
    pub repeat: Repeat,
    /// Where it stands.
    pub state: EffectState,
    /// 1, and one more each time an operator forces it.
    pub generation: u32,
    /// Attempts started in this generation.
    pub attempts: u32,
    /// Attempts of this generation before its current pass over the schedule: a revived effect starts a new pass.
    pub pass_from: u32,
    /// The fence of the latest claim.
    pub fence: Fence,
    /// When the latest lease ends, or ended.
    pub lease_until: Time,
    /// Not to be claimed before.
    pub next_attempt_at: Time,
    /// A durable STARTED has no end yet.
    pub started: bool,
    /// Some attempt of this generation may have been applied without our knowing.
    pub ambiguous: bool,
    /// Why it is skipped, if it is.
    pub skip: Option<SkipReason>,
}

impl EffectRecord {
    /// An effect as the plan makes it, due at a time.
    pub const fn planned(repeat: Repeat, due: Time) -> EffectRecord {
        EffectRecord {
            repeat,
            state: EffectState::Pending,
            generation: 1,
            attempts: 0,
            pass_from: 0,
            fence: Fence::NONE,
            lease_until: Time::from_micros(0),
            next_attempt_at: due,
            started: false,
            ambiguous: false,
            skip: None,
        }
    }

    /// The latest lease.
    pub const fn lease(&self) -> Lease {
        Lease {
            fence: self.fence,
            until: self.lease_until,
        }
    }

    /// Attempts made in the current pass over the schedule.
    pub const fn attempts_in_pass(&self) -> u32 {
        self.attempts.saturating_sub(self.pass_from)
    }

    /// When to try again after this outcome, by the effect's schedule; honours `Retry-After`.
    pub fn next_after(&self, outcome: Outcome, schedule: &Schedule, jitter: f64) -> Next {
        let retry_after = match classify(outcome) {
            Evidence::Refused { retry_after, .. } => retry_after,
            Evidence::Applied | Evidence::NotApplied | Evidence::Ambiguous => None,
        };
        schedule.next(self.attempts_in_pass(), retry_after, jitter)
    }

    /// The record as it counts when the config's class is now `current`: the stricter class holds, and an effect that
    /// may already have been applied is not sent again under the stricter one.
    pub fn under(&self, current: Repeat) -> EffectRecord {
        let repeat = self.repeat.stricter(current);
        let unsure = repeat == Repeat::Once && self.ambiguous;
        let state = match self.state {
            EffectState::Pending | EffectState::Dead if unsure => EffectState::Uncertain,
            other => other,
        };
        EffectRecord {
            repeat,
            state,
            ..*self
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stricter_class_holds_back_what_may_have_been_applied() {
        let planned = EffectRecord::planned(Repeat::Keyed, Time::from_secs(0));
        assert_eq!(planned.under(Repeat::Converges).repeat, Repeat::Keyed);
        assert_eq!(planned.under(Repeat::Once).state, EffectState::Pending);
        let unsure = EffectRecord {
            ambiguous: true,
            ..planned
        };
        assert_eq!(unsure.under(Repeat::Once).state, EffectState::Uncertain);
        assert_eq!(unsure.under(Repeat::Keyed).state, EffectState::Pending);
    }
}

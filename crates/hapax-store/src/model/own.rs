//! Effects that the user's own code carries out.

use bytes::Bytes;
use hapax_ledger::claim::ClaimVerdict;
use hapax_ledger::id::EffectId;
use hapax_ledger::time::Time;

use super::effects::{EPOCH, Effects, Row};
use super::state::State;
use crate::nouns::{OwnClaim, OwnClaimed};
use crate::own;

impl State {
    pub(super) fn claim_own(&mut self, claim: &OwnClaim, now: Time) -> OwnClaimed {
        if let Some(event) = claim.event
            && !self.events.contains_key(&event)
        {
            return OwnClaimed::NoEvent;
        }
        let known = self.effects.called(claim);
        if let Some(row) = known.filter(|row| !own::is_own(&row.effect.lane)) {
            let effect = row.effect.id;
            return OwnClaimed::NotYours { effect };
        }
        match (claim.event, known.is_some()) {
            // Linked, if the effect is there.
            (Some(event), _) => self.plan(event, &[own::planned(claim)], now),
            (None, true) => {}
            (None, false) => self.plan_alone(claim, now),
        }
        // What was planned now gets its gate before somebody holds it.
        self.settle();
        let id = self.effects.called(claim).map(|row| row.effect.id);
        let claimed = id.map(|id| self.effects.claim_own(id, claim, now));
        self.settle();
        claimed.unwrap_or(OwnClaimed::NoEvent)
    }

    /// No event calls for it, so it gets one of its own.
    fn plan_alone(&mut self, claim: &OwnClaim, now: Time) {
        let arrival = own::arrival(claim);
        for new in &arrival.events {
            let event = self.accept(&arrival, new, now).event;
            // An event that was there already planned nothing.
            self.plan(event, &new.effects, now);
        }
    }
}

impl Effects {
    /// The effect of this name and key.
    fn called(&self, claim: &OwnClaim) -> Option<&Row> {
        let mut rows = self.rows.values();
        rows.find(|row| row.effect.name == claim.name && row.effect.key == claim.key)
    }

    fn claim_own(&mut self, effect: EffectId, claim: &OwnClaim, now: Time) -> OwnClaimed {
        let Some(row) = self.rows.get_mut(&effect) else {
            return OwnClaimed::NoEvent;
        };
        row.expire(now);
        let (record, verdict) = own::claim(&row.effect.record, claim, now, EPOCH);
        row.effect.record = record;
        match verdict {
            ClaimVerdict::Claimed { fence, .. } => {
                row.node = claim.actor.clone();
                row.started_at = now;
                OwnClaimed::Claimed { effect, fence }
            }
            ClaimVerdict::Done => OwnClaimed::Done {
                effect,
                result: row.result(),
            },
            ClaimVerdict::InFlight { until } => OwnClaimed::InFlight { effect, until },
            ClaimVerdict::Uncertain => OwnClaimed::Uncertain { effect },
            ClaimVerdict::Dead | ClaimVerdict::Skipped => OwnClaimed::Closed { effect },
        }
    }
}

impl Row {
    /// What was said at the end of its last attempt.
    fn result(&self) -> Option<Bytes> {
        let last = self.attempts.last()?;
        last.said.excerpt.clone()
    }
}

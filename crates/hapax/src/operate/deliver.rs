//! Deliveries that go out again, or for the first time: one by one, or many in a job.
//!
//! A delivery is an effect, so what is done about it is a command on its message, limited to the one endpoint.

use hapax_ledger::effect::{EffectState, SkipReason};
use hapax_ledger::id::{EndpointId, EventId, RunId};
use hapax_ledger::outcome::Outcome;
use hapax_ledger::verdict::Kept;
use hapax_store::StoreError;
use hapax_store::nouns::{Authority, Classes, Command, Commanded, Decision, Effect, NewEffect};

use super::ids;
use super::operator::{Granted, Operator, Terms};

/// What is wanted of a delivery.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Again {
    /// It goes out, whatever became of it before.
    Force,
    /// It goes out if it was given up or skipped.
    IfFailed,
    /// It goes out if it never did: the endpoint was not there, or not subscribed.
    IfMissing,
    /// It goes out if it stands in one of these states, and the latest answer was of this class (200, 400; 0: none came).
    If {
        /// States.
        states: Vec<EffectState>,
        /// The class, if it matters.
        class: Option<u16>,
    },
}

/// What became of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sent {
    /// The ledger has answered.
    Commanded(Commanded),
    /// There is nothing to do.
    Nothing,
    /// An attempt is under way; whoever wants another one asks when it has ended.
    UnderWay,
    /// Its payload is not kept any more.
    NoBytes,
    /// There is no such message.
    NoEvent,
}

/// One delivery that may go out again.
#[derive(Clone, Debug)]
pub struct Delivery {
    /// The message.
    pub event: EventId,
    /// The endpoint.
    pub endpoint: EndpointId,
    /// The delivery as it would be planned now, if there is none yet.
    pub planned: Option<NewEffect>,
}

impl Operator {
    /// Sends a delivery again, as far as it is wanted and the ledger allows it.
    ///
    /// # Errors
    /// If the store cannot answer. Whether it was done is unknown only where the store says so.
    pub async fn deliver(
        &self,
        delivery: Delivery,
        again: Again,
        by: Authority,
    ) -> Result<Sent, StoreError> {
        let (event, endpoint) = (delivery.event, delivery.endpoint);
        let Some(addressed) = self.store().addressed(event, endpoint).await? else {
            return Ok(Sent::NoEvent);
        };
        if addressed.payload == Kept::Reaped {
            return Ok(Sent::NoBytes);
        }
        let known = addressed.delivery.as_ref();
        let name = endpoint.to_string();
        let is_claimed = known.is_some_and(|known| known.record.state == EffectState::Claimed);
        let Some((decision, only)) = decide(known, &name, delivery.planned, again) else {
            return Ok(Sent::Nothing);
        };
        if is_claimed {
            return self.under_way(event, by).await;
        }
        let command = Command {
            event,
            decision,
            only,
            run: RunId(ids::fresh(by.at)),
            by,
            if_revision: None,
            dry_run: false,
            classes: Classes::new(),
        };
        self.command(command).await.map(Sent::Commanded)
    }

    /// An attempt is under way, perhaps for this very request, whose answer was lost.
    async fn under_way(&self, event: EventId, by: Authority) -> Result<Sent, StoreError> {
        let terms = Terms {
            by,
            if_revision: None,
            dry_run: false,
        };
        Ok(match self.before(event, &terms).await? {
            Some(Granted::Commanded(before)) => Sent::Commanded(before),
            Some(_) | None => Sent::UnderWay,
        })
    }
}

fn decide(
    known: Option<&Effect>,
    name: &str,
    planned: Option<NewEffect>,
    again: Again,
) -> Option<(Decision, Option<Vec<String>>)> {
    let only = Some(vec![name.to_owned()]);
    match (known, again) {
        (None, Again::If { .. }) => None,
        (Some(effect), Again::If { states, class }) => {
            let fits = states.contains(&effect.record.state)
                && class.is_none_or(|class| class == answered(effect))
                && !was_decided(effect);
            fits.then(|| forced(effect, name, only))
        }
        (None, Again::Force | Again::IfMissing) => {
            let effects = vec![planned?];
            Some((Decision::Deliver { effects }, None))
        }
        (None, Again::IfFailed) | (Some(_), Again::IfMissing) => None,
        (Some(effect), Again::IfFailed) => has_failed(effect).then(|| forced(effect, name, only)),
        (Some(effect), Again::Force) => Some(forced(effect, name, only)),
    }
}

fn forced(
    effect: &Effect,
    name: &str,
    only: Option<Vec<String>>,
) -> (Decision, Option<Vec<String>>) {
    let replay = |only| {
        let force = vec![name.to_owned()];
        (Decision::Replay { force }, only)
    };
    match effect.record.state {
        EffectState::Done => replay(only),
        // Later ones of its key may have been tried meanwhile. Whoever names it wants it all the same, and does not wait for a person.
        EffectState::Dead | EffectState::Skipped if effect.order.is_some() => replay(only),
        EffectState::Skipped if was_decided(effect) => replay(only),
        EffectState::Pending
        | EffectState::Claimed
        | EffectState::Uncertain
        | EffectState::Dead
        | EffectState::Skipped => (Decision::Retry, only),
    }
}

/// The class of the latest answer; 0 if none came.
fn answered(effect: &Effect) -> u16 {
    match effect.last {
        Some(Outcome::Answered { status, .. }) => status / 100 * 100,
        Some(Outcome::NotSent { .. } | Outcome::Lost { .. } | Outcome::Reported(_)) | None => 0,
    }
}

fn has_failed(effect: &Effect) -> bool {
    match effect.record.state {
        EffectState::Dead | EffectState::Uncertain => true,
        EffectState::Skipped => !was_decided(effect),
        EffectState::Pending | EffectState::Claimed | EffectState::Done => false,
    }
}

/// Did somebody say that it is not to be sent? Then only whoever asks for this one gets it, and no job about many.
fn was_decided(effect: &Effect) -> bool {
    match effect.record.skip {
        Some(SkipReason::Operator | SkipReason::Dismissed | SkipReason::Erased) => true,
        Some(SkipReason::EndpointDisabled | SkipReason::EndpointDeleted | SkipReason::Stale) => {
            false
        }
        None => false,
    }
}

//! Commands: what operators decide about an event, and what became of it.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use hapax_ledger::effect::Repeat;
use hapax_ledger::id::{EffectId, EventId, RunId};
use hapax_ledger::order::OrderVerdict;
use hapax_ledger::run::RunKind;
use hapax_ledger::time::Time;
use hapax_ledger::transition::{Rejected, Resolution};
use hapax_ledger::verdict::{Action, EffectLine, EventLedger, Kept, Verdict, verdict_on};

use super::arrival::{Arrival, NewEffect};
use super::audit::{Authority, Before};
use super::effect::Effect;

/// What an operator decides about one event.
#[derive(Clone, Debug)]
pub struct Command {
    /// The event.
    pub event: EventId,
    /// What is to be done.
    pub decision: Decision,
    /// A retry or a replay of these effects alone, by name; `None`: of all. One of them that was skipped because its endpoint was
    /// disabled comes back too. The verdict that is shown stays the event's.
    pub only: Option<Vec<String>>,
    /// Under whose name.
    pub by: Authority,
    /// Only if this is still the ledger's revision (E4).
    pub if_revision: Option<u64>,
    /// Say what would happen, and change nothing: no run, no audit record.
    pub dry_run: bool,
    /// The id of the run, if it becomes one.
    pub run: RunId,
    /// The config's classes: the stricter of the frozen and the current one counts.
    pub classes: Classes,
}

impl Command {
    /// So many bytes come along to be kept.
    pub(crate) fn bytes(&self) -> usize {
        let arrival = match &self.decision {
            Decision::Promote { arrival, .. } => arrival.events.as_slice(),
            _ => &[],
        };
        let bodies: usize = arrival.iter().map(|event| event.body.len()).sum();
        bodies + self.decision.snapshot().map_or(0, Bytes::len)
    }

    /// What the audit log says it was about.
    pub(crate) fn subject(&self) -> String {
        match &self.decision {
            Decision::Resolve { effect, .. } => effect.to_string(),
            Decision::Retry
            | Decision::Replay { .. }
            | Decision::Deliver { .. }
            | Decision::Reconcile { .. }
            | Decision::Release { .. }
            | Decision::Dismiss
            | Decision::Erase
            | Decision::Acknowledge { .. }
            | Decision::Promote { .. } => self.event.to_string(),
        }
    }
}

/// The config's classes by effect name.
pub type Classes = BTreeMap<Arc<str>, Repeat>;

/// What is to be done.
#[derive(Clone, Debug)]
pub enum Decision {
    /// Carry out what is not done.
    Retry,
    /// A new run: what is done is skipped, except these, which are sent again as a new generation.
    Replay {
        /// Names of effects.
        force: Vec<String>,
    },
    /// A new run for effects that the event did not call for when it came: those of an endpoint that was not there yet. They are
    /// planned now, without an order: their turn has passed. What the event calls for already stays as it is.
    Deliver {
        /// By the current catalogue.
        effects: Vec<NewEffect>,
    },
    /// Send converging effects again, as a new generation, with this state from the source of truth (E5).
    Reconcile {
        /// The state; kept with the run and sent along.
        snapshot: Bytes,
    },
    /// Settle an uncertain effect by hand; or give up a pending or dead one with [`Resolution::Skip`].
    Resolve {
        /// The effect.
        effect: EffectId,
        /// How it went.
        resolution: Resolution,
    },
    /// The event waits for a person, and may go on. If it has no effects yet, these are planned now; effects that wait for a person
    /// because of their order go ahead.
    Release {
        /// By the current config.
        effects: Vec<NewEffect>,
    },
    /// The event waits for a person, and comes to nothing: what has not ended and is not under way is skipped.
    Dismiss,
    /// The event's bytes go at once, and all that was said about them: other bodies, snapshots, and what receivers answered. Its
    /// identity, its effects and how they ended stay. What is pending cannot be sent any more, and is skipped.
    Erase,
    /// A delivery with another body was looked at and means nothing.
    Acknowledge {
        /// The number of the delivery.
        delivery: u32,
    },
    /// A delivery with another body is an event of its own.
    Promote {
        /// The number of the delivery.
        delivery: u32,
        /// What it becomes: exactly one event, under a key of its own.
        arrival: Box<Arrival>,
    },
}

impl Decision {
    /// What it is called in the audit log.
    pub const fn word(&self) -> &'static str {
        match self {
            Decision::Retry => "event.retry",
            Decision::Replay { .. } => "event.replay",
            Decision::Deliver { .. } => "event.deliver",
            Decision::Reconcile { .. } => "event.reconcile",
            Decision::Resolve { .. } => "effect.resolve",
            Decision::Release { .. } => "event.release",
            Decision::Dismiss => "event.dismiss",
            Decision::Erase => "event.erase",
            Decision::Acknowledge { .. } => "conflict.acknowledge",
            Decision::Promote { .. } => "conflict.promote",
        }
    }

    /// The run that it makes, if it makes one.
    pub const fn run(&self) -> Option<RunKind> {
        match self {
            Decision::Retry => Some(RunKind::Retry),
            Decision::Replay { .. } | Decision::Deliver { .. } => Some(RunKind::Replay),
            Decision::Reconcile { .. } => Some(RunKind::Reconcile),
            Decision::Resolve { .. }
            | Decision::Release { .. }
            | Decision::Dismiss
            | Decision::Erase
            | Decision::Acknowledge { .. }
            | Decision::Promote { .. } => None,
        }
    }

    /// The delivery that it is about, if it is about one.
    pub(crate) const fn delivery(&self) -> Option<u32> {
        match self {
            Decision::Acknowledge { delivery } | Decision::Promote { delivery, .. } => {
                Some(*delivery)
            }
            Decision::Retry
            | Decision::Replay { .. }
            | Decision::Deliver { .. }
            | Decision::Reconcile { .. }
            | Decision::Resolve { .. }
            | Decision::Release { .. }
            | Decision::Dismiss
            | Decision::Erase => None,
        }
    }

    /// The state that goes along, if one does.
    pub(crate) const fn snapshot(&self) -> Option<&Bytes> {
        match self {
            Decision::Reconcile { snapshot } => Some(snapshot),
            Decision::Retry
            | Decision::Replay { .. }
            | Decision::Deliver { .. }
            | Decision::Resolve { .. }
            | Decision::Release { .. }
            | Decision::Dismiss
            | Decision::Erase
            | Decision::Acknowledge { .. }
            | Decision::Promote { .. } => None,
        }
    }

    /// The action that the verdict is about. What makes no run is judged as a retry would be: it shows where things stand.
    pub fn action(&self) -> Action<'_> {
        match self {
            Decision::Replay { force } => Action::Replay { force },
            Decision::Reconcile { .. } => Action::Reconcile,
            Decision::Retry
            | Decision::Deliver { .. }
            | Decision::Resolve { .. }
            | Decision::Release { .. }
            | Decision::Dismiss
            | Decision::Erase
            | Decision::Acknowledge { .. }
            | Decision::Promote { .. } => Action::Retry,
        }
    }
}

/// What became of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Commanded {
    /// It was carried out, or would be.
    Done(Done),
    /// A request with the same key came before.
    Before(Before),
    /// Nothing was done.
    Refused {
        /// Why not.
        why: WhyNot,
        /// Where things stand.
        verdict: Box<Verdict>,
    },
    /// There is no such event.
    NoEvent,
}

/// A command that was carried out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Done {
    /// The run it made.
    pub run: Option<RunId>,
    /// For runs and dry runs, what was decided on: the verdict before. For all else, where things stand now.
    pub verdict: Verdict,
    /// The event that a conflict became.
    pub promoted: Option<EventId>,
    /// What is said to whoever gave the command, as JSON; said again to a repeat of the request.
    pub answer: String,
    /// Lanes in which something can be claimed now: of this event, of the one that a conflict became, and what the command set
    /// free elsewhere.
    pub opened: Vec<Arc<str>>,
}

/// Why nothing was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhyNot {
    /// The ledger is not what the command says it was.
    Moved,
    /// A person has to decide something first.
    NeedsDecision,
    /// The event has no such effect.
    NoEffect,
    /// The effect's state does not allow it.
    Rejected(Rejected),
    /// The event does not wait for a person.
    NotHeld,
    /// There is no conflict in that delivery, or it was decided on before.
    NoConflict,
    /// There are no bytes left that could be sent.
    PayloadReaped,
}

/// One pass over an event that somebody asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    /// Its id.
    pub id: RunId,
    /// Why.
    pub kind: RunKind,
    /// Who asked.
    pub actor: Arc<str>,
    /// Their reason.
    pub reason: String,
    /// When.
    pub at: Time,
    /// The run before it; the first one's is [`RunId::initial`].
    pub parent: RunId,
    /// What the source of truth said, of a reconcile.
    pub snapshot: Option<Bytes>,
}

/// All that a verdict on an event depends on, read in one picture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventFacts {
    /// The store's time.
    pub now: Time,
    /// Its payload.
    pub payload: Kept,
    /// Its deliveries, attempts and runs.
    pub ledger: Kept,
    /// Why the event as a whole waits for a person, if it does.
    pub held: Option<String>,
    /// Deliveries with another body that nobody has decided on.
    pub conflicts_open: u32,
    /// Deliveries of a message that are still to be made: see [`crate::Outbox::fan_out`].
    pub to_come: u64,
    /// Its effects in plan order, those it shares with other events included.
    pub effects: Vec<EffectFacts>,
}

/// One effect of the event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EffectFacts {
    /// The effect.
    pub effect: Effect,
    /// Names of the effects of this event that come first.
    pub after: Vec<String>,
    /// What its order would say if it started now; [`OrderVerdict::Go`] without one.
    pub order: OrderVerdict,
}

impl EventFacts {
    /// The verdict on an action.
    pub fn verdict(&self, action: Action<'_>, classes: &Classes) -> Verdict {
        let effects = self.effects.iter().map(|facts| {
            let effect = &facts.effect;
            let current = classes.get(&effect.name).copied();
            EffectLine {
                name: &effect.name,
                key: &effect.key,
                record: current.map_or(effect.record, |class| effect.record.under(class)),
                after: &facts.after,
                order: facts.order.clone(),
            }
        });
        let ledger = EventLedger {
            now: self.now,
            payload: self.payload,
            ledger: self.ledger,
            held: self.held.as_deref(),
            conflicts_open: self.conflicts_open,
            to_come: self.to_come,
            effects: effects.collect(),
        };
        verdict_on(&ledger, action)
    }
}

//! What a command means for the effects of its event. Pure: every store carries out the same deeds, in the transaction in which it
//! read the facts.

use hapax_ledger::effect::{EffectState, SkipReason};
use hapax_ledger::id::{EffectId, EventId, RunId};
use hapax_ledger::order::Gate;
use hapax_ledger::transition::{EffectStep, Resolution, Resolver, step};
use hapax_ledger::verdict::{Kept, Verdict, VerdictKind, Would};
use serde_json::{Value, json};

use crate::error::{StoreError, StoreErrorKind};
use crate::nouns::{
    Arrival, Command, Decision, Effect, EffectFacts, EventFacts, NewEffect, NewEvent, WhyNot,
};
use crate::own::is_own;

/// What is to be written, beside the run and the audit record.
#[derive(Debug)]
pub(crate) struct Deeds {
    /// The verdict on which it was decided.
    pub(crate) verdict: Verdict,
    /// Steps of effects, each of which the ledger's machine allows.
    pub(crate) steps: Vec<Deed>,
    /// The event waits for nobody any more.
    pub(crate) frees_event: bool,
}

/// What happens to one effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Deed {
    pub(crate) effect: EffectId,
    /// `None`: only the marks below.
    pub(crate) step: Option<EffectStep>,
    /// Its order lets it go ahead from now on, whatever it says.
    pub(crate) release: bool,
    /// It waits for no person any more: its gate is what the others make of it.
    pub(crate) anew: bool,
    /// The decision's snapshot goes along with its next attempts, instead of an earlier one.
    pub(crate) with_snapshot: bool,
}

/// Decides, or says why not.
pub(crate) fn decide(facts: &EventFacts, command: &Command) -> Result<Deeds, (WhyNot, Verdict)> {
    let verdict = facts.verdict(command.decision.action(), &command.classes);
    if command
        .if_revision
        .is_some_and(|seen| seen != verdict.revision)
    {
        return Err((WhyNot::Moved, verdict));
    }
    match steps(facts, command, &verdict) {
        Ok(steps) => Ok(Deeds {
            verdict,
            steps,
            frees_event: matches!(
                command.decision,
                Decision::Release { .. } | Decision::Dismiss
            ),
        }),
        Err(why) => Err((why, verdict)),
    }
}

fn steps(facts: &EventFacts, command: &Command, verdict: &Verdict) -> Result<Vec<Deed>, WhyNot> {
    let only = command.only.as_deref();
    let named = only.unwrap_or_default();
    if !named.iter().all(|name| is_there(facts, name)) {
        return Err(WhyNot::NoEffect);
    }
    let needs_decision = match only {
        None => verdict.verdict == VerdictKind::NeedsDecision,
        // What others of the event wait for is no reason to hold these back.
        Some(_) => limited(facts, command).verdict == VerdictKind::NeedsDecision,
    };
    match &command.decision {
        Decision::Retry | Decision::Reconcile { .. } if needs_decision => {
            Err(WhyNot::NeedsDecision)
        }
        Decision::Replay { force } if force.is_empty() && needs_decision => {
            Err(WhyNot::NeedsDecision)
        }
        Decision::Replay { force } if !force.iter().all(|name| is_there(facts, name)) => {
            Err(WhyNot::NoEffect)
        }
        Decision::Retry => Ok(run(facts, verdict, only, &[], false)),
        Decision::Replay { force } => Ok(run(facts, verdict, only, force, false)),
        Decision::Reconcile { .. } => Ok(run(facts, verdict, None, &[], true)),
        Decision::Deliver { .. } if facts.held.is_some() => Err(WhyNot::NeedsDecision),
        Decision::Deliver { .. } if facts.payload == Kept::Reaped => Err(WhyNot::PayloadReaped),
        Decision::Deliver { .. } => Ok(Vec::new()),
        Decision::Resolve { effect, resolution } => {
            resolve(facts, *effect, *resolution).map(|deed| vec![deed])
        }
        Decision::Release { .. } | Decision::Dismiss if facts.held.is_none() => {
            Err(WhyNot::NotHeld)
        }
        Decision::Release { .. } => Ok(release(facts)),
        Decision::Dismiss => Ok(dismiss(facts)),
        Decision::Erase => Ok(erase(facts, command.event)),
        Decision::Acknowledge { .. } | Decision::Promote { .. } => Ok(Vec::new()),
    }
}

fn is_there(facts: &EventFacts, name: &str) -> bool {
    facts
        .effects
        .iter()
        .any(|facts| &*facts.effect.name == name)
}

/// The verdict on what a command is limited to.
fn limited(facts: &EventFacts, command: &Command) -> Verdict {
    let only = command.only.as_deref();
    let effects = facts.effects.iter();
    let named = effects.filter(|facts| is_meant(only, &facts.effect.name));
    let these = EventFacts {
        effects: named.cloned().collect(),
        held: facts.held.clone(),
        ..*facts
    };
    these.verdict(command.decision.action(), &command.classes)
}

/// Does a command that is limited to these names mean this one?
fn is_meant(only: Option<&[String]>, name: &str) -> bool {
    only.is_none_or(|only| only.iter().any(|meant| meant == name))
}

/// Does a command mean the effect of this name?
fn is_about(command: &Command, name: &str) -> bool {
    match (&command.only, &command.decision) {
        (Some(only), _) => is_meant(Some(only), name),
        (None, Decision::Deliver { effects }) => effects.iter().any(|new| *new.name == *name),
        (None, _) => true,
    }
}

/// Whoever names a delivery that was skipped because its endpoint was disabled wants it sent now.
fn comes_back(only: Option<&[String]>, effect: &Effect) -> bool {
    only.is_some() && effect.record.skip == Some(SkipReason::EndpointDisabled)
}

/// What the verdict says would be sent, is. What is under way stays so, and what waits for a lost worker is left to the rescue.
fn run(
    facts: &EventFacts,
    verdict: &Verdict,
    only: Option<&[String]>,
    force: &[String],
    reconcile: bool,
) -> Vec<Deed> {
    let lines = facts.effects.iter().zip(&verdict.effects);
    let lines = lines.filter(|(facts, _)| is_meant(only, &facts.effect.name));
    let sent =
        lines.filter(|(facts, line)| line.would == Would::Send || comes_back(only, &facts.effect));
    let deeds = sent.filter_map(|(EffectFacts { effect, .. }, _)| {
        let forced = force.iter().any(|name| **name == *effect.name);
        let again = forced || reconcile;
        let now = facts.now;
        let step = match effect.record.state {
            EffectState::Pending => EffectStep::Revive { now },
            EffectState::Claimed => return None,
            EffectState::Done
            | EffectState::Uncertain
            | EffectState::Dead
            | EffectState::Skipped
                if again =>
            {
                EffectStep::Force { now }
            }
            EffectState::Done
            | EffectState::Uncertain
            | EffectState::Dead
            | EffectState::Skipped => EffectStep::Revive { now },
        };
        step_of(&effect.record, step).map(|step| Deed {
            effect: effect.id,
            step: Some(step),
            release: forced,
            // What ended while it waited for a person and comes back asks again when it starts.
            anew: forced || effect.record.state != EffectState::Pending,
            with_snapshot: reconcile,
        })
    });
    deeds.collect()
}

/// A step that the machine allows.
fn step_of(record: &hapax_ledger::effect::EffectRecord, wanted: EffectStep) -> Option<EffectStep> {
    step(record, &wanted).is_ok().then_some(wanted)
}

fn resolve(facts: &EventFacts, id: EffectId, resolution: Resolution) -> Result<Deed, WhyNot> {
    let mut all = facts.effects.iter().map(|facts| &facts.effect);
    let effect = all.find(|effect| effect.id == id).ok_or(WhyNot::NoEffect)?;
    let wanted = match (resolution, effect.record.state) {
        (Resolution::Skip, EffectState::Pending | EffectState::Dead) => EffectStep::Skip {
            reason: SkipReason::Operator,
        },
        _ => EffectStep::Resolve {
            resolution,
            by: Resolver::Person,
            now: facts.now,
        },
    };
    step(&effect.record, &wanted).map_err(WhyNot::Rejected)?;
    Ok(Deed {
        effect: id,
        step: Some(wanted),
        release: false,
        anew: false,
        with_snapshot: false,
    })
}

/// What its order holds for a person goes ahead.
fn release(facts: &EventFacts) -> Vec<Deed> {
    let effects = facts.effects.iter().map(|facts| &facts.effect);
    let held = effects.filter(|effect| {
        effect.record.state == EffectState::Pending && effect.gate == Gate::Review
    });
    let deeds = held.map(|effect| Deed {
        effect: effect.id,
        step: None,
        release: true,
        anew: true,
        with_snapshot: false,
    });
    deeds.collect()
}

fn dismiss(facts: &EventFacts) -> Vec<Deed> {
    let reason = SkipReason::Dismissed;
    let effects = facts.effects.iter().map(|facts| &facts.effect);
    let pending = effects.filter(|effect| effect.record.state == EffectState::Pending);
    let deeds = pending.map(|effect| Deed {
        effect: effect.id,
        step: Some(EffectStep::Skip { reason }),
        release: false,
        anew: false,
        with_snapshot: false,
    });
    deeds.collect()
}

/// What would be sent with the event's bytes is not sent any more. The user's own code needs none, and goes on.
fn erase(facts: &EventFacts, event: EventId) -> Vec<Deed> {
    let reason = SkipReason::Erased;
    let effects = facts.effects.iter().map(|facts| &facts.effect);
    let unsent = effects.filter(|effect| {
        effect.record.state == EffectState::Pending
            && effect.event == event
            && !is_own(&effect.lane)
    });
    let deeds = unsent.map(|effect| Deed {
        effect: effect.id,
        step: Some(EffectStep::Skip { reason }),
        release: false,
        anew: false,
        with_snapshot: false,
    });
    deeds.collect()
}

/// Effects that a command plans: nobody waits to send them, so none is born claimed.
pub(crate) fn unborn(effects: &[NewEffect]) -> Vec<NewEffect> {
    let unborn = |new: &NewEffect| NewEffect {
        born: None,
        ..new.clone()
    };
    effects.iter().map(unborn).collect()
}

/// Effects that a command plans for an event that had its turn: see [`Decision::Deliver`].
pub(crate) fn late(effects: &[NewEffect]) -> Vec<NewEffect> {
    let late = |new: &NewEffect| NewEffect {
        born: None,
        order: None,
        after: Vec::new(),
        ..new.clone()
    };
    effects.iter().map(late).collect()
}

/// A conflict becomes one event. To be asked before a transaction is touched.
pub(crate) fn sound(command: &Command) -> Result<(), StoreError> {
    match &command.decision {
        Decision::Promote { arrival, .. } if arrival.events.len() != 1 => Err(StoreError::new(
            StoreErrorKind::Unavailable,
            "a conflict becomes one event, no more and no less",
        )),
        _ => Ok(()),
    }
}

/// The arrival that a conflict becomes.
pub(crate) fn promoted(arrival: &Arrival) -> Arrival {
    let events = arrival.events.iter().map(|event| NewEvent {
        effects: unborn(&event.effects),
        ..event.clone()
    });
    Arrival {
        events: events.collect(),
        ..arrival.clone()
    }
}

/// What is said to whoever gave a command, and kept with its audit record: of the effects those that it means, since a message may have
/// thousands, and each of a job's commands is about one.
pub(crate) fn answer(
    command: &Command,
    run: Option<RunId>,
    promoted: Option<EventId>,
    verdict: &Verdict,
) -> String {
    let mut verdict = verdict.clone();
    verdict.effects.retain(|line| is_about(command, &line.name));
    let mut answer = json!({ "verdict": verdict_json(&verdict) });
    if let Some(run) = run {
        answer["runId"] = run.to_string().into();
    }
    if let Some(promoted) = promoted {
        answer["eventId"] = promoted.to_string().into();
    }
    answer.to_string()
}

/// A verdict as users see it.
pub fn verdict_json(verdict: &Verdict) -> Value {
    let effects = verdict.effects.iter().map(|effect| {
        json!({
            "name": effect.name,
            "key": effect.key,
            "state": effect.state.word(),
            "repeat": effect.repeat.word(),
            "would": effect.would.word(),
            "why": effect.why,
        })
    });
    json!({
        "revision": verdict.revision,
        "verdict": verdict.verdict.word(),
        "reasons": verdict.reasons,
        "effects": effects.collect::<Vec<Value>>(),
    })
}

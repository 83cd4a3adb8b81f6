//! What operators decide: one decision, its deeds, its run and its audit record.

use std::collections::BTreeSet;
use std::sync::Arc;

use hapax_ledger::effect::EffectState;
use hapax_ledger::id::{EffectId, EventId, RawId, RunId};
use hapax_ledger::order::Gate;
use hapax_ledger::time::Time;

use super::effects::{Effects, Planning};
use super::state::State;
use crate::deeds::{self, Deed, Deeds};
use crate::nouns::{Command, Commanded, ConflictDecision, Decision, Done, NewEffect, Run, WhyNot};

impl State {
    pub(super) fn command(&mut self, command: &Command, now: Time) -> Commanded {
        if let Some(before) = self.catalog.before(&command.by) {
            return Commanded::Before(before);
        }
        let Some(facts) = self.facts(command.event, now) else {
            return Commanded::NoEvent;
        };
        let deeds = match deeds::decide(&facts, command) {
            Ok(deeds) => deeds,
            Err((why, verdict)) => {
                let verdict = Box::new(verdict);
                return Commanded::Refused { why, verdict };
            }
        };
        if !self.has_conflict(command) {
            return Commanded::Refused {
                why: WhyNot::NoConflict,
                verdict: Box::new(deeds.verdict),
            };
        }
        if command.dry_run {
            return Commanded::Done(Done {
                run: None,
                answer: deeds::answer(command, None, None, &deeds.verdict),
                verdict: deeds.verdict,
                promoted: None,
                opened: Vec::new(),
            });
        }
        Commanded::Done(self.carry_out(command, deeds, now))
    }

    /// Is the delivery that the command is about, if it is about one, a conflict that nobody has decided on?
    fn has_conflict(&self, command: &Command) -> bool {
        let row = self.events.get(&command.event);
        command.decision.delivery().is_none_or(|wanted| {
            row.is_some_and(|row| row.open_conflicts().any(|number| number == wanted))
        })
    }

    fn carry_out(&mut self, command: &Command, deeds: Deeds, now: Time) -> Done {
        let event = command.event;
        if deeds.frees_event
            && let Some(row) = self.events.get_mut(&event)
        {
            row.event.review = None;
        }
        for deed in &deeds.steps {
            self.effects.carry_out(deed, &command.decision);
        }
        let mut promoted = None;
        match &command.decision {
            Decision::Release { effects } if self.effects.of_event(event).is_empty() => {
                self.plan(event, &deeds::unborn(effects), now);
            }
            Decision::Deliver { effects } => self.plan(event, &deeds::late(effects), now),
            Decision::Acknowledge { delivery } => {
                self.decide_on(event, *delivery, ConflictDecision::Acknowledged);
            }
            Decision::Promote { delivery, arrival } => {
                let arrival = deeds::promoted(arrival);
                promoted = arrival
                    .events
                    .first()
                    .map(|new| self.accept(&arrival, new, now).event);
                if let Some(became) = promoted {
                    self.decide_on(event, *delivery, ConflictDecision::Promoted(became));
                }
            }
            Decision::Release { .. }
            | Decision::Retry
            | Decision::Replay { .. }
            | Decision::Reconcile { .. }
            | Decision::Resolve { .. }
            | Decision::Dismiss => {}
            Decision::Erase => self.erase(event),
        }
        let opened = self.settle();
        let claimable = [Some(event), promoted].into_iter().flatten();
        let claimable = claimable.flat_map(|event| self.effects.claimable(event));
        let opened: BTreeSet<Arc<str>> = opened.into_iter().chain(claimable).collect();
        let run = self.add_run(command);
        let verdict = match (run, self.facts(event, now)) {
            (None, Some(facts)) => facts.verdict(command.decision.action(), &command.classes),
            (Some(_), _) | (None, None) => deeds.verdict,
        };
        let answer = deeds::answer(command, run, promoted, &verdict);
        let (by, word) = (&command.by, command.decision.word());
        self.catalog
            .write_down(by, word, command.subject(), answer.clone(), Some(event));
        Done {
            run,
            verdict,
            promoted,
            answer,
            opened: opened.into_iter().collect(),
        }
    }

    /// An event that was there already is planned now.
    pub(super) fn plan(&mut self, event: EventId, effects: &[NewEffect], now: Time) {
        let Some(row) = self.events.get(&event) else {
            return;
        };
        let received_at = row.event.received_at;
        let event_type = row.event.event_type.clone().unwrap_or_default();
        let planning = Planning {
            now,
            event,
            received_at,
            event_type: &event_type,
        };
        let rows = &mut self.rows;
        self.effects.plan(&planning, effects, || {
            *rows += 1;
            EffectId(RawId::new(received_at, 0, *rows))
        });
    }

    fn decide_on(&mut self, event: EventId, number: u32, decision: ConflictDecision) {
        let row = self.events.get_mut(&event);
        let mut deliveries = row.into_iter().flat_map(|row| &mut row.deliveries);
        if let Some(delivery) = deliveries.find(|delivery| delivery.number == number) {
            delivery.decided = Some(decision);
        }
    }

    /// The run that a command makes, if it makes one: it follows the latest.
    fn add_run(&mut self, command: &Command) -> Option<RunId> {
        let kind = command.decision.run()?;
        let row = self.events.get_mut(&command.event)?;
        let latest = row.runs.last().map(|run| run.id);
        row.runs.push(Run {
            id: command.run,
            kind,
            actor: command.by.actor.clone(),
            reason: command.by.reason.clone(),
            at: command.by.at,
            parent: latest.unwrap_or(RunId::initial(command.event)),
            snapshot: command.decision.snapshot().cloned(),
        });
        Some(command.run)
    }
}

impl Effects {
    fn carry_out(&mut self, deed: &Deed, decision: &Decision) {
        let Some(row) = self.rows.get_mut(&deed.effect) else {
            return;
        };
        row.effect.released |= deed.release && row.effect.order.is_some();
        if deed.anew {
            row.effect.gate = Gate::Waiting;
        }
        if deed.with_snapshot {
            row.snapshot = decision.snapshot().cloned();
        }
        if let Some(step) = deed.step {
            row.take(step);
        }
    }

    /// Lanes in which something that the event calls for can be claimed.
    fn claimable(&self, event: EventId) -> Vec<Arc<str>> {
        let effects = self.of_event(event).into_iter();
        let claimable = effects.filter(|effect| {
            effect.record.state == EffectState::Pending && effect.gate == Gate::Open
        });
        claimable.map(|effect| effect.lane).collect()
    }
}

//! Effects in memory: the ledger's machine over a map.

use std::collections::BTreeMap;
use std::sync::Arc;

use hapax_ledger::claim::born_started;
use hapax_ledger::effect::{EffectRecord, EffectState};
use hapax_ledger::event::EventStatus;
use hapax_ledger::id::{EffectId, EventId};
use hapax_ledger::lease::Fence;
use hapax_ledger::outcome::{Lost, Outcome};
use hapax_ledger::status::Hold;
use hapax_ledger::time::Time;
use hapax_ledger::transition::{Change, EffectStep, Rejected, step};

use crate::nouns::{Attempt, ClaimAsk, Claimed, Effect, EffectDetail, Move, Moved, NewEffect};

/// The model never restarts, so its epoch never rises.
const EPOCH: u32 = 1;

pub(super) struct Row {
    pub(super) effect: Effect,
    pub(super) events: Vec<EventId>,
    attempts: Vec<Attempt>,
    attempts_max: u32,
    node: Arc<str>,
    started_at: Time,
}

/// All effects, in the order of their ids.
#[derive(Default)]
pub(super) struct Effects {
    rows: BTreeMap<EffectId, Row>,
}

impl Effects {
    /// Plans the effects of an event: each is new, or linked where its key exists already (D6).
    pub(super) fn plan(
        &mut self,
        now: Time,
        event: EventId,
        new: &[NewEffect],
        mut id: impl FnMut() -> EffectId,
    ) -> Vec<Option<Claimed>> {
        new.iter()
            .map(|new| self.plan_one(now, event, new, &mut id))
            .collect()
    }

    fn plan_one(
        &mut self,
        now: Time,
        event: EventId,
        new: &NewEffect,
        id: &mut impl FnMut() -> EffectId,
    ) -> Option<Claimed> {
        let same = |row: &&mut Row| row.effect.name == new.name && row.effect.key == new.key;
        if let Some(row) = self.rows.values_mut().find(same) {
            if !row.events.contains(&event) {
                row.events.push(event);
            }
            return None;
        }
        let planned = EffectRecord::planned(new.repeat, new.not_before);
        let born = new
            .born
            .as_ref()
            .and_then(|born| born_started(&planned, now, EPOCH, born.lease));
        let effect = Effect {
            id: id(),
            event,
            name: new.name.clone(),
            key: new.key.clone(),
            lane: new.lane.clone(),
            record: born.unwrap_or(planned),
        };
        let row = Row {
            effect: effect.clone(),
            events: vec![event],
            attempts: Vec::new(),
            attempts_max: new.attempts_max,
            node: new
                .born
                .as_ref()
                .map_or_else(|| "".into(), |born| born.node.clone()),
            started_at: now,
        };
        self.rows.insert(effect.id, row);
        born.map(|_| Claimed { effect })
    }

    pub(super) fn claim(&mut self, now: Time, ask: &ClaimAsk) -> Vec<Claimed> {
        let wanted = EffectStep::Claim {
            now,
            epoch: EPOCH,
            lease: ask.lease,
        };
        let mut due: Vec<(Time, EffectId)> = self
            .rows
            .values()
            .filter(|row| step(&row.effect.record, &wanted).is_ok())
            .map(|row| (row.effect.record.next_attempt_at, row.effect.id))
            .collect();
        due.sort_unstable();
        due.truncate(ask.limit as usize);
        let mut claimed = Vec::new();
        for (_, id) in due {
            let Some(row) = self.rows.get_mut(&id) else {
                continue;
            };
            if let Ok(change) = step(&row.effect.record, &wanted) {
                row.node = ask.node.clone();
                row.effect.record = change.next;
                claimed.push(Claimed {
                    effect: row.effect.clone(),
                });
            }
        }
        claimed
    }

    pub(super) fn advance(&mut self, now: Time, id: EffectId, fence: Fence, what: Move) -> Moved {
        let Some(row) = self.rows.get_mut(&id) else {
            return Moved::NoEffect;
        };
        let wanted = what.step(fence, now);
        match (step(&row.effect.record, &wanted), what) {
            (Ok(change), Move::Settle(outcome, _)) => row.end(now, outcome, change),
            (Ok(change), Move::Start) => {
                row.started_at = now;
                row.become_(change)
            }
            (Ok(change), Move::Extend(_) | Move::Release(_) | Move::Skip(_)) => row.become_(change),
            (Err(rejected), Move::Settle(outcome, _)) => {
                if rejected == Rejected::StaleFence {
                    row.keep_late(now, fence, outcome);
                }
                Moved::Refused(rejected)
            }
            (Err(rejected), _) => Moved::Refused(rejected),
        }
    }

    pub(super) fn rescue(&mut self, now: Time) -> u32 {
        let mut freed = 0;
        for row in self
            .rows
            .values_mut()
            .filter(|row| row.effect.record.state == EffectState::Claimed)
        {
            let wanted = EffectStep::Expire {
                now,
                attempts_max: row.attempts_max,
            };
            if let Ok(change) = step(&row.effect.record, &wanted) {
                match row.effect.record.started {
                    true => row.end(
                        now,
                        Outcome::Lost {
                            why: Lost::LostLease,
                        },
                        change,
                    ),
                    false => row.become_(change),
                };
                freed += 1;
            }
        }
        freed
    }

    pub(super) fn detail(&self, id: EffectId) -> Option<EffectDetail> {
        let row = self.rows.get(&id)?;
        Some(EffectDetail {
            effect: row.effect.clone(),
            attempts: row.attempts.clone(),
        })
    }

    /// An event's effects: its own in plan order, then those it shares with an earlier event.
    pub(super) fn of_event(&self, event: EventId) -> Vec<Effect> {
        let mut effects: Vec<Effect> = self
            .rows
            .values()
            .filter(|row| row.events.contains(&event))
            .map(|row| row.effect.clone())
            .collect();
        effects.sort_by_key(|effect| (effect.event != event, effect.id));
        effects
    }

    pub(super) fn status(&self, event: EventId) -> EventStatus {
        let states = self
            .of_event(event)
            .into_iter()
            .map(|effect| (effect.record.state, effect.record.skip));
        EventStatus::of_effects(states, Hold::Free)
    }

    /// An effect's key holds as long as any event that calls for it is known (B5).
    pub(super) fn forget_event(&mut self, event: EventId) {
        for row in self.rows.values_mut() {
            row.events.retain(|other| *other != event);
        }
        self.rows.retain(|_, row| !row.events.is_empty());
    }
}

impl Row {
    fn become_(&mut self, change: Change) -> Moved {
        self.effect.record = change.next;
        Moved::Done(change)
    }

    fn end(&mut self, now: Time, outcome: Outcome, change: Change) -> Moved {
        let record = self.effect.record;
        self.attempts.push(Attempt {
            generation: record.generation,
            number: record.attempts,
            fence: record.fence,
            node: self.node.clone(),
            started_at: self.started_at,
            ended_at: now,
            outcome,
            late: None,
        });
        self.become_(change)
    }

    fn keep_late(&mut self, now: Time, fence: Fence, outcome: Outcome) {
        let ran = self
            .attempts
            .iter_mut()
            .find(|attempt| attempt.fence == fence && attempt.late.is_none());
        if let Some(attempt) = ran {
            attempt.late = Some((now, outcome));
        }
    }
}

//! What operators decide and what the user's own code claims, on both sides.

use std::collections::hash_map::Entry;

use bytes::Bytes;
use hapax_ledger::effect::{EffectState, Repeat};
use hapax_ledger::id::{EffectId, EventId, RawId, RunId};
use hapax_ledger::key::{KeyHash, KeyKind};
use hapax_ledger::verdict::Action;

use super::super::operator::{ada, asking, log};
use super::super::sample::{arrival, at, event};
use super::super::worker::{due, names};
use super::decision::{DecisionSketch, LATEST_EVENTS, OWN_NAMES, OperateCommand, Revision};
use super::sketch::{LEASE, NAMES, REPEATS, new_effects};
use super::{Pair, keep};
use crate::nouns::{Classes, Command, Commanded, Decision, Effect, NewEvent, OwnClaim, OwnClaimed};

impl Pair {
    pub(super) async fn operate(&mut self, command: &OperateCommand) {
        match command {
            OperateCommand::Decide {
                latest, decision, ..
            } => {
                let event = self.fitting(*latest, decision).await;
                if let Some(event) = event.or(self.latest(*latest)) {
                    self.decide(event, command).await;
                }
            }
            OperateCommand::Own {
                latest,
                name,
                key,
                repeat,
            } => {
                let event = latest.and_then(|latest| self.latest(latest));
                let name = OWN_NAMES[*name];
                self.claim_own(event, name, &key.to_string(), REPEATS[*repeat])
                    .await;
            }
            OperateCommand::Facts { latest } => {
                if let Some(event) = self.latest(*latest) {
                    self.look_at_facts(event).await;
                }
            }
        }
    }

    fn latest(&self, latest: usize) -> Option<(EventId, EventId)> {
        self.given.iter().rev().nth(latest).copied()
    }

    /// One of the latest events for which it is a decision at all: most are not held, and have no conflict.
    async fn fitting(
        &self,
        latest: usize,
        decision: &DecisionSketch,
    ) -> Option<(EventId, EventId)> {
        let given = self.given.iter().rev();
        let around = given.clone().skip(latest).chain(given.take(latest));
        for on in around.take(2 * LATEST_EVENTS) {
            let facts = self.model.facts(on.1).await.expect("the model reads");
            let fits = facts.is_some_and(|facts| match decision {
                DecisionSketch::Release { .. } | DecisionSketch::Dismiss => facts.held.is_some(),
                DecisionSketch::Acknowledge { .. } | DecisionSketch::Promote { .. } => {
                    facts.conflicts_open > 0
                }
                DecisionSketch::Resolve { .. } => {
                    let mut effects = facts.effects.iter();
                    effects.any(|one| one.effect.record.state == EffectState::Uncertain)
                }
                DecisionSketch::Retry
                | DecisionSketch::Replay { .. }
                | DecisionSketch::Erase
                | DecisionSketch::Reconcile => true,
            });
            if fits {
                return Some(*on);
            }
        }
        None
    }

    async fn decide(&mut self, on: (EventId, EventId), sketch: &OperateCommand) {
        let OperateCommand::Decide {
            decision,
            dry_run,
            request,
            revision,
            strict,
            only,
            ..
        } = sketch
        else {
            return;
        };
        self.look_at_facts(on).await;
        self.runs += 1;
        let classes = match strict {
            true => Classes::from([(NAMES[0].into(), Repeat::Once)]),
            false => Classes::new(),
        };
        let (theirs, ours) = self.decisions(on, decision).await;
        let seen = match revision {
            Revision::None => (None, None),
            Revision::Current => self.revisions(on, (&theirs, &ours), &classes, 0).await,
            Revision::Outdated => self.revisions(on, (&theirs, &ours), &classes, 1).await,
        };
        let command = |event, decision, if_revision| Command {
            event,
            decision,
            only: only.map(|name| vec![NAMES[name].to_owned()]),
            by: request.map_or_else(ada, |number| {
                // The same key with another question, every so often.
                asking(&format!("r{}", number / 2), number)
            }),
            if_revision,
            dry_run: *dry_run,
            run: RunId(RawId::new(at(0), 0, self.runs)),
            classes: classes.clone(),
        };
        let theirs = command(on.0, theirs, seen.0);
        let ours = command(on.1, ours, seen.1);
        let theirs = self.store.command(theirs).await.expect("the store obeys");
        let ours = self.model.command(ours).await.expect("the model obeys");
        if let (Commanded::Done(theirs), Commanded::Done(ours)) = (&theirs, &ours)
            && let (Some(theirs), Some(ours)) = (theirs.promoted, ours.promoted)
        {
            self.meet(theirs, ours).await;
        }
        self.meet_effects(on.0, on.1).await;
        self.same_command(theirs, ours, &format!("{sketch:?}"))
            .await;
    }

    async fn revisions(
        &self,
        on: (EventId, EventId),
        decisions: (&Decision, &Decision),
        classes: &Classes,
        off: u64,
    ) -> (Option<u64>, Option<u64>) {
        let seen = async |store: &super::Subject, event, action: Action<'_>| {
            let facts = store.facts(event).await.expect("the store reads");
            facts.map(|facts| facts.verdict(action, classes).revision + off)
        };
        (
            seen(&self.store, on.0, decisions.0.action()).await,
            seen(&self.model, on.1, decisions.1.action()).await,
        )
    }

    /// The decision as the store and as the model is told.
    async fn decisions(
        &self,
        on: (EventId, EventId),
        sketch: &DecisionSketch,
    ) -> (Decision, Decision) {
        let both = |decision: Decision| (decision.clone(), decision);
        match sketch {
            DecisionSketch::Retry => both(Decision::Retry),
            DecisionSketch::Replay { force } => {
                let effects = self.effects_of(on.1).await;
                let all = effects.iter().map(|effect| &*effect.name).chain(["nobody"]);
                let named = all.enumerate().filter(|(bit, _)| force & (1 << bit) != 0);
                let force = named.map(|(_, name)| name.to_owned()).collect();
                both(Decision::Replay { force })
            }
            DecisionSketch::Reconcile => both(Decision::Reconcile {
                snapshot: Bytes::from(format!("state {}", self.runs)),
            }),
            DecisionSketch::Resolve { nth, resolution } => {
                let (theirs, ours) = self.resolvable(on.1, *nth).await;
                let resolve = |effect| Decision::Resolve {
                    effect,
                    resolution: *resolution,
                };
                (resolve(theirs), resolve(ours))
            }
            DecisionSketch::Release { effects } => both(Decision::Release {
                effects: new_effects(effects),
            }),
            DecisionSketch::Dismiss => both(Decision::Dismiss),
            DecisionSketch::Erase => both(Decision::Erase),
            DecisionSketch::Acknowledge { delivery } => both(Decision::Acknowledge {
                delivery: self.conflict(on.1, *delivery).await,
            }),
            DecisionSketch::Promote { delivery, effects } => {
                let key = format!("promoted {}", self.runs);
                let new = NewEvent {
                    effects: new_effects(effects),
                    keep: keep(0),
                    ..event("a", &key, "promoted")
                };
                both(Decision::Promote {
                    delivery: self.conflict(on.1, *delivery).await,
                    arrival: Box::new(arrival("a", self.clock, vec![new])),
                })
            }
        }
    }

    async fn effects_of(&self, ours: EventId) -> Vec<Effect> {
        let detail = self.model.event(ours).await.expect("the model reads");
        detail.map(|detail| detail.effects).unwrap_or_default()
    }

    /// An effect of the event, by both names: one that is uncertain if there is one; or one of another event.
    async fn resolvable(&self, ours: EventId, nth: usize) -> (EffectId, EffectId) {
        let effects = self.effects_of(ours).await;
        let uncertain = |effect: &&Effect| effect.record.state == EffectState::Uncertain;
        let wanted = effects.iter().find(uncertain).or(effects.get(nth));
        let mut given = self.effects.given.iter();
        let pair = match wanted.filter(|_| nth > 0) {
            Some(effect) => given.find(|pair| pair.1 == effect.id),
            None => given.next_back(),
        };
        let nobody = EffectId(RawId::new(at(0), 0, 0));
        pair.copied().unwrap_or((nobody, nobody))
    }

    /// The number of a delivery of the event: one that nobody has decided on if there is one, and sometimes any.
    async fn conflict(&self, ours: EventId, number: u32) -> u32 {
        let detail = self.model.event(ours).await.expect("the model reads");
        let deliveries = detail.into_iter().flat_map(|detail| detail.deliveries);
        let mut open = deliveries.filter(|one| one.conflict && one.decided.is_none());
        match number {
            0 => 1,
            _ => open.next().map_or(number, |delivery| delivery.number),
        }
    }

    /// The two names of one event are known from now on, and those of its effects.
    async fn meet(&mut self, theirs: EventId, ours: EventId) {
        if let Entry::Vacant(unnamed) = self.names.entry(theirs) {
            unnamed.insert(ours);
            self.given.push((theirs, ours));
        }
        self.meet_effects(theirs, ours).await;
    }

    async fn same_command(&mut self, theirs: Commanded, ours: Commanded, what: &str) {
        match (theirs, ours) {
            (Commanded::Done(theirs), Commanded::Done(ours)) => {
                assert_eq!(theirs.run, ours.run, "{what}");
                let promoted = theirs.promoted.map(|id| self.named(id));
                assert_eq!(promoted, ours.promoted, "{what}");
                let (opened, expected) = (names(theirs.opened), names(ours.opened));
                let missing = expected.iter().find(|lane| !opened.contains(lane));
                assert_eq!(missing, None, "opened by {what}");
                let claimable = names(
                    due(&self.store)
                        .await
                        .into_iter()
                        .map(|due| due.lane)
                        .collect(),
                );
                let too_many = opened.iter().find(|lane| !claimable.contains(lane));
                assert_eq!(too_many, None, "opened by {what}");
                self.same_verdict(theirs.verdict, ours.verdict, what);
                self.same_text(&theirs.answer, &ours.answer, what);
            }
            (
                Commanded::Refused { why, verdict },
                Commanded::Refused {
                    why: expected,
                    verdict: expected_verdict,
                },
            ) => {
                assert_eq!(why, expected, "{what}");
                self.same_verdict(*verdict, *expected_verdict, what);
            }
            (Commanded::Before(theirs), Commanded::Before(ours)) => {
                self.same_before(&theirs, &ours, what);
            }
            (theirs, ours) => assert_eq!(theirs, ours, "{what}"),
        }
    }

    async fn claim_own(
        &mut self,
        on: Option<(EventId, EventId)>,
        name: &str,
        key: &str,
        repeat: Repeat,
    ) {
        let claim = |event| OwnClaim {
            event,
            name: name.into(),
            key: key.into(),
            key_hash: KeyHash::of(KeyKind::Effect, name, key),
            repeat,
            actor: "shop".into(),
            lease: LEASE,
            at: self.clock,
            keep: keep(0),
        };
        let (theirs, ours) = (claim(on.map(|on| on.0)), claim(on.map(|on| on.1)));
        let theirs = self
            .store
            .claim_own(theirs)
            .await
            .expect("the store claims");
        let ours = self.model.claim_own(ours).await.expect("the model claims");
        if let (Some(theirs), Some(ours)) = (self.effect_of(&theirs), self.effect_of(&ours)) {
            let read = (
                self.store.effect(theirs).await.expect("the store reads"),
                self.model.effect(ours).await.expect("the model reads"),
            );
            if let (Some(theirs), Some(ours)) = read {
                self.meet(theirs.effect.event, ours.effect.event).await;
            }
        }
        if let OwnClaimed::Claimed { effect, fence } = &theirs {
            self.may_move(*effect, *fence);
        }
        let named = self.named_own(theirs);
        assert_eq!(named, ours, "{name} {key} claimed by own code");
    }

    pub(super) async fn look_at_log(&self) {
        let (theirs, ours) = (log(&self.store).await, log(&self.model).await);
        assert_eq!(theirs.len(), ours.len(), "records");
        for (theirs, ours) in theirs.iter().zip(&ours) {
            assert_eq!(theirs.action, ours.action);
            assert_eq!(self.named_text(&theirs.subject), ours.subject);
            self.same_text(&theirs.detail, &ours.detail, &ours.action);
        }
    }
}

//! Probes: asking whether an uncertain effect was applied, without a person.
//!
//! A "yes" counts at once. A "no" counts only when nothing can be on its way any more (D4), which the store decides; until then the
//! question is asked again.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use hapax_ledger::effect::EffectState;
use hapax_ledger::id::{EffectId, EventId};
use hapax_ledger::retry::{Next, Schedule};
use hapax_ledger::time::Span;
use hapax_ledger::transition::{Did, Rejected, Resolution, Resolver};
use hapax_store::StoreError;
use hapax_store::nouns::{Effect, Moved};

use super::ask::{self, ProbeAnswer};
use super::dispatcher::{Shared, lock};
use super::log::{Origin, Subject, of_effect};
use super::target::Target;
use crate::{clock, entropy};

/// Effects that wait for their probe in memory. Beyond this, a person has more to decide than probes.
const PROBES_MAX: usize = 10_000;
/// Probes under way at a time: they are few, and their targets are the operator's own.
const AT_A_TIME: usize = 8;
/// How long one may take.
const PROBE_TIMEOUT: Duration = Duration::from_secs(10);

/// Effects that wait for a probe. One that is being asked about stays known, so that nobody asks twice at a time.
#[derive(Default)]
pub(super) struct Probes {
    due: BTreeMap<(Instant, EffectId), Question>,
    known: HashSet<EffectId>,
}

#[derive(Clone)]
struct Question {
    event: EventId,
    name: Arc<str>,
    key: String,
    lane: Arc<str>,
    asked: u32,
}

impl Question {
    fn subject(&self, effect: EffectId) -> Subject<'_> {
        Subject {
            effect,
            event: self.event,
            name: &self.name,
            key: &self.key,
        }
    }
}

impl Probes {
    fn put(&mut self, at: Instant, effect: EffectId, question: Question) {
        if self.known.len() < PROBES_MAX && self.known.insert(effect) {
            self.due.insert((at, effect), question);
        }
    }

    fn take_due(&mut self, now: Instant) -> Vec<(EffectId, Question)> {
        let mut taken = Vec::new();
        while taken.len() < AT_A_TIME {
            match self.due.first_key_value() {
                Some(((at, _), _)) if *at <= now => {}
                Some(_) | None => break,
            }
            if let Some(((_, effect), question)) = self.due.pop_first() {
                taken.push((effect, question));
            }
        }
        taken
    }

    /// It has been asked about.
    fn forget(&mut self, effect: EffectId) {
        self.known.remove(&effect);
    }

    fn next(&self) -> Option<Instant> {
        self.due.first_key_value().map(|((at, _), _)| *at)
    }
}

/// When to ask: at once, when a "no" begins to count, and then ever more rarely; in the end once a day.
fn schedule() -> Schedule {
    let waits = [0, 35, 60, 300, 1_800, 7_200, 36_000, 86_400].map(Span::from_secs);
    Schedule::new(waits.to_vec()).unwrap_or_default()
}

impl Shared {
    /// An effect is uncertain: its probe is asked, if it has one.
    pub(super) fn ask_probe(&self, effect: &Effect) {
        let targets = self.targets.load();
        // By its lane, which is its target's name: what the user's own code carries out is in a lane of its own, and nobody's probe
        // speaks for it.
        let has_probe = targets
            .get(&effect.lane)
            .and_then(|target| target.effect())
            .is_some_and(|effect| effect.probe.is_some());
        if has_probe {
            let question = Question {
                event: effect.event,
                name: effect.name.clone(),
                key: effect.key.clone(),
                lane: effect.lane.clone(),
                asked: 0,
            };
            lock(&self.probes).put(clock::tick(), effect.id, question);
            self.probing.notify_one();
        }
    }

    /// Asks whenever it is time.
    pub(super) async fn probe(self: Arc<Self>) {
        loop {
            let earlier = self.probing.notified();
            let next = lock(&self.probes).next();
            match next {
                None => earlier.await,
                Some(at) if at > clock::tick() => {
                    let at = tokio::time::Instant::from_std(at);
                    // Either way there is something to look at.
                    let _ = tokio::time::timeout_at(at, earlier).await;
                }
                Some(_) => self.probe_due().await,
            }
        }
    }

    /// Asks for what is due, some at a time.
    pub(super) async fn probe_due(self: &Arc<Self>) {
        let due = lock(&self.probes).take_due(clock::tick());
        let mut asking = tokio::task::JoinSet::new();
        for (effect, question) in due {
            let shared = self.clone();
            asking.spawn(async move {
                let again = shared.probe_one(effect, &question).await;
                lock(&shared.probes).forget(effect);
                if again == Asked::Again {
                    shared.ask_again(effect, question);
                }
            });
        }
        while asking.join_next().await.is_some() {}
    }

    async fn probe_one(&self, effect: EffectId, question: &Question) -> Asked {
        let target = self.targets.load().get(&question.lane).cloned();
        let Some(target) = target else {
            return Asked::Enough;
        };
        if question.asked > 0 && self.is_decided(effect).await {
            return Asked::Enough;
        }
        let asked = self.drift.theirs(clock::tick());
        let answer = self.ask(&target, &question.key).await;
        let resolution = match &answer {
            ProbeAnswer::Applied => Some(Resolution::Applied),
            ProbeAnswer::NotApplied => Some(Resolution::NotApplied),
            ProbeAnswer::NoAnswer(_) => None,
        };
        self.metrics.effects.probed(&question.lane, answer.word());
        let Some(resolution) = resolution else {
            return Asked::Again;
        };
        let timeout =
            Span::from_micros(i64::try_from(target.timeout.as_micros()).unwrap_or(i64::MAX));
        let by = Resolver::Probe { timeout, asked };
        match self.resolve(effect, question, resolution, by).await {
            Ok(asked) => asked,
            Err(error) => {
                let origin = Origin::ask(&*self.store, question.event).await;
                of_effect!(warn, question.subject(effect), origin.as_ref(), %error,
                    "a probe's answer could not be kept; asking again");
                Asked::Again
            }
        }
    }

    /// Has somebody decided it since the question was first asked? What the store does not say now is asked about.
    async fn is_decided(&self, effect: EffectId) -> bool {
        let known = self.store.effect(effect).await.unwrap_or_default();
        known.is_some_and(|known| known.effect.record.state != EffectState::Uncertain)
    }

    async fn ask(&self, target: &Target, key: &str) -> ProbeAnswer {
        let effect = target.effect();
        match effect.and_then(|effect| Some((effect, effect.probe_url(key)?))) {
            Some((effect, url)) => {
                let get = ask::get(url, effect.headers.clone(), PROBE_TIMEOUT);
                ask::probe_answer(&self.sender.send(get).await)
            }
            None => ProbeAnswer::NoAnswer("its key fits no URL".to_owned()),
        }
    }

    async fn resolve(
        &self,
        effect: EffectId,
        question: &Question,
        said: Resolution,
        by: Resolver,
    ) -> Result<Asked, StoreError> {
        let advanced = self.store.resolve(effect, said, by).await;
        let advanced = advanced.inspect_err(|error| self.doubt(error))?;
        self.opened(&advanced);
        match advanced.moved {
            Moved::Done(change) => {
                if let Did::Waits { until } = change.did {
                    self.hear([(question.lane.clone(), until)]);
                }
                let origin = Origin::ask(&*self.store, question.event).await;
                of_effect!(
                    info,
                    question.subject(effect),
                    origin.as_ref(),
                    ?said,
                    "its probe has decided what was uncertain"
                );
                Ok(Asked::Enough)
            }
            Moved::Refused(Rejected::TooEarly { .. }) => Ok(Asked::Again),
            Moved::Refused(_)
            | Moved::NoEffect
            | Moved::Waits(_)
            | Moved::Stale(_)
            | Moved::Review(_) => Ok(Asked::Enough),
        }
    }

    fn ask_again(&self, effect: EffectId, mut question: Question) {
        let schedule = schedule();
        question.asked = (question.asked + 1).min(schedule.attempts_max() - 1);
        if let Next::At(wait) = schedule.next(question.asked, None, entropy::jitter().abs()) {
            let wait = Duration::from_micros(wait.micros().unsigned_abs());
            lock(&self.probes).put(clock::tick() + wait, effect, question);
        }
    }
}

/// Is the question answered?
#[derive(PartialEq, Eq)]
enum Asked {
    Enough,
    Again,
}

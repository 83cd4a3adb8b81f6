//! Probes: asking whether an uncertain effect was applied, without a person.
//!
//! A "yes" counts at once. A "no" counts only when nothing can be on its way any more (D4), which the store decides; it also says when that
//! will be, and then the question is asked again.

use std::sync::Arc;
use std::time::{Duration, Instant};

use hapax_ledger::effect::EffectState;
use hapax_ledger::id::EffectId;
use hapax_ledger::retry::{Next, Schedule};
use hapax_ledger::time::{Span, Time};
use hapax_ledger::transition::{Did, Rejected, Resolution, Resolver};
use hapax_store::StoreError;
use hapax_store::nouns::{Effect, EffectFilter, Moved, PAGE_MAX, Page, PageFrom};
use tokio::task::JoinSet;

use super::ask::{self, ProbeAnswer};
use super::dispatcher::{Shared, lock};
use super::drift::Drift;
use super::log::{Origin, of_effect};
use super::probes::{Put, Question};
use super::shards::Hold;
use super::target::Target;
use crate::{clock, entropy};

/// How long one may take.
const PROBE_TIMEOUT: Duration = Duration::from_secs(10);
/// Pages that are read at a time to find what is uncertain in a lane. A page may be nearly empty where others have much that is uncertain.
const PAGES_PER_READ_MAX: u32 = 40;

/// How soon after a "no" that came too early the question is asked again at the earliest, whatever the clocks say.
const TOO_EARLY_WAIT_MIN: Duration = Duration::from_secs(1);
/// And at the latest: the longest lease, the longest timeout and the grace, and a little more. A clock that was set back says more than that.
const TOO_EARLY_WAIT_MAX: Duration = Duration::from_secs(1_000);
/// So much later than the store says: what is known here of its clock is a moment old.
const TOO_EARLY_MARGIN: Duration = Duration::from_millis(100);

/// When to ask, until there is an answer: at once, soon, and then ever more rarely; in the end once a day.
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
        let target = targets.get(&effect.lane);
        if target.is_some_and(|target| has_probe(target)) {
            self.put_question(effect);
        }
    }

    fn put_question(&self, effect: &Effect) -> Put {
        let question = Question {
            event: effect.event,
            name: effect.name.clone(),
            key: effect.key.clone(),
            lane: effect.lane.clone(),
            asked: 0,
        };
        let put = lock(&self.probes).put(clock::tick(), effect.id, question);
        if put == Put::Overflows {
            let lane = &*effect.lane;
            tracing::warn!(
                lane,
                "more is uncertain than can wait for the probe; the rest is asked about later"
            );
        }
        self.probing.notify_one();
        put
    }

    /// What is uncertain in these shards is to be found.
    pub(super) fn find_uncertain_in(&self, shards: &[u16]) {
        let targets = self.targets.load();
        let probed = targets.iter().filter(|(_, target)| has_probe(target));
        let ours = probed.filter(|(_, target)| shards.contains(&target.shard));
        lock(&self.probes).read_later(ours.map(|(lane, _)| lane.clone()));
    }

    /// Finds effects that wait for a probe and are not known yet, lane by lane.
    pub(super) async fn find_uncertain(self: Arc<Self>) {
        let mut beaten = self.beaten.subscribe();
        beaten.mark_changed();
        // An error means that whoever beats is gone.
        while beaten.changed().await.is_ok() {
            let lanes = lock(&self.probes).take_unread();
            for lane in lanes {
                if let Err(error) = self.read_uncertain(&lane).await {
                    tracing::warn!(%error, "what is uncertain could not be looked for; trying again");
                    lock(&self.probes).read_later([lane]);
                }
            }
        }
    }

    async fn read_uncertain(&self, lane: &Arc<str>) -> Result<(), StoreError> {
        let target = self.targets.load().get(lane).cloned();
        let Some(target) = target.filter(|target| has_probe(target)) else {
            return Ok(());
        };
        let filter = EffectFilter {
            state: Some(EffectState::Uncertain),
            lane: Some(lane.to_string()),
            ..EffectFilter::default()
        };
        let mut from: PageFrom<EffectId> = PageFrom::Newest;
        for _ in 0..PAGES_PER_READ_MAX {
            if lock(&self.shards).hold(target.shard, clock::tick()) == Hold::NotOurs {
                return Ok(());
            }
            let page = Page {
                limit: PAGE_MAX,
                from,
            };
            let listed = self.store.effects(filter.clone(), page).await?;
            for effect in &listed.rows {
                match self.put_question(effect) {
                    Put::Kept | Put::Known => {}
                    Put::Overflows | Put::Full => return Ok(()),
                }
            }
            match listed.next {
                Some(next) => from = PageFrom::OlderThan(next),
                None => return Ok(()),
            }
        }
        let lane = &**lane;
        tracing::warn!(
            lane,
            "so much is uncertain that not all of it was looked at for its probe"
        );
        Ok(())
    }

    /// Asks whenever it is time.
    pub(super) async fn probe(self: Arc<Self>) {
        let mut asking = JoinSet::new();
        loop {
            let earlier = self.probing.notified();
            let (due, next) = {
                let mut probes = lock(&self.probes);
                (probes.take_due(clock::tick()), probes.next())
            };
            for (effect, question) in due {
                asking.spawn(self.clone().ask_one(effect, question));
            }
            while asking.try_join_next().is_some() {}
            match next {
                None => earlier.await,
                Some(at) => {
                    let at = tokio::time::Instant::from_std(at);
                    // Either way there is something to look at.
                    let _ = tokio::time::timeout_at(at, earlier).await;
                }
            }
        }
    }

    /// Asks about one that is due.
    async fn ask_one(self: Arc<Self>, effect: EffectId, question: Question) {
        let mut place = Place {
            shared: self.clone(),
            effect,
            lane: question.lane.clone(),
            again: None,
        };
        let asked = self.probe_one(effect, &question).await;
        place.again = asked.next(question, &self.drift, clock::tick());
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
            Moved::Refused(Rejected::TooEarly { until }) => Ok(Asked::TooEarly { until }),
            Moved::Refused(_)
            | Moved::NoEffect
            | Moved::Waits(_)
            | Moved::Stale(_)
            | Moved::Review(_) => Ok(Asked::Enough),
        }
    }
}

fn has_probe(target: &Target) -> bool {
    let effect = target.effect();
    effect.is_some_and(|effect| effect.probe.is_some())
}

/// A place among the probes under way; dropped, it is free for the next, and the question waits for its next time.
struct Place {
    shared: Arc<Shared>,
    effect: EffectId,
    lane: Arc<str>,
    again: Option<(Instant, Question)>,
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut probes = lock(&self.shared.probes);
        probes.asked(self.effect, &self.lane);
        if let Some((at, question)) = self.again.take() {
            // Without a place it is found later.
            probes.put(at, self.effect, question);
        }
        drop(probes);
        self.shared.probing.notify_one();
    }
}

/// Is the question answered?
enum Asked {
    Enough,
    Again,
    /// "No", while something may still be on its way: until then, by the store's clock.
    TooEarly {
        until: Time,
    },
}

impl Asked {
    /// When to ask next, if at all.
    fn next(
        self,
        mut question: Question,
        drift: &Drift,
        now: Instant,
    ) -> Option<(Instant, Question)> {
        let at = match self {
            Asked::Enough => return None,
            Asked::TooEarly { until } => {
                // It was answered, so this says nothing of how often to ask one that does not answer.
                question.asked = question.asked.max(1);
                let (min, max) = (now + TOO_EARLY_WAIT_MIN, now + TOO_EARLY_WAIT_MAX);
                (drift.local(until) + TOO_EARLY_MARGIN).clamp(min, max)
            }
            Asked::Again => {
                let schedule = schedule();
                question.asked = (question.asked + 1).min(schedule.attempts_max() - 1);
                match schedule.next(question.asked, None, entropy::jitter().abs()) {
                    Next::At(wait) => now + Duration::from_micros(wait.micros().unsigned_abs()),
                    Next::Exhausted => return None,
                }
            }
        };
        Some((at, question))
    }
}

#[cfg(test)]
mod tests {
    use hapax_ledger::id::{EventId, RawId};

    use super::*;

    fn asked_before(asked: u32) -> Question {
        Question {
            event: EventId(RawId::new(Time::from_secs(0), 0, 1)),
            name: "x".into(),
            key: "k".to_owned(),
            lane: "x".into(),
            asked,
        }
    }

    /// Seconds from now, and how often it will have been asked before.
    fn next(asked: Asked, before: u32) -> Option<(u64, u32)> {
        let now = clock::tick();
        let drift = Drift::new(Time::from_secs(1_000), now);
        let (at, question) = asked.next(asked_before(before), &drift, now)?;
        Some(((at - now).as_secs(), question.asked))
    }

    /// D4: neither sooner than a "no" counts, nor later.
    #[test]
    fn a_no_that_came_too_early_is_asked_for_again_when_it_counts() {
        let until = |secs| Asked::TooEarly {
            until: Time::from_secs(secs),
        };
        for (before, asked) in [(0, 1), (1, 1), (5, 5)] {
            assert_eq!(next(until(1_043), before), Some((43, asked)));
        }
        // A clock was set back, the one or the other: neither without a pause, nor for ever.
        assert_eq!(next(until(900), 0), Some((1, 1)));
        assert_eq!(next(until(1_000_000), 0), Some((1_000, 1)));
    }

    #[test]
    fn what_nobody_answers_is_asked_ever_more_rarely() {
        let mut last = 0;
        for before in 0..7 {
            let (wait, asked) = next(Asked::Again, before).expect("it is asked again");
            assert!(wait > last, "{before}: {wait}");
            assert_eq!(asked, before + 1);
            last = wait;
        }
        let (_, asked) = next(Asked::Again, 7).expect("once a day");
        assert_eq!(asked, 7);
        assert_eq!(next(Asked::Enough, 0), None);
    }
}

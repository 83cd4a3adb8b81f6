//! Probes: asking what became of a guarded request whose outcome is unknown, without a person.
//!
//! A probe's "yes" counts at once. Its "no" counts only when the upstream cannot be at work any more (D4): after lease, grace and time limit,
//! measured from when this process first saw the outcome of that very run unknown to when the question was asked, so that neither a clock's
//! jump nor a slow answer makes it too early. An answer is about the run that was asked about: if the key has run again since, it settles
//! nothing.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use hapax_ledger::guard::{GuardState, LEASE_GRACE};
use hapax_ledger::id::KeyId;
use hapax_ledger::lease::Fence;
use hapax_ledger::time::Span;
use hapax_store::StoreError;
use hapax_store::nouns::{
    Authority, Changed, KeyFilter, KeyRecord, KeyResolution, PAGE_MAX, Page, PageFrom,
};
use http::HeaderMap;
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::Guards;
use super::guards::Served;
use crate::clock;
use crate::config::GuardConfig;
use crate::dispatch::Sender;
use crate::dispatch::ask::{self, ProbeAnswer};

/// How often unknown keys are looked for.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// How long after a question the next one about the same run is asked, at first; the wait doubles.
const ASK_AGAIN: Duration = Duration::from_secs(5);
const ASK_AGAIN_MAX: Duration = Duration::from_secs(3_600);
/// Unknown keys of one guard that are asked about. Beyond this, a person has more to decide than a probe.
const ASKED_MAX: usize = 1_000;
/// Questions of one guard under way at a time: its probe is the operator's own, and not made for load.
const AT_A_TIME: usize = 8;
/// How long one may take.
const PROBE_TIMEOUT: Duration = Duration::from_secs(10);
/// How long questions are begun before the keys are looked at anew: some may have come, and some may have been settled.
const ROUND: Duration = Duration::from_secs(5);

/// Asks one guard's probe.
pub(super) struct Prober {
    guards: Arc<Guards>,
    served: Arc<Served>,
    sender: Arc<Sender>,
    asked: Memory,
}

/// Runs whose outcome is unknown.
#[derive(Default)]
struct Memory(HashMap<KeyId, Asked>);

/// What is remembered of a run whose outcome is unknown.
#[derive(Clone, Copy)]
struct Asked {
    /// Which run it is: what is remembered of one says nothing of the next.
    fence: Fence,
    first: Instant,
    next: Instant,
    wait: Duration,
}

impl Asked {
    fn new(fence: Fence, now: Instant) -> Asked {
        Asked {
            fence,
            first: now,
            next: now,
            wait: ASK_AGAIN,
        }
    }
}

impl Asked {
    /// What an answer settles that was asked for then. It tells of that moment: what was still at work may have ended its work before the
    /// answer was here.
    fn settled_by(
        &self,
        answer: &ProbeAnswer,
        at: Instant,
        patience: Duration,
        ttl: Span,
    ) -> Option<KeyResolution> {
        let waited = at.saturating_duration_since(self.first);
        match answer {
            ProbeAnswer::Applied => Some(KeyResolution::Executed { ttl }),
            ProbeAnswer::NotApplied if waited >= patience => Some(KeyResolution::NotExecuted),
            ProbeAnswer::NotApplied | ProbeAnswer::NoAnswer(_) => None,
        }
    }
}

impl Memory {
    /// Remembers these runs and no others; gives those that it is time to ask about.
    fn due(&mut self, unknown: Vec<KeyRecord>, now: Instant) -> Vec<KeyRecord> {
        let before = std::mem::take(&mut self.0);
        let mut due = Vec::new();
        for record in unknown {
            let known = before.get(&record.id).copied();
            let asked = known
                .filter(|asked| asked.fence == record.fence)
                .unwrap_or(Asked::new(record.fence, now));
            self.0.insert(record.id, asked);
            if asked.next <= now {
                due.push((asked.next, record));
            }
        }
        due.sort_by_key(|(next, record)| (*next, record.id));
        due.into_iter().map(|(_, record)| record).collect()
    }
}

impl Prober {
    /// Nothing asked yet.
    pub(super) fn new(guards: Arc<Guards>, served: Arc<Served>, sender: Arc<Sender>) -> Prober {
        Prober {
            guards,
            served,
            sender,
            asked: Memory::default(),
        }
    }

    /// Goes round until `stop` says so. A question that is under way then is not waited for.
    pub(super) async fn run(mut self, mut stop: watch::Receiver<bool>) {
        loop {
            if let Err(error) = self.step(&mut stop).await {
                tracing::warn!(%error, "unknown outcomes could not be looked after; trying again");
            }
            let stopping = stop.wait_for(|stop| *stop);
            if tokio::time::timeout(LOOK_EVERY, stopping).await.is_ok() {
                return;
            }
        }
    }

    /// One round: those that have waited longest are asked about first.
    async fn step(&mut self, stop: &mut watch::Receiver<bool>) -> Result<(), StoreError> {
        let config = self.served.config();
        if config.probe.is_none() {
            self.asked = Memory::default();
            return Ok(());
        }
        let unknown = self.unknown(&config).await?;
        let start = clock::tick();
        let mut due = self.asked.due(unknown, start).into_iter();
        let mut asking = JoinSet::new();
        loop {
            while asking.len() < AT_A_TIME && clock::since(start) < ROUND {
                let Some(record) = due.next() else { break };
                asking.spawn(answer(self.sender.clone(), config.clone(), record));
            }
            let answered = tokio::select! {
                biased;
                _ = stop.wait_for(|stop| *stop) => return Ok(()),
                answered = asking.join_next() => answered,
            };
            match answered {
                None => return Ok(()),
                Some(Ok(answered)) => self.heard(&config, &answered).await?,
                // It panicked, and is asked again in the next round.
                Some(Err(_)) => {}
            }
        }
    }

    async fn unknown(&self, config: &GuardConfig) -> Result<Vec<KeyRecord>, StoreError> {
        let filter = KeyFilter {
            guard: Some(config.scope().to_string()),
            state: Some(GuardState::Unknown),
            ..KeyFilter::default()
        };
        let mut found = Vec::new();
        let mut from = PageFrom::Newest;
        loop {
            let page = Page {
                limit: PAGE_MAX,
                from,
            };
            let listed = self.guards.parts().store.keys(filter.clone(), page).await?;
            found.extend(listed.rows);
            match listed.next {
                Some(next) if found.len() < ASKED_MAX => from = PageFrom::OlderThan(next),
                _ => return Ok(found),
            }
        }
    }

    /// The probe has answered about a run.
    async fn heard(&mut self, config: &GuardConfig, answered: &Answered) -> Result<(), StoreError> {
        let Answered { record, at, answer } = answered;
        let metrics = &self.guards.parts().metrics;
        metrics.guards.probed(&config.scope(), answer.word());
        let patience = self.settled_after(config);
        let Some(asked) = self.asked.0.get_mut(&record.id) else {
            return Ok(());
        };
        asked.next = clock::tick() + asked.wait;
        asked.wait = (asked.wait * 2).min(ASK_AGAIN_MAX);
        match asked.settled_by(answer, *at, patience, config.policy.ttl) {
            Some(resolution) => self.resolve(config, record, resolution).await,
            None => Ok(()),
        }
    }

    /// From then on nothing that was sent can still be carried out.
    fn settled_after(&self, config: &GuardConfig) -> Duration {
        let lease = self.guards.parts().lease + LEASE_GRACE;
        Duration::from_micros(lease.micros().unsigned_abs()) + config.timeout
    }

    async fn resolve(
        &self,
        config: &GuardConfig,
        record: &KeyRecord,
        resolution: KeyResolution,
    ) -> Result<(), StoreError> {
        let by = Authority {
            actor: format!("probe:{}", config.scope()).into(),
            reason: "the guard's probe has answered".to_owned(),
            at: clock::now(),
            request: None,
        };
        let store = &self.guards.parts().store;
        let (id, fence) = (record.id, record.fence);
        let resolved = store.resolve_key(id, fence, resolution, by, String::new());
        if resolved.await? == Changed::Done {
            tracing::info!(key = %id, ?resolution, "a probe has decided what was unknown");
        }
        Ok(())
    }
}

/// What was heard about a run.
struct Answered {
    record: KeyRecord,
    /// When it was asked for.
    at: Instant,
    answer: ProbeAnswer,
}

/// Asks about one run.
async fn answer(sender: Arc<Sender>, config: Arc<GuardConfig>, record: KeyRecord) -> Answered {
    let at = clock::tick();
    let url = config.probe.as_ref().map(|probe| {
        probe.fill(|name| match name {
            "key" => Some(record.key.as_str()),
            "principal" => Some(&*record.principal),
            "method" => Some(&*record.method),
            "path" => Some(&*record.path),
            _ => None,
        })
    });
    let answer = match url {
        Some(Ok(url)) => {
            let question = ask::get(url, HeaderMap::new(), PROBE_TIMEOUT);
            ask::probe_answer(&sender.send(question).await)
        }
        Some(Err(unfit)) => ProbeAnswer::NoAnswer(unfit.to_string()),
        None => ProbeAnswer::NoAnswer("the guard has no probe".to_owned()),
    };
    if let ProbeAnswer::NoAnswer(why) = &answer {
        tracing::warn!(guard = &*config.name, key = %record.id, why, "a probe settles nothing");
    }
    Answered { record, at, answer }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hapax_ledger::id::RawId;
    use hapax_ledger::time::Time;

    fn run(number: u64, fence: u64) -> KeyRecord {
        let at = Time::from_secs(1);
        KeyRecord {
            id: KeyId(RawId::new(at, 0, number)),
            guard: "charges".into(),
            principal: "ada".into(),
            method: "POST".into(),
            path: "/charges".into(),
            key: "k".to_owned(),
            state: GuardState::Unknown,
            runs: 1,
            fence: Fence::from_u64(fence),
            node: "a".into(),
            first_at: at,
            started_at: at,
            ended_at: None,
            status: None,
            error: None,
            expires_at: at,
        }
    }

    /// D4: how long the outcome of one run has been unknown says nothing about the next, which may still be at work.
    #[test]
    fn another_run_of_a_key_is_waited_for_anew() {
        let (mut memory, start) = (Memory::default(), clock::tick());
        let key = run(1, 1).id;
        let later = |seconds| start + Duration::from_secs(seconds);
        assert_eq!(memory.due(vec![run(1, 1)], start).len(), 1);
        memory.due(vec![run(1, 1)], later(8));
        assert_eq!(memory.0[&key].first, start);
        memory.due(vec![run(1, 2)], later(9));
        assert_eq!(memory.0[&key].first, later(9));
        // One that is not unknown any more is forgotten.
        memory.due(vec![], later(10));
        assert!(memory.0.is_empty());
    }

    /// D4: a "no" is about the moment of its question, however long it was on its way.
    #[test]
    fn a_no_counts_by_when_it_was_asked_for() {
        let (start, patience) = (clock::tick(), Duration::from_secs(40));
        let ttl = Span::from_hours(72);
        let asked = Asked::new(Fence::from_u64(1), start);
        let settled = |answer, seconds| {
            let at = start + Duration::from_secs(seconds);
            asked.settled_by(&answer, at, patience, ttl)
        };
        let executed = Some(KeyResolution::Executed { ttl });
        assert_eq!(settled(ProbeAnswer::NotApplied, 39), None);
        let not = Some(KeyResolution::NotExecuted);
        assert_eq!(settled(ProbeAnswer::NotApplied, 40), not);
        assert_eq!(settled(ProbeAnswer::Applied, 0), executed);
        assert_eq!(settled(ProbeAnswer::NoAnswer(String::new()), 99), None);
    }

    #[test]
    fn those_that_have_waited_longest_come_first() {
        let (mut memory, start) = (Memory::default(), clock::tick());
        memory.due(vec![run(1, 1), run(2, 1)], start);
        let (first, second) = (run(1, 1).id, run(2, 1).id);
        let wait = |memory: &mut Memory, id, seconds| {
            let asked = memory.0.get_mut(&id).expect("it is remembered");
            asked.next = start + Duration::from_secs(seconds);
        };
        wait(&mut memory, first, 7);
        wait(&mut memory, second, 5);
        let due = |memory: &mut Memory, seconds| -> Vec<KeyId> {
            let unknown = vec![run(3, 1), run(2, 1), run(1, 1)];
            let due = memory.due(unknown, start + Duration::from_secs(seconds));
            due.into_iter().map(|record| record.id).collect()
        };
        assert_eq!(due(&mut memory, 6), [second, run(3, 1).id]);
        assert_eq!(due(&mut memory, 8), [second, run(3, 1).id, first]);
    }
}

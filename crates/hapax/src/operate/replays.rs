//! Carries replays of many events on, page by page, until they are through or somebody cancels them.
//!
//! Each event is retried under a request key made of replay and event, so that whoever repeats a page repeats nothing (E3). How far a
//! replay has come is written after each page, on the condition that nobody else has carried it further. With several nodes, the one
//! that looks after the shard of the replay's id carries it on. A crash between a page and its count loses the count of those events
//! that do not fit the filter any more; what was done to them stays done, and is in the audit log.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use hapax_ledger::id::{EventId, ReplayId};
use hapax_ledger::key::{BodyHash, KeyHash, KeyKind, composite};
use hapax_ledger::verdict::{Action, Verdict, VerdictKind, Would};
use hapax_store::nouns::{
    Authority, Before, Commanded, Message, Page, PageFrom, Replay, ReplayProgress, ReplayState,
    RequestKey,
};
use hapax_store::{Store, StoreError, StoreErrorKind};
use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;

use super::finding;
use super::operator::{Granted, Operator, Terms, Wish};
use super::task::{Task, Worked};
use crate::clock;
use crate::outbox::Registry;

/// Events of one page: few, so that a cancel is seen soon, and enough to share commits.
const PAGE_EVENTS: u32 = 32;
/// How often somebody looks for replays that another node started, or that a restart left.
const LOOK_EVERY: Duration = Duration::from_secs(2);

/// No event is as old.
const BEFORE_ALL: EventId = EventId::from_bytes([0; 16]);

/// Carries replays on.
pub struct Replays {
    store: Arc<dyn Store>,
    operator: Operator,
    registry: Arc<Registry>,
    started: Notify,
}

/// What became of a page.
enum Stepped {
    /// The replay has come further by so many events.
    Carried { events: u32 },
    /// It was cancelled, or somebody else has carried it further.
    Overtaken,
}

/// What became of one event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Looked {
    Sent,
    Nothing,
    Blocked,
    Failed,
}

impl Replays {
    /// A runner that does nothing before [`Replays::run`].
    pub fn new(store: Arc<dyn Store>, operator: Operator, registry: Arc<Registry>) -> Replays {
        Replays {
            store,
            operator,
            registry,
            started: Notify::new(),
        }
    }

    /// A replay was started here.
    pub fn hear(&self) {
        self.started.notify_one();
    }

    /// Carries replays on until told to stop.
    pub async fn run(self: Arc<Self>, mut stopping: watch::Receiver<bool>) {
        let mut pace = Pace::default();
        loop {
            let pause = self.round(&mut pace).await;
            tokio::select! {
                _ = stopping.wait_for(|stop| *stop) => return,
                () = self.started.notified() => {}
                () = tokio::time::sleep(pause) => {}
            }
        }
    }

    /// One page of every replay whose time has come. Says how long there is nothing to do.
    async fn round(&self, pace: &mut Pace) -> Duration {
        let running = match self.store.replays(Some(ReplayState::Running)).await {
            Ok(running) => running,
            Err(error) => {
                tracing::warn!(%error, "replays could not be read; trying again");
                return LOOK_EVERY;
            }
        };
        pace.forget_all_but(&running);
        // Those that wait longest first.
        for replay in running.iter().rev() {
            let now = clock::tick();
            if pace.due(replay.id) > Some(now) {
                continue;
            }
            if !self.operator.looks_after(&replay.id.to_string()) {
                pace.rest(replay.id, now + LOOK_EVERY);
                continue;
            }
            match self.step(replay).await {
                Ok(Stepped::Carried { events }) => pace.went(replay, events, now),
                // Another node is at it, or it was cancelled.
                Ok(Stepped::Overtaken) => pace.rest(replay.id, now + LOOK_EVERY),
                Err(error) => {
                    tracing::warn!(%error, replay = %replay.id, "a replay could not be carried on; trying again");
                    pace.rest(replay.id, now + LOOK_EVERY);
                }
            }
        }
        pace.wait(clock::tick())
    }

    /// One page of one replay.
    async fn step(&self, replay: &Replay) -> Result<Stepped, StoreError> {
        let task = Task::of(replay);
        if let Some(task) = task.as_ref().filter(|task| task.task.finds().is_some()) {
            return self.find_out(replay, task).await;
        }
        let from = replay.progress;
        let limit = replay
            .rate
            .map_or(PAGE_EVENTS, |rate| rate.min(PAGE_EVENTS));
        let (looked, last, next) = match task {
            Some(task) => self.work_at(replay, &task, limit).await?,
            None => self.events_at(replay, limit).await?,
        };
        let events = looked.len();
        let mut to = from;
        for looked in looked {
            count(&mut to, looked);
        }
        // A page may have no rows and go on all the same: the store looks at so many at a time.
        to.after = next.or(last).or(from.after);
        let state = match next {
            Some(_) => ReplayState::Running,
            None => ReplayState::Completed,
        };
        if !self.store.carry_replay(replay.id, from, to, state).await? {
            return Ok(Stepped::Overtaken);
        }
        if state == ReplayState::Completed {
            tracing::info!(replay = %replay.id, total = to.total, done = to.done, skipped = to.skipped,
                blocked = to.blocked, failed = to.failed, "a replay is through");
        }
        Ok(Stepped::Carried {
            events: u32::try_from(events).unwrap_or(limit),
        })
    }

    /// The same for a job that finds something out: what it has found is kept with how far it has come.
    async fn find_out(&self, replay: &Replay, task: &Task) -> Result<Stepped, StoreError> {
        let found = finding::step(&*self.store, &self.registry, replay, task).await?;
        let (id, from) = (replay.id, replay.progress);
        let text = serde_json::to_string(&found.all).unwrap_or_default();
        let carried = self
            .store
            .carry_finding(id, from, found.to, found.state, text);
        Ok(match carried.await? {
            true => Stepped::Carried { events: 0 },
            false => Stepped::Overtaken,
        })
    }

    /// All events of a page at once, so that they share commits; the last of them, and where to go on.
    async fn events_at(&self, replay: &Replay, limit: u32) -> Result<Looks, StoreError> {
        let after = replay.progress.after;
        let from = after.map_or(PageFrom::Newest, PageFrom::OlderThan);
        let page = Page { limit, from };
        let listed = self.store.events(replay.filter.clone(), page).await?;
        let last = listed.rows.last().map(|event| event.id);
        let mut looking = JoinSet::new();
        for event in &listed.rows {
            let operator = self.operator.clone();
            looking.spawn(look(operator, replay.clone(), event.id));
        }
        let looked: Result<Vec<Looked>, StoreError> =
            looking.join_all().await.into_iter().collect();
        Ok((looked?, last, listed.next))
    }

    /// The same for a job about messages, the oldest first: those of one ordering key come back in the order in which they were accepted.
    async fn work_at(&self, replay: &Replay, task: &Task, limit: u32) -> Result<Looks, StoreError> {
        let after = replay.progress.after.unwrap_or(BEFORE_ALL);
        let from = PageFrom::NewerThan(after);
        let listed = task
            .page(&*self.store, replay, Page { limit, from })
            .await?;
        let last = listed.rows.first().map(|message| message.event.id);
        // A page that is full, or looked at as much as it may, may be followed by another.
        let is_full = listed.rows.len() >= limit as usize;
        let next = listed.newer.or(last.filter(|_| is_full));
        let mut working = JoinSet::new();
        for queue in queues(listed.rows) {
            let (operator, registry) = (self.operator.clone(), self.registry.clone());
            let (replay, task) = (replay.clone(), task.clone());
            working.spawn(work_through(operator, registry, replay, task, queue));
        }
        let looked: Result<Vec<Vec<Looked>>, StoreError> =
            working.join_all().await.into_iter().collect();
        Ok((looked?.concat(), last, next))
    }
}

/// Messages of a page, newest first, as they are worked on: the oldest first, and those of one ordering key one after the other.
fn queues(newest_first: Vec<Message>) -> Vec<Vec<Message>> {
    let mut queues: Vec<Vec<Message>> = Vec::new();
    let mut of_key: HashMap<String, usize> = HashMap::new();
    for message in newest_first.into_iter().rev() {
        let Some(key) = message.about.ordering_key.clone() else {
            queues.push(vec![message]);
            continue;
        };
        let at = *of_key.entry(key).or_insert(queues.len());
        match queues.get_mut(at) {
            Some(queue) => queue.push(message),
            None => queues.push(vec![message]),
        }
    }
    for queue in &mut queues {
        // Of two that came within a millisecond the ids do not tell which came first.
        queue.sort_by_key(|message| message.about.sequence);
    }
    queues
}

/// Does to messages what the job is about, one after the other.
async fn work_through(
    operator: Operator,
    registry: Arc<Registry>,
    replay: Replay,
    task: Task,
    messages: Vec<Message>,
) -> Result<Vec<Looked>, StoreError> {
    let mut looked = Vec::with_capacity(messages.len());
    for message in messages {
        looked.push(work(&operator, &registry, &replay, &task, &message).await?);
    }
    Ok(looked)
}

/// What became of the events of a page, the last of them, and where to go on.
type Looks = (Vec<Looked>, Option<EventId>, Option<EventId>);

/// Does to one message what the job is about.
async fn work(
    operator: &Operator,
    registry: &Registry,
    replay: &Replay,
    task: &Task,
    message: &Message,
) -> Result<Looked, StoreError> {
    let event = message.event.id;
    let by = terms(replay, event).by;
    match task.work(operator, registry, message, by).await {
        Ok(Worked::Done) => Ok(Looked::Sent),
        Ok(Worked::Nothing) => Ok(Looked::Nothing),
        Ok(Worked::Refused) => Ok(Looked::Blocked),
        Err(error) if error.kind() == StoreErrorKind::Corrupt => {
            tracing::error!(%error, %event, replay = %replay.id, "a message could not be worked on");
            Ok(Looked::Failed)
        }
        Err(error) => Err(error),
    }
}

/// Retries one event, unless there is nothing to do.
async fn look(operator: Operator, replay: Replay, event: EventId) -> Result<Looked, StoreError> {
    match look_once(&operator, &replay, event).await {
        // What contradicts itself does so for ever: the others go on.
        Err(error) if error.kind() == StoreErrorKind::Corrupt => {
            tracing::error!(%error, %event, replay = %replay.id, "an event could not be replayed");
            Ok(Looked::Failed)
        }
        other => other,
    }
}

async fn look_once(
    operator: &Operator,
    replay: &Replay,
    event: EventId,
) -> Result<Looked, StoreError> {
    let Some(verdict) = operator.verdict(event, Action::Retry).await? else {
        return Ok(Looked::Nothing);
    };
    let terms = terms(replay, event);
    match judged(&verdict) {
        looked if replay.dry_run => Ok(looked),
        // Perhaps because this replay has sent it before somebody was stopped in the middle of the page.
        Looked::Nothing => Ok(match operator.before(event, &terms).await? {
            Some(_) => Looked::Sent,
            None => Looked::Nothing,
        }),
        Looked::Sent | Looked::Blocked | Looked::Failed => {
            operator.grant(event, Wish::Retry, terms).await.map(became)
        }
    }
}

/// What would happen.
fn judged(verdict: &Verdict) -> Looked {
    let sends = verdict.effects.iter().any(|line| line.would == Would::Send);
    match verdict.verdict {
        VerdictKind::NeedsDecision => Looked::Blocked,
        VerdictKind::Safe if sends => Looked::Sent,
        VerdictKind::Safe | VerdictKind::NothingToDo => Looked::Nothing,
    }
}

fn became(granted: Granted) -> Looked {
    match granted {
        Granted::Commanded(Commanded::Done(done)) => judged(&done.verdict),
        Granted::Commanded(Commanded::Before(Before::Same(_))) => Looked::Sent,
        Granted::Commanded(Commanded::Refused { .. }) => Looked::Blocked,
        Granted::Commanded(Commanded::NoEvent) | Granted::NoEvent => Looked::Nothing,
        Granted::Commanded(Commanded::Before(Before::Other))
        | Granted::NoBytes
        | Granted::NoReconcile
        | Granted::NoTruth(_)
        | Granted::NoPlan(_)
        | Granted::NoConflict => Looked::Failed,
    }
}

fn count(progress: &mut ReplayProgress, looked: Looked) {
    progress.total += 1;
    match looked {
        Looked::Sent => progress.done += 1,
        Looked::Nothing => progress.skipped += 1,
        Looked::Blocked => progress.blocked += 1,
        Looked::Failed => progress.failed += 1,
    }
}

/// In the name of whoever started the replay, once per event.
fn terms(replay: &Replay, event: EventId) -> Terms {
    let scope = composite(&["replay", &replay.id.to_string()]);
    let event = event.to_string();
    let key = KeyHash::of(KeyKind::Request, &scope, &event);
    Terms {
        by: Authority {
            actor: replay.actor.clone(),
            reason: format!("{} ({})", replay.reason, replay.id),
            at: clock::now(),
            request: Some(RequestKey {
                key,
                fingerprint: BodyHash::of(event.as_bytes()).bytes(),
            }),
        },
        if_revision: None,
        dry_run: replay.dry_run,
    }
}

/// When the next page of each replay may be taken.
#[derive(Default)]
struct Pace {
    due: HashMap<ReplayId, Instant>,
}

impl Pace {
    fn due(&self, replay: ReplayId) -> Option<Instant> {
        self.due.get(&replay).copied()
    }

    fn rest(&mut self, replay: ReplayId, until: Instant) {
        self.due.insert(replay, until);
    }

    /// So many events were looked at: with a rate, that takes its time.
    fn went(&mut self, replay: &Replay, events: u32, now: Instant) {
        let takes = replay.rate.map_or(Duration::ZERO, |rate| {
            Duration::from_secs(1) * events / rate.max(1)
        });
        self.rest(replay.id, now + takes);
    }

    fn forget_all_but(&mut self, running: &[Replay]) {
        self.due
            .retain(|id, _| running.iter().any(|replay| replay.id == *id));
    }

    /// How long nothing is due.
    fn wait(&self, now: Instant) -> Duration {
        let waits = self
            .due
            .values()
            .map(|due| due.saturating_duration_since(now));
        waits.min().unwrap_or(LOOK_EVERY).min(LOOK_EVERY)
    }
}

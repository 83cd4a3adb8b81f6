//! Looks again and again, and tells what has changed.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwap;
use hapax_ledger::time::{Span, Time};
use hapax_store::{Store, StoreError};
use tokio::sync::watch;

use super::board::{Alert, Board, Change, QUIET_LOOKS};
use super::facts::{Counts, Facts, Reviews, Traffic};
use super::history::{History, WINDOW_LOOKS};
use super::kind::Kind;
use super::notice::{self, ALERT_LANE};
use super::{gather, rules};
use crate::clock;
use crate::config::AlertsConfig;
use crate::dispatch::Dispatcher;
use crate::inbox::Inbox;
use crate::metrics::Metrics;
use crate::outbox::Registry;

/// Events that wait for a person are counted at one look in so many: the store reads thousands of rows for it.
const LOOKS_BETWEEN_REVIEWS: u32 = 6;
/// Changes that wait for the store in memory. Beyond this the oldest are in the log only.
const UNSENT_MAX: usize = 200;

/// What watching needs.
pub struct Parts {
    /// The ledger.
    pub store: Arc<dyn Store>,
    /// The inbound door: what it counts.
    pub inbox: Arc<Inbox>,
    /// Sends alerts, and says whether this node speaks for all.
    pub dispatcher: Dispatcher,
    /// Endpoints, and whether they are sent to.
    pub registry: Arc<Registry>,
    /// What is counted.
    pub metrics: Arc<Metrics>,
    /// How often, and where alerts go.
    pub config: AlertsConfig,
}

/// The alerts of this node.
pub struct Alerts {
    store: Arc<dyn Store>,
    inbox: Arc<Inbox>,
    dispatcher: Dispatcher,
    registry: Arc<Registry>,
    metrics: Arc<Metrics>,
    config: ArcSwap<AlertsConfig>,
    board: Mutex<Board>,
    shares: Mutex<HashMap<Arc<str>, Shares>>,
}

/// Which part of a source's deliveries were duplicates. `None`: nothing came.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Shares {
    /// In the latest window.
    pub recent: Option<f64>,
    /// Before it, the latest hours counting most: what is usual for this source.
    pub usual: Option<f64>,
}

impl Shares {
    fn of(traffic: &Traffic) -> Shares {
        let share =
            |counts: Counts| (counts.believed >= 1.0).then(|| counts.duplicates / counts.believed);
        Shares {
            recent: share(traffic.recent),
            usual: share(traffic.usual),
        }
    }
}

/// What is remembered from one look to the next.
#[derive(Default)]
pub struct Memory {
    history: History,
    looks: u32,
    reviews: Option<Reviews>,
    elsewhere: u32,
    unsent: VecDeque<Change>,
}

impl Memory {
    /// A change has to be sent, unless it is about the sending of changes.
    fn send_later(&mut self, change: Change) {
        if change.alert().is_about_alerts() {
            return;
        }
        if self.unsent.len() == UNSENT_MAX {
            self.unsent.pop_front();
        }
        self.unsent.push_back(change);
    }
}

impl Alerts {
    /// Alerts that nobody looks for before [`Alerts::run`].
    pub fn new(parts: Parts) -> Alerts {
        Alerts {
            store: parts.store,
            inbox: parts.inbox,
            dispatcher: parts.dispatcher,
            registry: parts.registry,
            metrics: parts.metrics,
            config: ArcSwap::from_pointee(parts.config),
            board: Mutex::default(),
            shares: Mutex::default(),
        }
    }

    /// Puts another config in force.
    pub fn reload(&self, config: AlertsConfig) {
        self.config.store(Arc::new(config));
    }

    /// The alerts that stand, and those that were cleared lately.
    pub fn all(&self) -> Vec<Alert> {
        let board = self.board();
        board.active().chain(board.cleared()).cloned().collect()
    }

    /// The duplicates of a source, as of the latest look.
    pub fn shares(&self, source: &str) -> Shares {
        let shares = self.shares.lock().unwrap_or_else(PoisonError::into_inner);
        shares.get(source).copied().unwrap_or_default()
    }

    /// Looks until told to stop.
    pub async fn run(self: Arc<Self>, mut stopping: watch::Receiver<bool>) {
        let mut memory = Memory::default();
        loop {
            let every = self.config.load().every;
            tokio::select! {
                _ = stopping.wait_for(|stop| *stop) => return,
                () = tokio::time::sleep(every) => {}
            }
            self.step(&mut memory, clock::now()).await;
        }
    }

    /// One look.
    async fn step(&self, memory: &mut Memory, now: Time) {
        let facts = self.measure(memory).await;
        let said = rules::judge(&facts);
        let changes = self.board().look(&said, now);
        self.count();
        for change in changes {
            log(&change);
            memory.send_later(change);
        }
        self.send(memory, now).await;
    }

    async fn measure(&self, memory: &mut Memory) -> Facts {
        let measured = gather::traffic(&self.inbox.sources(), &self.metrics);
        let (mut traffic, mut repeated) = (Vec::new(), Vec::new());
        for (each, events) in memory.history.traffic(measured) {
            let events = events.into_iter();
            repeated.extend(events.map(|event| (each.source.clone(), event)));
            traffic.push(each);
        }
        let shares = traffic
            .iter()
            .map(|each| (each.source.clone(), Shares::of(each)));
        *self.shares.lock().unwrap_or_else(PoisonError::into_inner) = shares.collect();
        let mut facts = Facts {
            window: window(self.config.load().every),
            traffic,
            repeated: told(gather::repeated(&*self.store, repeated).await),
            lags: memory.history.lags(self.metrics.effects.take_lags()),
            disk: self.store.disk(),
            dead: None,
            reviews: None,
            closed: None,
        };
        // One node speaks for all of them: the one that also looks after the lane of alerts.
        if self.dispatcher.looks_after(ALERT_LANE) {
            facts.dead = told(gather::dead(&*self.store).await);
            facts.reviews = self.reviews(memory).await;
            // Whichever node disabled them: the dispatcher's beat brings the catalogue up to date on every node.
            facts.closed = Some(self.registry.catalog().closed().cloned().collect());
            memory.elsewhere = 0;
        } else {
            self.not_ours(memory);
        }
        facts
    }

    /// Another node speaks for all, or only a beat of ours is late: then what stands would be raised twice.
    fn not_ours(&self, memory: &mut Memory) {
        memory.elsewhere = memory.elsewhere.saturating_add(1);
        if memory.elsewhere >= QUIET_LOOKS {
            self.board().hand_over(&Kind::OF_ALL);
            memory.history.forget_queues();
            memory.reviews = None;
        }
    }

    /// The queue for review, asked now and then; in between, what was known last.
    async fn reviews(&self, memory: &mut Memory) -> Option<Reviews> {
        memory.looks = memory.looks.wrapping_add(1);
        let stale = memory.looks.is_multiple_of(LOOKS_BETWEEN_REVIEWS);
        let waiting = match memory.reviews {
            Some(known) if !stale => Some(known.waiting),
            Some(_) | None => told(gather::waiting(&*self.store).await),
        };
        memory.reviews = waiting.map(|waiting| memory.history.reviews(waiting));
        memory.reviews
    }

    fn board(&self) -> MutexGuard<'_, Board> {
        self.board.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn count(&self) {
        let board = self.board();
        for kind in Kind::ALL {
            self.metrics.alerts(kind.word(), board.standing(kind));
        }
    }

    /// Stores what has to be told as events. What the store does not take now is tried again at the next look; a commit that is
    /// unknown is settled then, since the same change is the same event.
    async fn send(&self, memory: &mut Memory, now: Time) {
        let config = self.config.load_full();
        let Some(effect) = &config.effect else {
            memory.unsent.clear();
            return;
        };
        while let Some(change) = memory.unsent.front() {
            let mut arrival = notice::arrival(change, effect, now);
            let promises = self.dispatcher.promise(&mut arrival);
            match self.store.accept(arrival).await {
                Ok(receipts) => {
                    promises.keep(&receipts);
                    memory.unsent.pop_front();
                }
                Err(error) => {
                    self.dispatcher.doubt(&error);
                    tracing::warn!(%error, waiting = memory.unsent.len(), "alerts could not be stored; trying again");
                    return;
                }
            }
        }
    }
}

fn window(every: Duration) -> Span {
    let micros = every.as_micros().saturating_mul(WINDOW_LOOKS as u128);
    Span::from_micros(i64::try_from(micros).unwrap_or(i64::MAX))
}

/// What the store said. If it said nothing, nothing is known.
fn told<T>(answer: Result<T, StoreError>) -> Option<T> {
    match answer {
        Ok(facts) => Some(facts),
        Err(error) => {
            tracing::debug!(%error, "the store could not be asked for alerts; the next look will");
            None
        }
    }
}

fn log(change: &Change) {
    let alert = change.alert();
    let (kind, code) = (alert.kind.word(), alert.kind.code());
    let (subject, text) = (&alert.subject, &alert.text);
    match change {
        Change::Raised(alert) => tracing::warn!(
            code,
            kind,
            subject,
            severity = alert.severity.word(),
            text,
            help = alert.kind.advice(),
            "an alert is raised"
        ),
        Change::Cleared(alert) => tracing::info!(
            code,
            kind,
            subject,
            since = clock::text(alert.since),
            "an alert is cleared"
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::alert::Severity;

    fn raised(subject: &str) -> Change {
        Change::Raised(Alert {
            kind: Kind::DeadLetters,
            subject: subject.to_owned(),
            severity: Severity::Warning,
            text: String::new(),
            since: Time::from_secs(0),
            cleared_at: None,
        })
    }

    #[test]
    fn alerts_about_alerts_are_not_sent_and_what_waits_is_bounded() {
        let mut memory = Memory::default();
        memory.send_later(raised(ALERT_LANE));
        assert!(memory.unsent.is_empty());
        for number in 0..=UNSENT_MAX {
            memory.send_later(raised(&number.to_string()));
        }
        assert_eq!(memory.unsent.len(), UNSENT_MAX);
        assert_eq!(memory.unsent.front(), Some(&raised("1")));
    }

    #[test]
    fn a_share_is_of_what_came() {
        let counts = |believed, duplicates| Counts {
            believed,
            duplicates,
            refused: 9.0,
        };
        let traffic = Traffic {
            source: "a".into(),
            recent: counts(8.0, 2.0),
            usual: counts(0.2, 0.1),
            types: Vec::new(),
            keys: Vec::new(),
            causes: Vec::new(),
        };
        let expected = Shares {
            recent: Some(0.25),
            usual: None,
        };
        assert_eq!(Shares::of(&traffic), expected);
    }

    #[test]
    fn a_window_is_as_long_as_its_looks() {
        assert_eq!(window(Duration::from_secs(10)), Span::from_secs(300));
    }
}

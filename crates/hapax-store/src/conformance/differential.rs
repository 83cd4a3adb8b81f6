//! Random commands on a store and on the model, answer by answer.
//!
//! Few sources, keys and bodies, so that collisions are the rule; short windows and a clock that jumps both ways, so that things
//! expire and un-expire. Ids differ between stores, so each of the store's ids stands for the model's id that
//! was given in its place.

mod decision;
mod effects;
mod keys;
mod looks;
mod naming;
mod operate;
mod posts;
mod sketch;

use std::cmp::Reverse;
use std::collections::HashMap;
use std::collections::hash_map::Entry;

use hapax_ledger::event::EventStatus;
use hapax_ledger::id::EventId;
use hapax_ledger::key::BodyHash;
use hapax_ledger::time::{Span, Time};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use self::decision::{OperateCommand, operate_command};
use self::effects::Known;
use self::keys::{KeyCommand, KnownKeys, key_command};
use self::naming::plain_detail;
use self::posts::{PostCommand, post_command};
use self::sketch::{EffectCommand, EffectSketch, effect_command, effect_sketch, new_effects};
use super::sample::{Dial, Subject, arrival, at, event, reap_counted, review};
use crate::model::ModelStore;
use crate::nouns::{Event, EventFilter, Keep, NewEvent, OnFailed, PAGE_MAX, Page, PageFrom};

/// Commands in one sequence, of a little of everything and of mostly effects. Every command moves the clock by a millisecond, and jumps are whole seconds: with fewer than a
/// thousand commands no two arrivals share a millisecond, so that the order of a list is never a matter of taste.
const COMMANDS_MAX: usize = 80;
const COMMANDS_WHEN_BUSY_MAX: usize = 200;
const SOURCES: [&str; 2] = ["a", "b"];
const KEYS: usize = 4;
const KEYS_WHEN_BUSY: usize = 10;
const BODIES: [&str; 3] = ["A", "B", "C"];
const TYPES: [&str; 3] = ["made", "changed", "ended"];

/// One thing to do to both.
#[derive(Clone, Debug)]
enum Command {
    Accept {
        source: usize,
        events: Vec<Sketch>,
    },
    /// One of the latest events once more, to be tried again.
    Again {
        latest: usize,
    },
    Jump {
        seconds: i64,
    },
    Reap,
    Sighted {
        source: usize,
        key: usize,
    },
    Look {
        nth: usize,
    },
    List {
        filter: usize,
        from: usize,
    },
    Effects(EffectCommand),
    Operate(OperateCommand),
    Keys(KeyCommand),
    Post(PostCommand),
}

/// An event in a few numbers.
#[derive(Clone, Debug)]
struct Sketch {
    key: usize,
    body: usize,
    varies: bool,
    review: bool,
    keep: usize,
    retries: bool,
    effects: Vec<EffectSketch>,
}

fn sketch(
    keys: usize,
    effects: impl Strategy<Value = Vec<EffectSketch>>,
) -> impl Strategy<Value = Sketch> {
    (
        0..keys,
        0..BODIES.len(),
        prop::bool::weighted(0.2),
        prop::bool::weighted(0.1),
        0..3usize,
        any::<bool>(),
        effects,
    )
        .prop_map(
            |(key, body, varies, review, keep, retries, effects)| Sketch {
                key,
                body,
                varies,
                review,
                keep,
                retries,
                effects,
            },
        )
}

fn key(number: usize) -> String {
    format!("k{number}")
}

fn accept(
    sketch: impl Strategy<Value = Sketch>,
    events: std::ops::Range<usize>,
) -> impl Strategy<Value = Command> {
    (0..SOURCES.len(), prop::collection::vec(sketch, events))
        .prop_map(|(source, events)| Command::Accept { source, events })
}

/// A little of everything; few keys, so that most come again.
fn command() -> impl Strategy<Value = Command> {
    let event = || {
        let effects = prop_oneof![
            Just(Vec::new()),
            prop::collection::vec(effect_sketch(3, 0.3), 1..4)
        ];
        sketch(KEYS, effects)
    };
    prop_oneof![
        8 => accept(event(), 1..2),
        2 => accept(event(), 0..5),
        3 => (1..40i64).prop_map(|seconds| Command::Jump { seconds }),
        1 => (-60..0i64).prop_map(|seconds| Command::Jump { seconds }),
        2 => Just(Command::Reap),
        1 => (0..SOURCES.len(), 0..KEYS).prop_map(|(source, key)| Command::Sighted { source, key }),
        2 => any::<prop::sample::Index>().prop_map(|nth| Command::Look { nth: nth.index(1_000) }),
        12 => effect_command().prop_map(Command::Effects),
        5 => operate_command().prop_map(Command::Operate),
        3 => key_command().prop_map(Command::Keys),
        2 => (0..FILTERS, 0..1_000usize).prop_map(|(filter, from)| Command::List { filter, from }),
    ]
}

/// Messages and their deliveries, among a little of everything else.
fn posting_command() -> impl Strategy<Value = Command> {
    prop_oneof![
        12 => post_command().prop_map(Command::Post),
        2 => (1..20i64).prop_map(|seconds| Command::Jump { seconds }),
        1 => Just(Command::Reap),
        1 => any::<prop::sample::Index>().prop_map(|nth| Command::Look { nth: nth.index(1_000) }),
        12 => effect_command().prop_map(Command::Effects),
        3 => operate_command().prop_map(Command::Operate),
    ]
}

/// Many effects, most of them with an order, on their way.
fn busy_command() -> impl Strategy<Value = Command> {
    let event = || {
        let effects = prop::collection::vec(effect_sketch(20, 0.8), 1..4);
        sketch(KEYS_WHEN_BUSY, effects)
    };
    prop_oneof![
        5 => accept(event(), 1..4),
        5 => (0..20usize).prop_map(|latest| Command::Again { latest }),
        1 => (1..20i64).prop_map(|seconds| Command::Jump { seconds }),
        1 => Just(Command::Reap),
        1 => any::<prop::sample::Index>().prop_map(|nth| Command::Look { nth: nth.index(1_000) }),
        24 => effect_command().prop_map(Command::Effects),
        6 => operate_command().prop_map(Command::Operate),
    ]
}

/// Guarded keys, and time that passes.
fn keys_command() -> impl Strategy<Value = Command> {
    let wait = (1..15i64).prop_map(|seconds| EffectCommand::Wait { seconds });
    prop_oneof![
        12 => key_command().prop_map(Command::Keys),
        3 => wait.prop_map(Command::Effects),
        1 => (-20..40i64).prop_map(|seconds| Command::Jump { seconds }),
        1 => Just(Command::Reap),
    ]
}

fn keep(number: usize) -> Keep {
    let windows = [(10, 25, 30, 20), (40, 20, 20, 20), (5, 15, 60, 10)];
    let (payload, ledger, identity, retry) = windows[number];
    Keep {
        payload: Span::from_secs(payload),
        ledger: Span::from_secs(ledger),
        identity: Span::from_secs(identity),
        retry_window: Span::from_secs(retry),
    }
}

fn new_event(source: &str, sketch: &Sketch) -> NewEvent {
    let mut new = event(source, &key(sketch.key), BODIES[sketch.body]);
    if sketch.varies {
        new.compare_hash = BodyHash::of(b"what does not vary");
    }
    new.review = sketch.review.then(review);
    new.keep = keep(sketch.keep);
    new.entity = (sketch.body == 0).then(|| "cus_1".into());
    if sketch.retries {
        new.on_failed = OnFailed::Retry;
    }
    new.event_type = Some(TYPES[sketch.body].into());
    new.effects = new_effects(&sketch.effects);
    new
}

const FILTERS: usize = 8;

fn filter(number: usize, now: Time) -> EventFilter {
    let all = EventFilter::default();
    match number {
        0 => all,
        1 => EventFilter {
            source: Some(SOURCES[0].into()),
            ..all
        },
        2 => EventFilter {
            source: Some(SOURCES[1].into()),
            key: Some(key(1)),
            ..all
        },
        3 | 5 => EventFilter {
            status: Some([EventStatus::NeedsReview, EventStatus::Dead][number / 5]),
            ..all
        },
        4 => EventFilter {
            entity: Some("cus_1".into()),
            ..all
        },
        6 => EventFilter {
            key_contains: Some("1".into()),
            ..all
        },
        _ => EventFilter {
            since: Some(now - Span::from_secs(20)),
            until: Some(now),
            ..all
        },
    }
}

/// The store under test, the model, and which id stands for which.
struct Pair {
    store: Subject,
    model: Subject,
    clock: Time,
    went_back: bool,
    given: Vec<(EventId, EventId)>,
    names: HashMap<EventId, EventId>,
    /// All that was new or tried to be, oldest first, with its source.
    sent: Vec<(&'static str, NewEvent)>,
    effects: Known,
    keys: KnownKeys,
    /// Runs that were asked for.
    runs: u64,
    /// So far, the shared effects of every event have come in the same order on both sides.
    same_order: bool,
}

impl Pair {
    async fn run(&mut self, command: &Command) {
        self.clock = self.clock + Span::from_millis(1);
        match command {
            Command::Accept { source, events } => {
                let source = SOURCES[*source];
                let new = |sketch| new_event(source, sketch);
                let events: Vec<NewEvent> = events.iter().map(new).collect();
                self.sent
                    .extend(events.iter().map(|event| (source, event.clone())));
                self.accept(source, events).await;
            }
            Command::Again { latest } => {
                let sent = self.sent.iter().rev().nth(*latest);
                if let Some((source, mut event)) = sent.cloned() {
                    event.on_failed = OnFailed::Retry;
                    self.accept(source, vec![event]).await;
                }
            }
            Command::Jump { seconds } if *seconds < 0 => {
                self.clock = self.clock - Span::from_secs(-seconds);
                self.went_back = true;
            }
            Command::Jump { seconds } => self.clock = self.clock + Span::from_secs(*seconds),
            Command::Reap => {
                let (theirs, ours) = (
                    reap_counted(&self.store, self.clock).await,
                    reap_counted(&self.model, self.clock).await,
                );
                assert_eq!(theirs, ours, "reaped");
            }
            Command::Sighted {
                source,
                key: number,
            } => self.sighted(SOURCES[*source], &key(*number)).await,
            Command::Look { nth } => self.look(*nth).await,
            Command::List {
                filter: number,
                from,
            } => self.list(&filter(*number, self.clock), *from).await,
            Command::Effects(command) => self.run_effects(command).await,
            Command::Operate(command) => self.operate(command).await,
            Command::Keys(command) => self.run_keys(command).await,
            Command::Post(command) => self.post(command).await,
        }
    }

    fn named(&self, id: EventId) -> EventId {
        *self
            .names
            .get(&id)
            .expect("the store names an id that no receipt has given")
    }

    async fn accept(&mut self, source: &str, events: Vec<NewEvent>) {
        let arrival = arrival(source, self.clock, events);
        let theirs = self
            .store
            .accept(arrival.clone())
            .await
            .expect("the store accepts");
        let ours = self.model.accept(arrival).await.expect("the model accepts");
        assert_eq!(theirs.len(), ours.len());
        for (theirs, ours) in theirs.into_iter().zip(&ours) {
            if let Entry::Vacant(unnamed) = self.names.entry(theirs.event) {
                unnamed.insert(ours.event);
                self.given.push((theirs.event, ours.event));
            }
            assert_eq!(self.named_receipt(theirs, ours).await, *ours);
        }
    }

    async fn sighted(&self, source: &str, key: &str) {
        let theirs = self
            .store
            .sighted(source, key, self.clock)
            .await
            .expect("the store reads");
        let ours = self
            .model
            .sighted(source, key, self.clock)
            .await
            .expect("the model reads");
        assert_eq!(
            theirs.map(|id| self.named(id)),
            ours,
            "sighted {source} {key}"
        );
    }

    async fn look(&self, nth: usize) {
        let Some(&(theirs, ours)) = self.given.get(nth % self.given.len().max(1)) else {
            return;
        };
        let detail = self.store.event(theirs).await.expect("the store reads");
        let known = self.model.event(ours).await.expect("the model reads");
        assert_eq!(
            detail.map(|detail| self.named_detail(ours, detail)),
            known.map(plain_detail)
        );
        let bytes = self.store.payload(theirs).await.expect("the store reads");
        assert_eq!(
            bytes,
            self.model.payload(ours).await.expect("the model reads")
        );
    }

    /// Whole lists, from either end or from an event on. Of events that came in one arrival no store is the first to say
    /// which is newer, so they are compared in the order of their keys. After a jump back only whole lists: what then is
    /// older and newer has a check of its own ([`super::reads::newest_comes_first_even_after_the_clock_jumped_back`]).
    async fn list(&self, filter: &EventFilter, from: usize) {
        let anchor = self
            .given
            .get(from % (self.given.len() + 1))
            .filter(|_| !self.went_back);
        let (theirs, ours) = match anchor {
            Some(&(theirs, ours)) if from.is_multiple_of(2) => {
                (PageFrom::OlderThan(theirs), PageFrom::OlderThan(ours))
            }
            Some(&(theirs, ours)) => (PageFrom::NewerThan(theirs), PageFrom::NewerThan(ours)),
            None => (PageFrom::Newest, PageFrom::Newest),
        };
        let page = |from| Page {
            limit: PAGE_MAX,
            from,
        };
        let theirs = self
            .store
            .events(filter.clone(), page(theirs))
            .await
            .expect("the store lists");
        let ours = self
            .model
            .events(filter.clone(), page(ours))
            .await
            .expect("the model lists");
        let named = |event: Event| Event {
            id: self.named(event.id),
            ..event
        };
        let moment = anchor.map(|&(_, ours)| ours.0.millis());
        let theirs = in_order(theirs.rows.into_iter().map(named), moment);
        assert_eq!(
            theirs,
            in_order(ours.rows.into_iter(), moment),
            "list {filter:?} {from}"
        );
    }

    async fn finish(&self) {
        for nth in 0..self.given.len() {
            self.look(nth).await;
        }
        self.look_at_all_effects().await;
        self.look_at_all_posts().await;
        self.look_at_log().await;
        self.list_keys(None).await;
        let (theirs, ours) = (self.store.stats().await, self.model.stats().await);
        let (theirs, ours) = (
            theirs.expect("the store counts"),
            ours.expect("the model counts"),
        );
        assert_eq!(
            (theirs.events, theirs.keys, theirs.keys_twice),
            (ours.events, ours.keys, 0)
        );
    }
}

/// Newest first, by key within one arrival, and without those of the anchor's own arrival: on which side of it they are is
/// the store's choice.
fn in_order(events: impl Iterator<Item = Event>, anchor_millis: Option<u64>) -> Vec<Event> {
    let mut events: Vec<Event> = events
        .filter(|event| Some(event.received_at.millis()) != anchor_millis)
        .collect();
    events.sort_by_key(|event| (Reverse(event.received_at), event.key.clone(), event.id));
    events
}

/// Runs `cases` random sequences, each on an empty store from `fresh` whose leases end by `dial`, and fails with the smallest
/// sequence on which store and model disagree.
pub fn agrees_with_the_model<Fut>(
    runtime: &tokio::runtime::Runtime,
    cases: u32,
    dial: &Dial,
    fresh: impl Fn() -> Fut,
) where
    Fut: Future<Output = Subject>,
{
    let config = Config {
        cases,
        failure_persistence: None,
        ..Config::default()
    };
    let sequences = prop_oneof![
        prop::collection::vec(command(), 1..COMMANDS_MAX),
        prop::collection::vec(busy_command(), 1..COMMANDS_WHEN_BUSY_MAX),
        prop::collection::vec(keys_command(), 1..COMMANDS_MAX),
        prop::collection::vec(posting_command(), 1..COMMANDS_WHEN_BUSY_MAX),
    ];
    let outcome = TestRunner::new(config).run(&sequences, |commands| {
        runtime.block_on(async {
            let effects = Known::new(dial.clone());
            let mut pair = Pair {
                store: fresh().await,
                model: std::sync::Arc::new(ModelStore::new(dial.clock())),
                clock: at(0),
                went_back: false,
                given: Vec::new(),
                names: HashMap::new(),
                sent: Vec::new(),
                effects,
                keys: KnownKeys::default(),
                runs: 0,
                same_order: true,
            };
            for command in &commands {
                pair.run(command).await;
            }
            pair.finish().await;
        });
        Ok(())
    });
    if let Err(error) = outcome {
        panic!("{error}");
    }
}

//! The outbox on both sides: its catalogue, messages, deliveries that follow, and what is read of them.

use std::collections::hash_map::Entry as Place;

use hapax_ledger::effect::EffectState;
use hapax_ledger::id::{AttemptId, EffectId};
use hapax_ledger::time::{Span, Time};
use proptest::prelude::*;

use super::super::operator::ada;
use super::super::publisher::{
    app, app_id, boxed, endpoint, endpoint_id, event_type, later, message, ordered, with_body,
};
use super::super::sample::{Subject, at};
use super::naming::plain;
use super::{BODIES, Pair, keep, key};
use crate::nouns::{
    Attempted, Born, Deliveries, Entry, Message, MessageFilter, NewMessage, News, PAGE_MAX, Page,
    PageFrom, PollAsk, PollPlace, Posted, PostedFilter, Published, Tiding, Tried,
};

/// All messages of an application after a place, and where that leads.
async fn given(
    store: &Subject,
    app: u64,
    mut from: PollPlace,
    now: Time,
) -> (Vec<Message>, PollPlace) {
    let mut given = Vec::new();
    loop {
        let filter = MessageFilter {
            app: Some(app_id(app)),
            may_have: Some(endpoint_id(1)),
            ..MessageFilter::default()
        };
        let ask = PollAsk {
            filter,
            from,
            limit: 2,
            now,
        };
        let polled = store.poll(ask).await.expect("it reads");
        given.extend(polled.messages);
        from = polled.place;
        if !polled.more {
            return (given, from);
        }
    }
}

/// Endpoints of one application: the first half is delivered to with a message, the second after it.
const ENDPOINTS_EACH: u64 = 6;
/// Endpoints there are. None belongs to two applications, so that one order is one application's.
const ENDPOINTS: u64 = 2 * ENDPOINTS_EACH;
const LOOKS: usize = 8;

/// A message in a few numbers.
#[derive(Clone, Debug)]
pub(super) struct MessageSketch {
    app: u64,
    key: usize,
    body: usize,
    endpoints: u64,
    later: u64,
    ordered: Option<bool>,
    numbered: bool,
    born: bool,
    outdated: bool,
    keep: usize,
}

/// One thing to do to the outbox of both.
#[derive(Clone, Debug)]
pub(super) enum PostCommand {
    Publish(MessageSketch),
    /// An application, an endpoint or a type; decided on the latest state or not.
    Put {
        what: usize,
        number: u64,
        stale: bool,
        delete: bool,
        named: bool,
    },
    FanOut,
    Claim,
    /// What has come for somebody who polls an application, since the last time.
    Poll {
        app: u64,
    },
    Look {
        what: usize,
    },
}

fn message_sketch() -> impl Strategy<Value = MessageSketch> {
    let what = (0..2u64, 0..4usize, 0..BODIES.len(), 0..3usize);
    let where_to = (0..4u64, 0..4u64, any::<bool>());
    let how = (
        prop::option::weighted(0.6, any::<bool>()),
        any::<bool>(),
        prop::bool::weighted(0.1),
    );
    (what, where_to, how).prop_map(
        |((app, key, body, keep), (endpoints, later, born), (ordered, numbered, outdated))| {
            MessageSketch {
                app,
                key,
                body,
                endpoints,
                later: if endpoints == 0 { 0 } else { later },
                ordered,
                numbered,
                born,
                outdated,
                keep,
            }
        },
    )
}

pub(super) fn post_command() -> impl Strategy<Value = PostCommand> {
    let put = (
        0..3usize,
        1..4u64,
        prop::bool::weighted(0.2),
        prop::bool::weighted(0.2),
        any::<bool>(),
    );
    let put = put.prop_map(|(what, number, stale, delete, named)| PostCommand::Put {
        what,
        number,
        stale,
        delete,
        named,
    });
    prop_oneof![
        6 => message_sketch().prop_map(PostCommand::Publish),
        2 => put,
        2 => Just(PostCommand::FanOut),
        3 => Just(PostCommand::Claim),
        2 => (0..2u64).prop_map(|app| PostCommand::Poll { app }),
        2 => (0..LOOKS).prop_map(|what| PostCommand::Look { what }),
    ]
}

impl Pair {
    pub(super) async fn post(&mut self, command: &PostCommand) {
        match command {
            PostCommand::Publish(sketch) => self.publish(sketch).await,
            PostCommand::Put { .. } => self.put(command).await,
            PostCommand::FanOut => self.fan_out().await,
            PostCommand::Claim => {
                let lanes: Vec<String> = (0..ENDPOINTS)
                    .map(|number| endpoint_id(number).to_string())
                    .collect();
                let lanes: Vec<&str> = lanes.iter().map(String::as_str).collect();
                self.claim_in("poster", &lanes).await;
            }
            PostCommand::Poll { app } => self.poll(*app).await,
            PostCommand::Look { what } => self.look_at_posts(*what).await,
        }
    }

    async fn publish(&mut self, sketch: &MessageSketch) {
        let revision = self.model.revision().await.expect("the model reads");
        let revision = revision + u64::from(sketch.outdated);
        let first = sketch.app * ENDPOINTS_EACH;
        let endpoints: Vec<u64> = (first..first + sketch.endpoints).collect();
        let mut new = message(
            sketch.app,
            &key(sketch.key),
            self.clock,
            &endpoints,
            revision,
        );
        new = with_body(new, BODIES[sketch.body]);
        if let Some(entity) = sketch.ordered {
            new = ordered(new, if entity { "o1" } else { "o2" });
        }
        new.about.sequence_key = sketch.numbered.then(|| "s".into());
        new.about.channels = vec![BODIES[sketch.body].into()];
        let first_later = first + ENDPOINTS_EACH / 2;
        new.later = later(first_later..first_later + sketch.later);
        // One endpoint and no more to come: an example.
        let alone = sketch.endpoints == 1 && sketch.later == 0;
        new.about.only_to = alone.then(|| endpoint_id(first));
        for event in &mut new.arrival.events {
            event.keep = keep(sketch.keep);
            for effect in &mut event.effects {
                effect.wait = Span::ZERO;
                effect.attempts_max = 2;
                effect.born = sketch.born.then(|| Born {
                    node: "birthplace".into(),
                    lease: super::sketch::LEASE,
                });
            }
        }
        self.publish_both(new).await;
    }

    async fn publish_both(&mut self, new: NewMessage) {
        let theirs = self.store.publish(new.clone()).await;
        let ours = self.model.publish(new).await.expect("the model takes it");
        let theirs = theirs.expect("the store takes it");
        let (Published::Stored(theirs), Published::Stored(ours)) = (&theirs, &ours) else {
            assert_eq!(theirs, ours);
            return;
        };
        if let Place::Vacant(unnamed) = self.names.entry(theirs.event) {
            unnamed.insert(ours.event);
            self.given.push((theirs.event, ours.event));
        }
        assert_eq!(self.named_receipt(theirs.clone(), ours).await, *ours);
    }

    async fn put(&mut self, command: &PostCommand) {
        let PostCommand::Put {
            what,
            number,
            stale,
            delete,
            named,
        } = command
        else {
            return;
        };
        let known = self.model.changes(0).await.expect("the model reads");
        let deleted_at = delete.then(|| at(1));
        let uid = named.then(|| "u".into());
        let entry = match what {
            0 => Entry::App(crate::nouns::App {
                uid,
                deleted_at,
                ..app(*number)
            }),
            1 => boxed(crate::nouns::Endpoint {
                uid,
                deleted_at,
                ..endpoint(*number, 1)
            }),
            _ => Entry::EventType(crate::nouns::EventType {
                deleted_at,
                ..event_type(&key(*number as usize))
            }),
        };
        let subject = crate::posting::subject(&entry);
        let mut entries = known.entries.iter();
        let stands = entries.find(|other| crate::posting::subject(other) == subject);
        let was = stands.map_or(0, Entry::revision) + u64::from(*stale);
        let theirs = self
            .store
            .put(entry.clone(), was, "put", ada(), "{}".into())
            .await;
        let ours = self.model.put(entry, was, "put", ada(), "{}".into()).await;
        assert_eq!(
            theirs.expect("the store changes it"),
            ours.expect("the model changes it")
        );
    }

    async fn fan_out(&mut self) {
        let mut waiting = Vec::new();
        for (theirs, ours) in &self.given {
            let facts = self.model.facts(*ours).await.expect("the model reads");
            if facts.is_some_and(|facts| facts.to_come > 0) {
                waiting.push((*theirs, *ours));
            }
        }
        let theirs = self.store.fan_out().await.expect("the store goes on");
        let ours = self.model.fan_out().await.expect("the model goes on");
        assert_eq!(theirs.more, ours.more, "more to fan out");
        for (theirs, ours) in waiting {
            self.meet_effects(theirs, ours).await;
        }
    }

    /// Both have given the same since the last time, whatever order their commits ended in.
    async fn poll(&mut self, app: u64) {
        let beginning = (PollPlace::BEGINNING, PollPlace::BEGINNING);
        let (theirs, ours) = self.effects.places.get(&app).copied().unwrap_or(beginning);
        let now = self.clock;
        let (theirs, their_place) = given(&self.store, app, theirs, now).await;
        let (mut ours, our_place) = given(&self.model, app, ours, now).await;
        let theirs = theirs.into_iter().map(|one| self.named_message(one));
        let mut theirs: Vec<Message> = theirs.collect();
        theirs.sort_by_key(|one| one.event.id);
        ours.sort_by_key(|one| one.event.id);
        assert_eq!(theirs, ours, "polled of {app}");
        self.effects.places.insert(app, (their_place, our_place));
    }

    fn named_message(&self, message: Message) -> Message {
        let mut named = message;
        named.event.id = self.named(named.event.id);
        named
    }

    fn named_posted(&self, posted: Posted) -> Posted {
        Posted {
            effect: self.named_effect(posted.effect),
            message: posted.message.map(|message| self.named_message(message)),
        }
    }

    pub(super) async fn look_at_all_posts(&self) {
        for what in 0..LOOKS {
            self.look_at_posts(what).await;
        }
    }

    async fn look_at_posts(&self, what: usize) {
        match what {
            0 => self.look_at_catalogue().await,
            1 => self.look_at_messages(MessageFilter::default()).await,
            2 => {
                let filter = MessageFilter {
                    app: Some(app_id(1)),
                    channel: Some(BODIES[0].into()),
                    may_have: Some(endpoint_id(ENDPOINTS_EACH)),
                    ..MessageFilter::default()
                };
                self.look_at_messages(filter).await;
            }
            3 => self.look_at_deliveries(PostedFilter::default()).await,
            4 => {
                let states = vec![EffectState::Done, EffectState::Dead];
                let filter = PostedFilter {
                    states,
                    ..PostedFilter::default()
                };
                self.look_at_deliveries(filter).await;
            }
            5 => self.look_at_attempts().await,
            6 => self.look_at_tidings().await,
            _ => self.look_at_counts().await,
        }
    }

    async fn look_at_catalogue(&self) {
        let revision = self.model.revision().await.expect("the model reads");
        for since in [0, revision / 2, revision] {
            let theirs = self.store.changes(since).await.expect("the store reads");
            let ours = self.model.changes(since).await.expect("the model reads");
            assert_eq!(theirs, ours, "changes since {since}");
        }
    }

    /// Whole lists; in which order messages of one millisecond come is the store's choice, and so is it after a jump back.
    async fn look_at_messages(&self, filter: MessageFilter) {
        let all = async |store: &Subject| -> Vec<Message> {
            let page = Page {
                limit: PAGE_MAX,
                from: PageFrom::Newest,
            };
            let listed = store.messages(filter.clone(), page).await;
            listed.expect("it lists").rows
        };
        let theirs = all(&self.store).await.into_iter();
        let mut theirs: Vec<Message> = theirs.map(|one| self.named_message(one)).collect();
        let mut ours = all(&self.model).await;
        theirs.sort_by_key(|one| one.event.id);
        ours.sort_by_key(|one| one.event.id);
        assert_eq!(theirs, ours, "messages {filter:?}");
    }

    async fn posted(store: &Subject, endpoint: u64, filter: &PostedFilter) -> Vec<Posted> {
        let page = Page {
            limit: PAGE_MAX,
            from: PageFrom::<EffectId>::Newest,
        };
        let which = Deliveries::To(endpoint_id(endpoint));
        let listed = store.deliveries(which, filter.clone(), page).await;
        listed.expect("it lists").rows
    }

    async fn look_at_deliveries(&self, filter: PostedFilter) {
        for endpoint in 0..ENDPOINTS {
            let theirs = Pair::posted(&self.store, endpoint, &filter).await;
            let theirs = theirs.into_iter().map(|one| self.named_posted(one));
            let mut theirs: Vec<Posted> = theirs.collect();
            let ours = Pair::posted(&self.model, endpoint, &filter).await;
            let ours = ours.into_iter().map(|one| Posted {
                effect: plain(one.effect),
                ..one
            });
            let mut ours: Vec<Posted> = ours.collect();
            theirs.sort_by_key(|one| one.effect.id);
            ours.sort_by_key(|one| one.effect.id);
            assert_eq!(theirs, ours, "deliveries to {endpoint}");
        }
    }

    async fn look_at_attempts(&self) {
        let all = async |store: &Subject, endpoint| -> Vec<Tried> {
            let page = Page {
                limit: PAGE_MAX,
                from: PageFrom::Newest,
            };
            let which = Deliveries::To(endpoint_id(endpoint));
            let listed = store.attempts(which, PostedFilter::default(), page).await;
            listed.expect("it lists").rows
        };
        for endpoint in 0..ENDPOINTS {
            let theirs = all(&self.store, endpoint).await.into_iter();
            let theirs = theirs.map(|one| (self.effects.id(one.posted.effect.id), one.attempt));
            let mut theirs: Vec<_> = theirs.collect();
            let ours = all(&self.model, endpoint).await.into_iter();
            let mut ours: Vec<_> = ours
                .map(|one| (one.posted.effect.id, one.attempt))
                .collect();
            theirs.sort_by_key(|(effect, attempt)| (*effect, attempt.fence));
            ours.sort_by_key(|(effect, attempt)| (*effect, attempt.fence));
            assert_eq!(theirs, ours, "attempts to {endpoint}");
        }
    }

    /// What operators are to hear; in which order is the store's choice.
    async fn look_at_tidings(&self) {
        let all = async |store: &Subject| -> Vec<Tiding> {
            let (mut after, mut all) = (0, Vec::new());
            loop {
                let page = store.untold(after).await.expect("it reads");
                let Some(last) = page.last() else {
                    return all;
                };
                after = last.number;
                all.extend(page.into_iter().filter_map(|one| one.tiding));
            }
        };
        let mut theirs = all(&self.store).await;
        for tiding in &mut theirs {
            if let Some(of) = attempted(&mut tiding.news) {
                of.message = self.named(of.message);
            }
        }
        let mut ours = all(&self.model).await;
        // Ids of attempts are made of those of effects, which each store gives as it likes.
        for tiding in theirs.iter_mut().chain(&mut ours) {
            if let Some(of) = attempted(&mut tiding.news) {
                of.attempt = AttemptId::from_bytes([0; 16]);
            }
        }
        theirs.sort_by_key(|one| format!("{one:?}"));
        ours.sort_by_key(|one| format!("{one:?}"));
        assert_eq!(theirs, ours, "tidings");
    }

    async fn look_at_counts(&self) {
        for number in 0..ENDPOINTS {
            let id = endpoint_id(number);
            let (theirs, ours) = (self.store.waiting(id).await, self.model.waiting(id).await);
            let theirs = theirs.expect("the store counts");
            assert_eq!(theirs, ours.expect("the model counts"), "waiting");
            let (since, until) = (at(-86_400), at(0) + Span::from_days(30));
            let theirs = self.store.tallies(id, since, until).await;
            let ours = self.model.tallies(id, since, until).await;
            let theirs = theirs.expect("the store counts");
            assert_eq!(theirs, ours.expect("the model counts"), "tallies");
        }
    }
}

fn attempted(news: &mut News) -> Option<&mut Attempted> {
    match news {
        News::Failing(of) | News::Exhausted(of) | News::Recovered(of) | News::GotThrough(of) => {
            Some(of)
        }
        News::Created
        | News::Updated
        | News::Deleted
        | News::Disabled { .. }
        | News::Disabling { .. } => None,
    }
}

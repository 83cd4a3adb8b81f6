//! Every list that pages and the API show, asked for in every way: for tests that look at how a store gets at its rows.

use hapax_ledger::effect::EffectState;
use hapax_ledger::event::EventStatus;
use hapax_ledger::guard::GuardState;
use hapax_ledger::id::{AppId, EffectId, EndpointId, EventId, KeyId, RawId};
use hapax_ledger::time::Time;

use super::publisher::{self, app, app_id, boxed, done};
use super::sample::{Subject, at};
use crate::nouns::{
    AuditFilter, Deliveries, EffectFilter, Entry, EventFilter, KeyFilter, MessageFilter, Page,
    PageFrom, PostedFilter, TriedPlace,
};

/// A page as long as the dashboard's.
const LIMIT: u32 = 50;

/// From the newest, and from a row on both ways.
fn pages<I: Copy>(row: I) -> [Page<I>; 3] {
    let from = [
        PageFrom::Newest,
        PageFrom::OlderThan(row),
        PageFrom::NewerThan(row),
    ];
    from.map(|from| Page { limit: LIMIT, from })
}

/// The `n`th bit of `set`: is this narrowed?
fn bit<T>(set: u32, n: u32, value: impl Into<T>) -> Option<T> {
    ((set >> n) & 1 == 1).then(|| value.into())
}

/// Asks for all of them.
pub async fn every_list(store: &Subject) {
    let row = RawId::new(at(5), 0, 5);
    events(store, EventId(row)).await;
    effects(store, EffectId(row)).await;
    guarded(store, KeyId(row)).await;
    audit(store, EventId(row)).await;
    posts(store, row).await;
    store.replays(None).await.expect("the store lists");
    store.effect_counts().await.expect("the store counts");
}

async fn events(store: &Subject, id: EventId) {
    let statuses = EventStatus::ALL.iter().copied().map(Some);
    for status in statuses.chain([None]) {
        for set in 0..1 << 7 {
            let filter = EventFilter {
                status,
                source: bit(set, 0, "a"),
                event_type: bit(set, 1, "invoice.paid"),
                key: bit(set, 2, "k1"),
                key_contains: bit(set, 3, "1"),
                entity: bit(set, 4, "cus_1"),
                since: bit(set, 5, at(1)),
                until: bit(set, 6, at(9)),
            };
            for page in pages(id) {
                store.events(filter.clone(), page).await.expect("a list");
            }
        }
    }
}

async fn effects(store: &Subject, id: EffectId) {
    let states = EffectState::ALL.iter().copied().map(Some);
    for state in states.chain([None]) {
        for set in 0..1 << 5 {
            let filter = EffectFilter {
                state,
                name: bit(set, 0, "activate"),
                source: bit(set, 1, "a"),
                lane: bit(set, 2, "activate"),
                since: bit(set, 3, at(1)),
                until: bit(set, 4, at(9)),
            };
            for page in pages(id) {
                store.effects(filter.clone(), page).await.expect("a list");
            }
        }
    }
}

async fn guarded(store: &Subject, id: KeyId) {
    let states = GuardState::ALL.iter().copied().map(Some);
    for state in states.chain([None]) {
        for set in 0..1 << 3 {
            let filter = KeyFilter {
                state,
                guard: bit(set, 0, "payments"),
                key: bit(set, 1, "k1"),
                principal: bit(set, 2, "somebody"),
            };
            for page in pages(id) {
                store.keys(filter.clone(), page).await.expect("a list");
            }
        }
    }
}

async fn audit(store: &Subject, event: EventId) {
    for set in 0..1 << 2 {
        let filter = AuditFilter {
            actor: bit(set, 0, "somebody"),
            event: bit(set, 1, event),
        };
        for page in pages(5) {
            store.audit(filter.clone(), page).await.expect("a list");
        }
    }
}

async fn posts(store: &Subject, row: RawId) {
    let (event, effect, endpoint) = (EventId(row), EffectId(row), EndpointId(row));
    for set in 0..1 << 4 {
        let message = MessageFilter {
            app: bit(set, 0, AppId(row)),
            event_types: Vec::from_iter(bit::<String>(set, 1, "invoice.paid")),
            channel: bit(set, 2, "eu"),
            tag: None,
            since: bit(set, 3, at(1)),
            until: bit(set, 3, at(9)),
            may_have: bit(set, 3, endpoint),
        };
        for page in pages(event) {
            let listed = store.messages(message.clone(), page).await;
            listed.expect("a list");
        }
        let filter = PostedFilter {
            message,
            states: Vec::new(),
        };
        for which in [Deliveries::To(endpoint), Deliveries::Of(event)] {
            for page in pages(effect) {
                let listed = store.deliveries(which.clone(), filter.clone(), page).await;
                listed.expect("a list");
            }
            for page in pages(TriedPlace { effect, fence: 1 }) {
                let listed = store.attempts(which.clone(), filter.clone(), page).await;
                listed.expect("a list");
            }
        }
    }
    let addressed = store.addressed(event, endpoint).await;
    addressed.expect("the store reads");
    let tallies = store.tallies(endpoint, Time::MIN, Time::MAX).await;
    tallies.expect("the store counts");
    store.waiting(endpoint).await.expect("the store counts");
    done(store, Entry::App(app(1)), 0).await;
    done(store, boxed(publisher::endpoint(1, 1)), 0).await;
    let usage = store.usage(app_id(1), Time::MIN, Time::MAX).await;
    assert_eq!(usage.expect("the store counts"), 0);
}

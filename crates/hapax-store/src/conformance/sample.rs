//! Small arrivals to check stores with.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use bytes::Bytes;
use hapax_ledger::event::KeyOrigin;
use hapax_ledger::id::EventId;
use hapax_ledger::key::{BodyHash, KeyHash, KeyKind};
use hapax_ledger::time::{Span, Time};

use crate::nouns::{
    Arrival, EventDetail, EventFilter, Keep, NewEvent, OnFailed, Page, PageFrom, Proof, Reaped,
    Receipt, Review,
};
use crate::store::{Clock, Store};

/// The store under check.
pub type Subject = Arc<dyn Store>;

/// How long things are kept unless a check says otherwise.
pub const KEEP: Keep = Keep {
    payload: Span::from_days(7),
    ledger: Span::from_days(90),
    identity: Span::from_days(90),
    retry_window: Span::from_days(3),
};

/// `seconds` after the time at which all checks begin.
pub fn at(seconds: i64) -> Time {
    Time::from_secs(1_800_000_000 + seconds)
}

/// A clock that stands still at the beginning, for stores whose leases nobody looks at.
pub fn still_clock() -> Clock {
    Arc::new(|| at(0))
}

/// A clock that stands where a check has set it; it begins at the beginning.
#[derive(Clone, Debug)]
pub struct Dial(Arc<AtomicI64>);

impl Default for Dial {
    fn default() -> Dial {
        Dial(Arc::new(AtomicI64::new(at(0).micros())))
    }
}

impl Dial {
    /// Sets it.
    pub fn set(&self, time: Time) {
        self.0.store(time.micros(), Ordering::SeqCst);
    }

    /// The clock that it sets.
    pub fn clock(&self) -> Clock {
        let dial = self.0.clone();
        Arc::new(move || Time::from_micros(dial.load(Ordering::SeqCst)))
    }
}

/// An event of `source` with this key and body.
pub fn event(source: &str, key: &str, body: &str) -> NewEvent {
    NewEvent {
        event_type: Some("invoice.paid".into()),
        key: key.into(),
        key_hash: KeyHash::of(KeyKind::Identity, source, key),
        key_origin: KeyOrigin::Provider,
        body: Bytes::copy_from_slice(body.as_bytes()),
        content_type: Some("application/json".into()),
        body_hash: BodyHash::of(body.as_bytes()),
        compare_hash: BodyHash::of(body.as_bytes()),
        provider_event_id: None,
        object_id: None,
        entity: None,
        version: None,
        keep: KEEP,
        review: None,
        on_failed: OnFailed::Link,
        effects: Vec::new(),
    }
}

/// An arrival of these events.
pub fn arrival(source: &str, at: Time, events: Vec<NewEvent>) -> Arrival {
    let proof = Proof {
        scheme: "hmac".into(),
        secret_index: Some(0),
        signed_at: Some(at),
        remote: None,
    };
    Arrival {
        source: source.into(),
        at,
        proof,
        events,
    }
}

/// The reason that checks give for a review.
pub fn review() -> Review {
    Review {
        code: "H0301".into(),
        message: "the key could not be derived".into(),
    }
}

/// Accepts one event and returns its receipt.
pub async fn accept_one(store: &Subject, source: &str, at: Time, event: NewEvent) -> Receipt {
    let receipts = store
        .accept(arrival(source, at, vec![event]))
        .await
        .expect("the store accepts");
    let [receipt] = receipts.try_into().expect("one receipt for one event");
    receipt
}

/// Accepts a plain event of source `a` and returns its receipt.
pub async fn accept(store: &Subject, at: Time, key: &str, body: &str) -> Receipt {
    accept_one(store, "a", at, event("a", key, body)).await
}

/// Reads an event that has to be there.
pub async fn detail(store: &Subject, id: EventId) -> EventDetail {
    store
        .event(id)
        .await
        .expect("the store reads")
        .expect("the event is there")
}

/// The ids of one page, and where the next begins.
pub async fn page(
    store: &Subject,
    filter: &EventFilter,
    from: PageFrom,
    limit: u32,
) -> (Vec<EventId>, Option<EventId>) {
    let listed = store
        .events(filter.clone(), Page { limit, from })
        .await
        .expect("the store lists");
    (
        listed.rows.iter().map(|event| event.id).collect(),
        listed.next,
    )
}

/// A store that says `more` so often does not come to an end.
const REAP_STEPS_MAX: u32 = 10_000;

/// Reaps until the store says that there is no more; the sum of all steps.
pub async fn reap_all(store: &Subject, now: Time) -> Reaped {
    let mut sum = Reaped::default();
    for _ in 0..REAP_STEPS_MAX {
        let step = store.reap(now).await.expect("the store reaps");
        sum.payloads += step.payloads;
        sum.ledgers += step.ledgers;
        sum.identities += step.identities;
        sum.keys += step.keys;
        if !step.more {
            return sum;
        }
    }
    panic!("reaping does not come to an end");
}

/// The same where nobody else reaps: what was counted before is what is reaped.
pub async fn reap_counted(store: &Subject, now: Time) -> Reaped {
    let due = store.reapable(now).await.expect("the store counts");
    let sum = reap_all(store, now).await;
    assert_eq!(sum, due, "what is counted is what is reaped");
    sum
}

/// Waits for all of these at once, in the order given; each runs as a task of its own.
pub async fn all<T: Send + 'static>(
    work: impl IntoIterator<Item = impl Future<Output = T> + Send + 'static>,
) -> Vec<T> {
    let tasks: Vec<_> = work.into_iter().map(tokio::spawn).collect();
    let mut results = Vec::with_capacity(tasks.len());
    for task in tasks {
        results.push(task.await.expect("the task ends well"));
    }
    results
}

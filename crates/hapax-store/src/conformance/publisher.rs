//! A publisher to check stores with: a catalogue, and messages.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use hapax_ledger::effect::Repeat;
use hapax_ledger::id::{AppId, EndpointId, RawId};
use hapax_ledger::key::BodyHash;
use hapax_ledger::time::Time;

use super::operator::ada;
use super::sample::{Subject, arrival, at, event};
use super::worker::planned;
use crate::nouns::{
    About, App, Changes, Endpoint, Entry, EventType, LaterDelivery, NewEffect, NewMessage,
    Published, Put, Receipt, Standing, app_source,
};

/// An application's id.
pub fn app_id(number: u64) -> AppId {
    AppId(RawId::new(at(0), 0, number))
}

/// An endpoint's id.
pub fn endpoint_id(number: u64) -> EndpointId {
    EndpointId(RawId::new(at(0), 0, number))
}

/// An application.
pub fn app(number: u64) -> App {
    App {
        id: app_id(number),
        uid: None,
        name: format!("app {number}"),
        throttle_rate: None,
        metadata: BTreeMap::new(),
        extra: "{}".into(),
        created_at: at(1),
        updated_at: at(1),
        deleted_at: None,
        revision: 0,
    }
}

/// An endpoint of an application.
pub fn endpoint(number: u64, app: u64) -> Endpoint {
    Endpoint {
        id: endpoint_id(number),
        app: app_id(app),
        uid: None,
        url: "https://example.org/hook".into(),
        description: String::new(),
        event_types: Vec::new(),
        channels: Vec::new(),
        throttle_rate: None,
        metadata: BTreeMap::new(),
        sealed: Bytes::from_static(b"\0sealed"),
        extra: "{}".into(),
        standing: Standing::Enabled,
        failing_since: None,
        disabled_from: None,
        created_at: at(1),
        updated_at: at(1),
        deleted_at: None,
        revision: 0,
    }
}

/// A type of events.
pub fn event_type(name: &str) -> EventType {
    EventType {
        name: name.into(),
        description: String::new(),
        archived: false,
        deprecated: false,
        group_name: None,
        feature_flags: Vec::new(),
        schemas: None,
        extra: "{}".into(),
        created_at: at(1),
        updated_at: at(1),
        deleted_at: None,
        revision: 0,
    }
}

/// An endpoint as an entry.
pub fn boxed(endpoint: Endpoint) -> Entry {
    Entry::Endpoint(Box::new(endpoint))
}

/// Puts an entry, as Ada.
pub async fn put(store: &Subject, entry: Entry, was: u64) -> Put {
    let put = store.put(entry, was, "catalogue.put", ada(), "{}".into());
    put.await.expect("the store changes its catalogue")
}

/// Puts an entry that has to get in; the revision that it made.
pub async fn done(store: &Subject, entry: Entry, was: u64) -> u64 {
    match put(store, entry, was).await {
        Put::Done { revision } => revision,
        other => panic!("not put: {other:?}"),
    }
}

/// All changes since a revision, part by part.
pub async fn changes(store: &Subject, since: u64) -> Changes {
    let mut all = Changes {
        revision: since,
        ..Changes::default()
    };
    loop {
        let part = store.changes(all.revision).await.expect("the store reads");
        all.entries.extend(part.entries);
        all.revision = part.revision;
        if !part.more {
            return all;
        }
    }
}

/// The catalogue's revision.
pub async fn revision(store: &Subject) -> u64 {
    store.revision().await.expect("the store reads")
}

/// A delivery to an endpoint, due by every clock.
pub fn to(number: u64, key: &str) -> NewEffect {
    let name: Arc<str> = endpoint_id(number).to_string().into();
    NewEffect {
        lane: name.clone(),
        ..planned(&name, key, Repeat::Keyed)
    }
}

/// Deliveries that follow, to these endpoints.
pub fn later(numbers: std::ops::Range<u64>) -> Vec<LaterDelivery> {
    let later = numbers.map(|number| LaterDelivery {
        endpoint: endpoint_id(number),
        attempts_max: 7,
    });
    later.collect()
}

/// A message of an application with this key, to these endpoints, planned by this revision.
pub fn message(app: u64, key: &str, time: Time, endpoints: &[u64], revision: u64) -> NewMessage {
    let source = app_source(app_id(app));
    let mut new = event(&source, key, "{}");
    new.effects = endpoints.iter().map(|number| to(*number, key)).collect();
    NewMessage {
        arrival: arrival(&source, time, vec![new]),
        revision,
        about: About::default(),
        later: Vec::new(),
    }
}

/// The same with another body.
pub fn with_body(mut message: NewMessage, body: &str) -> NewMessage {
    for event in &mut message.arrival.events {
        event.body = Bytes::copy_from_slice(body.as_bytes());
        event.body_hash = BodyHash::of(body.as_bytes());
        event.compare_hash = event.body_hash;
    }
    message
}

/// The same, numbered and delivered one after the other under this key.
pub fn ordered(mut message: NewMessage, key: &str) -> NewMessage {
    for effect in message
        .arrival
        .events
        .iter_mut()
        .flat_map(|event| &mut event.effects)
    {
        effect.order = Some(super::worker::serial(key));
    }
    message.about.ordering_key = Some(key.into());
    message
}

/// Publishes.
pub async fn publish(store: &Subject, message: NewMessage) -> Published {
    let published = store.publish(message).await;
    published.expect("the store takes it")
}

/// Publishes what has to be stored.
pub async fn stored(store: &Subject, message: NewMessage) -> Receipt {
    match publish(store, message).await {
        Published::Stored(receipt) => receipt,
        Published::Outdated => panic!("it is planned by the latest catalogue"),
    }
}

//! What the outbox's rules make of a message and of a change of its catalogue. Pure: every store does the same with it.

use hapax_ledger::effect::Repeat;
use hapax_ledger::id::EndpointId;
use hapax_ledger::key::{KeyHash, KeyKind};
use hapax_ledger::order::PlannedOrder;
use hapax_ledger::time::Time;

use crate::error::{StoreError, StoreErrorKind};
use crate::nouns::{
    Arrival, EFFECTS_PER_EVENT_MAX, Entry, LaterDelivery, NewEffect, NewEvent, NewMessage, Put,
    app_of_source,
};

/// A message is one event of an application, each of its deliveries is named after its endpoint and has the message's key, and those that
/// follow are like the first. To be asked before a transaction is touched.
pub(crate) fn sound(message: &NewMessage) -> Result<(), StoreError> {
    let refused = |why: &'static str| Err(StoreError::new(StoreErrorKind::Unavailable, why));
    let [event] = &message.arrival.events[..] else {
        return Err(not_one_event());
    };
    if app_of_source(&message.arrival.source).is_none() {
        return refused("a message has the source of an application");
    }
    let mut effects = event.effects.iter();
    if !effects.all(|effect| effect.lane == effect.name && endpoint_of(effect).is_some()) {
        return refused("a delivery is named after its endpoint, and so is its lane");
    }
    if !event.effects.iter().all(|effect| effect.key == event.key) {
        return refused("a delivery has the key of its message");
    }
    if !event.effects.iter().all(|effect| effect.after.is_empty()) {
        return refused("deliveries of a message do not wait for each other");
    }
    let ordering_key = message.about.ordering_key.as_deref();
    if !event
        .effects
        .iter()
        .all(|effect| effect.order.as_ref().map(|order| &*order.entity) == ordering_key)
    {
        return refused(
            "deliveries of a message are ordered by its ordering key, and by nothing else",
        );
    }
    if event.effects.len() + message.later.len() > EFFECTS_PER_EVENT_MAX {
        return refused("a message has more endpoints than fit");
    }
    if let Some(only) = message.about.only_to
        && !is_only_to(message, event, only)
    {
        return refused("a message that is only for one endpoint has no other delivery");
    }
    if event.effects.is_empty() && !message.later.is_empty() {
        return refused("deliveries that follow a message are like its first, and there is none");
    }
    Ok(())
}

fn is_only_to(message: &NewMessage, event: &NewEvent, only: EndpointId) -> bool {
    let mut effects = event.effects.iter();
    effects.all(|effect| endpoint_of(effect) == Some(only)) && message.later.is_empty()
}

/// What is no message.
pub(crate) fn not_one_event() -> StoreError {
    let why = "a message is one event, no more and no less";
    StoreError::new(StoreErrorKind::Unavailable, why)
}

fn endpoint_of(effect: &NewEffect) -> Option<EndpointId> {
    effect.name.parse().ok()
}

/// The arrival of a message: what its publisher calls it is the provider's id, which the event keeps when the rest is reaped.
pub(crate) fn arrival(message: &mut NewMessage) {
    for event in &mut message.arrival.events {
        event.provider_event_id.clone_from(&message.about.event_id);
    }
}

/// What all deliveries of a message have in common.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Template {
    pub(crate) key: String,
    pub(crate) repeat: Repeat,
    /// By the store's clock.
    pub(crate) not_before: Time,
    pub(crate) order: Option<PlannedOrder>,
}

impl Template {
    /// Taken from the first of them, which is stored now.
    pub(crate) fn of(event: &NewEvent, now: Time) -> Option<Template> {
        event.effects.first().map(|first| Template {
            key: first.key.clone(),
            repeat: first.repeat,
            not_before: now + first.wait,
            order: first.order.clone(),
        })
    }

    /// The delivery to one endpoint, stored now.
    pub(crate) fn delivery(&self, later: LaterDelivery, now: Time) -> NewEffect {
        let name = later.endpoint.to_string();
        NewEffect {
            key_hash: KeyHash::of(KeyKind::Effect, &name, &self.key),
            lane: name.as_str().into(),
            name: name.into(),
            key: self.key.clone(),
            repeat: self.repeat,
            wait: self.not_before.since(now),
            attempts_max: later.attempts_max,
            after: Vec::new(),
            order: self.order.clone(),
            born: None,
        }
    }
}

/// The entity that a message's deliveries are ordered by.
pub(crate) fn entity(event: &NewEvent) -> Option<&str> {
    let order = event.effects.first()?.order.as_ref()?;
    Some(&order.entity)
}

/// A message that comes behind others of its order whose deliveries are still being made has all of its own made after theirs: made
/// with it, one could overtake them (F1).
pub(crate) fn in_line(message: &NewMessage) -> (Arrival, Vec<LaterDelivery>) {
    let mut arrival = message.arrival.clone();
    let mut later = Vec::new();
    for event in &mut arrival.events {
        let effects = std::mem::take(&mut event.effects);
        later.extend(effects.iter().filter_map(|effect| {
            let endpoint = endpoint_of(effect)?;
            let attempts_max = effect.attempts_max;
            Some(LaterDelivery {
                endpoint,
                attempts_max,
            })
        }));
    }
    later.extend_from_slice(&message.later);
    (arrival, later)
}

/// What stands in the catalogue now, where an entry wants to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stands {
    pub(crate) revision: u64,
    pub(crate) deleted: bool,
    /// Is it sent to? Of an endpoint.
    pub(crate) enabled: bool,
}

/// May an entry be put there that was decided on at revision `was`?
pub(crate) fn may_put(entry: &Entry, was: u64, stands: Option<Stands>) -> Result<(), Put> {
    let by_name = matches!(entry, Entry::EventType(_));
    match stands {
        None if was == 0 => Ok(()),
        None => Err(Put::Moved),
        // The name of a deleted type is free; an id is given once.
        Some(Stands { deleted: true, .. }) if by_name && was == 0 => Ok(()),
        Some(Stands { deleted: true, .. }) => Err(Put::Moved),
        Some(_) if by_name && was == 0 => Err(Put::Taken),
        Some(stands) if stands.revision == was => Ok(()),
        Some(_) => Err(Put::Moved),
    }
}

/// What the audit log says a change was about.
pub(crate) fn subject(entry: &Entry) -> String {
    match entry {
        Entry::App(app) => app.id.to_string(),
        Entry::Endpoint(endpoint) => endpoint.id.to_string(),
        Entry::EventType(event_type) => event_type.name.to_string(),
    }
}

impl Entry {
    /// When it was deleted.
    pub(crate) fn deleted_at(&self) -> Option<Time> {
        match self {
            Entry::App(app) => app.deleted_at,
            Entry::Endpoint(endpoint) => endpoint.deleted_at,
            Entry::EventType(event_type) => event_type.deleted_at,
        }
    }

    /// The revision that made it what it is.
    pub(crate) fn revision(&self) -> u64 {
        match self {
            Entry::App(app) => app.revision,
            Entry::Endpoint(endpoint) => endpoint.revision,
            Entry::EventType(event_type) => event_type.revision,
        }
    }

    /// The same, made by this revision.
    pub(crate) fn at_revision(mut self, revision: u64) -> Entry {
        match &mut self {
            Entry::App(app) => app.revision = revision,
            Entry::Endpoint(endpoint) => endpoint.revision = revision,
            Entry::EventType(event_type) => event_type.revision = revision,
        }
        self
    }
}

//! A message: planned by the catalogue, published with its deliveries, and sent.

use std::sync::Arc;

use bytes::Bytes;
use hapax_ledger::effect::Repeat;
use hapax_ledger::event::KeyOrigin;
use hapax_ledger::id::AppId;
use hapax_ledger::key::{BodyHash, KeyHash, KeyKind, composite};
use hapax_ledger::order::{LifeStep, PlannedOrder};
use hapax_ledger::time::{Span, Time};
use hapax_store::nouns::{
    About, Arrival, Endpoint, FAN_OUT_STEP, Keep, LaterDelivery, Message, NewEffect, NewEvent,
    NewMessage, OnFailed, Proof, Published, Receipt, app_source,
};
use hapax_store::{Store, StoreError};

use super::catalog::Catalog;
use super::extra::{self, AppExtra, EndpointExtra, EventTypeExtra};
use super::fan_out::FanOut;
use super::registry::{Registry, Settings};
use crate::dispatch::directory::Directory;
use crate::dispatch::{Dispatcher, Promises};

/// How long a message is kept unless its publisher says otherwise: as long as a consumer may ask for it again.
pub const KEEP_DEFAULT: Keep = Keep {
    payload: Span::from_days(30),
    ledger: Span::from_days(90),
    identity: Span::from_days(90),
    retry_window: Span::from_days(3),
};
const JSON: &str = "application/json";
/// A message is planned anew so often while the catalogue changes under it. Each time somebody else's change was made.
pub const PLANS_MAX: u32 = 16;
/// What stands before the key of a message whose publisher gave it none. No id of a publisher's begins so.
const OWN_KEY: char = '~';

/// A message that somebody wants to publish, already checked.
#[derive(Clone, Debug)]
pub struct Draft {
    /// Whose.
    pub app: AppId,
    /// What happened.
    pub event_type: String,
    /// What is sent, byte for byte.
    pub payload: Bytes,
    /// What it is, if not JSON.
    pub content_type: Option<String>,
    /// What else its publisher said about it.
    pub about: About,
    /// How long it is kept.
    pub keep: Keep,
    /// Drawn for its key, in case its publisher gave it none.
    pub drawn: [u8; 16],
    /// When it was received.
    pub at: Time,
    /// Who published it.
    pub by: Arc<str>,
}

/// What became of a draft.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It is stored: new, or known.
    Stored(Receipt),
    /// There is no such application any more.
    NoApp,
    /// The catalogue changed again and again meanwhile.
    Busy,
}

/// The message that a draft becomes by this catalogue; nothing if its application is not in it. It goes to all endpoints that are
/// subscribed, or to the only one that it is for, subscribed or not.
pub fn plan(draft: &Draft, catalog: &Catalog, settings: &Settings) -> Option<NewMessage> {
    let app = catalog.app_by_id(draft.app)?;
    let source = app_source(draft.app);
    let key = key_of(draft);
    let schedules = Schedules::new(
        &draft.event_type,
        catalog,
        extra::read(&app.extra),
        settings,
    );
    let wanted: Box<dyn Iterator<Item = &Arc<Endpoint>>> = match draft.about.only_to {
        None => {
            let channels = &draft.about.channels;
            Box::new(catalog.subscribed(draft.app, &draft.event_type, channels))
        }
        Some(id) => Box::new(catalog.endpoint_by_id(id).into_iter()),
    };
    let mut effects = Vec::new();
    let mut later = Vec::new();
    for endpoint in wanted {
        let attempts_max = schedules.attempts_max(endpoint);
        match effects.len() < FAN_OUT_STEP {
            true => effects.push(delivery(
                &draft.about,
                endpoint,
                &key,
                wait(draft),
                attempts_max,
            )),
            false => later.push(LaterDelivery {
                endpoint: endpoint.id,
                attempts_max,
            }),
        }
    }
    Some(NewMessage {
        arrival: Arrival {
            at: draft.at,
            proof: Proof {
                scheme: "api".into(),
                secret_index: None,
                signed_at: None,
                remote: Some(draft.by.clone()),
            },
            events: vec![event(draft, &source, key, effects)],
            source: source.into(),
        },
        revision: catalog.revision(),
        about: draft.about.clone(),
        later,
    })
}

/// How long its publisher wants it to wait.
fn wait(draft: &Draft) -> Span {
    let deliver_at = draft.about.deliver_at.unwrap_or(draft.at);
    deliver_at.since(draft.at).max(Span::ZERO)
}

fn key_of(draft: &Draft) -> String {
    match &draft.about.event_id {
        Some(id) => id.clone(),
        None => format!("{OWN_KEY}{}", hex::encode(draft.drawn)),
    }
}

/// A delivery of a message that is published already, to an endpoint that it did not go to; nothing if its application is gone.
/// It is planned without an order: its turn has passed.
pub fn plan_again(
    message: &Message,
    endpoint: &Endpoint,
    catalog: &Catalog,
    settings: &Settings,
) -> Option<NewEffect> {
    let app = catalog.app_by_id(endpoint.app)?;
    let event_type = message.event.event_type.as_deref().unwrap_or_default();
    let schedules = Schedules::new(event_type, catalog, extra::read(&app.extra), settings);
    let about = About {
        ordering_key: None,
        ..message.about.clone()
    };
    let attempts_max = schedules.attempts_max(endpoint);
    let key = &message.event.key;
    Some(delivery(&about, endpoint, key, Span::ZERO, attempts_max))
}

/// What makes two requests the same message: all that they say, not the payload alone.
fn compare_hash(draft: &Draft, payload: BodyHash) -> BodyHash {
    let about = &draft.about;
    let texts = |all: &[String]| composite(&all.iter().map(String::as_str).collect::<Vec<_>>());
    let text = |one: &Option<String>| one.clone().unwrap_or_default();
    let only_to = about.only_to.map(|endpoint| endpoint.to_string());
    let said = [
        &draft.event_type,
        &texts(&about.channels),
        &texts(&about.tags),
        &about.deliver_at.map_or(0, Time::micros).to_string(),
        &text(&about.api_version),
        &text(&about.ordering_key),
        &text(&about.sequence_key),
        &hex::encode(payload.bytes()),
    ];
    let said = said.into_iter().map(String::as_str);
    let said: Vec<&str> = said.chain(only_to.as_deref()).collect();
    BodyHash::of(composite(&said).as_bytes())
}

fn event(draft: &Draft, source: &str, key: String, effects: Vec<NewEffect>) -> NewEvent {
    let body_hash = BodyHash::of(&draft.payload);
    NewEvent {
        event_type: Some(draft.event_type.clone()),
        key_hash: KeyHash::of(KeyKind::Identity, source, &key),
        key,
        key_origin: KeyOrigin::Provider,
        body: draft.payload.clone(),
        content_type: Some(match &draft.content_type {
            Some(given) => given.clone(),
            None => JSON.to_owned(),
        }),
        body_hash,
        compare_hash: compare_hash(draft, body_hash),
        provider_event_id: draft.about.event_id.clone(),
        object_id: None,
        entity: draft.about.ordering_key.clone(),
        version: None,
        keep: draft.keep,
        review: None,
        on_failed: OnFailed::Link,
        effects,
    }
}

fn delivery(
    about: &About,
    endpoint: &Endpoint,
    key: &str,
    wait: Span,
    attempts_max: u32,
) -> NewEffect {
    let name: Arc<str> = endpoint.id.to_string().into();
    let serial = |entity: &String| PlannedOrder {
        entity: entity.clone(),
        serial: true,
        version: None,
        life_step: LifeStep::Ordinary,
        snapshot: false,
        review: false,
    };
    NewEffect {
        key: key.to_owned(),
        key_hash: KeyHash::of(KeyKind::Effect, &name, key),
        repeat: Repeat::Keyed,
        lane: name.clone(),
        name,
        wait,
        attempts_max,
        after: Vec::new(),
        order: about.ordering_key.as_ref().map(serial),
        born: None,
    }
}

/// How often deliveries are tried, in the order in which schedules count.
struct Schedules {
    of_type: Option<u32>,
    otherwise: u32,
}

impl Schedules {
    fn new(event_type: &str, catalog: &Catalog, app: AppExtra, settings: &Settings) -> Schedules {
        let of_type = catalog.event_type(event_type);
        let of_type = of_type.and_then(|known| {
            let extra: EventTypeExtra = extra::read(&known.extra);
            extra.retry()
        });
        let otherwise = app.retry().unwrap_or_else(|| settings.retry.clone());
        Schedules {
            of_type: of_type.map(|schedule| schedule.attempts_max()),
            otherwise: otherwise.attempts_max(),
        }
    }

    fn attempts_max(&self, endpoint: &Endpoint) -> u32 {
        let own: EndpointExtra = extra::read(&endpoint.extra);
        let own = own.retry().map(|schedule| schedule.attempts_max());
        own.or(self.of_type).unwrap_or(self.otherwise)
    }
}

/// Publishes messages.
#[derive(Clone)]
pub struct Publisher {
    /// The ledger.
    pub store: Arc<dyn Store>,
    /// Who gets what.
    pub registry: Arc<Registry>,
    /// Sends what may go out at once.
    pub dispatcher: Dispatcher,
    /// Makes the deliveries that follow.
    pub fan_out: Arc<FanOut>,
}

impl Publisher {
    /// Stores a message with its deliveries, and lets them go.
    ///
    /// # Errors
    /// If the store fails, or does not say whether it did.
    pub async fn publish(&self, draft: &Draft) -> Result<Outcome, StoreError> {
        for _ in 0..PLANS_MAX {
            if let Some(outcome) = self.publish_once(draft).await? {
                return Ok(outcome);
            }
        }
        Ok(Outcome::Busy)
    }

    /// The same, by the catalogue as it is known. `None`: nothing is stored, because it has changed; now it is known how.
    ///
    /// # Errors
    /// If the store fails, or does not say whether it did.
    pub async fn publish_once(&self, draft: &Draft) -> Result<Option<Outcome>, StoreError> {
        let planned = plan(draft, &self.registry.catalog(), &self.registry.settings());
        let Some(mut message) = planned else {
            let known = self.knows(draft.app).await?;
            return Ok((!known).then_some(Outcome::NoApp));
        };
        let promises = self.dispatcher.promise_message(&mut message);
        let publisher = self.clone();
        let storing = publisher.store_message(message, promises);
        match self.dispatcher.outliving(storing).await? {
            Published::Stored(receipt) => Ok(Some(Outcome::Stored(receipt))),
            Published::Outdated => {
                self.registry.refresh().await?;
                Ok(None)
            }
        }
    }

    /// Stores a message, and lets it go.
    async fn store_message(
        self,
        message: NewMessage,
        promises: Promises,
    ) -> Result<Published, StoreError> {
        let more = !message.later.is_empty();
        let published = self.store.publish(message).await;
        match &published {
            Ok(Published::Stored(receipt)) => {
                promises.keep(std::slice::from_ref(receipt));
                if more {
                    self.fan_out.hurry();
                }
            }
            Ok(Published::Outdated) => drop(promises),
            Err(error) => self.dispatcher.doubt(error),
        }
        published
    }

    /// Perhaps another node has made it.
    async fn knows(&self, app: AppId) -> Result<bool, StoreError> {
        Ok(self.registry.fresh().await?.app_by_id(app).is_some())
    }
}

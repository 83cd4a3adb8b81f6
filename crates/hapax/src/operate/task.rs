//! Jobs about the messages of an application: what an endpoint missed, what it did not take, what is to be forgotten.
//!
//! They are replays, and carried on like those: page by page, each message under a request key of its own.

use hapax_ledger::effect::EffectState;
use hapax_ledger::id::{AppId, EndpointId, EventId};
use hapax_store::nouns::{
    Authority, Before, Commanded, Listed, Message, MessageFilter, Page, Replay, Standing,
};
use hapax_store::{Store, StoreError};
use serde::{Deserialize, Serialize};

use super::deliver::{Again, Delivery, Sent};
use super::operator::{Granted, Operator, Terms, Wish};
use crate::outbox::Registry;
use crate::outbox::catalog::wants;
use crate::outbox::message::plan_again;

/// What a job does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Kind {
    /// Sends what was given up or skipped.
    #[serde(rename = "endpoint.recover")]
    Recover,
    /// Sends what never went to the endpoint.
    #[serde(rename = "endpoint.replay")]
    Missing,
    /// Sends all that fits again.
    #[serde(rename = "endpoint.bulk-replay")]
    Bulk,
    /// Deletes payloads.
    #[serde(rename = "application.purge_content")]
    Purge,
    /// Counts attempts, application by application.
    #[serde(rename = "application.stats")]
    Stats,
    /// Says which types the endpoints of each application are subscribed to.
    #[serde(rename = "event-type.aggregate")]
    Types,
}

impl Kind {
    /// Every kind.
    pub const ALL: [Kind; 6] = [
        Kind::Recover,
        Kind::Missing,
        Kind::Bulk,
        Kind::Purge,
        Kind::Stats,
        Kind::Types,
    ];

    /// The word users see.
    pub const fn word(self) -> &'static str {
        match self {
            Kind::Recover => "endpoint.recover",
            Kind::Missing => "endpoint.replay",
            Kind::Bulk => "endpoint.bulk-replay",
            Kind::Purge => "application.purge_content",
            Kind::Stats => "application.stats",
            Kind::Types => "event-type.aggregate",
        }
    }

    /// What it finds out, if that is what it is for: application by application.
    pub const fn finds(self) -> Option<&'static str> {
        match self {
            Kind::Recover | Kind::Missing | Kind::Bulk | Kind::Purge => None,
            Kind::Stats => Some("appStats"),
            Kind::Types => Some("event_types"),
        }
    }

    /// What it counts.
    pub const fn counted(self) -> &'static str {
        match self {
            Kind::Recover | Kind::Missing | Kind::Bulk => "messagesSent",
            Kind::Purge => "messagesPurged",
            Kind::Stats | Kind::Types => "appsSeen",
        }
    }
}

/// A job as it is kept. From when to when is the replay's filter.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Task {
    /// What it does.
    pub task: Kind,
    /// Whose messages; nobody's, if it is about applications.
    pub app: String,
    /// About these applications; none: about all.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub apps: Vec<String>,
    /// Where to.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub endpoint: Option<String>,
    /// Of one of these types; none: of all.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub event_types: Vec<String>,
    /// In this channel.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub channel: Option<String>,
    /// With this tag.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub tag: Option<String>,
    /// Deliveries that stand in one of these states, by word; none: in all.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub states: Vec<String>,
    /// Whose latest answer was of this class.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub class: Option<u16>,
}

/// What became of one message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Worked {
    Done,
    Nothing,
    Refused,
}

/// Where a message goes.
enum Aim {
    /// There; without a plan if the endpoint does not want what it would get for the first time.
    At(Box<Delivery>),
    /// The endpoint is gone.
    Gone,
    /// Nothing is sent to it, perhaps since the job began.
    Disabled,
}

impl Task {
    /// The job of a replay, if it is one.
    pub fn of(replay: &Replay) -> Option<Task> {
        serde_json::from_str(replay.task.as_deref()?).ok()
    }

    /// As it is kept.
    pub fn text(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    fn endpoint_id(&self) -> Option<EndpointId> {
        self.endpoint.as_deref()?.parse().ok()
    }

    /// The next messages that it is about: with an endpoint, none that are only for another.
    pub(super) async fn page(
        &self,
        store: &dyn Store,
        replay: &Replay,
        page: Page,
    ) -> Result<Listed<Message>, StoreError> {
        let Ok(app) = self.app.parse::<AppId>() else {
            return Ok(Listed::default());
        };
        let filter = MessageFilter {
            app: Some(app),
            event_types: self.event_types.clone(),
            channel: self.channel.clone(),
            tag: self.tag.clone(),
            since: replay.filter.since,
            until: replay.filter.until,
            may_have: self.endpoint_id(),
        };
        store.messages(filter, page).await
    }

    fn again(&self) -> Option<Again> {
        Some(match self.task {
            Kind::Recover => Again::IfFailed,
            Kind::Missing => Again::IfMissing,
            Kind::Bulk => {
                let known = self.states.iter();
                let known = known.filter_map(|word| EffectState::from_word(word));
                let states: Vec<EffectState> = known.collect();
                Again::If {
                    states: match states.is_empty() {
                        true => EffectState::ALL.to_vec(),
                        false => states,
                    },
                    class: self.class,
                }
            }
            Kind::Purge | Kind::Stats | Kind::Types => return None,
        })
    }

    /// Does what it does to one message.
    pub(super) async fn work(
        &self,
        operator: &Operator,
        registry: &Registry,
        message: &Message,
        by: Authority,
    ) -> Result<Worked, StoreError> {
        let Some(again) = self.again() else {
            return purge(operator, message.event.id, by).await;
        };
        drop(registry.fresh().await?);
        let delivery = match self.delivery(registry, message) {
            Aim::At(delivery) => *delivery,
            Aim::Gone => return Ok(Worked::Nothing),
            Aim::Disabled => return Ok(Worked::Refused),
        };
        Ok(match operator.deliver(delivery, again, by).await? {
            Sent::Commanded(Commanded::Done(_))
            | Sent::Commanded(Commanded::Before(Before::Same(_))) => Worked::Done,
            Sent::Nothing
            | Sent::UnderWay
            | Sent::NoEvent
            | Sent::Commanded(Commanded::NoEvent) => Worked::Nothing,
            Sent::NoBytes
            | Sent::Commanded(Commanded::Refused { .. } | Commanded::Before(Before::Other)) => {
                Worked::Refused
            }
        })
    }

    /// The delivery that it is about.
    fn delivery(&self, registry: &Registry, message: &Message) -> Aim {
        let Some(id) = self.endpoint_id() else {
            return Aim::Gone;
        };
        let catalog = registry.catalog();
        let Some(endpoint) = catalog.endpoint_by_id(id) else {
            return Aim::Gone;
        };
        // Nothing would be sent: what was given up would only be skipped, and what got through would be said to have been.
        if endpoint.standing != Standing::Enabled {
            return Aim::Disabled;
        }
        let event_type = message.event.event_type.as_deref().unwrap_or_default();
        let wanted = wants(endpoint, event_type, &message.about.channels);
        let settings = registry.settings();
        let planned = wanted
            .then(|| plan_again(message, endpoint, &catalog, &settings))
            .flatten();
        Aim::At(Box::new(Delivery {
            event: message.event.id,
            endpoint: id,
            planned,
        }))
    }
}

async fn purge(operator: &Operator, event: EventId, by: Authority) -> Result<Worked, StoreError> {
    let terms = Terms {
        by,
        if_revision: None,
        dry_run: false,
    };
    Ok(match operator.grant(event, Wish::Erase, terms).await? {
        Granted::Commanded(Commanded::Done(_) | Commanded::Before(Before::Same(_))) => Worked::Done,
        Granted::Commanded(Commanded::NoEvent) | Granted::NoEvent => Worked::Nothing,
        Granted::Commanded(Commanded::Refused { .. } | Commanded::Before(Before::Other))
        | Granted::NoBytes
        | Granted::NoReconcile
        | Granted::NoTruth(_)
        | Granted::NoPlan(_)
        | Granted::NoConflict => Worked::Refused,
    })
}

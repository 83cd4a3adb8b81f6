//! What operators are told about endpoints and messages: events like alerts, in the same lane, and messages to the endpoints of
//! operators: those of an application that nobody else can name.

use std::collections::BTreeMap;

use bytes::Bytes;
use hapax_ledger::id::{AppId, EndpointId, MessageId, RawId};
use hapax_ledger::key::composite;
use hapax_ledger::outcome::Outcome;
use hapax_ledger::time::Time;
use hapax_store::nouns::{About, App, Attempted, Message, News, Standing, Tiding, app_of_source};
use serde_json::{Value, json};

use super::catalog::Catalog;
use super::message::{Draft, KEEP_DEFAULT};
use crate::clock::text as time_text;

/// The application whose endpoints are the operators'. No other is made with this id: ids carry the time they are made at.
pub const OPERATIONAL_APP: AppId = AppId(RawId::new(Time::from_micros(0), 0, 0));
/// What people see where it is told of: in the audit log.
const OPERATIONAL_NAME: &str = "operational webhooks";

/// That application, as it is made with the first endpoint of an operator.
pub fn operational_app(at: Time) -> App {
    App {
        id: OPERATIONAL_APP,
        uid: None,
        name: OPERATIONAL_NAME.to_owned(),
        throttle_rate: None,
        metadata: BTreeMap::new(),
        extra: "{}".to_owned(),
        created_at: at,
        updated_at: at,
        deleted_at: None,
        revision: 0,
    }
}

/// Something that happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Operational {
    /// When.
    pub at: Time,
    /// Whose.
    pub app: AppId,
    /// What its owner calls the application.
    pub app_uid: Option<String>,
    /// Where.
    pub endpoint: EndpointId,
    /// What its owner calls the endpoint.
    pub endpoint_uid: Option<String>,
    /// What its owner calls the message, if it is about one.
    pub message_uid: Option<String>,
    /// What.
    pub what: News,
}

/// The types of events that operators' endpoints may ask for: all that are told.
pub const OPERATIONAL_TYPES: [&str; 8] = [
    "endpoint.created",
    "endpoint.updated",
    "endpoint.deleted",
    "endpoint.disabled",
    "endpoint.disabling",
    "message.attempt.failing",
    "message.attempt.exhausted",
    "message.attempt.recovered",
];

impl Operational {
    /// A tiding with what is known of the message that it is about, and what this catalogue knows of its endpoint. Whose the endpoint is
    /// the message says as well, if the catalogue does not know it any more.
    pub fn of(
        tiding: &Tiding,
        message: Option<&Message>,
        catalog: &Catalog,
    ) -> Option<Operational> {
        let endpoint = catalog.endpoint_by_id(tiding.endpoint);
        let sent_by = message.and_then(|message| app_of_source(&message.event.source));
        let known = endpoint.map(|endpoint| endpoint.app);
        let app = tiding.app.or(sent_by).or(known)?;
        let app_uid = catalog.app_by_id(app).and_then(|app| app.uid.as_deref());
        let endpoint_uid = endpoint.and_then(|endpoint| endpoint.uid.as_deref());
        Some(Operational {
            at: tiding.at,
            app,
            app_uid: app_uid.map(str::to_owned),
            endpoint: tiding.endpoint,
            endpoint_uid: endpoint_uid.map(str::to_owned),
            message_uid: message.and_then(|message| message.about.event_id.clone()),
            what: tiding.news.clone(),
        })
    }

    /// Is it trouble, which is told where alerts go as well?
    pub fn is_for_alerts(&self) -> bool {
        match self.what {
            // Its owner knows.
            News::Disabled { standing, .. } => standing != Standing::Disabled,
            News::Disabling { .. } | News::Exhausted(_) | News::Recovered(_) => true,
            News::Created
            | News::Updated
            | News::Deleted
            | News::Failing(_)
            | News::GotThrough(_) => false,
        }
    }

    /// The type of the event that tells it.
    pub fn event_type(&self) -> &'static str {
        match self.what {
            News::Created => "endpoint.created",
            News::Updated => "endpoint.updated",
            News::Deleted => "endpoint.deleted",
            News::Disabled { .. } => "endpoint.disabled",
            News::Disabling { .. } => "endpoint.disabling",
            News::Failing(_) => "message.attempt.failing",
            News::Exhausted(_) => "message.attempt.exhausted",
            News::Recovered(_) | News::GotThrough(_) => "message.attempt.recovered",
        }
    }

    /// Its key: the same thing is the same event, however often and by whomever it is told.
    pub fn key(&self) -> String {
        let endpoint = self.endpoint.to_string();
        let which = match &self.what {
            News::Disabled { .. } => time_text(self.at),
            News::Disabling { failing_since, .. } => time_text(*failing_since),
            // To the microsecond: an owner may change it often.
            News::Created | News::Updated | News::Deleted => self.at.micros().to_string(),
            News::Failing(of)
            | News::Exhausted(of)
            | News::Recovered(of)
            | News::GotThrough(of) => {
                let message = MessageId(of.message.0);
                format!("{message}#{}.{}", of.generation, of.attempts)
            }
        };
        composite(&[self.event_type(), &endpoint, &which])
    }

    /// The message that tells it to the operators' endpoints; none about those endpoints themselves, since each would call for the next.
    pub fn draft(&self, now: Time) -> Option<Draft> {
        let payload = json!({
            "type": self.event_type(),
            "timestamp": time_text(self.at),
            "data": self.data(),
        });
        let draft = Draft {
            app: OPERATIONAL_APP,
            event_type: self.event_type().to_owned(),
            payload: Bytes::from(payload.to_string()),
            content_type: None,
            about: About {
                event_id: Some(self.key()),
                ..About::default()
            },
            keep: KEEP_DEFAULT,
            // Its key is its own: nothing has to be drawn.
            drawn: [0; 16],
            at: now,
            by: "~hapax".into(),
        };
        (self.app != OPERATIONAL_APP).then_some(draft)
    }

    /// What the event says, beside its type and time.
    pub fn data(&self) -> Value {
        let mut data = json!({
            "appId": self.app.to_string(),
            "appUid": self.app_uid,
            "endpointId": self.endpoint.to_string(),
            "endpointUid": self.endpoint_uid,
        });
        let more = match &self.what {
            News::Created | News::Updated | News::Deleted => json!({}),
            News::Disabled {
                standing,
                failing_since,
            } => json!({
                "trigger": trigger(*standing),
                "reason": standing.word(),
                "failSince": failing_since.map(time_text),
            }),
            News::Disabling {
                failing_since,
                disabled_from,
            } => json!({
                "failSince": time_text(*failing_since),
                "disabledFrom": time_text(*disabled_from),
            }),
            News::Failing(of)
            | News::Exhausted(of)
            | News::Recovered(of)
            | News::GotThrough(of) => json!({
                "msgId": MessageId(of.message.0).to_string(),
                "msgEventId": self.message_uid,
                "lastAttempt": self.last(of),
            }),
        };
        if let (Some(data), Some(more)) = (data.as_object_mut(), more.as_object()) {
            data.extend(more.clone());
        }
        data
    }

    fn last(&self, of: &Attempted) -> Value {
        json!({
            "id": of.attempt.to_string(),
            "timestamp": time_text(self.at),
            "outcome": of.outcome.to_string(),
            "responseStatusCode": status(of.outcome),
            "number": of.attempts,
        })
    }
}

/// Who has disabled it, as other systems of the kind say it.
fn trigger(standing: Standing) -> &'static str {
    match standing {
        Standing::Enabled | Standing::Disabled => "manual",
        Standing::Gone | Standing::Failed => "automatic",
    }
}

/// What the receiver answered, as other systems of the kind say it: 0 if nothing.
fn status(outcome: Outcome) -> u16 {
    match outcome {
        Outcome::Answered { status, .. } => status,
        Outcome::NotSent { .. } | Outcome::Lost { .. } | Outcome::Reported(_) => 0,
    }
}

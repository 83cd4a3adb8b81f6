//! What operators are told about endpoints and messages: events like alerts, in the same lane, and messages to the endpoints of
//! operators: those of an application that nobody else can name.

use std::collections::BTreeMap;

use bytes::Bytes;
use hapax_ledger::id::{AppId, EndpointId, MessageId, RawId};
use hapax_ledger::key::composite;
use hapax_ledger::outcome::Outcome;
use hapax_ledger::time::Time;
use hapax_store::nouns::{About, App, Endpoint, Standing};
use serde_json::{Value, json};

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
    /// What.
    pub what: What,
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    /// Nothing more is sent to it.
    Disabled {
        /// Because of this.
        standing: Standing,
        /// Since when it only failed.
        failing_since: Option<Time>,
    },
    /// It will be disabled if it goes on failing.
    Disabling {
        /// Since when.
        failing_since: Time,
        /// Not before.
        disabled_from: Time,
    },
    /// A delivery was given up.
    Exhausted(Attempted),
    /// A delivery that had been given up got through.
    Recovered(Attempted),
}

/// The latest attempt at a delivery.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attempted {
    /// Of this message.
    pub message: MessageId,
    /// What came back.
    pub outcome: Outcome,
    /// The delivery's generation.
    pub generation: u32,
    /// Attempts so far.
    pub attempts: u32,
}

impl Operational {
    /// Something about an endpoint.
    pub(super) fn about(
        endpoint: &Endpoint,
        app_uid: Option<&str>,
        at: Time,
        what: What,
    ) -> Operational {
        Operational {
            at,
            app: endpoint.app,
            app_uid: app_uid.map(str::to_owned),
            endpoint: endpoint.id,
            endpoint_uid: endpoint.uid.as_deref().map(str::to_owned),
            what,
        }
    }

    /// The type of the event that tells it.
    pub fn event_type(&self) -> &'static str {
        match self.what {
            What::Disabled { .. } => "endpoint.disabled",
            What::Disabling { .. } => "endpoint.disabling",
            What::Exhausted(_) => "message.attempt.exhausted",
            What::Recovered(_) => "message.attempt.recovered",
        }
    }

    /// Its key: the same thing is the same event, however often and by whomever it is told.
    pub fn key(&self) -> String {
        let endpoint = self.endpoint.to_string();
        let which = match &self.what {
            What::Disabled { .. } => time_text(self.at),
            What::Disabling { failing_since, .. } => time_text(*failing_since),
            What::Exhausted(of) | What::Recovered(of) => {
                format!("{}#{}.{}", of.message, of.generation, of.attempts)
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
            What::Disabled {
                standing,
                failing_since,
            } => json!({
                "trigger": standing.word(),
                "failSince": failing_since.map(time_text),
            }),
            What::Disabling {
                failing_since,
                disabled_from,
            } => json!({
                "failSince": time_text(*failing_since),
                "disabledFrom": time_text(*disabled_from),
            }),
            What::Exhausted(of) | What::Recovered(of) => json!({
                "msgId": of.message.to_string(),
                "lastAttempt": {
                    "timestamp": time_text(self.at),
                    "outcome": of.outcome.to_string(),
                    "responseStatusCode": status(of.outcome),
                    "number": of.attempts,
                },
            }),
        };
        if let (Some(data), Some(more)) = (data.as_object_mut(), more.as_object()) {
            data.extend(more.clone());
        }
        data
    }
}

/// What the receiver answered, as other systems of the kind say it: 0 if nothing.
fn status(outcome: Outcome) -> u16 {
    match outcome {
        Outcome::Answered { status, .. } => status,
        Outcome::NotSent { .. } | Outcome::Lost { .. } | Outcome::Reported(_) => 0,
    }
}

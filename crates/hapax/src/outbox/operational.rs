//! What operators are told about endpoints and messages: events like alerts, in the same lane.

use hapax_ledger::id::{AppId, EndpointId, MessageId};
use hapax_ledger::key::composite;
use hapax_ledger::outcome::Outcome;
use hapax_ledger::time::Time;
use hapax_store::nouns::{Endpoint, Standing};
use serde_json::{Value, json};

use crate::clock::text as time_text;

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

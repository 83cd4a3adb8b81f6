//! Handshakes: what a provider asks of an endpoint before it sends events, as data.
//!
//! Two things make them dangerous. Some ask for a MAC of a text of their choosing with the very key that signs events
//! (X, Zoom): answered without care, the endpoint signs forgeries for anybody. And all of them echo what a stranger
//! sent: answers are plain text or JSON, never sniffed, and short.

use serde::Deserialize;

use super::{FieldRef, Provider};
use crate::decode::Encoding;

/// A handshake as data.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
#[non_exhaustive]
pub enum Handshake {
    /// Echoes a query parameter, after checking the verify token if the provider quotes one.
    QueryEcho {
        /// `GET`, unless the provider asks with another method.
        #[serde(default = "get")]
        method: String,
        /// The parameter to echo.
        challenge: String,
        /// The parameter that quotes the verify token.
        #[serde(default)]
        token: Option<String>,
        /// Answer with a JSON object that has the challenge under this name; plain text if not given.
        #[serde(default)]
        json: Option<String>,
    },
    /// Echoes a header.
    HeaderEcho {
        /// The method of the question.
        method: String,
        /// The header to echo.
        header: String,
        /// Answer with a JSON object that has the challenge under this name.
        #[serde(default)]
        json: Option<String>,
        /// Answer with the same header instead of a body.
        #[serde(default)]
        same_header: bool,
        /// Whether the provider signs the question; then it is verified first.
        signed: bool,
        /// Whether what is echoed is the secret for later events, offered to whoever listens.
        #[serde(default)]
        offers_secret: bool,
    },
    /// Echoes a field of a JSON body.
    BodyEcho {
        /// What tells the question from an event; without it, that there is a challenge.
        #[serde(default)]
        when: Option<When>,
        /// The field to echo.
        challenge: String,
        /// Answer with a JSON object that has the challenge under this name; plain text if not given.
        #[serde(default)]
        json: Option<String>,
        /// Whether the provider signs the question; then it is verified first.
        signed: bool,
    },
    /// Answers a query parameter with its MAC under the source's own key.
    QueryMac {
        /// The parameter to answer.
        challenge: String,
        /// The name of the answer in a JSON object.
        json: String,
        /// Text before the MAC.
        prefix: String,
        /// How the MAC is written.
        encoding: Encoding,
    },
    /// Answers a field of a signed JSON body with its MAC under the source's own key.
    BodyMac {
        /// What tells the question from an event.
        when: When,
        /// The field to answer.
        challenge: String,
        /// The name of the challenge in the answer.
        plain: String,
        /// The name of the MAC in the answer.
        mac: String,
    },
    /// Gives a fixed answer to a signed body.
    BodyReply {
        /// What tells the question from an event.
        when: When,
        /// The JSON to answer with.
        body: String,
    },
    /// Acknowledges a signed request whose array of events is empty.
    EmptyBatch {
        /// The path of the array.
        array: String,
    },
    /// Answers `HEAD` with 200.
    Head,
}

impl Provider {
    /// Does this provider choose the secret, and offer it in its handshake?
    #[must_use]
    pub fn offers_secret(&self) -> bool {
        let offers = |handshake: &Handshake| {
            matches!(
                handshake,
                Handshake::HeaderEcho {
                    offers_secret: true,
                    ..
                }
            )
        };
        self.handshake.as_ref().is_some_and(offers)
    }
}

/// A field that has a certain value.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct When {
    /// The field.
    pub field: FieldRef,
    /// Its value.
    pub equals: String,
}

fn get() -> String {
    "GET".to_owned()
}

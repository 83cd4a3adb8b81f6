//! Providers as data: how each one signs, what identifies its events, how long it retries.
//!
//! The facts are in `src/providers/*.toml`, one file per family of schemes. To add a provider, add a table there; the
//! tests check that it parses, resolves, can be signed and verified, and names its sources honestly (`from_memory`).

mod answer;
mod field;
mod handshake;
mod sample;

use std::sync::LazyLock;

use serde::Deserialize;

pub use answer::HandshakeAnswer;
pub use field::{FieldError, FieldRef};
pub use handshake::{Handshake, When};
pub use sample::{Sample, SampleInput, SampleRequest};

use crate::scheme::Scheme;
use crate::spec::SchemeSpec;

/// What is known about one provider.
///
/// Where the provider sends batches, all fields but headers are relative to one element of the batch.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Provider {
    /// The name in configuration, e.g. `stripe`.
    pub name: String,
    /// The name for people, e.g. `Stripe`.
    pub title: String,
    /// How requests are verified.
    pub verify: SchemeSpec,
    /// What kind of event it is.
    #[serde(default)]
    pub event_type: Option<FieldRef>,
    /// The id that stays the same when the provider sends an event again.
    #[serde(default)]
    pub event_id: Option<EventIdFact>,
    /// Fields that together identify an event, where there is no id.
    #[serde(default)]
    pub composed_key: Vec<FieldRef>,
    /// Whether the hash of the body is no identity: the body changes between attempts, or two events have the same.
    #[serde(default)]
    pub body_varies: bool,
    /// Fields that change between attempts.
    #[serde(default)]
    pub volatile: Vec<String>,
    /// The business object that the event is about.
    #[serde(default)]
    pub object_id: Option<FieldRef>,
    /// What grows with every change of that object.
    #[serde(default)]
    pub version: Option<FieldRef>,
    /// The object that order is about; mostly the same as `object_id`.
    #[serde(default)]
    pub entity: Option<FieldRef>,
    /// The path of the array of events, if one request carries several; empty if the body is the array.
    #[serde(default)]
    pub batch: Option<String>,
    /// What the provider asks of an endpoint before it sends events.
    #[serde(default)]
    pub handshake: Option<Handshake>,
    /// For how long the same event may come again, redelivery by hand included.
    pub retry_window_hours: u32,
    /// What the secret looks like and where to find it.
    pub secret_hint: String,
    /// The facts that nobody confirmed: they were written from memory. The names are those of the fields here, and
    /// `tolerance` for that of the timestamp.
    #[serde(default)]
    pub from_memory: Vec<String>,
    /// What an operator should know before relying on this preset.
    #[serde(default)]
    pub note: Option<String>,
    /// A body to send for trying things out.
    #[serde(default)]
    pub sample: Option<Sample>,
}

/// A provider's own event id.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EventIdFact {
    /// Where it is.
    pub field: FieldRef,
    /// Whether the signature covers it. One that is not covered can be changed by whoever replays a captured request.
    pub signed: bool,
}

impl Provider {
    /// The verification scheme.
    #[must_use]
    pub fn scheme(&self) -> Scheme {
        self.verify
            .resolve()
            .expect("every preset resolves; the test `every_provider_resolves` keeps it so")
    }

    /// Whether this fact was written from memory.
    #[must_use]
    pub fn is_from_memory(&self, fact: &str) -> bool {
        self.from_memory.iter().any(|name| name == fact)
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    provider: Vec<Provider>,
}

/// One file per family of schemes, in the order in which a reader should meet them.
const FILES: [&str; 9] = [
    include_str!("../providers/standard_webhooks.toml"),
    include_str!("../providers/hmac_timestamp.toml"),
    include_str!("../providers/hmac_body.toml"),
    include_str!("../providers/hmac_url.toml"),
    include_str!("../providers/hmac_fields.toml"),
    include_str!("../providers/public_key.toml"),
    include_str!("../providers/jwt.toml"),
    include_str!("../providers/token.toml"),
    include_str!("../providers/unverified.toml"),
];

static PROVIDERS: LazyLock<Vec<Provider>> = LazyLock::new(|| {
    let mut providers: Vec<Provider> = FILES
        .iter()
        .flat_map(|text| {
            let file: File = toml::from_str(text)
                .expect("the provider files parse; every test that lists providers keeps it so");
            file.provider
        })
        .collect();
    providers.sort_by(|left, right| left.name.cmp(&right.name));
    providers
});

/// All providers, by name.
#[must_use]
pub fn all() -> &'static [Provider] {
    &PROVIDERS
}

/// The provider of this name.
#[must_use]
pub fn find(name: &str) -> Option<&'static Provider> {
    let providers = all();
    let at = providers.binary_search_by(|provider| provider.name.as_str().cmp(name));
    at.ok().map(|at| &providers[at])
}

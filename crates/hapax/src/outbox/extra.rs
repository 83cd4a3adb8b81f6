//! What only Hapax has about an application, an endpoint or a type of events: JSON in one column, so that more can come without a
//! migration. What is kept was checked when it was written; a field that this version does not know is left alone.

use std::sync::Arc;
use std::time::Duration;

use hapax_ledger::retry::Schedule;
use hapax_ledger::time::Span;
use http::HeaderName;
use serde::{Deserialize, Serialize};

use crate::dispatch::delivery::Payload;
use crate::dispatch::signature::{Names, STRIPE_HEADER, Scheme};

/// How long an attempt may take unless told.
const TIMEOUT_DEFAULT: Duration = Duration::from_secs(10);
const TIMEOUT_S_MIN: u32 = 5;
const TIMEOUT_S_MAX: u32 = 30;
/// Deliveries in flight to one endpoint unless told: enough for a consumer that is well, few enough for one that is small.
const CONCURRENCY_DEFAULT: u32 = 16;
const CONCURRENCY_MAX: u32 = 1_024;

/// Why a field cannot be kept.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadExtra {
    /// Not in its range.
    #[error("`{field}` has to be {min} to {max}")]
    Range {
        /// Which field.
        field: &'static str,
        /// The lowest.
        min: u32,
        /// The highest.
        max: u32,
    },
    /// Not a schedule.
    #[error("`retrySchedule`: {0}")]
    Schedule(String),
    /// Not a header's name, or one that means something else.
    #[error("`signatureHeader` is not a name for a header of ours")]
    Header,
}

/// About an application.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AppExtra {
    /// Are payloads sent in an envelope?
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub envelope: bool,
    /// Waits before each attempt, in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_schedule: Option<Vec<u32>>,
}

/// About a type of events.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct EventTypeExtra {
    /// Waits before each attempt, in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_schedule: Option<Vec<u32>>,
}

/// About an endpoint.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct EndpointExtra {
    /// Deliveries in flight at a time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub concurrency: Option<u32>,
    /// How long an attempt may take.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_seconds: Option<u32>,
    /// Waits before each attempt, in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_schedule: Option<Vec<u32>>,
    /// How deliveries are signed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signature_scheme: Option<SchemeWord>,
    /// Where a signature of Stripe's form goes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signature_header: Option<String>,
    /// Under which names id, time and signature go.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signature_names: Option<NamesWord>,
}

/// The words for schemes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SchemeWord {
    /// A shared secret, as Standard Webhooks has it.
    V1,
    /// A key pair, as Standard Webhooks has it.
    Ed25519,
    /// A shared secret, as Stripe has it.
    Stripe,
}

/// The words for names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum NamesWord {
    /// `webhook-*` and `svix-*`.
    Both,
    /// `webhook-*`.
    Webhook,
    /// `svix-*`.
    Svix,
}

impl SchemeWord {
    /// Every scheme.
    pub const ALL: [SchemeWord; 3] = [SchemeWord::V1, SchemeWord::Ed25519, SchemeWord::Stripe];

    /// The word users see.
    pub const fn word(self) -> &'static str {
        match self {
            SchemeWord::V1 => "v1",
            SchemeWord::Ed25519 => "ed25519",
            SchemeWord::Stripe => "stripe",
        }
    }

    /// The scheme of this word.
    pub fn from_word(word: &str) -> Option<SchemeWord> {
        SchemeWord::ALL.into_iter().find(|one| one.word() == word)
    }
}

impl NamesWord {
    /// Every choice.
    pub const ALL: [NamesWord; 3] = [NamesWord::Both, NamesWord::Webhook, NamesWord::Svix];

    /// The word users see.
    pub const fn word(self) -> &'static str {
        match self {
            NamesWord::Both => "both",
            NamesWord::Webhook => "webhook",
            NamesWord::Svix => "svix",
        }
    }

    /// The choice of this word.
    pub fn from_word(word: &str) -> Option<NamesWord> {
        NamesWord::ALL.into_iter().find(|one| one.word() == word)
    }
}

/// Reads what is kept. Nothing, or something that no version wrote, is the default.
pub fn read<T: Default + for<'de> Deserialize<'de>>(text: &str) -> T {
    serde_json::from_str(text).unwrap_or_default()
}

/// As it is kept.
pub fn write<T: Serialize>(extra: &T) -> String {
    serde_json::to_string(extra).unwrap_or_default()
}

/// The waits of a schedule.
///
/// # Errors
/// If they are none.
pub fn schedule(waits: &[u32]) -> Result<Schedule, BadExtra> {
    let waits = waits.iter().map(|wait| Span::from_secs(i64::from(*wait)));
    Schedule::new(waits.collect()).map_err(|bad| BadExtra::Schedule(bad.to_string()))
}

fn shared(waits: Option<&Vec<u32>>) -> Option<Arc<Schedule>> {
    schedule(waits?).ok().map(Arc::new)
}

impl AppExtra {
    /// What its deliveries have for a body.
    pub fn payload(&self) -> Payload {
        match self.envelope {
            true => Payload::Envelope,
            false => Payload::Plain,
        }
    }

    /// Its own schedule.
    pub fn retry(&self) -> Option<Arc<Schedule>> {
        shared(self.retry_schedule.as_ref())
    }
}

impl EventTypeExtra {
    /// Its own schedule.
    pub fn retry(&self) -> Option<Arc<Schedule>> {
        shared(self.retry_schedule.as_ref())
    }
}

impl EndpointExtra {
    /// Can it be kept?
    ///
    /// # Errors
    /// The first field that cannot.
    pub fn check(&self) -> Result<(), BadExtra> {
        let within = |field, value: Option<u32>, min, max| match value {
            Some(value) if !(min..=max).contains(&value) => {
                Err(BadExtra::Range { field, min, max })
            }
            Some(_) | None => Ok(()),
        };
        within("concurrency", self.concurrency, 1, CONCURRENCY_MAX)?;
        let timeout = self.timeout_seconds;
        within("timeoutSeconds", timeout, TIMEOUT_S_MIN, TIMEOUT_S_MAX)?;
        if let Some(waits) = &self.retry_schedule {
            schedule(waits)?;
        }
        match &self.signature_header {
            Some(name) => signature_header(name).map(drop).ok_or(BadExtra::Header),
            None => Ok(()),
        }
    }

    /// Deliveries in flight at a time.
    pub fn concurrency(&self) -> u32 {
        let given = self.concurrency.unwrap_or(CONCURRENCY_DEFAULT);
        given.clamp(1, CONCURRENCY_MAX)
    }

    /// How long an attempt may take.
    pub fn timeout(&self) -> Duration {
        let given = self.timeout_seconds.map(|seconds| {
            Duration::from_secs(u64::from(seconds.clamp(TIMEOUT_S_MIN, TIMEOUT_S_MAX)))
        });
        given.unwrap_or(TIMEOUT_DEFAULT)
    }

    /// Its own schedule.
    pub fn retry(&self) -> Option<Arc<Schedule>> {
        shared(self.retry_schedule.as_ref())
    }

    /// How deliveries are signed.
    pub fn scheme(&self) -> Scheme {
        match self.signature_scheme {
            None | Some(SchemeWord::V1) => Scheme::Hmac,
            Some(SchemeWord::Ed25519) => Scheme::Ed25519,
            Some(SchemeWord::Stripe) => {
                let given = self.signature_header.as_deref().and_then(signature_header);
                Scheme::Stripe(given.unwrap_or(STRIPE_HEADER))
            }
        }
    }

    /// Under which names id, time and signature go.
    pub fn names(&self) -> Names {
        match self.signature_names {
            None | Some(NamesWord::Both) => Names::Both,
            Some(NamesWord::Webhook) => Names::Webhook,
            Some(NamesWord::Svix) => Names::Svix,
        }
    }
}

/// A header for a signature ends in `-signature`, so that it is none that means something else.
fn signature_header(name: &str) -> Option<HeaderName> {
    let lower = name.to_ascii_lowercase();
    let fits = lower.ends_with("-signature") && !lower.starts_with("webhook-");
    let fits = fits && !lower.starts_with("svix-");
    HeaderName::try_from(lower).ok().filter(|_| fits)
}

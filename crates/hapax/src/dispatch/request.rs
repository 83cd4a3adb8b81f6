//! What an effect's request looks like: a function of the ledger's rows, the config and the time, and nothing else.

use std::fmt::Write;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use hapax_ledger::effect::Repeat;
use hapax_ledger::id::{EffectId, EventId};
use hapax_ledger::key::wire_key;
use hapax_ledger::time::Time;
use hapax_verify::Secret;
use http::header::{self, CONTENT_TYPE, USER_AGENT};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Uri};

use super::answer::Keep;
use super::connect::Reach;
use super::envelope;
use super::sender::Outgoing;
use super::signer::Signer;

/// Who sends.
pub(super) const AGENT: HeaderValue =
    HeaderValue::from_static(concat!("hapax/", env!("CARGO_PKG_VERSION")));

const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");
const EVENT_ID: HeaderName = HeaderName::from_static("hapax-event-id");
const EVENT_TYPE: HeaderName = HeaderName::from_static("hapax-event-type");
const EFFECT: HeaderName = HeaderName::from_static("hapax-effect");
const ATTEMPT: HeaderName = HeaderName::from_static("hapax-attempt");

/// Headers about the connection and the length of the body: the connection decides them, not the config.
const FRAMING: [HeaderName; 7] = [
    header::CONNECTION,
    header::CONTENT_LENGTH,
    header::EXPECT,
    header::TE,
    header::TRAILER,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
];

/// The longest text from an event that goes into a header: receivers refuse heads of more than 8 KiB.
const TEXT_BYTES_MAX: usize = 1_024;

/// What an effect's request has for a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyMode {
    /// The event's bytes as received. A snapshot has no place in it and is not sent: config asks for the envelope there.
    Raw,
    /// JSON with the event, the effect and the snapshot.
    Envelope,
}

/// The event behind an effect.
#[derive(Clone, Copy, Debug)]
pub struct EventPart<'a> {
    /// Its id.
    pub id: EventId,
    /// Where it came from.
    pub source: &'a str,
    /// Its type, if it has one.
    pub event_type: Option<&'a str>,
    /// Its key.
    pub key: &'a str,
    /// When it was first received.
    pub received_at: Time,
    /// What its bytes are, as the provider said.
    pub content_type: Option<&'a str>,
    /// Its bytes as received.
    pub body: &'a Bytes,
}

/// The effect and the attempt at it.
#[derive(Clone, Copy, Debug)]
pub struct EffectPart<'a> {
    /// Its id.
    pub id: EffectId,
    /// Its name.
    pub name: &'a str,
    /// Its key.
    pub key: &'a str,
    /// 1, and one more each time it was forced.
    pub generation: u32,
    /// The number of this attempt within the generation, from 1.
    pub attempt: u32,
    /// How it behaves when repeated.
    pub repeat: Repeat,
}

/// All that a request is made of.
#[derive(Clone)]
pub struct EffectRequest<'a> {
    /// Where to.
    pub url: Uri,
    /// The deadline over everything.
    pub timeout: Duration,
    /// Headers from the config. Those that Hapax sets itself win over them.
    pub headers: &'a HeaderMap,
    /// Signs the request, if the effect has a secret.
    pub signer: Option<&'a Signer>,
    /// What must not be found in what is kept of the answer: the signing secrets and the config's secret headers.
    pub secrets: Arc<[Secret]>,
    /// What the body is.
    pub body_mode: BodyMode,
    /// The event.
    pub event: EventPart<'a>,
    /// The effect.
    pub effect: EffectPart<'a>,
    /// The current state of the event's object, if it was fetched.
    pub snapshot: Option<&'a [u8]>,
    /// The time of the signature.
    pub now: Time,
}

/// Puts the request together. The same parts give the same request, on every node and after every restart.
pub fn build(parts: EffectRequest<'_>) -> Outgoing {
    let EffectPart {
        id,
        name,
        key,
        generation,
        attempt,
        ..
    } = parts.effect;
    let (body, content_type) = match parts.body_mode {
        BodyMode::Raw => (parts.event.body.clone(), parts.event.content_type),
        BodyMode::Envelope => {
            let bytes = envelope::write(&parts.event, &parts.effect, parts.snapshot);
            (Bytes::from(bytes), Some("application/json"))
        }
    };
    let mut headers = configured(parts.headers);
    headers.insert(USER_AGENT, AGENT);
    headers.remove(CONTENT_TYPE);
    let content_type = content_type.and_then(|text| HeaderValue::from_str(text).ok());
    let texts = [
        (CONTENT_TYPE, content_type),
        (IDEMPOTENCY_KEY, text(&wire_key(name, key, generation))),
        (EVENT_ID, text(&parts.event.id.to_string())),
        (EVENT_TYPE, parts.event.event_type.and_then(text)),
        (EFFECT, text(name)),
        (ATTEMPT, Some(HeaderValue::from(attempt))),
    ];
    for (name, value) in texts {
        if let Some(value) = value {
            headers.insert(name, value);
        }
    }
    if let Some(signer) = parts.signer {
        signer.add(&mut headers, &message_id(id, generation), parts.now, &body);
    }
    Outgoing {
        method: Method::POST,
        url: parts.url,
        headers,
        body,
        timeout: parts.timeout,
        reach: Reach::Anywhere,
        keep: Keep::Excerpt,
        secrets_to_redact: parts.secrets,
    }
}

/// The config's headers without those that are not its business, and without stand-ins for ours.
fn configured(given: &HeaderMap) -> HeaderMap {
    let mut headers = given.clone();
    let ours = [IDEMPOTENCY_KEY, EVENT_ID, EVENT_TYPE, EFFECT, ATTEMPT];
    for name in FRAMING.iter().chain(&ours) {
        headers.remove(name);
    }
    headers
}

/// The `webhook-id`: the same on all attempts of a generation, and another in the next, which receivers must not drop
/// as seen.
fn message_id(id: EffectId, generation: u32) -> String {
    match generation {
        0 | 1 => id.to_string(),
        n => format!("{id}#{n}"),
    }
}

/// A text as a header value. What would not arrive as it left is percent-encoded; what is too long is left out.
pub(super) fn text(text: &str) -> Option<HeaderValue> {
    let plain = text.bytes().all(|byte| matches!(byte, b' '..=b'~'))
        && !text.starts_with(' ')
        && !text.ends_with(' ');
    let mut encoded = String::new();
    for byte in text.bytes().take(TEXT_BYTES_MAX + 1) {
        match byte {
            b'%' if !plain => encoded.push_str("%25"),
            b' '..=b'~' if plain => encoded.push(char::from(byte)),
            b'!'..=b'~' => encoded.push(char::from(byte)),
            _ => write!(encoded, "%{byte:02X}").expect("a String takes all that is written to it"),
        }
    }
    let fits = !encoded.is_empty() && encoded.len() <= TEXT_BYTES_MAX;
    fits.then(|| HeaderValue::try_from(encoded).ok()).flatten()
}

#[cfg(test)]
mod tests;

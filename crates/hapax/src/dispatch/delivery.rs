//! What a delivery to an endpoint looks like: a function of the message, the endpoint and the time, and nothing else.

use bytes::Bytes;
use hapax_ledger::id::{EventId, MessageId};
use hapax_ledger::time::Time;
use hapax_store::nouns::Parcel;
use http::header::{CONTENT_TYPE, USER_AGENT};
use http::{HeaderName, HeaderValue, Method};
use serde::Serialize;
use serde_json::value::RawValue;

use super::answer::Keep;
use super::request::{AGENT, text};
use super::sender::Outgoing;
use super::target::{EndpointTarget, Target};
use crate::clock::text as time_text;

const EVENT_TYPE: HeaderName = HeaderName::from_static("hapax-event-type");
const API_VERSION: HeaderName = HeaderName::from_static("hapax-api-version");
const SEQUENCE: HeaderName = HeaderName::from_static("hapax-sequence");
const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// What an application's deliveries have for a body.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Payload {
    /// The payload as it was published.
    #[default]
    Plain,
    /// JSON with `id`, `type`, `created_at`, `api_version`, and the payload as `data`.
    Envelope,
}

#[derive(Serialize)]
struct Envelope<'a> {
    id: &'a str,
    r#type: Option<&'a str>,
    created_at: String,
    api_version: Option<&'a str>,
    data: &'a RawValue,
}

/// Puts the request together. The same message gives the same bytes on every attempt; only the time is new.
pub(super) fn build(
    target: &Target,
    endpoint: &EndpointTarget,
    event: EventId,
    parcel: &Parcel,
    now: Time,
) -> Outgoing {
    let id = MessageId(event.0).to_string();
    let about = parcel.about.as_ref();
    let api_version = about.and_then(|about| about.api_version.as_deref());
    let (body, content_type) = match endpoint.payload {
        Payload::Plain => {
            let given = parcel.content_type.as_deref();
            let given = given.and_then(|text| HeaderValue::from_str(text).ok());
            (parcel.body.clone(), given.unwrap_or(JSON))
        }
        Payload::Envelope => (enveloped(&id, parcel, api_version), JSON),
    };
    let mut headers = endpoint.headers.clone();
    headers.insert(USER_AGENT, AGENT);
    headers.insert(CONTENT_TYPE, content_type);
    let sequence = about.and_then(|about| about.sequence);
    let texts = [
        (EVENT_TYPE, parcel.event_type.as_deref().and_then(text)),
        (API_VERSION, api_version.and_then(text)),
        (SEQUENCE, sequence.map(HeaderValue::from)),
    ];
    for (name, value) in texts {
        if let Some(value) = value {
            headers.insert(name, value);
        }
    }
    endpoint.signer.add(&mut headers, &id, now, &body);
    Outgoing {
        method: Method::POST,
        url: endpoint.url.uri().clone(),
        headers,
        body,
        timeout: target.timeout,
        reach: endpoint.reach.clone(),
        keep: Keep::Excerpt,
        secrets_to_redact: target.secrets.clone(),
    }
}

/// The payload stands in it byte for byte. One that is no JSON cannot, and goes as it is.
fn enveloped(id: &str, parcel: &Parcel, api_version: Option<&str>) -> Bytes {
    let Ok(data) = serde_json::from_slice::<&RawValue>(&parcel.body) else {
        return parcel.body.clone();
    };
    let envelope = Envelope {
        id,
        r#type: parcel.event_type.as_deref(),
        created_at: time_text(parcel.received_at),
        api_version,
        data,
    };
    serde_json::to_vec(&envelope).map_or_else(|_| parcel.body.clone(), Bytes::from)
}

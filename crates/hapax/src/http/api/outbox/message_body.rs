//! A message as users see it, and as their requests describe it.

use bytes::Bytes;
use hapax_ledger::id::{AppId, EventId, MessageId};
use hapax_ledger::time::{Span, Time};
use hapax_store::nouns::{About, Keep, Message, PayloadAnswer};
use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;
use utoipa::ToSchema;

use super::halt::Halt;
use super::words;
use crate::clock::text as time_text;
use crate::entropy;
use crate::http::answer;
use crate::http::api::Api;
use crate::http::api::body::Fields;
use crate::http::api::describe::{value, value_outbox};
use crate::http::api::posted::Posted;
use crate::outbox::Draft;
use crate::outbox::message::KEEP_DEFAULT;

/// The largest payload.
pub(in crate::http::api) const PAYLOAD_BYTES_MAX: usize = 1024 * 1024;
/// The longest id of a publisher's, and the longest key of order.
pub(in crate::http::api) const KEY_CHARS_MAX: usize = 256;
/// The longest time that a payload is kept, in days.
pub(in crate::http::api) const RETENTION_DAYS_MAX: u64 = 90;
/// How far ahead a message may be sent: longer than a payload is kept would be never.
const DELIVER_WITHIN: Span = Span::from_days(7);

/// A message as users see it.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Message)]
pub(super) struct MessageBody {
    #[schema(schema_with = value_outbox::message_id)]
    pub(super) id: String,
    pub(super) event_id: Option<String>,
    pub(super) event_type: String,
    /// Empty if it was not asked for; `{"expired": true}` if it is not kept any more.
    #[schema(value_type = Object)]
    pub(super) payload: Box<RawValue>,
    pub(super) channels: Option<Vec<String>>,
    pub(super) tags: Option<Vec<String>>,
    #[schema(schema_with = value::time)]
    pub(super) timestamp: String,
    #[schema(schema_with = value::time_or_null)]
    pub(super) deliver_at: Option<String>,
    pub(super) api_version: Option<String>,
    pub(super) ordering_key: Option<String>,
    pub(super) sequence_key: Option<String>,
    /// Its number among those of its key.
    pub(super) sequence: Option<u64>,
}

/// Is the payload told as well?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Content {
    With,
    Without,
}

impl Content {
    pub(super) fn from_flag(with: bool) -> Content {
        match with {
            true => Content::With,
            false => Content::Without,
        }
    }
}

fn raw(value: &Value) -> Box<RawValue> {
    serde_json::value::to_raw_value(value).unwrap_or_else(|_| RawValue::NULL.to_owned())
}

/// A payload as it is shown: what is no JSON object is shown as a text in one.
fn shown(payload: &[u8]) -> Box<RawValue> {
    let object: Option<&RawValue> = serde_json::from_slice(payload).ok();
    let object = object.filter(|raw| raw.get().trim_start().starts_with('{'));
    object.map(RawValue::to_owned).unwrap_or_else(|| {
        let text = String::from_utf8_lossy(payload);
        raw(&serde_json::json!({ "rawPayload": text }))
    })
}

/// The payload of a message, if it is wanted.
pub(super) async fn payload(
    api: &Api,
    event: EventId,
    content: Content,
) -> Result<Box<RawValue>, Halt> {
    if content == Content::Without {
        return Ok(raw(&serde_json::json!({})));
    }
    Ok(match api.store.payload(event).await? {
        PayloadAnswer::Kept(payload) => shown(&payload.body),
        PayloadAnswer::Reaped | PayloadAnswer::NoEvent => {
            raw(&serde_json::json!({"expired": true}))
        }
    })
}

/// A message as users see it.
pub(super) fn to_body(message: &Message, payload: Box<RawValue>) -> MessageBody {
    let (event, about) = (&message.event, &message.about);
    MessageBody {
        id: MessageId(event.id.0).to_string(),
        event_id: event.provider_event_id.clone(),
        event_type: event.event_type.clone().unwrap_or_default(),
        payload,
        channels: super::endpoint_body::listed(&about.channels),
        tags: super::endpoint_body::listed(&about.tags),
        timestamp: time_text(event.received_at),
        deliver_at: about.deliver_at.map(time_text),
        api_version: about.api_version.clone(),
        ordering_key: about.ordering_key.clone(),
        sequence_key: about.sequence_key.clone(),
        sequence: about.sequence,
    }
}

/// A message that was just stored, as far as its publisher knows it: all of it but a number, which the store gives.
pub(super) fn of_draft(draft: &Draft, event: EventId, content: Content) -> MessageBody {
    let about = &draft.about;
    MessageBody {
        id: MessageId(event.0).to_string(),
        event_id: about.event_id.clone(),
        event_type: draft.event_type.clone(),
        payload: match content {
            Content::With => shown(&draft.payload),
            Content::Without => raw(&serde_json::json!({})),
        },
        channels: super::endpoint_body::listed(&about.channels),
        tags: super::endpoint_body::listed(&about.tags),
        timestamp: time_text(draft.at),
        deliver_at: about.deliver_at.map(time_text),
        api_version: about.api_version.clone(),
        ordering_key: about.ordering_key.clone(),
        sequence_key: about.sequence_key.clone(),
        sequence: None,
    }
}

/// What a request says about a message. Whose it is follows.
pub(super) fn read(
    posted: &Posted,
    mut fields: Fields,
    given: Option<&RawValue>,
) -> Result<Draft, Halt> {
    let event_type = words::event_type(&mut fields, "eventType");
    let raw = raw_payload(&mut fields);
    let payload = payload_of(&mut fields, given);
    let about = About {
        event_id: key(&mut fields, "eventId"),
        channels: words::channels(&mut fields, "channels").unwrap_or_default(),
        tags: words::channels(&mut fields, "tags").unwrap_or_default(),
        deliver_at: deliver_at(&mut fields, posted.at),
        api_version: key(&mut fields, "apiVersion"),
        ordering_key: key(&mut fields, "orderingKey"),
        sequence_key: key(&mut fields, "sequenceKey"),
        sequence: None,
        only_to: None,
    };
    if about
        .event_id
        .as_deref()
        .is_some_and(|id| id.starts_with('~'))
    {
        fields.refuse("eventId", "no id begins with ~");
    }
    let keep = keep(&mut fields);
    fields.finish()?;
    let (payload, content_type) = raw.unwrap_or((payload, None));
    if payload.len() > PAYLOAD_BYTES_MAX {
        return Err(answer::TOO_LARGE.into());
    }
    // An id of its own is its key: then nothing has to be drawn, which would be a question to the system.
    let drawn = match about.event_id {
        Some(_) => [0; 16],
        None => drawn(posted),
    };
    Ok(Draft {
        app: AppId::from_bytes([0; 16]),
        event_type,
        payload,
        content_type,
        about,
        keep,
        drawn,
        at: posted.at,
        by: posted.actor.name.clone(),
    })
}

/// The same `Idempotency-Key` gives the same message, and nobody else has the key.
pub(super) fn drawn(posted: &Posted) -> [u8; 16] {
    let Some(request) = &posted.request else {
        return entropy::bytes();
    };
    let key = request.key.bytes();
    std::array::from_fn(|place| key[place])
}

fn key(fields: &mut Fields, name: &str) -> Option<String> {
    let key = fields.optional_text(name)?;
    if key.chars().count() > KEY_CHARS_MAX || key.chars().any(char::is_control) {
        fields.refuse(name, "at most 256 characters on one line are expected");
    }
    Some(key)
}

fn payload_of(fields: &mut Fields, given: Option<&RawValue>) -> Bytes {
    match given {
        Some(raw) if raw.get().starts_with('{') => Bytes::copy_from_slice(raw.get().as_bytes()),
        Some(_) => {
            fields.refuse("payload", "an object is expected");
            Bytes::new()
        }
        None => {
            fields.refuse("payload", "it is required");
            Bytes::new()
        }
    }
}

/// A payload that is sent as it is, whatever it is: how the SDKs' raw messages say it.
fn raw_payload(fields: &mut Fields) -> Option<(Bytes, Option<String>)> {
    if !fields.has("transformationsParams") {
        return None;
    }
    let mut part = fields.part("transformationsParams");
    let raw = part.any_text("rawPayload", PAYLOAD_BYTES_MAX);
    let mut headers = part.part("headers");
    let content_type = headers.optional_text("content-type");
    let wrong = content_type
        .as_ref()
        .map(|text| http::HeaderValue::from_str(text).is_err());
    if wrong == Some(true) {
        headers.refuse("content-type", "no header can carry this value");
    }
    part.join(headers);
    fields.join(part);
    raw.map(|raw| (Bytes::from(raw), content_type))
}

fn deliver_at(fields: &mut Fields, now: Time) -> Option<Time> {
    let at = fields.optional_time("deliverAt")?;
    if at > now + DELIVER_WITHIN {
        fields.refuse("deliverAt", "a time within seven days is expected");
    }
    Some(at)
}

fn keep(fields: &mut Fields) -> Keep {
    let days = fields.optional_number("payloadRetentionPeriod", 1..=RETENTION_DAYS_MAX);
    let hours = fields.optional_number("payloadRetentionHours", 1..=24 * RETENTION_DAYS_MAX);
    if days.is_some() && hours.is_some() {
        let msg = "only one of payloadRetentionPeriod and payloadRetentionHours is expected";
        fields.refuse("payloadRetentionHours", msg);
    }
    let hours = hours.or(days.map(|days| 24 * days));
    let payload = hours.and_then(|hours| i64::try_from(hours).ok());
    Keep {
        payload: payload.map_or(KEEP_DEFAULT.payload, Span::from_hours),
        ..KEEP_DEFAULT
    }
}

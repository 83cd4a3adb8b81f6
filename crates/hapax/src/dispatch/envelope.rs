//! The envelope: an event, its effect and a snapshot in one JSON document, for effects with `body = "envelope"`.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hapax_ledger::time::Time;
use serde::Serialize;
use serde_json::value::RawValue;

use super::request::{EffectPart, EventPart};

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Envelope<'a> {
    event: Event<'a>,
    effect: Effect<'a>,
    snapshot: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    snapshot_base64: Option<String>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Event<'a> {
    id: String,
    source: &'a str,
    r#type: Option<&'a str>,
    key: &'a str,
    received_at: String,
    content_type: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    body: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    body_base64: Option<String>,
}

#[derive(Serialize)]
struct Effect<'a> {
    id: String,
    name: &'a str,
    key: &'a str,
    generation: u32,
    attempt: u32,
    repeat: &'static str,
}

/// Writes the envelope. JSON goes in letter by letter as it was received, since a number or a key that is read and
/// written again may come out as another; everything else goes in as base64.
pub(super) fn write(
    event: &EventPart<'_>,
    effect: &EffectPart<'_>,
    snapshot: Option<&[u8]>,
) -> Vec<u8> {
    let (body, body_base64) = json_or_base64(event.body);
    let (snapshot, snapshot_base64) = snapshot.map_or((None, None), json_or_base64);
    let envelope = Envelope {
        event: Event {
            id: event.id.to_string(),
            source: event.source,
            r#type: event.event_type,
            key: event.key,
            received_at: time_text(event.received_at),
            content_type: event.content_type,
            body,
            body_base64,
        },
        effect: Effect {
            id: effect.id.to_string(),
            name: effect.name,
            key: effect.key,
            generation: effect.generation,
            attempt: effect.attempt,
            repeat: effect.repeat.word(),
        },
        snapshot,
        snapshot_base64,
    };
    serde_json::to_vec(&envelope).expect("texts, numbers and JSON that was read can be written")
}

fn json_or_base64(bytes: &[u8]) -> (Option<&RawValue>, Option<String>) {
    match serde_json::from_slice::<&RawValue>(bytes) {
        Ok(json) => (Some(json), None),
        Err(_) => (None, Some(STANDARD.encode(bytes))),
    }
}

fn time_text(time: Time) -> String {
    jiff::Timestamp::from_microsecond(time.micros())
        .map_or_else(|_| "never".to_owned(), |time| time.to_string())
}

//! An alert as an event: stored, sent, retried and given up like any other, in a lane of its own.

use bytes::Bytes;
use hapax_ledger::effect::Repeat;
use hapax_ledger::event::KeyOrigin;
use hapax_ledger::key::{BodyHash, KeyHash, KeyKind, composite};
use hapax_ledger::time::{Span, Time};
use hapax_store::nouns::{Arrival, Keep, NewEffect, NewEvent, OnFailed, Proof};
use serde_json::json;

use super::board::{Alert, Change};
use crate::clock::text as time_text;
use crate::config::EffectConfig;

pub use crate::config::{ALERT_LANE, ALERT_SOURCE};

/// How long such an event is kept: as long as its delivery may take, and then for whoever asks what was told.
const KEEP: Keep = Keep {
    payload: Span::from_days(30),
    ledger: Span::from_days(30),
    identity: Span::from_days(30),
    retry_window: Span::from_days(3),
};

/// An alert as programs read it.
pub fn body(alert: &Alert) -> serde_json::Value {
    json!({
        "kind": alert.kind.word(),
        "subject": alert.subject,
        "severity": alert.severity.word(),
        "code": alert.kind.code(),
        "text": alert.text,
        "advice": alert.kind.advice(),
        "since": time_text(alert.since),
        "clearedAt": alert.cleared_at.map(time_text),
    })
}

/// The event that tells of a change, with the effect that delivers it. The same change is the same event, however often it is
/// stored.
pub fn arrival(change: &Change, effect: &EffectConfig, now: Time) -> Arrival {
    let alert = change.alert();
    let (event_type, at) = match change {
        Change::Raised(alert) => ("alert.raised", alert.since),
        Change::Cleared(alert) => ("alert.cleared", alert.cleared_at.unwrap_or(now)),
    };
    let raised = time_text(alert.since);
    let told = Told {
        event_type,
        key: composite(&[event_type, alert.kind.word(), &alert.subject, &raised]),
        at,
        data: body(alert),
    };
    event(told, effect, now)
}

/// Something that is told as an event of Hapax's own.
pub(super) struct Told {
    pub(super) event_type: &'static str,
    /// The same thing has the same key.
    pub(super) key: String,
    pub(super) at: Time,
    pub(super) data: serde_json::Value,
}

/// The event that tells it, with the effect that delivers it.
pub(super) fn event(told: Told, effect: &EffectConfig, now: Time) -> Arrival {
    let Told {
        event_type,
        key,
        at,
        data,
    } = told;
    let text = json!({ "type": event_type, "timestamp": time_text(at), "data": data });
    let bytes = Bytes::from(text.to_string());
    let body_hash = BodyHash::of(&bytes);
    let event = NewEvent {
        event_type: Some(event_type.to_owned()),
        key_hash: KeyHash::of(KeyKind::Identity, ALERT_SOURCE, &key),
        key_origin: KeyOrigin::Composed,
        content_type: Some("application/json".to_owned()),
        body_hash,
        compare_hash: body_hash,
        body: bytes,
        provider_event_id: None,
        object_id: None,
        entity: None,
        version: None,
        keep: KEEP,
        review: None,
        on_failed: OnFailed::Link,
        effects: vec![delivery(&key, effect)],
        key,
    };
    Arrival {
        source: ALERT_SOURCE.into(),
        at: now,
        proof: Proof {
            scheme: "own".into(),
            secret_index: None,
            signed_at: None,
            remote: None,
        },
        events: vec![event],
    }
}

fn delivery(key: &str, effect: &EffectConfig) -> NewEffect {
    NewEffect {
        name: effect.name.clone(),
        key: key.to_owned(),
        key_hash: KeyHash::of(KeyKind::Effect, &effect.name, key),
        repeat: Repeat::Keyed,
        lane: effect.name.clone(),
        wait: Span::ZERO,
        attempts_max: effect.retry.attempts_max(),
        after: Vec::new(),
        order: None,
        born: None,
    }
}

//! Arrivals as an inbox hands them over: one event, at most one effect, and keys that were never there before.

use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use hapax::config::EffectConfig;
use hapax::{clock, entropy};
use hapax_ledger::event::KeyOrigin;
use hapax_ledger::key::{BodyHash, KeyHash, KeyKind, wire_key};
use hapax_ledger::time::Span;
use hapax_store::nouns::{Arrival, Keep, NewEffect, NewEvent, OnFailed, Proof};

const KEEP: Keep = Keep {
    payload: Span::from_days(30),
    ledger: Span::from_days(90),
    identity: Span::from_days(90),
    retry_window: Span::from_days(3),
};

/// Makes arrivals.
pub(crate) struct Maker {
    /// Other than that of every other run on the same store.
    salt: String,
    made: AtomicU64,
    body_bytes: usize,
}

/// An arrival, and the key that its effect's request will carry.
pub(crate) struct Made {
    pub(crate) arrival: Arrival,
    pub(crate) wire_key: String,
}

impl Maker {
    pub(crate) fn new(body_bytes: usize) -> Maker {
        Maker {
            salt: hex::encode(entropy::bytes::<8>()),
            made: AtomicU64::new(0),
            body_bytes,
        }
    }

    /// An event without effects.
    pub(crate) fn plain(&self) -> Arrival {
        self.arrival("bench0".into(), |_| Vec::new())
    }

    /// An event with one effect that may go out at once.
    pub(crate) fn due(&self, effect: &EffectConfig) -> Made {
        self.with(effect, Span::ZERO)
    }

    /// An event with one effect that has to wait.
    pub(crate) fn with(&self, effect: &EffectConfig, wait: Span) -> Made {
        let arrival = self.arrival(effect.source.clone(), |key| {
            vec![new_effect(effect, key, wait)]
        });
        let key = &arrival.events[0].key;
        Made {
            wire_key: wire_key(&effect.name, key, 1),
            arrival,
        }
    }

    fn arrival(
        &self,
        source: std::sync::Arc<str>,
        effects: impl Fn(&str) -> Vec<NewEffect>,
    ) -> Arrival {
        let number = self.made.fetch_add(1, Ordering::Relaxed);
        let at = clock::now();
        let key = format!("evt_{}_{number}", self.salt);
        let body = body(&key, self.body_bytes);
        let body_hash = BodyHash::of(&body);
        let event = NewEvent {
            event_type: Some("invoice.paid".into()),
            key_hash: KeyHash::of(KeyKind::Identity, &source, &key),
            key_origin: KeyOrigin::Body,
            body,
            content_type: Some("application/json".into()),
            body_hash,
            compare_hash: body_hash,
            provider_event_id: None,
            object_id: None,
            entity: None,
            version: None,
            keep: KEEP,
            review: None,
            on_failed: OnFailed::Link,
            effects: effects(&key),
            key,
        };
        Arrival {
            source,
            at,
            proof: Proof {
                scheme: "hmac".into(),
                secret_index: Some(0),
                signed_at: None,
                remote: None,
            },
            events: vec![event],
        }
    }
}

/// A body of the wanted length, or a little more if that is too short for its key.
pub(crate) fn body(key: &str, bytes: usize) -> Bytes {
    let frame = "{\"id\":\"\",\"pad\":\"\"}".len() + key.len();
    // Not padded by the formatter, which writes letter by letter and would be seen in a profile.
    let pad = "0".repeat(bytes.saturating_sub(frame));
    Bytes::from(format!("{{\"id\":\"{key}\",\"pad\":\"{pad}\"}}"))
}

fn new_effect(effect: &EffectConfig, key: &str, wait: Span) -> NewEffect {
    NewEffect {
        name: effect.name.clone(),
        key: key.to_owned(),
        key_hash: KeyHash::of(KeyKind::Effect, &effect.name, key),
        repeat: effect.rule.repeat,
        lane: effect.name.clone(),
        wait,
        attempts_max: effect.retry.attempts_max(),
        after: Vec::new(),
        order: None,
        born: None,
    }
}

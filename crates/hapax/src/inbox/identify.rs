//! From verified bytes to events with keys and effects. A pure function of request and config.
//!
//! Whatever is authentic is kept: a body that cannot be read, or that has nothing to identify it, becomes an event that
//! waits for a person, under the hash of its bytes, so that exact repeats still dedupe.

use bytes::Bytes;
use hapax_ledger::event::KeyOrigin;
use hapax_ledger::extract::{
    BodyFormat, ExtractError, Extracted, HeaderLookup, NoHeaders, split_batch,
};
use hapax_ledger::fingerprint::compare_hash;
use hapax_ledger::key::{BodyHash, KeyHash, KeyKind};
use hapax_ledger::ladder::{Derived, body_key};
use hapax_store::nouns::{NewEvent, OnFailed, Review};

use super::plan::{Facts, plan};
use super::source::{Batch, Source};
use crate::config::effect::format_of;

/// A batch larger than this is kept whole for review: its rows would not fit one commit.
pub const BATCH_EVENTS_MAX: usize = 1_000;

/// Review code: the key could not be derived.
pub const NO_KEY: &str = "H0210";
/// Review code: the body is not what this provider sends.
pub const BAD_BODY: &str = "H0211";

/// The events of a request, and how often a declared rung of the key ladder was missing.
pub struct Identified {
    /// One, or the elements of a batch.
    pub events: Vec<NewEvent>,
    /// Rungs that were passed over.
    pub fell: usize,
}

/// Derives the events of a verified request.
pub fn identify(source: &Source, headers: &impl HeaderLookup, body: &Bytes) -> Identified {
    let request = Request {
        source,
        headers,
        content_type: headers.header("content-type"),
    };
    let format = match source.reads_body {
        true => format_of(body),
        false => BodyFormat::Opaque,
    };
    let elements = match &source.batch {
        None => return request.one(format, body.clone()),
        Some(Batch::Root) => split_batch(body, None),
        Some(Batch::At(field)) => split_batch(body, Some(field)),
    };
    match elements {
        // Some providers send single events in the same place; one that has no array is read as one event.
        Err(ExtractError::NoArray(_)) => request.one(format, body.clone()),
        Err(error) => request.review(body.clone(), &error.to_string()),
        Ok(elements) if elements.is_empty() => request.review(body.clone(), "the batch is empty"),
        Ok(elements) if elements.len() > BATCH_EVENTS_MAX => {
            let why = format!(
                "the batch has {} events; at most {BATCH_EVENTS_MAX} are read",
                elements.len()
            );
            request.review(body.clone(), &why)
        }
        Ok(elements) => {
            let mut all = Identified {
                events: Vec::with_capacity(elements.len()),
                fell: 0,
            };
            for element in elements {
                let mut each = request.one(BodyFormat::Json, body.slice_ref(element));
                all.events.append(&mut each.events);
                all.fell += each.fell;
            }
            all
        }
    }
}

/// What is known of an event whose bytes are read once more.
#[derive(Clone, Copy, Debug)]
pub struct Known<'a> {
    /// The key it has.
    pub key: &'a str,
    /// The rung that gave it.
    pub key_origin: KeyOrigin,
    /// The content type it came with.
    pub content_type: Option<&'a str>,
}

/// An event from bytes that are kept, with the config as it is now, under a key that it has already. The headers it came
/// with are not kept: what the config asks of them is missing.
pub fn again(source: &Source, known: &Known<'_>, body: &Bytes) -> NewEvent {
    let request = Request {
        source,
        headers: &NoHeaders,
        content_type: known.content_type,
    };
    let format = match (source.reads_body, &source.batch) {
        (false, _) => BodyFormat::Opaque,
        // An element of a batch is JSON, whatever it begins with.
        (true, Some(_)) => BodyFormat::Json,
        (true, None) => format_of(body),
    };
    let key = Derived::Key {
        text: known.key.to_owned(),
        origin: known.key_origin,
        fell: Vec::new(),
    };
    match source.fields.extract(format, body, &NoHeaders) {
        Ok(extracted) => request.event(&extracted, key, body.clone(), BodyHash::of(body)),
        Err(error) => request.unreadable(body.clone(), key, &error.to_string()),
    }
}

/// What all events of a request share.
struct Request<'a, H> {
    source: &'a Source,
    headers: &'a H,
    content_type: Option<&'a str>,
}

impl<H: HeaderLookup> Request<'_, H> {
    fn one(&self, format: BodyFormat, body: Bytes) -> Identified {
        match self.source.fields.extract(format, &body, self.headers) {
            Ok(extracted) => {
                let body_hash = BodyHash::of(&body);
                let derived = self.source.ladder.derive(&extracted, body_hash);
                let fell = derived.fell().len();
                let event = self.event(&extracted, derived, body.clone(), body_hash);
                Identified {
                    events: vec![event],
                    fell,
                }
            }
            Err(error) => self.review(body, &error.to_string()),
        }
    }

    fn event(
        &self,
        extracted: &Extracted<'_>,
        derived: Derived,
        body: Bytes,
        body_hash: BodyHash,
    ) -> NewEvent {
        let source = self.source;
        let text = |slot: Option<_>| {
            slot.and_then(|slot| extracted.filled(slot))
                .map(str::to_owned)
        };
        let event_type = text(source.slots.event_type);
        let key_origin = derived.origin();
        let (key, planned) = match derived {
            Derived::Key { text, .. } => {
                let facts = Facts {
                    event_type: event_type.as_deref(),
                    key: &text,
                    fields: extracted,
                    body: &body,
                };
                let planned = plan(source, &facts);
                (text, planned)
            }
            Derived::NeedsReview { text, reason, .. } => {
                let review = Review {
                    code: NO_KEY.into(),
                    message: reason.into(),
                };
                (text, Err(review))
            }
        };
        let (effects, review) = match planned {
            Ok(effects) => (effects, None),
            Err(review) => (Vec::new(), Some(review)),
        };
        let compare_hash = match source.config.volatile.is_empty() {
            true => body_hash,
            false => compare_hash(&body, &source.config.volatile),
        };
        NewEvent {
            event_type,
            key_hash: KeyHash::of(KeyKind::Identity, source.name(), &key),
            key,
            key_origin,
            content_type: self.content_type.map(str::to_owned),
            body_hash,
            compare_hash,
            body,
            provider_event_id: source
                .ladder
                .provider_event_id(extracted)
                .map(str::to_owned),
            object_id: text(source.slots.object_id),
            entity: text(source.slots.entity),
            version: text(source.slots.version),
            keep: source.config.keep,
            review,
            on_failed: source.config.on_duplicate_of_failed.into(),
            effects,
        }
    }

    /// Authentic but unusable: kept under the hash of its bytes.
    fn review(&self, body: Bytes, why: &str) -> Identified {
        let key = Derived::Key {
            text: body_key(BodyHash::of(&body)),
            origin: KeyOrigin::Body,
            fell: Vec::new(),
        };
        Identified {
            events: vec![self.unreadable(body, key, why)],
            fell: 0,
        }
    }

    /// The same under any key.
    fn unreadable(&self, body: Bytes, key: Derived, why: &str) -> NewEvent {
        let body_hash = BodyHash::of(&body);
        let key_origin = key.origin();
        let key = key.text().to_owned();
        NewEvent {
            event_type: None,
            key_hash: KeyHash::of(KeyKind::Identity, self.source.name(), &key),
            key,
            key_origin,
            content_type: self.content_type.map(str::to_owned),
            body_hash,
            compare_hash: body_hash,
            body,
            provider_event_id: None,
            object_id: None,
            entity: None,
            version: None,
            keep: self.source.config.keep,
            review: Some(Review {
                code: BAD_BODY.into(),
                message: format!("the body cannot be read: {why}"),
            }),
            on_failed: OnFailed::Link,
            effects: Vec::new(),
        }
    }
}

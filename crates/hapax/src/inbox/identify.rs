//! From verified bytes to events with keys. A pure function of request and config.
//!
//! Whatever is authentic is kept: a body that cannot be read, or that has nothing to identify it, becomes an event that
//! waits for a person, under the hash of its bytes, so that exact repeats still dedupe.

use bytes::Bytes;
use hapax_ledger::event::KeyOrigin;
use hapax_ledger::extract::{BodyFormat, ExtractError, Extracted, HeaderLookup, split_batch};
use hapax_ledger::fingerprint::compare_hash;
use hapax_ledger::key::{BodyHash, KeyHash, KeyKind};
use hapax_ledger::ladder::{Derived, body_key};
use hapax_store::nouns::{NewEvent, Review};

use super::source::{Batch, Source};

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
pub fn identify(
    source: &Source,
    headers: &impl HeaderLookup,
    content_type: Option<&str>,
    body: &Bytes,
) -> Identified {
    let format = format_of(source, body);
    let elements = match &source.batch {
        None => return one(source, headers, content_type, format, body.clone()),
        Some(Batch::Root) => split_batch(body, None),
        Some(Batch::At(field)) => split_batch(body, Some(field)),
    };
    match elements {
        // Some providers send single events in the same place; one that has no array is read as one event.
        Err(ExtractError::NoArray(_)) => one(source, headers, content_type, format, body.clone()),
        Err(error) => review(source, content_type, body.clone(), &error.to_string()),
        Ok(elements) if elements.is_empty() => {
            review(source, content_type, body.clone(), "the batch is empty")
        }
        Ok(elements) if elements.len() > BATCH_EVENTS_MAX => {
            let why = format!(
                "the batch has {} events; at most {BATCH_EVENTS_MAX} are read",
                elements.len()
            );
            review(source, content_type, body.clone(), &why)
        }
        Ok(elements) => {
            let mut all = Identified {
                events: Vec::with_capacity(elements.len()),
                fell: 0,
            };
            for element in elements {
                let slice = body.slice_ref(element);
                let mut each = one(source, headers, content_type, BodyFormat::Json, slice);
                all.events.append(&mut each.events);
                all.fell += each.fell;
            }
            all
        }
    }
}

/// How to read a body, by its bytes alone. The content type is the sender's word and no signature covers it: whoever
/// replays a captured request with another one must not get another key (B4).
fn format_of(source: &Source, body: &[u8]) -> BodyFormat {
    if !source.reads_body {
        return BodyFormat::Opaque;
    }
    match body.iter().find(|byte| !byte.is_ascii_whitespace()) {
        Some(b'{' | b'[') => BodyFormat::Json,
        // A form is one word of name=value pairs. Anything else is no body that fields can be read from, and reading
        // it as JSON says so.
        _ if body.contains(&b'=') && body.iter().all(u8::is_ascii_graphic) => BodyFormat::Form,
        _ => BodyFormat::Json,
    }
}

fn one(
    source: &Source,
    headers: &impl HeaderLookup,
    content_type: Option<&str>,
    format: BodyFormat,
    body: Bytes,
) -> Identified {
    match source.fields.extract(format, &body, headers) {
        Ok(extracted) => {
            let body_hash = BodyHash::of(&body);
            let derived = source.ladder.derive(&extracted, body_hash);
            let fell = derived.fell().len();
            let event = event(
                source,
                &extracted,
                derived,
                content_type,
                body.clone(),
                body_hash,
            );
            Identified {
                events: vec![event],
                fell,
            }
        }
        Err(error) => review(source, content_type, body, &error.to_string()),
    }
}

fn event(
    source: &Source,
    extracted: &Extracted<'_>,
    derived: Derived,
    content_type: Option<&str>,
    body: Bytes,
    body_hash: BodyHash,
) -> NewEvent {
    let text = |slot: Option<_>| {
        slot.and_then(|slot| extracted.filled(slot))
            .map(str::to_owned)
    };
    let key_origin = derived.origin();
    let (key, review) = match derived {
        Derived::Key { text, .. } => (text, None),
        Derived::NeedsReview { text, reason, .. } => (
            text,
            Some(Review {
                code: NO_KEY.into(),
                message: reason.into(),
            }),
        ),
    };
    let compare_hash = match source.config.volatile.is_empty() {
        true => body_hash,
        false => compare_hash(&body, &source.config.volatile),
    };
    NewEvent {
        event_type: text(source.slots.event_type),
        key_hash: KeyHash::of(KeyKind::Identity, source.name(), &key),
        key,
        key_origin,
        content_type: content_type.map(str::to_owned),
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
        effects: Vec::new(),
    }
}

/// Authentic but unusable: kept under the hash of its bytes.
fn review(source: &Source, content_type: Option<&str>, body: Bytes, why: &str) -> Identified {
    let body_hash = BodyHash::of(&body);
    let key = body_key(body_hash);
    let event = NewEvent {
        event_type: None,
        key_hash: KeyHash::of(KeyKind::Identity, source.name(), &key),
        key,
        key_origin: KeyOrigin::Body,
        content_type: content_type.map(str::to_owned),
        body_hash,
        compare_hash: body_hash,
        body,
        provider_event_id: None,
        object_id: None,
        entity: None,
        version: None,
        keep: source.config.keep,
        review: Some(Review {
            code: BAD_BODY.into(),
            message: format!("the body cannot be read: {why}"),
        }),
        effects: Vec::new(),
    };
    Identified {
        events: vec![event],
        fell: 0,
    }
}

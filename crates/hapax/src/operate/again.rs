//! Events that are planned again, with the config as it is now: one that waited for a person, and the other body of a conflict.

use std::sync::Arc;

use bytes::Bytes;
use hapax_ledger::key::composite;
use hapax_ledger::time::Time;
use hapax_store::nouns::{Arrival, Event, EventDetail, NewEffect, Payload};

use crate::inbox::Source;
use crate::inbox::identify;

/// Why there is no plan.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Unplanned {
    /// The bytes are not kept.
    NoBytes,
    /// That delivery brought no other body, or none is known.
    NoConflict,
    /// In words.
    Said(String),
}

fn no_source(name: &str) -> Unplanned {
    Unplanned::Said(format!("the source `{name}` is not in the config"))
}

/// The effects of an event that has none yet.
pub(super) fn planned(
    source: Option<&Arc<Source>>,
    event: &Event,
    payload: Option<Payload>,
) -> Result<Vec<NewEffect>, Unplanned> {
    let source = source.ok_or_else(|| no_source(&event.source))?;
    let payload = payload.ok_or(Unplanned::NoBytes)?;
    let known = identify::Known {
        key: &event.key,
        key_origin: event.key_origin,
        content_type: payload.content_type.as_deref(),
    };
    let again = identify::again(source, &known, &payload.body);
    match again.review {
        None => Ok(again.effects),
        Some(review) => Err(Unplanned::Said(review.message)),
    }
}

/// The other body of a delivery as an event of its own, under a key that no other can have.
pub(super) fn promoted(
    source: Option<&Arc<Source>>,
    detail: &EventDetail,
    number: u32,
    body: Option<Bytes>,
    content_type: Option<String>,
    at: Time,
) -> Result<Arrival, Unplanned> {
    let event = &detail.event;
    let mut deliveries = detail.deliveries.iter();
    let delivery = deliveries
        .find(|delivery| delivery.number == number && delivery.conflict)
        .ok_or(Unplanned::NoConflict)?;
    if delivery.decided.is_some() {
        return Err(Unplanned::NoConflict);
    }
    let body = body.ok_or(Unplanned::NoBytes)?;
    let source = source.ok_or_else(|| no_source(&event.source))?;
    let key = composite(&[event.key.as_str(), "conflict", &number.to_string()]);
    let known = identify::Known {
        key: &key,
        key_origin: event.key_origin,
        content_type: content_type.as_deref(),
    };
    Ok(Arrival {
        source: event.source.clone(),
        at,
        proof: delivery.proof.clone(),
        events: vec![identify::again(source, &known, &body)],
    })
}

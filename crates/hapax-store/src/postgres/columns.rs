//! Rows turned on their side: one array per column, so that any number of rows is one statement with the same text.
//!
//! A statement turns them back with one `unnest` for each array in a list of `SELECT`, which walks them side by side. One `unnest` of several
//! arrays says the same and is much dearer: the server first copies each of them into a store of its own (21 arrays of 16 values:
//! 115 us, in a list 25 us).

use std::borrow::Cow;

use hapax_ledger::event::{DeliveryOutcome, EventStatus};
use hapax_ledger::id::EventId;
use hapax_ledger::time::Time;
use tokio_postgres::types::Type;

use super::plan::Calling;
use super::pool::Param;
use super::wire::{Hash, Uuid, sendable};
use crate::nouns::{Arrival, NewEvent};

type Text<'a> = Cow<'a, str>;

/// An event that is about to be stored.
pub(super) struct EventRow<'a> {
    pub(super) id: EventId,
    pub(super) arrival: &'a Arrival,
    pub(super) event: &'a NewEvent,
    pub(super) expires_at: Time,
    pub(super) status: EventStatus,
}

impl<'a> EventRow<'a> {
    /// What it calls for.
    pub(super) fn calling(&self) -> Calling<'a> {
        Calling {
            event: self.id,
            at: self.arrival.at,
            event_type: self.event.event_type.as_deref(),
            effects: &self.event.effects,
            from: 0,
        }
    }
}

/// Where an event stands from its first moment on. One that calls for effects counts as unsettled until they are planned.
pub(super) fn first_status(event: &NewEvent) -> EventStatus {
    match &event.review {
        Some(_) => EventStatus::NeedsReview,
        None if event.effects.is_empty() => EventStatus::Completed,
        None => EventStatus::Pending,
    }
}

/// The columns of events and payloads, in the order in which the statements name them.
#[derive(Default)]
pub(super) struct EventColumns<'a> {
    shard: Vec<i16>,
    id: Vec<Uuid>,
    source: Vec<Text<'a>>,
    key_hash: Vec<Uuid>,
    at: Vec<i64>,
    kind: Vec<Option<Text<'a>>>,
    key: Vec<Text<'a>>,
    key_origin: Vec<i16>,
    body_hash: Vec<Hash>,
    compare_hash: Vec<Option<Hash>>,
    provider_event_id: Vec<Option<Text<'a>>>,
    object_id: Vec<Option<Text<'a>>>,
    entity: Vec<Option<Text<'a>>>,
    version: Vec<Option<Text<'a>>>,
    status: Vec<i16>,
    review_code: Vec<Option<Text<'a>>>,
    review_message: Vec<Option<Text<'a>>>,
    scheme: Vec<Text<'a>>,
    secret_index: Vec<Option<i16>>,
    signed_at: Vec<Option<i64>>,
    remote: Vec<Option<Text<'a>>>,
    retry_window: Vec<i64>,
    expires_at: Vec<i64>,
    payload_until: Vec<i64>,
    content_type: Vec<Option<Text<'a>>>,
    body: Vec<&'a [u8]>,
    outcome: Vec<i16>,
    ledger_until: Vec<i64>,
}

impl<'a> EventColumns<'a> {
    /// The columns of these rows.
    pub(super) fn of(rows: impl IntoIterator<Item = EventRow<'a>>) -> EventColumns<'a> {
        let mut columns = EventColumns::default();
        for row in rows {
            columns.push_event(&row);
            columns.push_first_delivery(row.arrival, row.event);
            columns.push_payload(row.event);
        }
        columns
    }

    fn push_event(&mut self, row: &EventRow<'a>) {
        let event = row.event;
        self.shard.push(row.id.0.shard() as i16);
        self.id.push(Uuid(row.id.bytes()));
        self.source.push(sendable(&row.arrival.source));
        self.key_hash.push(Uuid(event.key_hash.bytes()));
        self.at.push(row.arrival.at.micros());
        self.kind.push(maybe(event.event_type.as_deref()));
        self.key.push(sendable(&event.key));
        self.key_origin.push(event.key_origin.code().into());
        self.body_hash.push(Hash(event.body_hash.bytes()));
        let differs = event.compare_hash != event.body_hash;
        self.compare_hash
            .push(differs.then(|| Hash(event.compare_hash.bytes())));
        self.provider_event_id
            .push(maybe(event.provider_event_id.as_deref()));
        self.object_id.push(maybe(event.object_id.as_deref()));
        self.entity.push(maybe(event.entity.as_deref()));
        self.version.push(maybe(event.version.as_deref()));
        self.status.push(row.status.code().into());
        self.review_code
            .push(event.review.as_ref().map(|review| sendable(&review.code)));
        self.review_message.push(
            event
                .review
                .as_ref()
                .map(|review| sendable(&review.message)),
        );
        self.retry_window.push(event.keep.retry_window.micros());
        self.expires_at.push(row.expires_at.micros());
        self.payload_until
            .push((row.arrival.at + event.keep.payload).micros());
        self.ledger_until
            .push((row.arrival.at + event.keep.ledger).micros());
    }

    fn push_first_delivery(&mut self, arrival: &'a Arrival, event: &NewEvent) {
        self.scheme.push(sendable(&arrival.proof.scheme));
        self.secret_index
            .push(arrival.proof.secret_index.map(i16::from));
        self.signed_at
            .push(arrival.proof.signed_at.map(Time::micros));
        self.remote.push(maybe(arrival.proof.remote.as_deref()));
        let outcome = match event.review {
            Some(_) => DeliveryOutcome::FailedValidation,
            None => DeliveryOutcome::Accepted,
        };
        self.outcome.push(outcome.code().into());
    }

    fn push_payload(&mut self, event: &'a NewEvent) {
        self.content_type.push(maybe(event.content_type.as_deref()));
        self.body.push(&event.body);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.id.is_empty()
    }

    /// The columns as parameters `$1` to `$28`.
    pub(super) fn params(&self) -> [Param<'_>; 28] {
        [
            (&self.shard, Type::INT2_ARRAY),
            (&self.id, Type::UUID_ARRAY),
            (&self.source, Type::TEXT_ARRAY),
            (&self.key_hash, Type::UUID_ARRAY),
            (&self.at, Type::INT8_ARRAY),
            (&self.kind, Type::TEXT_ARRAY),
            (&self.key, Type::TEXT_ARRAY),
            (&self.key_origin, Type::INT2_ARRAY),
            (&self.body_hash, Type::BYTEA_ARRAY),
            (&self.compare_hash, Type::BYTEA_ARRAY),
            (&self.provider_event_id, Type::TEXT_ARRAY),
            (&self.object_id, Type::TEXT_ARRAY),
            (&self.entity, Type::TEXT_ARRAY),
            (&self.version, Type::TEXT_ARRAY),
            (&self.status, Type::INT2_ARRAY),
            (&self.review_code, Type::TEXT_ARRAY),
            (&self.review_message, Type::TEXT_ARRAY),
            (&self.scheme, Type::TEXT_ARRAY),
            (&self.secret_index, Type::INT2_ARRAY),
            (&self.signed_at, Type::INT8_ARRAY),
            (&self.remote, Type::TEXT_ARRAY),
            (&self.retry_window, Type::INT8_ARRAY),
            (&self.expires_at, Type::INT8_ARRAY),
            (&self.payload_until, Type::INT8_ARRAY),
            (&self.content_type, Type::TEXT_ARRAY),
            (&self.body, Type::BYTEA_ARRAY),
            (&self.outcome, Type::INT2_ARRAY),
            (&self.ledger_until, Type::INT8_ARRAY),
        ]
    }
}

fn maybe(text: Option<&str>) -> Option<Text<'_>> {
    text.map(sendable)
}

/// One more delivery of an event that is known.
pub(super) struct DeliveryRow<'a> {
    pub(super) event: EventId,
    pub(super) n: u32,
    pub(super) at: Time,
    pub(super) conflict: bool,
    pub(super) conflicts: u32,
    pub(super) arrival: &'a Arrival,
    pub(super) repeated: &'a NewEvent,
    pub(super) keep_body: bool,
}

/// The columns of deliveries, in the order in which the statement names them.
#[derive(Default)]
pub(super) struct DeliveryColumns<'a> {
    shard: Vec<i16>,
    event: Vec<Uuid>,
    n: Vec<i32>,
    at: Vec<i64>,
    conflict: Vec<bool>,
    conflicts: Vec<i32>,
    body_hash: Vec<Hash>,
    scheme: Vec<Text<'a>>,
    secret_index: Vec<Option<i16>>,
    signed_at: Vec<Option<i64>>,
    remote: Vec<Option<Text<'a>>>,
    body: Vec<Option<&'a [u8]>>,
}

impl<'a> DeliveryColumns<'a> {
    /// The columns of these rows.
    pub(super) fn of(rows: &[DeliveryRow<'a>]) -> DeliveryColumns<'a> {
        let mut columns = DeliveryColumns::default();
        for row in rows {
            let proof = &row.arrival.proof;
            columns.shard.push(row.event.0.shard() as i16);
            columns.event.push(Uuid(row.event.bytes()));
            columns.n.push(row.n as i32);
            columns.at.push(row.at.micros());
            columns.conflict.push(row.conflict);
            columns.conflicts.push(row.conflicts as i32);
            columns.body_hash.push(Hash(row.repeated.body_hash.bytes()));
            columns.scheme.push(sendable(&proof.scheme));
            columns.secret_index.push(proof.secret_index.map(i16::from));
            columns.signed_at.push(proof.signed_at.map(Time::micros));
            columns.remote.push(maybe(proof.remote.as_deref()));
            columns
                .body
                .push(row.keep_body.then_some(&row.repeated.body[..]));
        }
        columns
    }

    pub(super) fn is_empty(&self) -> bool {
        self.event.is_empty()
    }

    /// The columns as parameters `$1` to `$12`.
    pub(super) fn params(&self) -> [Param<'_>; 12] {
        [
            (&self.shard, Type::INT2_ARRAY),
            (&self.event, Type::UUID_ARRAY),
            (&self.n, Type::INT4_ARRAY),
            (&self.at, Type::INT8_ARRAY),
            (&self.conflict, Type::BOOL_ARRAY),
            (&self.conflicts, Type::INT4_ARRAY),
            (&self.body_hash, Type::BYTEA_ARRAY),
            (&self.scheme, Type::TEXT_ARRAY),
            (&self.secret_index, Type::INT2_ARRAY),
            (&self.signed_at, Type::INT8_ARRAY),
            (&self.remote, Type::TEXT_ARRAY),
            (&self.body, Type::BYTEA_ARRAY),
        ]
    }
}

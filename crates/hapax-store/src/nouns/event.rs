//! Events as they are read back, with their deliveries and bytes.

use std::sync::Arc;

use bytes::Bytes;
use hapax_ledger::event::{DeliveryOutcome, EventStatus, KeyOrigin};
use hapax_ledger::id::EventId;
use hapax_ledger::key::BodyHash;
use hapax_ledger::time::Time;

use super::arrival::{Proof, Review};
use super::command::Run;
use super::effect::Effect;

/// At most this many deliveries of one event keep a row of their own; later ones only move the last row's
/// number and time. A provider that bounces one event for ever must not fill the disk.
pub const DELIVERIES_KEPT_MAX: u32 = 1_000;

/// At most this many conflicting bodies of one event are kept.
pub const CONFLICT_BODIES_MAX: u32 = 16;

/// An event as it is read back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// Its id.
    pub id: EventId,
    /// Where it came in.
    pub source: Arc<str>,
    /// What happened.
    pub event_type: Option<String>,
    /// Its key.
    pub key: String,
    /// The rung that gave the key.
    pub key_origin: KeyOrigin,
    /// The provider's id.
    pub provider_event_id: Option<String>,
    /// The business object.
    pub object_id: Option<String>,
    /// The object that order is about.
    pub entity: Option<String>,
    /// The object's version.
    pub version: Option<String>,
    /// Where it stands.
    pub status: EventStatus,
    /// When it was first received.
    pub received_at: Time,
    /// Why it needs a person, if it does.
    pub review: Option<Review>,
    /// How many deliveries brought it.
    pub delivery_count: u32,
    /// How many of them were not the first.
    pub duplicate_count: u32,
    /// How many of them had another body.
    pub conflict_count: u32,
    /// The hash of its bytes.
    pub body_hash: BodyHash,
    /// Until when a second event with this key is refused.
    pub identity_expires_at: Time,
}

/// One delivery as it is read back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// When it came.
    pub at: Time,
    /// How it ended.
    pub outcome: DeliveryOutcome,
    /// How it proved who sent it.
    pub proof: Proof,
    /// The hash of its bytes.
    pub body_hash: BodyHash,
    /// Did it bring another body than the first?
    pub conflict: bool,
    /// Its number; the first is number zero.
    pub number: u32,
    /// If it brought another body: what somebody decided about it.
    pub decided: Option<ConflictDecision>,
}

/// What somebody decided about a delivery with another body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConflictDecision {
    /// It means nothing.
    Acknowledged,
    /// It became this event.
    Promoted(EventId),
}

/// An event with all that hangs on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventDetail {
    /// The event.
    pub event: Event,
    /// Its deliveries, oldest first.
    pub deliveries: Vec<Delivery>,
    /// Its effects, in plan order.
    pub effects: Vec<Effect>,
    /// Passes over it that somebody asked for, oldest first. The initial one is not among them.
    pub runs: Vec<Run>,
}

/// The raw bytes of an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Payload {
    /// The bytes as they came.
    pub body: Bytes,
    /// The request's content type.
    pub content_type: Option<String>,
}

/// What became of the bytes one asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PayloadAnswer {
    /// Here they are.
    Kept(Payload),
    /// The event is known; its bytes have been deleted.
    Reaped,
    /// No such event.
    NoEvent,
}

//! What goes into a store and what comes out of it.

use std::sync::Arc;

use bytes::Bytes;
use hapax_ledger::effect::{EffectRecord, Repeat, SkipReason};
use hapax_ledger::event::{DeliveryOutcome, EventStatus, KeyOrigin};
use hapax_ledger::id::{EffectId, EventId};
use hapax_ledger::key::{BodyHash, KeyHash};
use hapax_ledger::lease::Fence;
use hapax_ledger::outcome::Outcome;
use hapax_ledger::retry::Next;
use hapax_ledger::time::{Span, Time};
use hapax_ledger::transition::{Change, Rejected};

/// At most this many deliveries of one event keep a row of their own; later ones only move the last row's
/// number and time. A provider that bounces one event for ever must not fill the disk.
pub const DELIVERIES_KEPT_MAX: u32 = 1_000;
/// At most this many conflicting bodies of one event are kept.
pub const CONFLICT_BODIES_MAX: u32 = 16;
/// At most this many effects can be planned for one event: the bits an effect's row number has for them.
pub const EFFECTS_PER_EVENT_MAX: usize = 1 << 16;
/// A list answers with at most this many rows.
pub const PAGE_MAX: u32 = 250;

/// One verified HTTP request, ready to be stored: what the inbox hands over.
#[derive(Clone, Debug)]
pub struct Arrival {
    /// The source it came in by; the scope of its keys.
    pub source: Arc<str>,
    /// When it was received.
    pub at: Time,
    /// How it proved who sent it.
    pub proof: Proof,
    /// The events it carries: one, or the elements of a batch. All are stored, or none.
    pub events: Vec<NewEvent>,
}

/// How a delivery proved who sent it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proof {
    /// The verification scheme, with a mark if it does not cover the body.
    pub scheme: Arc<str>,
    /// Which of the source's secrets matched.
    pub secret_index: Option<u8>,
    /// The time that the sender signed.
    pub signed_at: Option<Time>,
    /// The peer's address.
    pub remote: Option<Arc<str>>,
}

/// An event as the inbox derived it, before the store has said whether it is new.
#[derive(Clone, Debug)]
pub struct NewEvent {
    /// What happened, in the provider's words.
    pub event_type: Option<String>,
    /// Its key, and where that was found.
    pub key: String,
    /// The hash of scope and key, under which uniqueness is decided.
    pub key_hash: KeyHash,
    /// The rung of the ladder that gave the key.
    pub key_origin: KeyOrigin,
    /// The bytes as they came (a declared slice, in a batch).
    pub body: Bytes,
    /// The request's content type.
    pub content_type: Option<String>,
    /// The hash of `body`.
    pub body_hash: BodyHash,
    /// The hash of `body` without the fields that may vary between attempts.
    pub compare_hash: BodyHash,
    /// The provider's id for the event: evidence, even where it is not the key.
    pub provider_event_id: Option<String>,
    /// The business object it speaks of.
    pub object_id: Option<String>,
    /// The object that order is about.
    pub entity: Option<String>,
    /// The object's version.
    pub version: Option<String>,
    /// How long things are kept.
    pub keep: Keep,
    /// Why a person has to look at it, if so.
    pub review: Option<Review>,
    /// The effects it calls for.
    pub effects: Vec<NewEffect>,
}

/// How long the parts of an event are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Keep {
    /// The raw bytes, from when they came.
    pub payload: Span,
    /// The identity, from first sight.
    pub identity: Span,
    /// The identity, from last sight: the provider's retry window.
    pub retry_window: Span,
}

/// Why a person has to look at an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Review {
    /// A stable code (`hapax explain CODE`).
    pub code: String,
    /// A sentence.
    pub message: String,
}

/// An effect as planned, before the store has said whether it is new.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewEffect {
    /// Its name in the config.
    pub name: Arc<str>,
    /// Its key, unique per name.
    pub key: String,
    /// The hash of name and key.
    pub key_hash: KeyHash,
    /// What happens if it is repeated.
    pub repeat: Repeat,
    /// The unit of isolation it is sent in.
    pub lane: Arc<str>,
    /// Not before this time.
    pub not_before: Time,
    /// Attempts that its schedule allows, for the rescue of one whose worker never comes back.
    pub attempts_max: u32,
    /// Claimed from birth by the accepting node, with attempt 1 started: the fast path.
    pub born: Option<Born>,
}

/// How an effect is born claimed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Born {
    /// The node that will send it.
    pub node: Arc<str>,
    /// For how long.
    pub lease: Span,
}

/// A node asking for work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClaimAsk {
    /// Of this shard; see [`crate::Store::shards`].
    pub shard: u16,
    /// Who asks.
    pub node: Arc<str>,
    /// At most so many.
    pub limit: u32,
    /// For how long.
    pub lease: Span,
}

/// What a worker wants to do with the effect it holds. The store's clock says when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Move {
    /// Make an attempt durable, before a byte leaves (D1).
    Start,
    /// Keep it longer, from now.
    Extend(Span),
    /// Give an unstarted claim back, due again after so long.
    Release(Span),
    /// Say how the attempt ended, and when to try again if it has to be.
    Settle(Outcome, Next),
    /// Not carry it out.
    Skip(SkipReason),
}

/// What became of a move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moved {
    /// It counts.
    Done(Change),
    /// It changes nothing; a late settlement is kept as evidence all the same (C2).
    Refused(Rejected),
    /// There is no such effect.
    NoEffect,
}

/// One attempt that has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attempt {
    /// The generation it belongs to.
    pub generation: u32,
    /// Its number in the generation.
    pub number: u32,
    /// The fence under which it ran.
    pub fence: Fence,
    /// Who made it.
    pub node: Arc<str>,
    /// When it started.
    pub started_at: Time,
    /// When it ended.
    pub ended_at: Time,
    /// How it ended.
    pub outcome: Outcome,
    /// What its worker said after somebody else had taken over.
    pub late: Option<(Time, Outcome)>,
}

/// An effect with its attempts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EffectDetail {
    /// The effect.
    pub effect: Effect,
    /// Its ended attempts, oldest first.
    pub attempts: Vec<Attempt>,
}

/// What became of one event of an arrival.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Receipt {
    /// The event: the new one, or the one that was known.
    pub event: EventId,
    /// Whether it was new.
    pub sighting: Receipted,
    /// Does it wait for a person?
    pub needs_review: bool,
    /// Claims on effects that were born claimed, in plan order; `None` where the effect existed already.
    pub claims: Vec<Option<Claimed>>,
}

/// New, or seen before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Receipted {
    /// The first of its key.
    New,
    /// Seen before, with the same body.
    Duplicate,
    /// Seen before, with another body.
    Conflict,
}

/// A claim: the right to attempt one effect until its record's lease ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claimed {
    /// The effect, as claimed: its fence has to be shown with every move.
    pub effect: Effect,
}

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
}

/// An effect as it is read back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Effect {
    /// Its id.
    pub id: EffectId,
    /// The event that called for it first.
    pub event: EventId,
    /// Its name.
    pub name: Arc<str>,
    /// Its key.
    pub key: String,
    /// Its lane.
    pub lane: Arc<str>,
    /// All that decides what may be done with it.
    pub record: EffectRecord,
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

/// Which events to list; what is `None` does not narrow.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EventFilter {
    /// Of this source.
    pub source: Option<String>,
    /// Of this type.
    pub event_type: Option<String>,
    /// Standing there.
    pub status: Option<EventStatus>,
    /// With exactly this key.
    pub key: Option<String>,
    /// About this object.
    pub entity: Option<String>,
    /// Received at or after.
    pub since: Option<Time>,
    /// Received before.
    pub until: Option<Time>,
}

impl EventFilter {
    /// Does the event fit?
    pub fn fits(&self, event: &Event) -> bool {
        fn is<T: PartialEq + ?Sized>(wanted: Option<&T>, actual: Option<&T>) -> bool {
            wanted.is_none() || wanted == actual
        }
        is(self.source.as_deref(), Some(&*event.source))
            && is(self.event_type.as_deref(), event.event_type.as_deref())
            && is(self.status.as_ref(), Some(&event.status))
            && is(self.key.as_deref(), Some(&*event.key))
            && is(self.entity.as_deref(), event.entity.as_deref())
            && self.since.is_none_or(|since| event.received_at >= since)
            && self.until.is_none_or(|until| event.received_at < until)
    }
}

/// Which part of a list, newest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Page {
    /// At most so many rows; see [`PAGE_MAX`].
    pub limit: u32,
    /// Where to go on.
    pub from: PageFrom,
}

/// Where a page begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageFrom {
    /// At the newest.
    Newest,
    /// At the next older than this one.
    OlderThan(EventId),
    /// At the next newer than this one (the page is still given newest first).
    NewerThan(EventId),
}

/// A page of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed<T> {
    /// The rows, newest first.
    pub rows: Vec<T>,
    /// Where the next older page begins, if the list goes on.
    pub next: Option<EventId>,
}

/// What one step of reaping deleted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reaped {
    /// Raw bytes deleted.
    pub payloads: u32,
    /// Identities deleted, each with its event.
    pub identities: u32,
    /// Is there more to do right away?
    pub more: bool,
}

/// How full and how well a store is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StoreStats {
    /// Events, tombstones included.
    pub events: u64,
    /// Bytes on disk.
    pub bytes: u64,
    /// Keys found twice by the cross-check; anything but zero is a broken promise.
    pub keys_twice: u64,
}

//! What goes in: a verified request with its events and the effects they call for, and what became of it.

use std::sync::Arc;

use bytes::Bytes;
use hapax_ledger::effect::Repeat;
use hapax_ledger::event::KeyOrigin;
use hapax_ledger::id::EventId;
use hapax_ledger::key::{BodyHash, KeyHash};
use hapax_ledger::order::{PlannedOrder, ReviewWhy};
use hapax_ledger::time::{Span, Time};

use super::effect::Claimed;

/// At most this many effects can be planned for one event: the bits an effect's row number has for them.
pub const EFFECTS_PER_EVENT_MAX: usize = 1 << 16;

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
    /// What a repeat of it does if some of its effects were given up.
    pub on_failed: OnFailed,
    /// The effects it calls for.
    pub effects: Vec<NewEffect>,
}

/// What a repeat of an event whose effects were given up does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnFailed {
    /// It is linked, no more.
    #[default]
    Link,
    /// It also revives the dead effects. A conflicting body never does.
    Retry,
}

/// How long the parts of an event are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Keep {
    /// The raw bytes, from when they came.
    pub payload: Span,
    /// What happened to it, from when it came: deliveries, attempts and runs. No longer than this are the bytes kept either (I1).
    pub ledger: Span,
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

impl Review {
    /// What an event says whose effect's order asks for a person. No ids in the sentence: it is the same in every store.
    pub fn of_order(why: &ReviewWhy) -> Review {
        let (code, message) = match why {
            ReviewWhy::Ended { by } => (
                "H0220",
                format!(
                    "the object had ended ({by}) before this came; a person has to say whether it still counts"
                ),
            ),
            ReviewWhy::LaterRan { .. } => (
                "H0221",
                "a later one of the same object was already sent; this one would come out of order"
                    .to_owned(),
            ),
            ReviewWhy::Asked => (
                "H0222",
                "the review condition of its order holds, so a person decides".to_owned(),
            ),
        };
        Review {
            code: code.to_owned(),
            message,
        }
    }
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
    /// Due so long after it is stored, by the store's clock: by which it is claimed, and which need not be that of whoever plans it.
    pub wait: Span,
    /// Attempts that its schedule allows, for the rescue of one whose worker never comes back.
    pub attempts_max: u32,
    /// Places in this plan of the effects that must be done first.
    pub after: Vec<u16>,
    /// Its order, if it has one.
    pub order: Option<PlannedOrder>,
    /// Claimed from birth by the accepting node, with attempt 1 started: the fast path. Has no effect where something (`after`,
    /// order) may make the effect wait.
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
    /// Lanes in which a repeat revived something.
    pub revived: Vec<Arc<str>>,
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

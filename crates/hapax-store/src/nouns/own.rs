//! Effects that the user's own code carries out, and reports to the ledger.

use std::sync::Arc;

use bytes::Bytes;
use hapax_ledger::effect::Repeat;
use hapax_ledger::id::{EffectId, EventId};
use hapax_ledger::key::KeyHash;
use hapax_ledger::lease::Fence;
use hapax_ledger::time::{Span, Time};

use super::arrival::Keep;

/// The source of events that exist only because somebody's own code claimed an effect without naming an event. No source of a
/// config can be called so.
pub const OWN_SOURCE: &str = "~own";
/// What stands before the name of such an effect in its lane: no target of a config is called so, and so nobody sends it.
pub const OWN_LANE: &str = "~own:";

/// Attempts that such an effect has: whoever runs it decides how often to try. A number that every store can keep.
pub const OWN_ATTEMPTS_MAX: u32 = i32::MAX as u32;

/// Somebody's own code wants to carry out an effect. Claimed, it counts as started: its first byte may leave at once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnClaim {
    /// The event that calls for it. Without one, the effect gets an event of its own, of [`OWN_SOURCE`], whose key is the wire
    /// key of name and key.
    pub event: Option<EventId>,
    /// Its name.
    pub name: Arc<str>,
    /// Its key, unique per name.
    pub key: String,
    /// The hash of name and key.
    pub key_hash: KeyHash,
    /// What happens if it is repeated. Of one that is there already, the stricter class counts.
    pub repeat: Repeat,
    /// Who claims: a token's name.
    pub actor: Arc<str>,
    /// For how long.
    pub lease: Span,
    /// When, by the clock on the wall.
    pub at: Time,
    /// How long an event of its own is kept.
    pub keep: Keep,
}

/// What the ledger says to that.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OwnClaimed {
    /// Go ahead. Everything that is said about it has to show the fence.
    Claimed {
        /// The effect.
        effect: EffectId,
        /// The fence.
        fence: Fence,
    },
    /// It is done.
    Done {
        /// The effect.
        effect: EffectId,
        /// What was reported then: the excerpt of its last attempt.
        result: Option<Bytes>,
    },
    /// Somebody is at it.
    InFlight {
        /// The effect.
        effect: EffectId,
        /// Until then.
        until: Time,
    },
    /// Nobody can tell whether it was applied; a person has to resolve it.
    Uncertain {
        /// The effect.
        effect: EffectId,
    },
    /// It was given up or skipped: nobody may carry it out before a person has decided.
    Closed {
        /// The effect.
        effect: EffectId,
    },
    /// Hapax itself sends the effect of this name and key: nobody else may.
    NotYours {
        /// The effect.
        effect: EffectId,
    },
    /// There is no such event.
    NoEvent,
}

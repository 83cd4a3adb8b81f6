//! Keys of guarded requests.

use std::sync::Arc;

use bytes::Bytes;
use hapax_ledger::fingerprint::Fingerprint;
use hapax_ledger::guard::{GuardState, OnUnknown, Settlement};
use hapax_ledger::id::KeyId;
use hapax_ledger::key::KeyHash;
use hapax_ledger::lease::Fence;
use hapax_ledger::time::{Span, Time};

/// Runs that one step of the sweep gives up at most.
pub const KEYS_PER_STEP_MAX: usize = 256;

/// A request that arrives with a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyClaim {
    /// Which guard it came to.
    pub guard: Arc<str>,
    /// Who calls, as the guard tells callers apart. Never a secret: a guard that knows callers by a token shows its hash.
    pub principal: Arc<str>,
    /// The request's method.
    pub method: Arc<str>,
    /// The request's path, without its query.
    pub path: Arc<str>,
    /// The key, as its caller meant it.
    pub key: String,
    /// The hash of guard, principal, method, route and key: what is unique.
    pub key_hash: KeyHash,
    /// Of the request.
    pub fingerprint: Fingerprint,
    /// The route's rule for unknown outcomes.
    pub on_unknown: OnUnknown,
    /// How long the run may take before it has to be extended.
    pub lease: Span,
    /// How long an answer is kept.
    pub ttl: Span,
    /// How long an expired key is answered as expired instead of being run again.
    pub grace: Span,
    /// Which node runs it.
    pub node: Arc<str>,
    /// When, by the clock on the wall. A process says the same time of no two claims: with the node it names this one.
    pub at: Time,
    /// Is it asked for the first time?
    pub asking: Asking,
}

/// How a claim is asked for, or how it is said that a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asking {
    /// For the first time.
    First,
    /// Once more, since nobody knows whether the first time was heard ([`crate::StoreErrorKind::CommitUnknown`]). If it was, and
    /// the run that it began counts as running, that one is the answer. The claim may be seen before it is safe: whoever begins the run
    /// extends its lease first, which is not safe before the claim is. An ending that was heard is written once more as it stands:
    /// that is not safe before the first time is, and so it is safe when this is answered.
    Again,
}

/// What becomes of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeyClaimed {
    /// It runs. Everything that is said about the run has to show the fence.
    Run {
        /// The key.
        id: KeyId,
        /// The run's.
        fence: Fence,
        /// Did the key have a run before whose outcome is unknown?
        again: bool,
    },
    /// It gets the stored answer.
    Replay {
        /// The key.
        id: KeyId,
        /// What the guard had kept of it.
        answer: Bytes,
        /// When the key expires.
        expires_at: Time,
    },
    /// It was answered before, and the body was not kept.
    NotKept {
        /// The key.
        id: KeyId,
        /// What the guard had kept: status and headers. Nothing, if somebody resolved it as executed.
        answer: Option<Bytes>,
        /// When the key expires.
        expires_at: Time,
    },
    /// The first one is still running.
    InProgress {
        /// The key.
        id: KeyId,
        /// Until then at most, by the store's clock; and so long from now.
        until: Time,
        /// So long from now.
        remaining: Span,
    },
    /// What became of the first one is not known.
    OutcomeUnknown {
        /// The key.
        id: KeyId,
    },
    /// The key has expired, not long ago.
    Expired {
        /// The key.
        id: KeyId,
    },
    /// The key belongs to another request.
    Mismatch {
        /// The key.
        id: KeyId,
    },
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyEnding {
    /// What the ledger makes of it.
    pub settlement: Settlement,
    /// The answer's status, if there was one.
    pub status: Option<u16>,
    /// What a retry needs, sealed by the guard; `None` unless the settlement stores something.
    pub answer: Option<Bytes>,
    /// How long it is kept.
    pub ttl: Span,
    /// Why there is no answer, in a few words.
    pub error: Option<String>,
    /// When, by the clock on the wall.
    pub at: Time,
    /// Is it said for the first time?
    pub asking: Asking,
}

/// What a person or a probe found out about a key whose outcome is unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyResolution {
    /// It was carried out: it never runs again.
    Executed {
        /// How long the key stays taken.
        ttl: Span,
    },
    /// It was not: the key is free.
    NotExecuted,
}

/// A key, as operators see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyRecord {
    /// Its id.
    pub id: KeyId,
    /// Which guard it came to.
    pub guard: Arc<str>,
    /// Who called; where callers share their keys, whoever did so last.
    pub principal: Arc<str>,
    /// The latest run's method.
    pub method: Arc<str>,
    /// The latest run's path.
    pub path: Arc<str>,
    /// The key.
    pub key: String,
    /// Where it stands, as of now: what has run out counts as run out.
    pub state: GuardState,
    /// How often it ran.
    pub runs: u32,
    /// Of the latest run.
    pub fence: Fence,
    /// Who ran it last.
    pub node: Arc<str>,
    /// When the key was first seen, by the clock on the wall.
    pub first_at: Time,
    /// When the latest run began.
    pub started_at: Time,
    /// When it ended, or was resolved.
    pub ended_at: Option<Time>,
    /// The status of its answer.
    pub status: Option<u16>,
    /// Why there is none.
    pub error: Option<String>,
    /// From here on an answered key is not replayed. It is free when its grace is over, too, and is not shown from then on.
    pub expires_at: Time,
}

/// Which keys to list; what is `None` does not narrow.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeyFilter {
    /// Of this guard.
    pub guard: Option<String>,
    /// Standing there.
    pub state: Option<GuardState>,
    /// With exactly this key.
    pub key: Option<String>,
    /// Of this caller.
    pub principal: Option<String>,
}

impl KeyFilter {
    /// Does the key fit?
    pub fn fits(&self, record: &KeyRecord) -> bool {
        self.guard
            .as_deref()
            .is_none_or(|guard| guard == &*record.guard)
            && self.state.is_none_or(|state| state == record.state)
            && self.key.as_deref().is_none_or(|key| key == record.key)
            && self
                .principal
                .as_deref()
                .is_none_or(|principal| principal == &*record.principal)
    }
}

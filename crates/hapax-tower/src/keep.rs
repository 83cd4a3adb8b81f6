//! What the handler says about its answer, and what it may know about its run.

use std::sync::Arc;

use hapax_ledger::id::KeyId;
use hapax_ledger::lease::Fence;

/// What becomes of an answer. A handler puts it into the answer's extensions; without it, the guard's policy decides by the
/// status.
///
/// ```
/// use hapax_tower::Keep;
///
/// let mut answer = http::Response::new("try again at noon");
/// *answer.status_mut() = http::StatusCode::SERVICE_UNAVAILABLE;
/// // Nothing was charged, and this handler knows it: the next request with this key runs.
/// answer.extensions_mut().insert(Keep::Release);
/// ```
///
/// `Release` is a promise that nothing was done: a handler that breaks it lets a retry run twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Keep {
    /// It is the answer: every retry gets it, whatever its status.
    Store,
    /// The work provably did not happen: the key is free again.
    Release,
    /// Nobody knows what happened. The answer goes to this caller; retries are treated as the policy has it for unknown
    /// outcomes.
    Unknown,
}

/// Why a run ended as it did, for operators: they read it with the key, callers never do. A handler puts it into the answer's extensions,
/// mostly beside [`Keep::Unknown`] or [`Keep::Release`], where the status alone says little. Its first 200 bytes are kept.
///
/// ```
/// use hapax_tower::{Keep, Why};
///
/// let mut answer = http::Response::new("try again later");
/// *answer.status_mut() = http::StatusCode::BAD_GATEWAY;
/// answer.extensions_mut().insert(Keep::Unknown);
/// answer.extensions_mut().insert(Why("the bank closed the connection without an answer".to_owned()));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Why(pub String);

/// Where an answer's body stops, nobody can tell its end from a break. A service that passes on what it hears from elsewhere puts this into the
/// answer's extensions: where the answer would be stored, it is kept that the work was done, and not this body, which may be half of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MayBeCut;

/// A guarded run, in the extensions of the request that the inner service gets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GuardedRun {
    /// The key's id: what operators know it by.
    pub id: KeyId,
    /// The run's.
    pub fence: Fence,
    /// Had this key a run before whose outcome nobody knows? Only guards that say `keyed` run again.
    pub again: bool,
    /// The key, as its caller meant it: without quotes.
    pub key: Arc<str>,
    /// Who calls.
    pub principal: Arc<str>,
}

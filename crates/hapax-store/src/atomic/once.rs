//! Events that are worked on once, however often they come.

use std::sync::Arc;

use hapax_ledger::fingerprint::{Fingerprint, RequestParts};
use hapax_ledger::key::{KeyHash, KeyKind};
use hapax_ledger::time::Span;

use super::claim::{Claim, Claimed, LEASE_DEFAULT, claim};
use super::error::AtomicError;
use super::run::finish;
use super::tx::AtomicTx;

/// How long an event is remembered: longer than any sender repeats one by itself, and for most redeliveries by hand.
pub const REMEMBER_DEFAULT: Span = Span::from_hours(30 * 24);

/// An event by its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// Who sent it: ids are unique in here.
    pub source: Arc<str>,
    /// Its id, the same whenever it is sent again.
    pub id: Arc<str>,
    /// How long it is remembered. One that comes later is new.
    pub remember: Span,
}

impl Event {
    /// An event that is remembered for 30 days.
    pub fn new(source: impl Into<Arc<str>>, id: impl Into<Arc<str>>) -> Event {
        Event {
            source: source.into(),
            id: id.into(),
            remember: REMEMBER_DEFAULT,
        }
    }

    fn claim(&self) -> Claim {
        Claim {
            key_hash: KeyHash::of(KeyKind::Identity, &self.source, &self.id),
            scope: self.source.clone(),
            key: self.id.clone(),
            fingerprint: any_body(),
            lease: LEASE_DEFAULT,
            ttl: self.remember,
            grace: Span::ZERO,
        }
    }
}

/// An event is known by its id alone: senders may write its body anew.
fn any_body() -> Fingerprint {
    Fingerprint::of(&RequestParts {
        method: "",
        path: "",
        query: None,
        content_type: None,
        body: b"",
    })
}

/// What becomes of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "an event that was seen must not be worked on"]
pub enum Once {
    /// It is new: do the work in this transaction, and commit. From then on it is done.
    Fresh,
    /// The work was done before.
    Seen,
    /// Somebody is working on it now; it should come again.
    Busy,
}

/// Is this event new? It is written down in this transaction; the work follows in the same one, and both commit together. Work that fails is
/// rolled back, and the event is as new as before.
///
/// Not a function that is given the work: such a one could not be called where futures have to be `Send`.
///
/// # Errors
/// If the database refuses; the transaction is to be rolled back.
pub async fn once<T: AtomicTx>(tx: &mut T, event: &Event) -> Result<Once, AtomicError> {
    match claim(tx, &event.claim()).await? {
        Claimed::Fresh(run) | Claimed::Resume(run, _) => {
            finish(tx, run, None).await?;
            Ok(Once::Fresh)
        }
        Claimed::InProgress { .. } => Ok(Once::Busy),
        Claimed::Replay { .. } | Claimed::NotKept { .. } | Claimed::Mismatch | Claimed::Expired => {
            Ok(Once::Seen)
        }
    }
}

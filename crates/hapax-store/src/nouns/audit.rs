//! Who decided what: the audit log.

use std::sync::Arc;

use hapax_ledger::audit::{GENESIS, Link, chain};
use hapax_ledger::id::EventId;
use hapax_ledger::key::KeyHash;
use hapax_ledger::time::Time;

/// Under whose name something is done, and why. What it does and its audit record are one transaction (J1).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Authority {
    /// Who decides: a token's name.
    pub actor: Arc<str>,
    /// Why, in their words.
    pub reason: String,
    /// When, by the clock on the wall.
    pub at: Time,
    /// The request's `Idempotency-Key`, if it had one: the same request is carried out once.
    pub request: Option<RequestKey>,
}

/// An `Idempotency-Key` of an API request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestKey {
    /// The hash of who asks and their key.
    pub key: KeyHash,
    /// The hash of what is asked: route and body.
    pub fingerprint: [u8; 32],
}

impl RequestKey {
    /// What an earlier request with the same key means for this one: it had this fingerprint, and was answered so.
    pub(crate) fn before(&self, fingerprint: [u8; 32], answer: String) -> Before {
        match self.fingerprint == fingerprint {
            true => Before::Same(answer),
            false => Before::Other,
        }
    }
}

/// What an earlier request with the same key means for this one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Before {
    /// It was the same request; this was said then, as JSON.
    Same(String),
    /// It was another request.
    Other,
}

/// A record of the audit log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditRecord {
    /// Its number; the first is 1, and none is missing.
    pub seq: u64,
    /// When it was decided.
    pub at: Time,
    /// Who decided.
    pub actor: Arc<str>,
    /// What, such as `event.retry`.
    pub action: String,
    /// About what: an id or a name.
    pub subject: String,
    /// Why.
    pub reason: String,
    /// What was said to whoever decided, as JSON.
    pub detail: String,
    /// The hash of the record before it.
    pub previous: [u8; 32],
    /// Its own hash.
    pub hash: [u8; 32],
}

impl AuditRecord {
    /// The record that follows the one with this number and hash, or the first.
    pub(crate) fn following(
        last: Option<(u64, [u8; 32])>,
        by: &Authority,
        action: &str,
        subject: String,
        detail: String,
    ) -> AuditRecord {
        let (seq, previous) = last.unwrap_or((0, GENESIS));
        let mut record = AuditRecord {
            seq: seq + 1,
            at: by.at,
            actor: by.actor.clone(),
            action: action.to_owned(),
            subject,
            reason: by.reason.clone(),
            detail,
            previous,
            hash: GENESIS,
        };
        record.hash = record.expected_hash();
        record
    }

    /// Is it what it was when it was written, as far as its own hash tells?
    pub fn is_whole(&self) -> bool {
        self.expected_hash() == self.hash
    }

    fn expected_hash(&self) -> [u8; 32] {
        let link = Link {
            seq: self.seq,
            at: self.at,
            actor: &self.actor,
            action: &self.action,
            subject: &self.subject,
            reason: &self.reason,
            detail: &self.detail,
        };
        chain(self.previous, &link)
    }
}

/// Which records to list; what is `None` does not narrow.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AuditFilter {
    /// Decided by them.
    pub actor: Option<String>,
    /// Given as commands about this event.
    pub event: Option<EventId>,
}

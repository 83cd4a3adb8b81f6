//! The chain of the audit log: each record's hash covers the one before it, so that nothing can be changed or left out in the
//! middle without all later hashes being wrong.

use crate::key::PartsHash;
use crate::time::Time;

/// What the first record follows.
pub const GENESIS: [u8; 32] = [0; 32];

/// One record, as far as its hash covers it: all of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link<'a> {
    /// Its number; the first is 1, and none is missing.
    pub seq: u64,
    /// When it was decided.
    pub at: Time,
    /// Who decided.
    pub actor: &'a str,
    /// What was decided.
    pub action: &'a str,
    /// About what.
    pub subject: &'a str,
    /// Why.
    pub reason: &'a str,
    /// What else is known, as JSON.
    pub detail: &'a str,
}

/// The hash of a record that follows the one with this hash.
pub fn chain(previous: [u8; 32], link: &Link<'_>) -> [u8; 32] {
    PartsHash::new("audit")
        .part(&previous)
        .part(&link.seq.to_be_bytes())
        .part(&link.at.micros().to_be_bytes())
        .part(link.actor.as_bytes())
        .part(link.action.as_bytes())
        .part(link.subject.as_bytes())
        .part(link.reason.as_bytes())
        .part(link.detail.as_bytes())
        .finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINK: Link<'static> = Link {
        seq: 1,
        at: Time::from_secs(1),
        actor: "ada",
        action: "event.retry",
        subject: "evt_1",
        reason: "the target is back",
        detail: "{}",
    };

    /// J1: whatever is changed changes the hash, and with it all that follow.
    #[test]
    fn every_part_of_a_record_is_covered() {
        let hash = chain(GENESIS, &LINK);
        let changed = [
            Link { seq: 2, ..LINK },
            Link {
                at: Time::from_secs(2),
                ..LINK
            },
            Link {
                actor: "bob",
                ..LINK
            },
            Link {
                action: "event.replay",
                ..LINK
            },
            Link {
                subject: "evt_2",
                ..LINK
            },
            Link { reason: "", ..LINK },
            Link {
                detail: "[]",
                ..LINK
            },
            // Moved from one part to the next.
            Link {
                actor: "adae",
                action: "vent.retry",
                ..LINK
            },
        ];
        for link in changed {
            assert_ne!(chain(GENESIS, &link), hash, "{link:?}");
        }
        assert_ne!(chain(hash, &LINK), hash);
        assert_eq!(chain(GENESIS, &LINK), hash);
    }
}

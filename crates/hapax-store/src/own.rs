//! Effects that the user's own code carries out: what is planned when one is claimed for the first time, and what a claim does. Pure:
//! every store does the same, in its transaction.

use hapax_ledger::claim::{ClaimVerdict, claim_for_handler};
use hapax_ledger::effect::{EffectRecord, EffectState};
use hapax_ledger::event::KeyOrigin;
use hapax_ledger::key::{BodyHash, KeyHash, KeyKind, wire_key};
use hapax_ledger::time::{Span, Time};

use bytes::Bytes;

use crate::nouns::{
    Arrival, NewEffect, NewEvent, OWN_ATTEMPTS_MAX, OWN_LANE, OWN_SOURCE, OnFailed, OwnClaim, Proof,
};

/// How the event of such an effect proves where it came from: somebody with a token claimed it.
const OWN_SCHEME: &str = "own";

/// The effect as it is before its first claim.
pub(crate) fn planned(claim: &OwnClaim) -> NewEffect {
    NewEffect {
        name: claim.name.clone(),
        key: claim.key.clone(),
        key_hash: claim.key_hash,
        repeat: claim.repeat,
        lane: format!("{OWN_LANE}{}", claim.name).into(),
        wait: Span::ZERO,
        attempts_max: OWN_ATTEMPTS_MAX,
        after: Vec::new(),
        order: None,
        born: None,
    }
}

/// The event that an effect gets which no event calls for. It has no bytes, and nobody misses them.
pub(crate) fn arrival(claim: &OwnClaim) -> Arrival {
    let key = wire_key(&claim.name, &claim.key, 1);
    let event = NewEvent {
        event_type: None,
        key_hash: KeyHash::of(KeyKind::Identity, OWN_SOURCE, &key),
        key,
        key_origin: KeyOrigin::Business,
        body: Bytes::new(),
        content_type: None,
        body_hash: BodyHash::of(b""),
        compare_hash: BodyHash::of(b""),
        provider_event_id: None,
        object_id: None,
        entity: None,
        version: None,
        keep: claim.keep,
        review: None,
        on_failed: OnFailed::Link,
        effects: vec![planned(claim)],
    };
    Arrival {
        source: OWN_SOURCE.into(),
        at: claim.at,
        proof: Proof {
            scheme: OWN_SCHEME.into(),
            secret_index: None,
            signed_at: None,
            remote: None,
        },
        events: vec![event],
    }
}

/// Does the user's own code carry out what is sent in this lane?
pub(crate) fn is_own(lane: &str) -> bool {
    lane.starts_with(OWN_LANE)
}

/// Claims an effect, after the rescue if its lease had run out. Whoever runs it decides when to try again, so what is pending is
/// due; and the stricter of the frozen and the claimed class counts.
pub(crate) fn claim(
    record: &EffectRecord,
    claim: &OwnClaim,
    now: Time,
    epoch: u32,
) -> (EffectRecord, ClaimVerdict) {
    let current = match record.state {
        EffectState::Pending => EffectRecord {
            next_attempt_at: record.next_attempt_at.min(now),
            ..record.under(claim.repeat)
        },
        EffectState::Claimed
        | EffectState::Done
        | EffectState::Uncertain
        | EffectState::Dead
        | EffectState::Skipped => *record,
    };
    claim_for_handler(&current, now, epoch, claim.lease, OWN_ATTEMPTS_MAX)
}

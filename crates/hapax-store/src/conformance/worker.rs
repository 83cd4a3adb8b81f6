//! Effects to check stores with, and a worker that carries them out.

use hapax_ledger::effect::Repeat;
use hapax_ledger::key::{KeyHash, KeyKind};
use hapax_ledger::outcome::Outcome;
use hapax_ledger::retry::Next;
use hapax_ledger::time::{Span, Time};

use super::sample::{Subject, event};
use crate::nouns::{ClaimAsk, Effect, Move, Moved, NewEffect, NewEvent};

/// How long a claim is held.
pub const LEASE: Span = Span::from_secs(30);
/// The receiver has it.
pub const OK: Outcome = Outcome::Answered {
    status: 200,
    retry_after: None,
};
/// The end of an effect that went well.
pub const SETTLED: Move = Move::Settle(OK, Next::Exhausted);

/// An effect that is due by every clock.
pub fn planned(name: &str, key: &str, repeat: Repeat) -> NewEffect {
    NewEffect {
        name: name.into(),
        key: key.into(),
        key_hash: KeyHash::of(KeyKind::Effect, name, key),
        repeat,
        lane: "lane".into(),
        not_before: Time::from_secs(0),
        attempts_max: 7,
        born: None,
    }
}

/// An event of source `a` that calls for these effects.
pub fn calling_for(key: &str, effects: Vec<NewEffect>) -> NewEvent {
    NewEvent {
        effects,
        ..event("a", key, "{}")
    }
}

/// Claims in every shard, up to a limit in each.
pub async fn claim_as(store: &Subject, node: &str, limit: u32, lease: Span) -> Vec<Effect> {
    let mut effects = Vec::new();
    for shard in 0..store.shards() {
        let ask = ClaimAsk {
            shard,
            node: node.into(),
            limit,
            lease,
        };
        let claimed = store.claim(ask).await.expect("the store claims");
        effects.extend(claimed.into_iter().map(|claimed| claimed.effect));
    }
    effects
}

/// Moves an effect with the fence of its claim.
pub async fn advance(store: &Subject, effect: &Effect, what: Move) -> Moved {
    store
        .advance(effect.id, effect.record.fence, what)
        .await
        .expect("the store moves")
}

/// Moves an effect that has to be ours.
pub async fn done(store: &Subject, effect: &Effect, what: Move) {
    let moved = advance(store, effect, what).await;
    assert!(matches!(moved, Moved::Done(_)), "{what:?}: {moved:?}");
}

/// Rescues in every shard; how many were freed.
pub async fn rescue(store: &Subject) -> u32 {
    let mut freed = 0;
    for shard in 0..store.shards() {
        freed += store.rescue(shard).await.expect("the store rescues");
    }
    freed
}

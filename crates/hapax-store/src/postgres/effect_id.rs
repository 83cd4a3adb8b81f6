//! Where the rows of an effect are, told by its id alone.
//!
//! An effect lives in two shards. What never changes is in the shard of its key, where uniqueness is decided; what a worker moves
//! is in the shard of its lane, which one node looks after. The twelve bits that an id has for a shard hold both, six each, and
//! one bit of the rest says whether the effect has an order: whoever moves one that has none need not ask for its chain.

use hapax_ledger::id::{EffectId, RawId};
use hapax_ledger::time::Time;

use super::{Entropy, SHARDS};
use crate::nouns::{NewEffect, lane_shard};

/// Bits for either shard.
const SHARD_BITS: u16 = 6;
const _: () = assert!(SHARDS == 1 << SHARD_BITS);
/// The highest of the row's 62 bits.
const ORDERED: u64 = 1 << 61;

/// An id that was never given before.
pub(super) fn new_effect_id(at: Time, new: &NewEffect, entropy: &Entropy) -> EffectId {
    let key = new.key_hash.shard(SHARDS);
    let lane = lane_shard(&new.lane, SHARDS);
    let row = match new.order {
        Some(_) => entropy() | ORDERED,
        None => entropy() & !ORDERED,
    };
    EffectId(RawId::new(at, key << SHARD_BITS | lane, row))
}

/// The shard of its key: of `effect`, `attempt` and `snapshot`.
pub(super) fn key_shard(id: EffectId) -> i16 {
    (id.0.shard() >> SHARD_BITS) as i16
}

/// The shard of its lane: of `queue`.
pub(super) fn queue_shard(id: EffectId) -> i16 {
    (id.0.shard() & (SHARDS - 1)) as i16
}

/// Does it have an order, and so a chain?
pub(super) fn is_ordered(id: EffectId) -> bool {
    id.0.row() & ORDERED != 0
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use hapax_ledger::effect::Repeat;
    use hapax_ledger::key::{KeyHash, KeyKind};
    use hapax_ledger::order::{LifeStep, PlannedOrder};
    use hapax_ledger::time::Span;

    use super::*;

    fn effect(n: usize) -> NewEffect {
        let key = n.to_string();
        NewEffect {
            name: "e".into(),
            key_hash: KeyHash::of(KeyKind::Effect, "e", &key),
            key,
            repeat: Repeat::Keyed,
            lane: format!("lane{}", n * 7).into(),
            wait: Span::ZERO,
            attempts_max: 7,
            after: Vec::new(),
            order: None,
            born: None,
        }
    }

    #[test]
    fn both_shards_and_the_order_come_back_out() {
        let all_ones: Entropy = Arc::new(|| u64::MAX);
        let order = PlannedOrder {
            entity: "x".into(),
            serial: true,
            version: None,
            life_step: LifeStep::Ordinary,
            snapshot: false,
            review: false,
        };
        for n in 0..200 {
            let new = effect(n);
            let id = new_effect_id(Time::from_secs(9), &new, &all_ones);
            assert_eq!(key_shard(id), new.key_hash.shard(SHARDS) as i16);
            assert_eq!(queue_shard(id), lane_shard(&new.lane, SHARDS) as i16);
            assert!(!is_ordered(id));
            let ordered = NewEffect {
                order: Some(order.clone()),
                ..new
            };
            let id = new_effect_id(Time::from_secs(9), &ordered, &all_ones);
            assert!(is_ordered(id));
            assert_eq!(key_shard(id), ordered.key_hash.shard(SHARDS) as i16);
        }
    }
}

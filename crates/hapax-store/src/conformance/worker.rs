//! Effects to check stores with, and a worker that carries them out.

use std::sync::Arc;

use hapax_ledger::effect::Repeat;
use hapax_ledger::id::EffectId;
use hapax_ledger::key::{KeyHash, KeyKind};
use hapax_ledger::order::{LifeStep, PlannedOrder};
use hapax_ledger::outcome::Outcome;
use hapax_ledger::retry::Next;
use hapax_ledger::time::Span;
use hapax_ledger::transition::{Resolution, Resolver};

use super::sample::{Subject, accept_one, at, event};
use crate::nouns::{
    Advanced, ClaimAsk, Claimed, Effect, EffectDetail, LANES_PER_LOOK_MAX, LaneDue, LaneRoom, Move,
    Moved, NewEffect, NewEvent, Receipt, Rescued, Said, Settlement, lane_shard,
};

/// How long a claim is held.
pub const LEASE: Span = Span::from_secs(30);
/// The receiver has it.
pub const OK: Outcome = Outcome::Answered {
    status: 200,
    retry_after: None,
};
/// The receiver failed, and nobody knows how far it had come.
pub const BROKEN: Outcome = Outcome::Answered {
    status: 500,
    retry_after: None,
};
/// The beginning of an attempt that takes nothing along.
pub const START: Move = Move::Start(None);
/// The end of an effect that went well.
pub const SETTLED: Move = ended(OK, Next::Exhausted);
/// The end of an effect that is given up.
pub const GIVEN_UP: Move = ended(BROKEN, Next::Exhausted);

/// The end of an attempt about which there is nothing more to say.
pub const fn ended(outcome: Outcome, next: Next) -> Move {
    Move::Settle(Settlement {
        outcome,
        next,
        said: Said {
            excerpt: None,
            body_bytes: None,
            error: None,
        },
    })
}

/// An effect that is due at once.
pub fn planned(name: &str, key: &str, repeat: Repeat) -> NewEffect {
    NewEffect {
        name: name.into(),
        key: key.into(),
        key_hash: KeyHash::of(KeyKind::Effect, name, key),
        repeat,
        lane: "lane".into(),
        wait: Span::ZERO,
        attempts_max: 7,
        after: Vec::new(),
        order: None,
        born: None,
    }
}

/// The order of an effect that is sent one at a time for its entity.
pub fn serial(entity: &str) -> PlannedOrder {
    PlannedOrder {
        entity: entity.into(),
        serial: true,
        version: None,
        life_step: LifeStep::Ordinary,
        snapshot: false,
        review: false,
    }
}

/// An event of source `a` that calls for these effects.
pub fn calling_for(key: &str, effects: Vec<NewEffect>) -> NewEvent {
    NewEvent {
        effects,
        ..event("a", key, "{}")
    }
}

/// Accepts an event that calls for these effects.
pub async fn accept_effects(store: &Subject, key: &str, effects: Vec<NewEffect>) -> Receipt {
    accept_one(store, "a", at(0), calling_for(key, effects)).await
}

/// All lanes that have something claimable, now or later, by name: of every shard, look by look.
pub async fn due(store: &Subject) -> Vec<LaneDue> {
    let mut lanes = Vec::new();
    for shard in 0..store.shards() {
        let mut after: Option<Arc<str>> = None;
        loop {
            let look = store.due(shard, after.as_deref()).await;
            let look = look.expect("the store looks");
            after = look.last().map(|last| last.lane.clone());
            let full = look.len() == LANES_PER_LOOK_MAX as usize;
            lanes.extend(look);
            if !full {
                break;
            }
        }
    }
    lanes.sort_by(|one, other| one.lane.cmp(&other.lane));
    lanes
}

/// Claims from these lanes, in whichever shard each is.
pub async fn claim_lanes(
    store: &Subject,
    node: &str,
    lanes: &[(&str, u32)],
    lease: Span,
) -> Vec<Claimed> {
    let mut claims = Vec::new();
    for shard in 0..store.shards() {
        let here = lanes
            .iter()
            .filter(|(lane, _)| lane_shard(lane, store.shards()) == shard);
        let lanes: Vec<LaneRoom> = here
            .map(|(lane, room)| LaneRoom {
                lane: (*lane).into(),
                room: *room,
            })
            .collect();
        if lanes.is_empty() {
            continue;
        }
        let ask = ClaimAsk {
            shard,
            node: node.into(),
            lease,
            lanes,
        };
        claims.extend(store.claim(ask).await.expect("the store claims").claimed);
    }
    claims
}

/// Claims from every lane, up to a limit in each.
pub async fn claim_as(store: &Subject, node: &str, limit: u32, lease: Span) -> Vec<Effect> {
    let lanes = due(store).await;
    let lanes: Vec<(&str, u32)> = lanes.iter().map(|due| (&*due.lane, limit)).collect();
    let claims = claim_lanes(store, node, &lanes, lease).await;
    claims.into_iter().map(|claimed| claimed.effect).collect()
}

/// Claims all that is due.
pub async fn claim(store: &Subject) -> Vec<Effect> {
    claim_as(store, "node", 1_000, LEASE).await
}

/// Claims the one effect that is due.
pub async fn claim_one(store: &Subject) -> Effect {
    let [effect] = claim(store).await.try_into().expect("one effect is due");
    effect
}

/// Claims the one effect that is due, and starts it.
pub async fn start_one(store: &Subject) -> Effect {
    let effect = claim_one(store).await;
    done(store, &effect, START).await;
    effect
}

/// Moves an effect with the fence of its claim; what became of it, and what it set free.
pub async fn advanced(store: &Subject, effect: &Effect, what: Move) -> Advanced {
    store
        .advance(effect.id, effect.record.fence, what)
        .await
        .expect("the store moves")
}

/// Moves an effect with the fence of its claim.
pub async fn advance(store: &Subject, effect: &Effect, what: Move) -> Moved {
    advanced(store, effect, what).await.moved
}

/// Moves an effect that has to be ours; the lanes that it set free, by name.
pub async fn done(store: &Subject, effect: &Effect, what: Move) -> Vec<String> {
    let said = format!("{what:?}");
    let Advanced { moved, opened } = advanced(store, effect, what).await;
    assert!(matches!(moved, Moved::Done(_)), "{said}: {moved:?}");
    names(opened)
}

/// Settles what is uncertain.
pub async fn resolve(
    store: &Subject,
    effect: EffectId,
    resolution: Resolution,
    by: Resolver,
) -> Advanced {
    let resolved = store.resolve(effect, resolution, by).await;
    resolved.expect("the store resolves")
}

/// Lanes by name: in which order a store gives them is its own affair.
pub fn names(lanes: Vec<Arc<str>>) -> Vec<String> {
    let mut names: Vec<String> = lanes.iter().map(ToString::to_string).collect();
    names.sort_unstable();
    names
}

/// Rescues in every shard.
pub async fn rescued(store: &Subject) -> Rescued {
    let mut all = Rescued::default();
    loop {
        let shards = (0..store.shards()).collect();
        let some = store.rescue(shards).await.expect("the store rescues");
        if some.effects.is_empty() {
            return all;
        }
        all.effects.extend(some.effects);
        all.opened.extend(some.opened);
    }
}

/// Rescues in every shard; how many were freed.
pub async fn rescue(store: &Subject) -> u32 {
    rescued(store).await.effects.len() as u32
}

/// Reads an effect that has to be there.
pub async fn effect_detail(store: &Subject, effect: &Effect) -> EffectDetail {
    let read = store.effect(effect.id).await.expect("the store reads");
    read.expect("the effect is there")
}

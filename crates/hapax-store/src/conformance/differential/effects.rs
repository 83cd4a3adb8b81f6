//! The commands that are about effects: planned with events, claimed, moved with right and with stale fences, rescued.
//!
//! Few names and keys, so that events share effects; short leases and a clock that only goes forward, as a store's must.

use std::collections::HashMap;

use hapax_ledger::effect::{Repeat, SkipReason};
use hapax_ledger::id::{EffectId, EventId};
use hapax_ledger::lease::Fence;
use hapax_ledger::outcome::{Lost, NotSent, Outcome};
use hapax_ledger::retry::Next;
use hapax_ledger::time::{Span, Time};
use proptest::prelude::*;

use super::super::sample::{Dial, Subject, at};
use super::super::worker::{claim_as, planned, rescue};
use super::Pair;
use crate::nouns::{
    Born, Claimed, Effect, EffectDetail, EventDetail, Move, NewEffect, Receipt, Receipted,
};

const NAMES: [&str; 2] = ["email", "ledger"];
const KEYS: [&str; 3] = ["1", "2", "3"];
const REPEATS: [Repeat; 3] = [Repeat::Converges, Repeat::Keyed, Repeat::Once];
const LEASE: Span = Span::from_secs(10);
/// A claim takes all that is due: which of them come first is only the same within a shard.
const EVERYTHING: u32 = 1_000;

/// An effect in a few numbers.
#[derive(Clone, Debug)]
pub(super) struct EffectSketch {
    name: usize,
    key: usize,
    repeat: usize,
    born: bool,
    delay: i64,
}

/// One thing to do to the effects of both.
#[derive(Clone, Debug)]
pub(super) enum EffectCommand {
    Wait {
        seconds: i64,
    },
    Claim {
        node: usize,
    },
    /// By the holder of one of the latest claims, whether or not it still holds.
    Move {
        latest: usize,
        what: Move,
    },
    Rescue,
    Look {
        nth: usize,
    },
}

pub(super) fn effect_sketch() -> impl Strategy<Value = EffectSketch> {
    let delay = prop_oneof![3 => Just(0), 1 => Just(5)];
    (
        0..NAMES.len(),
        0..KEYS.len(),
        0..REPEATS.len(),
        any::<bool>(),
        delay,
    )
        .prop_map(|(name, key, repeat, born, delay)| EffectSketch {
            name,
            key,
            repeat,
            born,
            delay,
        })
}

fn outcome() -> impl Strategy<Value = Outcome> {
    let answered = |status| Outcome::Answered {
        status,
        retry_after: None,
    };
    prop_oneof![
        Just(answered(200)),
        Just(answered(500)),
        Just(answered(429)),
        Just(Outcome::NotSent { why: NotSent::Dns }),
        Just(Outcome::Lost { why: Lost::Reset }),
    ]
}

fn any_move() -> impl Strategy<Value = Move> {
    let next = prop_oneof![
        Just(Next::At(Span::ZERO)),
        Just(Next::At(Span::from_secs(5))),
        Just(Next::Exhausted),
    ];
    prop_oneof![
        4 => Just(Move::Start),
        6 => (outcome(), next).prop_map(|(outcome, next)| Move::Settle(outcome, next)),
        1 => Just(Move::Extend(LEASE)),
        1 => Just(Move::Release(Span::from_secs(3))),
        1 => Just(Move::Skip(SkipReason::Stale)),
        1 => Just(Move::Skip(SkipReason::EndpointDeleted)),
    ]
}

pub(super) fn effect_command() -> impl Strategy<Value = EffectCommand> {
    prop_oneof![
        2 => (1..15i64).prop_map(|seconds| EffectCommand::Wait { seconds }),
        3 => (0..2usize).prop_map(|node| EffectCommand::Claim { node }),
        8 => (0..6usize, any_move()).prop_map(|(latest, what)| EffectCommand::Move { latest, what }),
        1 => Just(EffectCommand::Rescue),
        1 => (0..1_000usize).prop_map(|nth| EffectCommand::Look { nth }),
    ]
}

pub(super) fn new_effect(sketch: &EffectSketch, now: Time) -> NewEffect {
    NewEffect {
        not_before: now + Span::from_secs(sketch.delay),
        attempts_max: 2,
        born: sketch.born.then(|| Born {
            node: "birthplace".into(),
            lease: LEASE,
        }),
        ..planned(NAMES[sketch.name], KEYS[sketch.key], REPEATS[sketch.repeat])
    }
}

/// What is known of effects on both sides.
pub(super) struct Known {
    dial: Dial,
    pub(super) now: Time,
    names: HashMap<EffectId, EffectId>,
    given: Vec<(EffectId, EffectId)>,
    /// Every claim there was, oldest first, with the store's id and the model's.
    claims: Vec<(EffectId, EffectId, Fence)>,
}

impl Known {
    /// Nothing yet; the clock begins at the beginning.
    pub(super) fn new(dial: Dial) -> Known {
        dial.set(at(0));
        Known {
            dial,
            now: at(0),
            names: HashMap::new(),
            given: Vec::new(),
            claims: Vec::new(),
        }
    }

    fn id(&self, id: EffectId) -> EffectId {
        *self
            .names
            .get(&id)
            .expect("the store names an effect that no event has shown")
    }
}

impl Pair {
    pub(super) async fn run_effects(&mut self, command: &EffectCommand) {
        match command {
            EffectCommand::Wait { seconds } => {
                self.effects.now = self.effects.now + Span::from_secs(*seconds);
                self.effects.dial.set(self.effects.now);
            }
            EffectCommand::Claim { node } => self.claim(["one", "two"][*node]).await,
            EffectCommand::Move { latest, what } => self.advance(*latest, *what).await,
            EffectCommand::Rescue => {
                let (theirs, ours) = (rescue(&self.store).await, rescue(&self.model).await);
                assert_eq!(theirs, ours, "rescued");
            }
            EffectCommand::Look { nth } => self.look_at_effect(*nth).await,
        }
    }

    /// The effect as the model would name it.
    pub(super) fn named_effect(&self, effect: Effect) -> Effect {
        Effect {
            id: self.effects.id(effect.id),
            event: self.named(effect.event),
            ..effect
        }
    }

    /// The event's own effects as they are, then those it shares in the order of the model's ids: which of those that were
    /// planned in one millisecond comes first is the store's choice.
    pub(super) fn named_effects(&self, event: EventId, effects: Vec<Effect>) -> Vec<Effect> {
        let (mut own, mut shared): (Vec<Effect>, Vec<Effect>) = effects
            .into_iter()
            .map(|effect| self.named_effect(effect))
            .partition(|effect| effect.event == event);
        shared.sort_by_key(|effect| effect.id);
        own.append(&mut shared);
        own
    }

    /// The receipt as the model would give it. A new event shows its own effects in plan order: that is how they are named.
    pub(super) async fn named_receipt(&mut self, theirs: Receipt, ours: &Receipt) -> Receipt {
        if theirs.sighting == Receipted::New {
            let own = async |store: &Subject, event: EventId| -> Vec<EffectId> {
                let detail: Option<EventDetail> =
                    store.event(event).await.expect("the store reads");
                let effects = detail.into_iter().flat_map(|detail| detail.effects);
                effects
                    .filter(|effect| effect.event == event)
                    .map(|effect| effect.id)
                    .collect()
            };
            let (new, known) = (
                own(&self.store, theirs.event).await,
                own(&self.model, ours.event).await,
            );
            assert_eq!(new.len(), known.len(), "effects planned");
            for pair in new.into_iter().zip(known) {
                self.effects.names.insert(pair.0, pair.1);
                self.effects.given.push(pair);
            }
        }
        for claimed in theirs.claims.iter().flatten() {
            self.remember(&claimed.effect);
        }
        let named = |claimed: Claimed| Claimed {
            effect: self.named_effect(claimed.effect),
        };
        Receipt {
            event: self.named(theirs.event),
            claims: theirs
                .claims
                .into_iter()
                .map(|claimed| claimed.map(named))
                .collect(),
            ..theirs
        }
    }

    fn remember(&mut self, claimed: &Effect) {
        let ours = self.effects.id(claimed.id);
        self.effects
            .claims
            .push((claimed.id, ours, claimed.record.fence));
    }

    async fn claim(&mut self, node: &str) {
        let mut theirs = Vec::new();
        for effect in claim_as(&self.store, node, EVERYTHING, LEASE).await {
            self.remember(&effect);
            theirs.push(self.named_effect(effect));
        }
        let mut ours = claim_as(&self.model, node, EVERYTHING, LEASE).await;
        theirs.sort_by_key(|effect| effect.id);
        ours.sort_by_key(|effect| effect.id);
        assert_eq!(theirs, ours, "claimed");
    }

    async fn advance(&self, latest: usize, what: Move) {
        let Some(&(theirs, ours, fence)) = self.effects.claims.iter().rev().nth(latest) else {
            return;
        };
        let theirs = self.store.advance(theirs, fence, what).await;
        let ours = self.model.advance(ours, fence, what).await;
        assert_eq!(
            theirs.expect("the store moves"),
            ours.expect("the model moves"),
            "{what:?}"
        );
    }

    async fn look_at_effect(&self, nth: usize) {
        let given = &self.effects.given;
        let Some(&(theirs, ours)) = given.get(nth % given.len().max(1)) else {
            return;
        };
        let theirs = self.store.effect(theirs).await.expect("the store reads");
        let named = |detail: EffectDetail| EffectDetail {
            effect: self.named_effect(detail.effect),
            ..detail
        };
        let ours = self.model.effect(ours).await.expect("the model reads");
        assert_eq!(theirs.map(named), ours);
    }

    pub(super) async fn look_at_all_effects(&self) {
        for nth in 0..self.effects.given.len() {
            self.look_at_effect(nth).await;
        }
    }
}

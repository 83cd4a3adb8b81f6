//! Effects and what is done to them, in a few numbers.
//!
//! Few names, keys, entities and lanes, so that events share effects and effects wait for each other; short leases and a clock
//! that only goes forward, as a store's must.

use bytes::Bytes;
use hapax_ledger::effect::{Repeat, SkipReason};
use hapax_ledger::order::{LifeStep, PlannedOrder};
use hapax_ledger::outcome::{Lost, NotSent, Outcome};
use hapax_ledger::retry::Next;
use hapax_ledger::time::Span;
use hapax_ledger::transition::{Resolution, Resolver};
use proptest::prelude::*;

use super::super::sample::{at, review};
use super::super::worker::planned;
use super::looks::EffectLook;
use crate::nouns::{Born, Move, NewEffect, Said, Settlement};

pub(super) const NAMES: [&str; 2] = ["email", "ledger"];
pub(super) const REPEATS: [Repeat; 3] = [Repeat::Converges, Repeat::Keyed, Repeat::Once];
pub(super) const LANES: [&str; 3] = ["left", "middle", "right"];
const VERSIONS: [&str; 3] = ["9", "10", "010"];
pub(super) const LEASE: Span = Span::from_secs(10);

/// An effect in a few numbers.
#[derive(Clone, Debug)]
pub(super) struct EffectSketch {
    name: usize,
    key: u32,
    repeat: usize,
    lane: usize,
    born: bool,
    delay: i64,
    /// A bit for each earlier place of the plan.
    after: u16,
    order: Option<OrderSketch>,
}

/// An order in a few numbers. Whether it is serial goes by the effect's name, as it would in a config.
#[derive(Clone, Debug)]
struct OrderSketch {
    entity: bool,
    version: Option<usize>,
    life_step: LifeStep,
    review: bool,
}

/// One thing to do to the effects of both.
#[derive(Clone, Debug)]
pub(super) enum EffectCommand {
    Wait {
        seconds: i64,
    },
    Claim {
        node: usize,
        /// A bit for each lane.
        lanes: usize,
    },
    /// By the holder of one of the latest claims, whether or not it still holds.
    Move {
        latest: usize,
        what: Move,
    },
    /// The usual way of a claim that was not carried out yet: started, and settled.
    Carry {
        nth: usize,
        start: Move,
        end: Move,
    },
    /// Of one of those that became uncertain, whether or not they still are.
    Resolve {
        nth: usize,
        resolution: Resolution,
        by: Resolver,
    },
    Rescue,
    Look(EffectLook),
}

fn order_sketch() -> impl Strategy<Value = OrderSketch> {
    (
        any::<bool>(),
        prop::option::weighted(0.3, 0..VERSIONS.len()),
        prop_oneof![
            30 => Just(LifeStep::Ordinary),
            1 => Just(LifeStep::Ends),
            2 => Just(LifeStep::Reopens),
        ],
        prop::bool::weighted(0.02),
    )
        .prop_map(|(entity, version, life_step, review)| OrderSketch {
            entity,
            version,
            life_step,
            review,
        })
}

/// One of so many effects of a name; every so often with an order.
pub(super) fn effect_sketch(keys: u32, ordered: f64) -> impl Strategy<Value = EffectSketch> {
    (
        (
            prop_oneof![3 => Just(0usize), 1 => Just(1)],
            0..keys,
            0..REPEATS.len(),
        ),
        0..LANES.len(),
        any::<bool>(),
        prop_oneof![3 => Just(0), 1 => Just(5)],
        prop_oneof![1 => Just(0), 1 => 0..4u16],
        prop::option::weighted(ordered, order_sketch()),
    )
        .prop_map(
            |((name, key, repeat), lane, born, delay, after, order)| EffectSketch {
                name,
                key,
                repeat,
                lane,
                born,
                delay,
                after,
                order,
            },
        )
}

impl EffectSketch {
    pub(super) fn without_order(self) -> EffectSketch {
        EffectSketch {
            order: None,
            ..self
        }
    }
}

fn settlement() -> impl Strategy<Value = Move> {
    let answered = |status| Outcome::Answered {
        status,
        retry_after: None,
    };
    let outcome = prop_oneof![
        3 => Just(answered(200)),
        2 => Just(answered(500)),
        1 => Just(answered(429)),
        1 => Just(Outcome::NotSent { why: NotSent::Dns }),
        1 => Just(Outcome::Lost { why: Lost::Reset }),
    ];
    let next = prop_oneof![
        1 => Just(Next::At(Span::ZERO)),
        1 => Just(Next::At(Span::from_secs(5))),
        2 => Just(Next::Exhausted),
    ];
    (outcome, next, any::<bool>()).prop_map(|(outcome, next, talks)| {
        let said = Said {
            excerpt: talks.then(|| Bytes::from_static(b"sorry\0")),
            body_bytes: talks.then_some(6),
            error: talks.then(|| "cut off".into()),
        };
        Move::Settle(Settlement {
            outcome,
            next,
            said,
        })
    })
}

fn start() -> impl Strategy<Value = Move> {
    let snapshot = prop::option::of(prop_oneof![Just("now"), Just("then")]);
    snapshot.prop_map(|text| Move::Start(text.map(Bytes::from)))
}

fn any_move() -> impl Strategy<Value = Move> {
    prop_oneof![
        12 => start(),
        12 => settlement(),
        1 => Just(Move::Extend(LEASE)),
        1 => Just(Move::Release(Span::from_secs(3))),
        1 => Just(Move::Skip(SkipReason::Stale)),
        1 => Just(Move::Skip(SkipReason::EndpointDeleted)),
        1 => Just(Move::Review(review())),
        1 => (0..REPEATS.len()).prop_map(|class| Move::Tighten(REPEATS[class])),
    ]
}

fn resolve() -> impl Strategy<Value = EffectCommand> {
    let resolution = prop_oneof![
        1 => Just(Resolution::Applied),
        2 => Just(Resolution::NotApplied),
        1 => Just(Resolution::Skip),
    ];
    let by = prop_oneof![
        Just(Resolver::Person),
        // At moments before, around and after those at which a "no" counts.
        (0..120i64).prop_map(|seconds| Resolver::Probe {
            timeout: Span::from_secs(10),
            asked: at(seconds),
        })
    ];
    (0..12usize, resolution, by).prop_map(|(nth, resolution, by)| EffectCommand::Resolve {
        nth,
        resolution,
        by,
    })
}

pub(super) fn effect_command() -> impl Strategy<Value = EffectCommand> {
    let lanes = prop_oneof![2 => Just(7usize), 1 => 1..8usize];
    prop_oneof![
        1 => (1..15i64).prop_map(|seconds| EffectCommand::Wait { seconds }),
        4 => (0..2usize, lanes).prop_map(|(node, lanes)| EffectCommand::Claim { node, lanes }),
        8 => (0..6usize, any_move()).prop_map(|(latest, what)| EffectCommand::Move { latest, what }),
        8 => (0..6usize, start(), settlement())
            .prop_map(|(nth, start, end)| EffectCommand::Carry { nth, start, end }),
        2 => resolve(),
        1 => Just(EffectCommand::Rescue),
        3 => super::looks::effect_look().prop_map(EffectCommand::Look),
    ]
}

pub(super) fn new_effects(sketches: &[EffectSketch]) -> Vec<NewEffect> {
    let effect = |(place, sketch): (usize, &EffectSketch)| NewEffect {
        lane: LANES[sketch.lane].into(),
        wait: Span::from_secs(sketch.delay),
        attempts_max: 2,
        after: (0..place as u16)
            .filter(|first| sketch.after & (1 << first) != 0)
            .collect(),
        order: sketch.order.as_ref().map(|order| PlannedOrder {
            entity: if order.entity { "in_1" } else { "in_2" }.into(),
            serial: sketch.name == 0,
            version: order.version.map(|number| VERSIONS[number].into()),
            life_step: order.life_step,
            snapshot: false,
            review: order.review,
        }),
        born: sketch.born.then(|| Born {
            node: "birthplace".into(),
            lease: LEASE,
        }),
        ..planned(
            NAMES[sketch.name],
            &sketch.key.to_string(),
            REPEATS[sketch.repeat],
        )
    };
    sketches.iter().enumerate().map(effect).collect()
}

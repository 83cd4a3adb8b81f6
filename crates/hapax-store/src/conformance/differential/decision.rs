//! Decisions and claims of one's own in a few numbers.

use hapax_ledger::transition::Resolution;
use proptest::prelude::*;

use super::sketch::{EffectSketch, NAMES, REPEATS, effect_sketch};

/// Effects that only the user's own code carries out, and one that a plan may call for as well.
pub(super) const OWN_NAMES: [&str; 2] = ["ship", NAMES[1]];
/// Few, so that requests come again.
const REQUESTS: u8 = 6;
/// So far back events are decided on: old ones have mostly ended.
pub(super) const LATEST_EVENTS: usize = 8;

/// One thing that somebody decides or asks.
#[derive(Clone, Debug)]
pub(super) enum OperateCommand {
    Decide {
        latest: usize,
        decision: DecisionSketch,
        dry_run: bool,
        request: Option<u8>,
        revision: Revision,
        /// The config has made a class stricter.
        strict: bool,
        /// Limited to effects of one name.
        only: Option<usize>,
    },
    Own {
        /// Of one of the latest events, or of one of its own.
        latest: Option<usize>,
        name: usize,
        key: u32,
        repeat: usize,
    },
    Facts {
        latest: usize,
    },
}

/// Which revision a command names.
#[derive(Clone, Copy, Debug)]
pub(super) enum Revision {
    None,
    Current,
    Outdated,
}

/// A decision in a few numbers.
#[derive(Clone, Debug)]
pub(super) enum DecisionSketch {
    Retry,
    Replay {
        /// A bit for each name.
        force: usize,
    },
    Reconcile,
    Resolve {
        nth: usize,
        resolution: Resolution,
    },
    Release {
        effects: Vec<EffectSketch>,
    },
    Dismiss,
    Erase,
    Acknowledge {
        delivery: u32,
    },
    Promote {
        delivery: u32,
        effects: Vec<EffectSketch>,
    },
}

fn decision() -> impl Strategy<Value = DecisionSketch> {
    let resolution = prop_oneof![
        Just(Resolution::Applied),
        Just(Resolution::NotApplied),
        Just(Resolution::Skip),
    ];
    // An event that is planned late is early by its row in one store and late by its turn in another: without an order.
    let planned = || {
        let unordered = effect_sketch(12, 0.5).prop_map(EffectSketch::without_order);
        prop::collection::vec(unordered, 0..3)
    };
    prop_oneof![
        4 => Just(DecisionSketch::Retry),
        4 => (0..8usize).prop_map(|force| DecisionSketch::Replay { force }),
        2 => Just(DecisionSketch::Reconcile),
        3 => (0..8usize, resolution)
            .prop_map(|(nth, resolution)| DecisionSketch::Resolve { nth, resolution }),
        3 => planned().prop_map(|effects| DecisionSketch::Release { effects }),
        2 => Just(DecisionSketch::Dismiss),
        1 => Just(DecisionSketch::Erase),
        2 => (0..4u32).prop_map(|delivery| DecisionSketch::Acknowledge { delivery }),
        2 => (0..4u32, planned())
            .prop_map(|(delivery, effects)| DecisionSketch::Promote { delivery, effects }),
    ]
}

pub(super) fn operate_command() -> impl Strategy<Value = OperateCommand> {
    let revision = prop_oneof![
        8 => Just(Revision::None),
        2 => Just(Revision::Current),
        1 => Just(Revision::Outdated),
    ];
    let decide = (
        0..LATEST_EVENTS,
        decision(),
        prop::bool::weighted(0.1),
        prop::option::weighted(0.2, 0..REQUESTS),
        revision,
        prop::bool::weighted(0.1),
        prop::option::weighted(0.3, 0..NAMES.len()),
    )
        .prop_map(
            |(latest, decision, dry_run, request, revision, strict, only)| OperateCommand::Decide {
                latest,
                decision,
                dry_run,
                request,
                revision,
                strict,
                only,
            },
        );
    let own = (
        prop::option::of(0..LATEST_EVENTS),
        0..OWN_NAMES.len(),
        0..4u32,
        0..REPEATS.len(),
    )
        .prop_map(|(latest, name, key, repeat)| OperateCommand::Own {
            latest,
            name,
            key,
            repeat,
        });
    prop_oneof![
        6 => decide,
        3 => own,
        1 => (0..LATEST_EVENTS).prop_map(|latest| OperateCommand::Facts { latest }),
    ]
}

//! Order guards by table.

use super::*;
use crate::id::RawId;
use crate::time::Time;

fn effect(row: u64) -> EffectId {
    EffectId(RawId::new(Time::from_secs(0), 0, row))
}

fn planned(version: Option<&str>) -> PlannedOrder {
    PlannedOrder {
        entity: "in_1".into(),
        serial: true,
        version: version.map(str::to_owned),
        life_step: LifeStep::Ordinary,
        snapshot: false,
        review: false,
    }
}

#[test]
fn the_next_one_waits_until_the_last_is_out_of_the_way() {
    // F1, for every state that a predecessor can be in.
    for state in EffectState::ALL {
        let predecessors = [(effect(1), EffectState::Done), (effect(2), *state)];
        let known = EntityKnown {
            predecessors: &predecessors,
            ..EntityKnown::default()
        };
        let free = matches!(
            state,
            EffectState::Done | EffectState::Dead | EffectState::Skipped
        );
        let wait = OrderVerdict::Wait { behind: effect(2) };
        let expected = if free { OrderVerdict::Go } else { wait };
        assert_eq!(decide(&planned(None), &known), expected, "{state}");
        let unordered = PlannedOrder {
            serial: false,
            ..planned(None)
        };
        assert_eq!(decide(&unordered, &known), OrderVerdict::Go);
    }
}

#[test]
fn an_older_version_is_stale_and_an_equal_one_is_not() {
    // F2.
    let known = EntityKnown {
        highest_started: Some("5"),
        ..EntityKnown::default()
    };
    assert_eq!(decide(&planned(Some("4")), &known), OrderVerdict::Stale);
    assert_eq!(decide(&planned(Some("5")), &known), OrderVerdict::Go);
    assert_eq!(decide(&planned(Some("6")), &known), OrderVerdict::Go);
}

#[test]
fn after_the_end_ordinary_types_need_review_and_reopening_ones_do_not() {
    let known = EntityKnown {
        ended_by: Some("sub.deleted"),
        ..EntityKnown::default()
    };
    let by = "sub.deleted".to_owned();
    let review = OrderVerdict::Review {
        why: ReviewWhy::Ended { by },
    };
    assert_eq!(decide(&planned(None), &known), review);
    for life_step in [LifeStep::Ends, LifeStep::Reopens] {
        let order = PlannedOrder {
            life_step,
            ..planned(None)
        };
        assert_eq!(decide(&order, &known), OrderVerdict::Go);
    }
    let released = EntityKnown {
        released: true,
        ..known
    };
    assert_eq!(decide(&planned(None), &released), OrderVerdict::Go);
}

#[test]
fn going_back_after_a_later_one_ran_needs_a_person() {
    let known = EntityKnown {
        later_started: Some(effect(9)),
        ..EntityKnown::default()
    };
    let why = ReviewWhy::LaterRan { effect: effect(9) };
    assert_eq!(decide(&planned(None), &known), OrderVerdict::Review { why });
    let asked = PlannedOrder {
        review: true,
        ..planned(None)
    };
    let why = ReviewWhy::Asked;
    assert_eq!(
        decide(&asked, &EntityKnown::default()),
        OrderVerdict::Review { why }
    );
}

#[test]
fn a_person_can_release_from_review_but_not_from_the_queue() {
    let predecessors = [(effect(1), EffectState::Claimed)];
    let known = EntityKnown {
        predecessors: &predecessors,
        highest_started: Some("9"),
        ended_by: Some("end"),
        released: true,
        ..EntityKnown::default()
    };
    assert_eq!(
        decide(&planned(Some("1")), &known),
        OrderVerdict::Wait { behind: effect(1) }
    );
}

#[test]
fn dependents_wait_and_a_dead_predecessor_blocks_them() {
    use EffectState::{Claimed, Dead, Done, Pending, Skipped, Uncertain};
    assert_eq!(after([]), AfterVerdict::Go);
    assert_eq!(after([Done, Skipped]), AfterVerdict::Go);
    assert_eq!(after([Done, Pending]), AfterVerdict::Wait);
    assert_eq!(after([Claimed, Done]), AfterVerdict::Wait);
    assert_eq!(after([Dead, Pending]), AfterVerdict::Blocked);
    assert_eq!(after([Pending, Uncertain]), AfterVerdict::Blocked);
}

#[test]
fn a_gate_opens_when_nothing_is_in_the_way_and_never_past_a_person() {
    use EffectState::{Dead, Done, Pending};
    let table = [
        (Gate::Waiting, &[Done][..], ChainPlace::First, Gate::Open),
        (Gate::Waiting, &[], ChainPlace::Free, Gate::Open),
        (Gate::Open, &[], ChainPlace::Behind, Gate::Waiting),
        (Gate::Waiting, &[Pending], ChainPlace::First, Gate::Waiting),
        (Gate::Waiting, &[Dead], ChainPlace::Free, Gate::Waiting),
        (Gate::Review, &[Done], ChainPlace::First, Gate::Review),
    ];
    for (current, after, place, expected) in table {
        let became = gate(current, after.iter().copied(), place);
        assert_eq!(became, expected, "{current} {after:?} {place:?}");
    }
}

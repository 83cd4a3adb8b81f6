//! Verdicts by table: the design's section 4, line by line.

use super::*;
use crate::effect::SkipReason;
use crate::id::{EffectId, RawId};
use crate::order::ReviewWhy;

fn at(seconds: i64) -> Time {
    Time::from_secs(seconds)
}

fn record(repeat: Repeat, state: EffectState) -> EffectRecord {
    let skip = (state == EffectState::Skipped).then_some(SkipReason::Operator);
    EffectRecord {
        state,
        skip,
        attempts: 1,
        ..EffectRecord::planned(repeat, at(0))
    }
}

fn line<'a>(name: &'a str, record: EffectRecord) -> EffectLine<'a> {
    EffectLine {
        name,
        key: "k",
        record,
        after: &[],
        order: OrderVerdict::Go,
    }
}

fn ledger<'a>(effects: Vec<EffectLine<'a>>) -> EventLedger<'a> {
    EventLedger {
        now: at(100),
        payload: Kept::Whole,
        ledger: Kept::Whole,
        held: None,
        conflicts_open: 0,
        to_come: 0,
        effects,
    }
}

/// D7: an event some of whose effects are still being made has something to do, whatever the others say.
#[test]
fn what_is_still_to_come_is_something_to_do() {
    let done = || vec![line("e", record(Repeat::Keyed, EffectState::Done))];
    let coming = EventLedger {
        to_come: 7,
        ..ledger(done())
    };
    let judged = verdict(&coming);
    assert_eq!(judged.verdict, VerdictKind::Safe);
    assert!(judged.reasons.iter().any(|why| why.starts_with("7 more")));
    assert_ne!(judged.revision, verdict(&ledger(done())).revision);
}

fn one(repeat: Repeat, state: EffectState) -> (VerdictKind, Would) {
    let verdict = verdict(&ledger(vec![line("e", record(repeat, state))]));
    assert!(!verdict.reasons.is_empty() && verdict.revision < 1 << 53);
    (verdict.verdict, verdict.effects[0].would)
}

#[test]
fn each_state_of_each_class_has_its_verdict() {
    use EffectState as S;
    use VerdictKind::{NeedsDecision, NothingToDo, Safe};
    for repeat in Repeat::ALL {
        assert_eq!(one(*repeat, S::Done), (NothingToDo, Would::Skip));
        assert_eq!(one(*repeat, S::Skipped), (NothingToDo, Would::Skip));
        assert_eq!(one(*repeat, S::Pending), (Safe, Would::Send));
        assert_eq!(one(*repeat, S::Dead), (Safe, Would::Send));
        assert_eq!(one(*repeat, S::Uncertain), (NeedsDecision, Would::Blocked));
    }
}

#[test]
fn a_once_effect_with_a_lost_worker_is_never_safe() {
    // D3, D4: before the rescue (live lease, then run out) and after it.
    for until in [at(130), at(50)] {
        let claimed = EffectRecord {
            started: true,
            lease_until: until,
            ..record(Repeat::Once, EffectState::Claimed)
        };
        let verdict = verdict(&ledger(vec![line("charge", claimed)]));
        assert_eq!(verdict.verdict, VerdictKind::NeedsDecision);
        assert_eq!(verdict.effects[0].would, Would::Blocked);
    }
}

#[test]
fn an_effect_in_flight_is_blocked_and_a_lost_one_is_sent() {
    for repeat in [Repeat::Keyed, Repeat::Converges] {
        let claimed = |until| EffectRecord {
            started: true,
            lease_until: until,
            ..record(repeat, EffectState::Claimed)
        };
        let flying = verdict(&ledger(vec![line("e", claimed(at(130)))]));
        assert_eq!(
            (flying.verdict, flying.effects[0].would),
            (VerdictKind::Safe, Would::Blocked)
        );
        assert!(
            flying.effects[0].why.contains("30 s"),
            "{}",
            flying.effects[0].why
        );
        let lost = verdict(&ledger(vec![line("e", claimed(at(100)))]));
        assert_eq!(
            (lost.verdict, lost.effects[0].would),
            (VerdictKind::Safe, Would::Send)
        );
    }
}

#[test]
fn what_was_reaped_is_never_safe() {
    let pending = || vec![line("e", record(Repeat::Keyed, EffectState::Pending))];
    let no_payload = EventLedger {
        payload: Kept::Reaped,
        ..ledger(pending())
    };
    assert_eq!(verdict(&no_payload).verdict, VerdictKind::NeedsDecision);
    let done = vec![line("e", record(Repeat::Keyed, EffectState::Done))];
    let all_done = EventLedger {
        payload: Kept::Reaped,
        ..ledger(done)
    };
    assert_eq!(verdict(&all_done).verdict, VerdictKind::NothingToDo);
    let no_ledger = EventLedger {
        ledger: Kept::Reaped,
        ..ledger(vec![])
    };
    assert_eq!(verdict(&no_ledger).verdict, VerdictKind::NeedsDecision);
}

#[test]
fn conflicts_and_reviews_ask_for_a_person_even_when_all_is_done() {
    let done = || vec![line("e", record(Repeat::Keyed, EffectState::Done))];
    let conflict = verdict(&EventLedger {
        conflicts_open: 2,
        ..ledger(done())
    });
    assert_eq!(conflict.verdict, VerdictKind::NeedsDecision);
    assert_eq!(
        conflict.reasons,
        [
            "2 deliveries with the same key had another body; look at them and acknowledge or promote them."
        ]
    );
    let held = EventLedger {
        held: Some("its key cannot be derived"),
        ..ledger(vec![])
    };
    assert_eq!(
        verdict(&held).reasons,
        ["The event waits for review: its key cannot be derived."]
    );
}

#[test]
fn order_guards_ask_for_a_person_and_waiting_does_not() {
    let later = EffectId(RawId::new(at(0), 0, 9));
    let table = [
        (OrderVerdict::Stale, VerdictKind::NeedsDecision),
        (
            OrderVerdict::Review {
                why: ReviewWhy::LaterRan { effect: later },
            },
            VerdictKind::NeedsDecision,
        ),
        (
            OrderVerdict::Review {
                why: ReviewWhy::Ended { by: "gone".into() },
            },
            VerdictKind::NeedsDecision,
        ),
        (OrderVerdict::Wait { behind: later }, VerdictKind::Safe),
    ];
    for (order, expected) in table {
        let pending = line("e", record(Repeat::Keyed, EffectState::Pending));
        let verdict = verdict(&ledger(vec![EffectLine { order, ..pending }]));
        assert_eq!(verdict.verdict, expected, "{verdict:?}");
    }
    let mut stale = record(Repeat::Keyed, EffectState::Skipped);
    stale.skip = Some(SkipReason::Stale);
    assert_eq!(
        verdict(&ledger(vec![line("e", stale)])).verdict,
        VerdictKind::NeedsDecision
    );
}

#[test]
fn a_dead_predecessor_blocks_its_dependents() {
    // D7.
    let after = ["first".to_owned()];
    let with = |state| {
        let second = EffectLine {
            after: &after,
            ..line("second", record(Repeat::Keyed, EffectState::Pending))
        };
        verdict(&ledger(vec![
            line("first", record(Repeat::Keyed, state)),
            second,
        ]))
    };
    let dead = with(EffectState::Dead);
    assert_eq!(
        (dead.effects[0].would, dead.effects[1].would),
        (Would::Send, Would::Blocked)
    );
    assert_eq!(dead.verdict, VerdictKind::Safe);
    assert_eq!(
        dead.effects[1].why,
        "It comes after first, which has to be done first."
    );
    assert_eq!(
        with(EffectState::Uncertain).verdict,
        VerdictKind::NeedsDecision
    );
    assert!(
        with(EffectState::Pending).effects[1]
            .why
            .ends_with("It goes out after first.")
    );
    assert_eq!(with(EffectState::Skipped).effects[1].would, Would::Send);
}

#[test]
fn forcing_sends_what_is_done_and_says_that_it_is_new() {
    // E1.
    let effects = || {
        vec![
            line("email", record(Repeat::Keyed, EffectState::Done)),
            line("charge", record(Repeat::Once, EffectState::Uncertain)),
        ]
    };
    let force = ["email".to_owned(), "charge".to_owned()];
    let forced = verdict_on(&ledger(effects()), Action::Replay { force: &force });
    assert_eq!(
        forced.verdict,
        VerdictKind::NeedsDecision,
        "what may take effect again is never safe"
    );
    assert!(
        forced
            .effects
            .iter()
            .all(|effect| effect.would == Would::Send && effect.why.contains("generation 2"))
    );
    let sync = vec![line("email", record(Repeat::Converges, EffectState::Done))];
    assert_eq!(
        verdict_on(&ledger(sync), Action::Replay { force: &force[..1] }).verdict,
        VerdictKind::Safe
    );
    let behind = EffectLine {
        order: OrderVerdict::Stale,
        ..line("email", record(Repeat::Keyed, EffectState::Pending))
    };
    let pushed = verdict_on(&ledger(vec![behind]), Action::Replay { force: &force[..1] });
    assert_eq!(
        (pushed.verdict, pushed.effects[0].would),
        (VerdictKind::NeedsDecision, Would::Send)
    );
    let plain = verdict_on(&ledger(effects()), Action::Replay { force: &[] });
    assert_eq!(plain.effects[0].would, Would::Skip);
    let stranger = ["nobody".to_owned()];
    let unknown = verdict_on(&ledger(effects()), Action::Replay { force: &stranger });
    assert!(unknown.reasons[0].contains("nobody"));
}

#[test]
fn a_reconcile_sends_converging_effects_only() {
    // E5.
    let effects = vec![
        line("sync", record(Repeat::Converges, EffectState::Done)),
        line("email", record(Repeat::Keyed, EffectState::Pending)),
        line("charge", record(Repeat::Once, EffectState::Uncertain)),
    ];
    let verdict = verdict_on(&ledger(effects), Action::Reconcile);
    let would: Vec<Would> = verdict.effects.iter().map(|effect| effect.would).collect();
    assert_eq!(would, [Would::Send, Would::Skip, Would::Skip]);
    assert_eq!(verdict.verdict, VerdictKind::Safe);
}

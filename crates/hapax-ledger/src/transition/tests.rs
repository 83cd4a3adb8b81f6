//! Random walks over the effect machine, and the cells of its table that a story needs.
//!
//! The stories themselves are scripts: see `tests/it/scripts/effect.txt`.

use proptest::prelude::*;

use super::*;
use crate::lease::Fence;
use crate::outcome::{Lost, NotSent, Report};

fn at(seconds: i64) -> Time {
    Time::from_secs(seconds)
}

fn walk(record: EffectRecord, steps: &[EffectStep]) -> EffectRecord {
    steps.iter().fold(record, |record, next| {
        step(&record, next)
            .unwrap_or_else(|why| panic!("{next:?} on {record:?}: {why}"))
            .next
    })
}

fn claim_at(seconds: i64) -> EffectStep {
    EffectStep::Claim {
        now: at(seconds),
        epoch: 1,
        lease: Span::from_secs(30),
    }
}

fn fence(number: u64) -> Fence {
    Fence::from_u64(Fence::NONE.next(1).as_u64() - 1 + number)
}

fn started(repeat: Repeat) -> EffectRecord {
    let start = EffectStep::Start {
        fence: fence(1),
        now: at(0),
    };
    walk(EffectRecord::planned(repeat, at(0)), &[claim_at(0), start])
}

#[test]
fn a_stale_worker_changes_nothing() {
    // C2: after a rescue and a new claim, every write of the first worker is refused.
    let rescued = EffectStep::Expire {
        now: at(30),
        attempts_max: 7,
    };
    let taken = walk(started(Repeat::Keyed), &[rescued, claim_at(30)]);
    let outcome = Outcome::Answered {
        status: 200,
        retry_after: None,
    };
    let writes = [
        EffectStep::Start {
            fence: fence(1),
            now: at(31),
        },
        EffectStep::Extend {
            fence: fence(1),
            now: at(31),
            until: at(90),
        },
        EffectStep::Release {
            fence: fence(1),
            due: at(31),
        },
        EffectStep::Settle {
            fence: fence(1),
            now: at(31),
            outcome,
            next: Next::Exhausted,
        },
        EffectStep::SkipClaimed {
            fence: fence(1),
            reason: SkipReason::Stale,
        },
    ];
    for write in writes {
        assert_eq!(step(&taken, &write), Err(Rejected::StaleFence), "{write:?}");
    }
}

#[test]
fn a_stricter_class_holds_back_only_what_may_have_been_applied() {
    let tighten = |record: &EffectRecord, repeat| {
        let fence = record.fence;
        step(record, &EffectStep::Tighten { fence, repeat })
    };
    let fresh = walk(EffectRecord::planned(Repeat::Keyed, at(0)), &[claim_at(0)]);
    let once = tighten(&fresh, Repeat::Once).expect("an unstarted claim");
    assert_eq!(once.did, Did::Tightened);
    assert_eq!(once.next.repeat, Repeat::Once);
    let laxer = tighten(&fresh, Repeat::Converges).expect("an unstarted claim");
    assert_eq!(laxer.next, fresh, "the frozen class was stricter");
    let unsure = EffectRecord {
        ambiguous: true,
        ..fresh
    };
    let held = tighten(&unsure, Repeat::Once).expect("an unstarted claim");
    assert_eq!(held.next.state, EffectState::Uncertain);
    assert_eq!(
        tighten(&started(Repeat::Keyed), Repeat::Once),
        Err(Rejected::AlreadyStarted)
    );
}

#[test]
fn a_repeated_settle_is_told_that_it_is_done() {
    let outcome = Outcome::Answered {
        status: 200,
        retry_after: None,
    };
    let settle = EffectStep::Settle {
        fence: fence(1),
        now: at(1),
        outcome,
        next: Next::Exhausted,
    };
    let done = walk(started(Repeat::Once), &[settle]);
    assert_eq!(step(&done, &settle), Err(Rejected::AlreadyDone));
}

#[test]
fn a_probe_is_believed_only_when_nothing_can_be_on_its_way() {
    // D4: lease, timeout and grace first. A person may know better at once.
    let probe = |asked| Resolver::Probe {
        timeout: Span::from_secs(10),
        asked: at(asked),
    };
    let lost = walk(
        started(Repeat::Once),
        &[EffectStep::Expire {
            now: at(30),
            attempts_max: 7,
        }],
    );
    assert_eq!(lost.state, EffectState::Uncertain);
    let no = |by, now| EffectStep::Resolve {
        resolution: Resolution::NotApplied,
        by,
        now,
    };
    // What counts is when it was asked, not when its answer is kept; and no answer is kept before it was asked for.
    for (asked, now) in [(69, 69), (69, 70), (69, 99), (70, 69), (99, 69)] {
        assert_eq!(
            step(&lost, &no(probe(asked), at(now))),
            Err(Rejected::TooEarly { until: at(70) }),
            "asked at {asked} s, kept at {now} s"
        );
    }
    for (asked, now) in [(70, 70), (70, 99), (99, 70)] {
        let kept = step(&lost, &no(probe(asked), at(now)));
        assert!(kept.is_ok(), "asked at {asked} s, kept at {now} s");
    }
    assert!(step(&lost, &no(Resolver::Person, at(31))).is_ok());
    let yes = EffectStep::Resolve {
        resolution: Resolution::Applied,
        by: probe(31),
        now: at(31),
    };
    assert_eq!(walk(lost, &[yes]).state, EffectState::Done);
}

#[test]
fn an_effect_that_takes_its_worker_down_comes_to_an_end() {
    let mut record = EffectRecord::planned(Repeat::Keyed, at(0));
    for round in 0..3 {
        let now = round * 30;
        let claimed = walk(record, &[claim_at(now)]);
        let start = EffectStep::Start {
            fence: claimed.fence,
            now: at(now),
        };
        record = walk(
            claimed,
            &[
                start,
                EffectStep::Expire {
                    now: at(now + 30),
                    attempts_max: 3,
                },
            ],
        );
    }
    assert_eq!(record.state, EffectState::Dead);
    let revived = walk(record, &[EffectStep::Revive { now: at(99) }]);
    assert_eq!((revived.attempts, revived.attempts_in_pass()), (3, 0));
}

#[test]
fn a_restore_makes_unfinished_effects_ambiguous() {
    // C1: the backup does not know what was sent after it was made.
    let restore = EffectStep::Restore { now: at(5) };
    for (repeat, state) in [
        (Repeat::Once, EffectState::Uncertain),
        (Repeat::Keyed, EffectState::Pending),
    ] {
        let record = walk(EffectRecord::planned(repeat, at(0)), &[restore]);
        assert_eq!((record.state, record.ambiguous), (state, true));
    }
    assert_eq!(
        walk(started(Repeat::Keyed), &[restore]).state,
        EffectState::Pending
    );
}

fn outcomes() -> impl Strategy<Value = Outcome> {
    prop_oneof![
        prop::sample::select(vec![200u16, 204, 302, 404, 410, 429, 500, 503]).prop_map(|status| {
            Outcome::Answered {
                status,
                retry_after: None,
            }
        }),
        prop::sample::select(Lost::ALL).prop_map(|why| Outcome::Lost { why }),
        prop::sample::select(NotSent::ALL).prop_map(|why| Outcome::NotSent { why }),
        prop::sample::select(Report::ALL).prop_map(Outcome::Reported),
    ]
}

/// Steps as a confused world sends them: any order, and now and then an old fence.
fn steps() -> impl Strategy<Value = (EffectStep, u64, i64)> {
    let (now, old) = (at(0), Fence::NONE);
    let next = prop_oneof![
        Just(Next::Exhausted),
        (0i64..50).prop_map(|s| Next::At(Span::from_secs(s)))
    ];
    let kinds = prop_oneof![
        6 => (1u32..3).prop_map(move |epoch| EffectStep::Claim { now, epoch, lease: Span::from_secs(30) }),
        6 => Just(EffectStep::Start { fence: old, now }),
        1 => Just(EffectStep::Extend { fence: old, now, until: at(0) }),
        1 => Just(EffectStep::Release { fence: old, due: now }),
        1 => prop::sample::select(Repeat::ALL).prop_map(move |repeat| EffectStep::Tighten { fence: old, repeat }),
        6 => (outcomes(), next).prop_map(move |(outcome, next)| EffectStep::Settle { fence: old, now, outcome, next }),
        2 => Just(EffectStep::Expire { now, attempts_max: 5 }),
        1 => Just(EffectStep::Void { now, attempts_max: 5 }),
        1 => Just(EffectStep::Restore { now }),
        1 => prop::sample::select(vec![Resolution::Applied, Resolution::NotApplied, Resolution::Skip])
            .prop_map(move |resolution| EffectStep::Resolve { resolution, by: Resolver::Person, now }),
        1 => Just(EffectStep::Force { now }),
        1 => prop::sample::select(SkipReason::ALL).prop_map(|reason| EffectStep::Skip { reason }),
        2 => Just(EffectStep::Revive { now }),
    ];
    // How many claims behind the shown fence is, and how much time passes before the step.
    (
        kinds,
        prop_oneof![5 => Just(0u64), 1 => Just(1u64)],
        0i64..40,
    )
}

/// Puts the time and the fence of the moment into a step.
fn fill(template: EffectStep, now: Time, fence: Fence) -> EffectStep {
    use EffectStep as E;
    match template {
        E::Claim { epoch, lease, .. } => E::Claim { now, epoch, lease },
        E::Start { .. } => E::Start { fence, now },
        E::Extend { .. } => E::Extend {
            fence,
            now,
            until: now + Span::from_secs(20),
        },
        E::Release { .. } => E::Release { fence, due: now },
        E::Tighten { repeat, .. } => E::Tighten { fence, repeat },
        E::Settle { outcome, next, .. } => E::Settle {
            fence,
            now,
            outcome,
            next,
        },
        E::Expire { attempts_max, .. } => E::Expire { now, attempts_max },
        E::Void { attempts_max, .. } => E::Void { now, attempts_max },
        E::Restore { .. } => E::Restore { now },
        E::Resolve { resolution, by, .. } => E::Resolve {
            resolution,
            by,
            now,
        },
        E::Force { .. } => E::Force { now },
        E::Revive { .. } => E::Revive { now },
        E::Skip { .. } | E::SkipClaimed { .. } => template,
    }
}

/// What a walk has seen: enough to count who authorised each send.
#[derive(Default)]
struct Sends {
    made: u32,
    refused: u32,
    authorised: u32,
}

impl Sends {
    fn note(&mut self, taken: &EffectStep, did: Did) {
        match (taken, did) {
            (EffectStep::Start { .. }, _) => self.made += 1,
            (EffectStep::Settle { outcome, .. }, _) => match classify(*outcome) {
                Evidence::Refused { .. } | Evidence::NotApplied => self.refused += 1,
                Evidence::Applied | Evidence::Ambiguous => {}
            },
            (EffectStep::Force { .. }, _) | (EffectStep::Resolve { .. }, Did::Waits { .. }) => {
                self.authorised += 1;
            }
            _ => {}
        }
    }
}

proptest! {
    /// C1, C2, D2: the fence never falls, an old fence never writes, done stays done in its generation.
    #[test]
    fn any_walk_keeps_the_fence_and_the_end(repeat in prop::sample::select(Repeat::ALL), script in prop::collection::vec(steps(), 0..60)) {
        let mut record = EffectRecord::planned(repeat, at(0));
        let mut now = at(0);
        for (template, behind, pause) in script {
            now = now + Span::from_secs(pause);
            let shown = Fence::from_u64(record.fence.as_u64().saturating_sub(behind));
            let taken = fill(template, now, shown);
            let Ok(change) = step(&record, &taken) else { continue };
            prop_assert!(change.next.fence >= record.fence);
            prop_assert!(taken.fence().is_none_or(|fence| fence == record.fence));
            prop_assert!(record.state != EffectState::Done || change.next.generation > record.generation);
            prop_assert!(!change.next.started || change.next.state == EffectState::Claimed);
            prop_assert_eq!(change.next.skip.is_some(), change.next.state == EffectState::Skipped);
            record = change.next;
        }
    }

    /// D4: for a `once` effect, sends ≤ 1 + definite refusals + sends that a person authorised.
    #[test]
    fn a_once_effect_is_not_sent_again_on_its_own(script in prop::collection::vec(steps(), 0..80)) {
        let mut record = EffectRecord::planned(Repeat::Once, at(0));
        let mut now = at(0);
        let mut sends = Sends::default();
        for (template, behind, pause) in script {
            now = now + Span::from_secs(pause);
            let shown = Fence::from_u64(record.fence.as_u64().saturating_sub(behind));
            let taken = fill(template, now, shown);
            if let Ok(change) = step(&record, &taken) {
                sends.note(&taken, change.did);
                record = change.next;
            }
            prop_assert!(sends.made <= 1 + sends.refused + sends.authorised, "{record:?}");
            prop_assert!(record.state != EffectState::Pending || !record.ambiguous);
        }
    }
}

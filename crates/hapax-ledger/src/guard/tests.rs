//! The guard machine: the cells that stories leave out, and random walks. The stories are in
//! `tests/it/scripts/guard.txt`.

use proptest::prelude::*;

use super::*;

const GRACE: Span = Span::from_hours(24);

fn at(seconds: i64) -> Time {
    Time::from_secs(seconds)
}

fn claim(print: u8, now: i64, on_unknown: OnUnknown) -> GuardClaim {
    GuardClaim {
        fingerprint: Fingerprint::from_bytes([print; 32]),
        now: at(now),
        epoch: 1,
        lease: Span::from_secs(30),
        on_unknown,
        ttl: TTL_DEFAULT,
        grace: GRACE,
    }
}

fn in_state(state: GuardState) -> GuardRecord {
    GuardRecord {
        state,
        ..run(Fence::NONE, &claim(1, 0, OnUnknown::Hold))
    }
}

#[test]
fn another_fingerprint_is_refused_before_the_state_is_looked_at() {
    // H2, in every state that holds the key.
    for state in [
        GuardState::Running,
        GuardState::Completed,
        GuardState::NotKept,
        GuardState::Unknown,
    ] {
        for on_unknown in OnUnknown::ALL {
            let decision = decide(Some(&in_state(state)), &claim(2, 1, *on_unknown));
            assert_eq!(decision, GuardDecision::Mismatch, "{state}");
        }
    }
    let released = decide(
        Some(&in_state(GuardState::Released)),
        &claim(2, 1, OnUnknown::Hold),
    );
    assert!(
        matches!(released, GuardDecision::Run(_)),
        "a released key is free for any request"
    );
}

#[test]
fn running_and_unknown_keys_never_expire_and_answers_do() {
    // H4, I2.
    let end = (TTL_DEFAULT + GRACE).secs_ceil();
    for state in GuardState::ALL {
        let late = decide(Some(&in_state(*state)), &claim(1, end, OnUnknown::Hold));
        let held = matches!(state, GuardState::Running | GuardState::Unknown);
        assert_eq!(
            matches!(late, GuardDecision::OutcomeUnknown(_)),
            held,
            "{state}"
        );
        assert_eq!(matches!(late, GuardDecision::Run(_)), !held, "{state}");
    }
}

#[test]
fn an_answer_that_ran_out_is_said_to_have_for_a_while() {
    let ttl = TTL_DEFAULT.secs_ceil();
    let free = (TTL_DEFAULT + GRACE).secs_ceil();
    let table = [
        (GuardState::Completed, 1, ttl - 1, GuardDecision::Replay),
        (GuardState::Completed, 1, ttl, GuardDecision::Expired),
        (GuardState::Completed, 1, free - 1, GuardDecision::Expired),
        (GuardState::Completed, 2, free - 1, GuardDecision::Mismatch),
        (GuardState::NotKept, 1, ttl - 1, GuardDecision::NotKept),
        (GuardState::NotKept, 1, ttl, GuardDecision::Expired),
        (GuardState::NotKept, 2, ttl, GuardDecision::Mismatch),
    ];
    for (state, print, now, expected) in table {
        let decision = decide(Some(&in_state(state)), &claim(print, now, OnUnknown::Keyed));
        assert_eq!(decision, expected, "{state} at {now}");
        let record = in_state(state);
        assert!(!record.is_over(at(now)) && record.is_over(at(free)));
    }
    let at_once = decide(
        Some(&in_state(GuardState::Released)),
        &claim(2, 1, OnUnknown::Hold),
    );
    assert!(
        matches!(at_once, GuardDecision::Run(_)),
        "what did not run has no answer that could run out"
    );
}

#[test]
fn a_late_answer_counts_until_somebody_ran_again() {
    let lost = in_state(GuardState::Unknown);
    let settlement = Settlement::Store(Body::Kept);
    let finish = GuardStep::Finish {
        fence: lost.fence,
        now: at(90),
        settlement,
        ttl: TTL_DEFAULT,
    };
    assert_eq!(
        step(&lost, &finish).map(|record| record.state),
        Ok(GuardState::Completed)
    );
    let GuardDecision::Run(again) = decide(Some(&lost), &claim(1, 90, OnUnknown::Keyed)) else {
        panic!("a keyed route runs again");
    };
    assert_eq!(step(&again, &finish), Err(GuardRejected::StaleFence));
}

#[test]
fn an_unknown_outcome_is_resolved_by_somebody_who_knows() {
    let unknown = in_state(GuardState::Unknown);
    let executed = GuardStep::ResolveExecuted {
        fence: unknown.fence,
        now: at(1),
        ttl: TTL_DEFAULT,
    };
    assert_eq!(
        step(&unknown, &executed).map(|record| record.state),
        Ok(GuardState::NotKept)
    );
    let not_executed = GuardStep::ResolveNotExecuted {
        fence: unknown.fence,
        now: at(1),
    };
    let freed = step(&unknown, &not_executed).map(|record| record.state);
    assert_eq!(freed, Ok(GuardState::Released));
    let running = in_state(GuardState::Running);
    assert_eq!(step(&running, &executed), Err(GuardRejected::InProgress));
    let lost = GuardStep::ResolveNotExecuted {
        fence: running.fence,
        now: running.lost_at(),
    };
    assert_eq!(
        step(&running, &lost).map(|record| record.state),
        Ok(GuardState::Released),
        "lost, and no sweep has said so"
    );
    for state in [
        GuardState::NotKept,
        GuardState::Completed,
        GuardState::Released,
    ] {
        assert_eq!(
            step(&in_state(state), &executed),
            Err(GuardRejected::NotApplicable),
            "{state}"
        );
    }
}

#[test]
fn what_is_known_of_one_run_says_nothing_of_the_next() {
    let first = in_state(GuardState::Unknown);
    let (fence, now) = (first.fence, at(90));
    let not_executed = GuardStep::ResolveNotExecuted { fence, now };
    let freed = step(&first, &not_executed).expect("the first run is the one that is meant");
    let GuardDecision::Run(second) = decide(Some(&freed), &claim(1, 90, OnUnknown::Hold)) else {
        panic!("a key that is free runs");
    };
    let lost = step(&second, &GuardStep::Lose { now: at(1_000) }).expect("it is lost");
    let ttl = TTL_DEFAULT;
    let executed = GuardStep::ResolveExecuted { fence, now, ttl };
    for late in [not_executed, executed] {
        assert_eq!(step(&lost, &late), Err(GuardRejected::StaleFence));
    }
}

/// One thing that happens to a key: a request, an answer, a heartbeat, a sweep.
#[derive(Clone, Copy, Debug)]
enum Move {
    Request { print: u8 },
    Finish { behind: u64, ending: Ending },
    Extend { behind: u64 },
    Lose,
}

fn moves() -> impl Strategy<Value = (Move, i64)> {
    let body = prop::sample::select(vec![Body::Kept, Body::NotKept]);
    let answered = (prop::sample::select(vec![200u16, 404, 429, 500]), body)
        .prop_map(|(status, body)| Ending::Answered { status, body });
    let ending = prop_oneof![Just(Ending::NotReached), Just(Ending::NoAnswer), answered];
    let step = prop_oneof![
        4 => (1u8..3).prop_map(|print| Move::Request { print }),
        3 => (0u64..2, ending).prop_map(|(behind, ending)| Move::Finish { behind, ending }),
        1 => (0u64..2).prop_map(|behind| Move::Extend { behind }),
        1 => Just(Move::Lose),
    ];
    (step, 0i64..60)
}

fn after(record: &GuardRecord, taken: Move, now: Time) -> Result<GuardRecord, GuardRejected> {
    let fence = |behind| Fence::from_u64(record.fence.as_u64().saturating_sub(behind));
    let policy = GuardPolicy::default();
    match taken {
        Move::Request { .. } => Ok(*record),
        Move::Finish { behind, ending } => {
            let settlement = settlement(ending, &policy);
            step(
                record,
                &GuardStep::Finish {
                    fence: fence(behind),
                    now,
                    settlement,
                    ttl: TTL_DEFAULT,
                },
            )
        }
        Move::Extend { behind } => {
            let until = now + Span::from_secs(30);
            step(
                record,
                &GuardStep::Extend {
                    fence: fence(behind),
                    now,
                    until,
                },
            )
        }
        Move::Lose => step(record, &GuardStep::Lose { now }),
    }
}

proptest! {
    /// H1: on a route that holds, a second run starts only after proof that the last one did not execute (or after its
    /// answer ran out, which these walks do not live to see).
    #[test]
    fn a_holding_route_runs_once(script in prop::collection::vec(moves(), 0..50)) {
        let mut kept: Option<GuardRecord> = None;
        let mut now = at(0);
        for (taken, pause) in script {
            now = now + Span::from_secs(pause);
            if let Move::Request { print } = taken {
                let claim = GuardClaim { now, ..claim(print, 0, OnUnknown::Hold) };
                match decide(kept.as_ref(), &claim) {
                    GuardDecision::Run(record) => {
                        prop_assert!(kept.is_none_or(|old| old.state == GuardState::Released));
                        prop_assert!(kept.is_none_or(|old| record.fence > old.fence));
                        kept = Some(record);
                    }
                    GuardDecision::OutcomeUnknown(record) => kept = Some(record),
                    GuardDecision::Replay | GuardDecision::NotKept | GuardDecision::InProgress { .. } | GuardDecision::Expired | GuardDecision::Mismatch => {}
                }
            } else if let Some(Ok(record)) = kept.map(|record| after(&record, taken, now)) {
                kept = Some(record);
            }
        }
    }
}

//! Endpoints that turn, are warned of, and are disabled.

use bytes::Bytes;
use hapax_ledger::id::{AppId, EndpointId, RawId};

use super::*;

const START: Time = Time::from_secs(1_000_000);

fn answered(status: u16) -> Outcome {
    Outcome::Answered {
        status,
        retry_after: None,
    }
}

fn endpoint(standing: Standing, failing_since: Option<Time>) -> Endpoint {
    let id = RawId::new(START, 0, 1);
    Endpoint {
        id: EndpointId(id),
        app: AppId(id),
        uid: None,
        url: String::new(),
        description: String::new(),
        event_types: Vec::new(),
        channels: Vec::new(),
        throttle_rate: None,
        metadata: [].into(),
        sealed: Bytes::new(),
        extra: String::new(),
        standing,
        failing_since,
        disabled_from: None,
        created_at: START,
        updated_at: START,
        deleted_at: None,
        revision: 1,
    }
}

#[test]
fn only_what_is_new_is_said() {
    let well = endpoint(Standing::Enabled, None);
    let ill = endpoint(Standing::Enabled, Some(START));
    let later = START + Span::from_hours(1);
    let turned = |failing_since| Verdict::Turned { failing_since };
    let judge =
        |endpoint, status| judge(endpoint, answered(status), None, Patience::default(), later);
    assert_eq!(judge(&well, 200), Verdict::AsBefore);
    assert_eq!(judge(&well, 500), Verdict::Failed);
    assert_eq!(judge(&well, 404), Verdict::Failed);
    assert_eq!(judge(&ill, 500), Verdict::AsBefore);
    assert_eq!(judge(&ill, 204), turned(None));
    assert_eq!(judge(&well, 410), Verdict::Disable(Standing::Gone));
    let disabled = endpoint(Standing::Disabled, None);
    assert_eq!(judge(&disabled, 410), Verdict::AsBefore);
}

/// One that fails and succeeds by turns changes nothing that others would have to hear of.
#[test]
fn failures_are_written_down_when_they_last() {
    let well = endpoint(Standing::Enabled, None);
    let failed = Some(START);
    let patience = Patience::default();
    let judge = |status, after| judge(&well, answered(status), failed, patience, START + after);
    let soon = Span::from_secs(59);
    assert_eq!(judge(500, soon), Verdict::AsBefore);
    assert_eq!(judge(200, soon), Verdict::WellAgain);
    let turned = Verdict::Turned {
        failing_since: Some(START),
    };
    assert_eq!(judge(500, patience.failing_after), turned);
    let long = patience.remembered_for;
    assert_eq!(judge(500, long), turned);
    let anew = judge(500, long + Span::from_micros(1));
    assert_eq!(
        anew,
        Verdict::Failed,
        "nothing is known of the time between"
    );
}

#[test]
fn what_is_our_doing_is_not_held_against_it() {
    let well = endpoint(Standing::Enabled, None);
    for outcome in [
        Outcome::NotSent {
            why: NotSent::Breaker,
        },
        Outcome::Lost { why: Lost::Crash },
        Outcome::Lost {
            why: Lost::LostLease,
        },
    ] {
        let judged = judge(&well, outcome, None, Patience::default(), START);
        assert_eq!(judged, Verdict::AsBefore);
    }
}

/// The warning always comes first, and at least an hour before.
#[test]
fn a_warning_comes_before_the_end() {
    let disable = Verdict::Disable(Standing::Failed);
    let warn = |from: Span| Verdict::Warn {
        disabled_from: START + from,
    };
    let patience = Patience::default();
    let (warned, end) = (patience.warned_after, patience.disabled_after);
    assert_eq!((warned, end), (Span::from_days(4), Span::from_days(5)));
    let (late, hour) = (Span::from_days(9), Span::from_hours(1));
    let table = [
        (Span::from_days(3), None, Verdict::AsBefore),
        (warned, None, warn(end)),
        (late, None, warn(late + hour)),
        (Span::from_hours(119), Some(end), Verdict::AsBefore),
        (end, Some(end), disable),
        (late, Some(late + hour), Verdict::AsBefore),
        (late + hour, Some(late + hour), disable),
        // The config was more patient, or less, when its owner was told.
        (end, Some(Span::from_days(7)), Verdict::AsBefore),
        (
            Span::from_days(4),
            Some(Span::from_days(2)),
            Verdict::AsBefore,
        ),
    ];
    for (passed, told, verdict) in table {
        let ill = Endpoint {
            disabled_from: told.map(|span| START + span),
            ..endpoint(Standing::Enabled, Some(START))
        };
        let judged = judge(&ill, answered(503), None, patience, START + passed);
        assert_eq!(judged, verdict, "after {passed}, told {told:?}");
    }
}

/// However short the time, a warning comes a while before its end.
#[test]
fn a_short_patience_has_the_same_steps() {
    let patience = Patience::new(Span::from_secs(10));
    let expected = Patience {
        disabled_after: Span::from_secs(10),
        warned_after: Span::from_secs(8),
        warned_before: Span::from_secs(2),
        failing_after: Span::from_secs(2),
        remembered_for: Span::from_secs(8),
    };
    assert_eq!(patience, expected);
}

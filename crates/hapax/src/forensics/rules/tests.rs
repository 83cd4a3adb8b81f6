use hapax_ledger::id::{EventId, RawId};
use hapax_ledger::time::{Span, Time};

use super::super::Shared;
use super::*;

fn event(n: u64) -> Sighted {
    Sighted {
        id: EventId(RawId::new(Time::from_secs(1_700_000_000), 0, n)),
        key: format!("k{n}"),
        origin: KeyOrigin::Provider,
        body_hash: BodyHash::of(&n.to_be_bytes()),
        status: EventStatus::Completed,
        received_at: Time::from_secs(1_700_000_000),
        last_at: None,
        duplicates: 0,
        conflicts: 0,
        differing: Vec::new(),
        object_id: Some(format!("in_{n}")),
        shared: Vec::new(),
    }
}

fn expected() -> Expected {
    Expected {
        origin: KeyOrigin::Provider,
        retry_window: Span::from_days(3),
        object_field: Some("data.object.id".to_owned()),
    }
}

fn found(events: Vec<Sighted>) -> Vec<(&'static str, usize)> {
    let gathered = Gathered {
        events,
        more: false,
    };
    let report = judge("billing", &gathered, &expected());
    let findings = report.findings.iter();
    findings
        .map(|finding| (finding.kind, finding.count))
        .collect()
}

#[test]
fn good_keys_give_no_findings() {
    let twice = Sighted {
        duplicates: 3,
        last_at: Some(Time::from_secs(1_700_000_900)),
        ..event(2)
    };
    assert!(found(vec![event(1), twice]).is_empty());
}

#[test]
fn each_trouble_has_its_finding() {
    let body = BodyHash::of(b"same");
    let late = Time::from_secs(1_700_000_000 + 4 * 86_400);
    let cases: Vec<(Vec<Sighted>, &str)> = vec![
        (
            vec![
                Sighted {
                    body_hash: body,
                    ..event(1)
                },
                Sighted {
                    body_hash: body,
                    ..event(2)
                },
            ],
            "unstable_key",
        ),
        (
            vec![Sighted {
                conflicts: 1,
                differing: vec!["data.object.id".into()],
                ..event(1)
            }],
            "colliding_key",
        ),
        (
            vec![Sighted {
                conflicts: 2,
                differing: vec!["created".into()],
                ..event(1)
            }],
            "varying_body",
        ),
        (
            vec![Sighted {
                origin: KeyOrigin::Body,
                ..event(1)
            }],
            "fallen_key",
        ),
        (
            vec![Sighted {
                status: EventStatus::Dead,
                duplicates: 2,
                ..event(1)
            }],
            "repeat_of_failed",
        ),
        (
            vec![Sighted {
                duplicates: 1,
                last_at: Some(late),
                ..event(1)
            }],
            "late_delivery",
        ),
    ];
    for (events, kind) in cases {
        assert_eq!(found(events), [(kind, 1)]);
    }
}

#[test]
fn effects_shared_by_accident_are_found() {
    let share = |object: &str, at| Shared {
        name: "email".into(),
        key: "in_1".into(),
        first: event(1).id,
        object_id: Some(object.into()),
        received_at: Time::from_secs(at),
    };
    let sharing = |object, at| Sighted {
        shared: vec![share(object, at)],
        ..event(2)
    };
    let other_object = found(vec![sharing("in_9", 1_700_000_000)]);
    assert_eq!(other_object, [("shared_effect", 1)]);
    let long_ago = found(vec![sharing("in_2", 1_690_000_000)]);
    assert_eq!(long_ago, [("shared_effect", 1)]);
    let close = found(vec![sharing("in_2", 1_699_999_000)]);
    assert!(close.is_empty(), "the same object, close in time");
}

#[test]
fn advice_names_the_fields_that_vary() {
    let vary = |n| Sighted {
        conflicts: 1,
        differing: vec!["created".into()],
        ..event(n)
    };
    let gathered = Gathered {
        events: (0..9).map(vary).collect(),
        more: true,
    };
    let report = judge("billing", &gathered, &expected());
    assert!(
        report.findings[0]
            .advice
            .contains("volatile = [\"created\"]")
    );
    assert_eq!(
        (report.findings[0].count, report.findings[0].examples.len()),
        (9, 5)
    );
}

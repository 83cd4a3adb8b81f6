//! Tables: what was measured, and what is said about it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use hapax_ledger::id::{AppId, EndpointId, EventId};
use hapax_ledger::time::Time;

use super::*;

const MIB: u64 = 1 << 20;
const WINDOW: Span = Span::from_secs(300);

fn said(facts: Facts) -> Vec<Finding> {
    let facts = Facts {
        window: WINDOW,
        ..facts
    };
    judge(&facts).findings
}

fn texts(facts: Facts) -> Vec<String> {
    said(facts)
        .into_iter()
        .map(|finding| finding.text)
        .collect()
}

fn counts(believed: f64, duplicates: f64, refused: f64) -> Counts {
    Counts {
        believed,
        duplicates,
        refused,
    }
}

fn traffic(recent: Counts, usual: Counts) -> Facts {
    let names = |names: &[(&str, u64)]| {
        let names = names.iter();
        names
            .map(|(name, count)| ((*name).to_owned(), *count))
            .collect()
    };
    let traffic = Traffic {
        source: "billing".into(),
        recent,
        usual,
        types: names(&[("invoice.paid", 30), ("charge.made", 9)]),
        keys: names(&[("evt_1", 20), ("evt_2", 5), ("evt_3", 4), ("evt_4", 1)]),
        causes: names(&[("mismatch", 40), ("stale", 2)]),
    };
    Facts {
        traffic: vec![traffic],
        ..Facts::default()
    }
}

#[test]
fn a_jump_is_many_and_far_more_than_usual() {
    let table = [
        // part, all, usual part, usual all
        (19.0, 19.0, 0.0, 0.0, false),
        (20.0, 20.0, 0.0, 0.0, true),
        (20.0, 100.0, 0.0, 0.0, false),
        (21.0, 100.0, 0.0, 0.0, true),
        // Too little is known of what is usual: it counts as nothing.
        (21.0, 100.0, 90.0, 99.0, true),
        (39.0, 100.0, 100.0, 1_000.0, false),
        (41.0, 100.0, 100.0, 1_000.0, true),
        // Half of them is usual: more than three quarters is a jump.
        (74.0, 100.0, 500.0, 1_000.0, false),
        (76.0, 100.0, 500.0, 1_000.0, true),
        // All of them always.
        (100.0, 100.0, 1_000.0, 1_000.0, false),
        (0.0, 0.0, 0.0, 0.0, false),
    ];
    for (part, all, usual_part, usual_all, want) in table {
        let jumps = jump(part, all, usual_part, usual_all).is_some();
        assert_eq!(
            jumps, want,
            "{part} of {all}, usually {usual_part} of {usual_all}"
        );
    }
}

#[test]
fn a_duplicate_spike_names_types_and_keys() {
    let facts = traffic(counts(60.0, 42.0, 0.0), counts(1_000.0, 20.0, 0.0));
    assert_eq!(
        texts(facts),
        [
            "42 of 60 deliveries of source `billing` in the last 5m were duplicates (70 %, usually 2 %); \
             most of type invoice.paid (30), charge.made (9); most of key evt_1 (20), evt_2 (5), evt_3 (4)"
        ]
    );
    assert!(said(traffic(counts(60.0, 5.0, 0.0), Counts::default())).is_empty());
}

#[test]
fn refused_requests_that_jump_are_told_with_their_causes() {
    let facts = traffic(counts(10.0, 0.0, 40.0), counts(1_000.0, 0.0, 10.0));
    let found = said(facts);
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].kind, Kind::SignatureFailures);
    assert_eq!(found[0].severity, Severity::Warning);
    assert_eq!(
        found[0].text,
        "40 of 50 requests to source `billing` in the last 5m were refused (80 %, usually 1 %); \
         the latest for mismatch (40), stale (2)"
    );
    let nothing_gets_in = traffic(counts(0.0, 0.0, 40.0), counts(1_000.0, 0.0, 10.0));
    assert_eq!(said(nothing_gets_in)[0].severity, Severity::Critical);
    let strangers = traffic(counts(0.0, 0.0, 40.0), Counts::default());
    assert_eq!(said(strangers)[0].severity, Severity::Warning);
}

#[test]
fn attempts_are_late_if_some_of_them_are_very_late() {
    let lag = |late, attempts| Facts {
        lags: vec![(
            "crm".to_owned(),
            Lag {
                attempts,
                late,
                worst: Duration::from_secs(95),
            },
        )],
        ..Facts::default()
    };
    for (late, attempts, want) in [(4, 4, 0), (5, 5, 1), (5, 50, 1), (5, 51, 0)] {
        assert_eq!(
            said(lag(late, attempts)).len(),
            want,
            "{late} of {attempts}"
        );
    }
    assert_eq!(
        texts(lag(14, 20)),
        [
            "14 of 20 attempts in lane `crm` in the last 5m began more than 30 s after they were due, the latest 95 s"
        ]
    );
}

#[test]
fn an_event_bounces_that_comes_again_and_again_and_is_not_done() {
    let bounced = |source: &str, number: u8, deliveries, status| Bounced {
        source: source.into(),
        event: EventId::from_bytes([number; 16]),
        deliveries,
        status,
    };
    let facts = Facts {
        repeated: Some(vec![
            bounced("a", 1, 5, EventStatus::Dead),
            bounced("a", 2, 4, EventStatus::Dead),
            bounced("a", 3, 900, EventStatus::Completed),
            bounced("a", 4, 900, EventStatus::Stale),
            bounced("b", 5, 6, EventStatus::NeedsReview),
            bounced("a", 6, 7, EventStatus::Pending),
        ]),
        ..Facts::default()
    };
    let id = |number: u8| EventId::from_bytes([number; 16]);
    assert_eq!(
        texts(facts),
        [
            format!(
                "2 events of source `a` keep being delivered and not done: {} (7 deliveries, pending), {} (5 deliveries, dead)",
                id(6),
                id(1)
            ),
            format!(
                "1 event of source `b` keeps being delivered and not done: {} (6 deliveries, needs_review)",
                id(5)
            ),
        ]
    );
}

#[test]
fn a_disk_is_told_of_before_the_store_stops() {
    let disk = |free: u64| {
        let found = said(Facts {
            disk: Some(DiskState {
                free_bytes: free * MIB,
                free_bytes_min: 64 * MIB,
            }),
            ..Facts::default()
        });
        found
            .first()
            .map(|finding| (finding.severity, finding.text.clone()))
    };
    assert_eq!(disk(256), None);
    let (severity, text) = disk(255).expect("a finding");
    assert_eq!(severity, Severity::Warning);
    assert_eq!(
        text,
        "255 MiB are free on the disk of the store; below 64 MiB nothing is taken"
    );
    let (severity, text) = disk(63).expect("a finding");
    assert_eq!(severity, Severity::Critical);
    assert!(
        text.ends_with("nothing is taken, and senders hear 503"),
        "{text}"
    );
}

#[test]
fn dead_letters_are_told_and_those_of_alerts_apart() {
    let dead = |effects, alerts| {
        said(Facts {
            dead: Some(DeadLetters {
                effects,
                lanes: match effects {
                    0 => Vec::new(),
                    _ => vec![("crm".to_owned(), 1)],
                },
                alerts,
            }),
            ..Facts::default()
        })
    };
    assert!(dead(0, 0).is_empty());
    let one = dead(1, 0);
    assert_eq!(
        one[0].text,
        "1 effect was given up and waits among the dead letters; the newest in lane crm (1)"
    );
    assert_eq!(one[0].severity, Severity::Warning);
    let many = dead(DEAD_MANY, 2);
    assert_eq!(many[0].severity, Severity::Critical);
    assert_eq!((many[1].subject.as_str(), many.len()), (ALERT_LANE, 2));
    assert_eq!(dead(0, 1).len(), 1);
}

#[test]
fn a_queue_for_review_is_told_if_it_grows_or_is_long() {
    for (before, waiting, want) in [
        (0, 9, None),
        (6, 10, None),
        (
            5,
            10,
            Some("10 events or more wait for a person, 5 more than 5m ago"),
        ),
        (12, 12, None),
        (90, 80, None),
        (100, 100, Some("100 events or more wait for a person")),
    ] {
        let found = texts(Facts {
            reviews: Some(Reviews { waiting, before }),
            ..Facts::default()
        });
        assert_eq!(
            found.first().map(String::as_str),
            want,
            "{before} to {waiting}"
        );
    }
}

fn endpoint(standing: Standing, failing_since: Option<Time>) -> Arc<Endpoint> {
    Arc::new(Endpoint {
        id: EndpointId::from_bytes([1; 16]),
        app: AppId::from_bytes([2; 16]),
        uid: None,
        url: "https://example.com/?token=private".to_owned(),
        description: String::new(),
        event_types: Vec::new(),
        channels: Vec::new(),
        throttle_rate: None,
        metadata: BTreeMap::new(),
        sealed: Bytes::new(),
        extra: String::new(),
        standing,
        failing_since,
        disabled_from: None,
        created_at: Time::from_secs(0),
        updated_at: Time::from_secs(0),
        deleted_at: None,
        revision: 1,
    })
}

#[test]
fn an_endpoint_that_we_disabled_is_told_without_its_url() {
    let since = Some(Time::from_secs(0));
    for (standing, since, want) in [
        (Standing::Enabled, since, None),
        (Standing::Disabled, since, None),
        (
            Standing::Gone,
            since,
            Some("answered that it is gone (410) and is disabled"),
        ),
        (
            Standing::Failed,
            since,
            Some("has done nothing but fail since 1970-01-01T00:00:00Z and is disabled"),
        ),
        (
            Standing::Failed,
            None,
            Some("failed for too long and is disabled"),
        ),
    ] {
        let endpoint = endpoint(standing, since);
        let found = said(Facts {
            closed: Some(vec![endpoint.clone()]),
            ..Facts::default()
        });
        let Some(want) = want else {
            assert!(found.is_empty(), "{standing:?}");
            continue;
        };
        assert_eq!(found[0].subject, endpoint.id.to_string());
        let text = &found[0].text;
        assert!(text.contains(want) && !text.contains("private"), "{text}");
    }
}

#[test]
fn what_is_not_known_is_not_judged() {
    let judged = judge(&Facts::default()).judged;
    assert_eq!(
        judged,
        [
            Kind::DuplicateSpike,
            Kind::SignatureFailures,
            Kind::DispatchLag
        ]
    );
}

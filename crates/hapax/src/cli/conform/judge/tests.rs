//! What is said about answers, case by case.

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue};

use super::super::check::Outcome;
use super::*;

const REPLAYED: &str = "idempotent-replayed";
/// Answers differ, and replays are not marked.
const APART: Evidence = Evidence {
    told_apart: true,
    marks_replays: false,
};
/// Answers are all the same, and replays are marked.
const MARKED: Evidence = Evidence {
    told_apart: false,
    marks_replays: true,
};
const NOTHING: Evidence = Evidence {
    told_apart: false,
    marks_replays: false,
};

fn said(status: u16, body: &'static str) -> Said {
    Said {
        status,
        headers: HeaderMap::new(),
        body: Bytes::from_static(body.as_bytes()),
        ids: Vec::new(),
    }
}

fn with(mut said: Said, name: &'static str, value: &'static str) -> Said {
    let name = HeaderName::from_static(name);
    said.headers.insert(name, HeaderValue::from_static(value));
    said
}

#[test]
fn executions_are_told_apart_by_what_does_not_repeat_the_key() {
    let a = said(201, "1");
    let placed = with(a.clone(), "location", "/charges/2");
    let mut named = a.clone();
    named.ids = vec![Some(Bytes::from_static(b"7"))];
    let table = [
        (said(201, "2"), Outcome::Passed),
        (a.clone(), Outcome::Skipped),
        (placed, Outcome::Passed),
        (named, Outcome::Passed),
        (said(401, ""), Outcome::Failed),
    ];
    for (other, want) in table {
        let judged = distinct(&[("k1", &a), ("k2", &other)]);
        assert_eq!(judged.outcome, want, "{other:?}");
    }
    let (one, two) = (said(201, "done k1"), said(201, "done k2"));
    let judged = distinct(&[("k1", &one), ("k2", &two)]);
    assert_eq!(judged.outcome, Outcome::Skipped);
}

#[test]
fn a_race_has_one_execution() {
    let (won, waits) = (said(201, "1"), said(409, "wait"));
    let marked = with(won.clone(), REPLAYED, "true");
    let two = |a: &Said, b: &Said| vec![a.clone(), b.clone()];
    let table = [
        (two(&won, &waits), APART, Outcome::Passed),
        (two(&won, &won), APART, Outcome::Passed),
        (two(&won, &said(201, "2")), APART, Outcome::Failed),
        (two(&won, &said(500, "")), APART, Outcome::Failed),
        (two(&waits, &waits), APART, Outcome::Failed),
        (two(&won, &waits), NOTHING, Outcome::Passed),
        (two(&won, &won), NOTHING, Outcome::Unproven),
        (two(&won, &won), MARKED, Outcome::Unproven),
        (two(&won, &marked), MARKED, Outcome::Passed),
    ];
    for (answers, evidence, want) in table {
        assert_eq!(race(&answers, evidence).outcome, want, "{answers:?}");
    }
    let race = [waits, won.clone()];
    let table = [
        (&won, APART, Outcome::Passed),
        (&said(201, "2"), APART, Outcome::Failed),
        (&won, NOTHING, Outcome::Unproven),
        (&marked, MARKED, Outcome::Passed),
    ];
    for (after, evidence, want) in table {
        assert_eq!(after_race(&race, after, evidence).outcome, want);
    }
}

#[test]
fn rules_differ_in_what_they_expect() {
    let own = said(201, "2");
    for (rules, good) in [(Rules::Ietf, 422), (Rules::Stripe, 400), (Rules::Any, 409)] {
        let judge = |status, own: &Said| mismatch(rules, &said(status, ""), own).outcome;
        assert_eq!(judge(good, &own), Outcome::Passed);
        assert_eq!(judge(good, &said(400, "")), Outcome::Unproven);
        assert_eq!(judge(201, &own), Outcome::Failed);
    }
    let (first, other) = (said(201, "1"), said(201, "2"));
    let table = [
        (Rules::Ietf, &other, APART, Outcome::Failed),
        (Rules::Any, &other, APART, Outcome::Skipped),
        (Rules::Any, &first, APART, Outcome::Passed),
        (Rules::Ietf, &first, NOTHING, Outcome::Unproven),
        (Rules::Any, &first, NOTHING, Outcome::Skipped),
    ];
    for (rules, said, evidence, want) in table {
        assert_eq!(quoted(rules, &first, said, evidence).outcome, want);
    }
}

#[test]
fn an_expiry_is_a_date_to_come() {
    let now = Time::from_secs(1_700_000_000);
    let table = [
        ("Fri, 01 Jan 2100 00:00:00 GMT", Outcome::Passed),
        ("Thu, 01 Jan 1970 00:00:01 GMT", Outcome::Failed),
        ("tomorrow", Outcome::Failed),
    ];
    for (value, want) in table {
        let said = with(said(201, ""), EXPIRES, value);
        let judged = expiry(Rules::Ietf, &said, &said, now);
        assert_eq!(judged.outcome, want, "{value}");
    }
    let bare = said(201, "");
    let dated = with(bare.clone(), EXPIRES, table[0].0);
    for (rules, again, want) in [
        (Rules::Ietf, &bare, Outcome::Skipped),
        (Rules::Ietf, &dated, Outcome::Failed),
        (Rules::Any, &dated, Outcome::Passed),
    ] {
        assert_eq!(expiry(rules, &bare, again, now).outcome, want);
    }
}

#[test]
fn a_replay_is_the_same_and_shown_to_be() {
    let first = said(201, "1");
    let marked = with(first.clone(), REPLAYED, "true");
    let table = [
        (&first, &first, APART, Outcome::Passed),
        (&first, &marked, MARKED, Outcome::Passed),
        (&first, &said(201, "2"), APART, Outcome::Failed),
        (&first, &first, NOTHING, Outcome::Unproven),
        (&marked, &marked, NOTHING, Outcome::Failed),
        (&said(401, ""), &said(401, ""), NOTHING, Outcome::Unproven),
    ];
    for (first, again, evidence, want) in table {
        assert_eq!(replay(first, again, evidence).outcome, want, "{again:?}");
    }
}

#[test]
fn a_key_is_for_one_caller_and_for_writes() {
    let first = said(201, "1");
    let marked = with(first.clone(), REPLAYED, "true");
    let table = [
        (&marked, MARKED, Outcome::Failed),
        (&first, APART, Outcome::Failed),
        (&first, MARKED, Outcome::Passed),
        (&first, NOTHING, Outcome::Unproven),
        (&said(201, "2"), APART, Outcome::Passed),
        (&said(401, ""), APART, Outcome::Unproven),
        (&said(409, ""), APART, Outcome::Failed),
        (&said(500, ""), APART, Outcome::Failed),
    ];
    for (other, evidence, want) in table {
        assert_eq!(scope(&first, other, evidence).outcome, want, "{other:?}");
    }
    let replayed = with(said(200, ""), REPLAYED, "true");
    assert_eq!(read(&said(200, ""), &replayed).outcome, Outcome::Failed);
    assert!(read(&said(405, ""), &said(405, "")).is_passed());
}

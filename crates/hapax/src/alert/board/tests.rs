//! Scripts: what the rules say look by look, and what becomes of it.

use super::*;

const AT: Time = Time::from_secs(1_000);

fn finding(kind: Kind, subject: &str, text: &str) -> Finding {
    Finding {
        kind,
        subject: subject.to_owned(),
        severity: Severity::Warning,
        text: text.to_owned(),
    }
}

fn says(findings: &[Finding]) -> Judgement {
    Judgement {
        judged: Kind::ALL.to_vec(),
        findings: findings.to_vec(),
    }
}

fn brief(changes: &[Change]) -> Vec<String> {
    let brief = |change: &Change| {
        let word = match change {
            Change::Raised(_) => "raised",
            Change::Cleared(_) => "cleared",
        };
        format!("{word} {}", change.alert().subject)
    };
    changes.iter().map(brief).collect()
}

#[test]
fn an_alert_is_raised_once_and_cleared_after_a_while() {
    let mut board = Board::default();
    let dead = [finding(Kind::DeadLetters, "effects", "1")];
    let mut script = vec![true, true, false, true];
    script.extend([false; QUIET_LOOKS as usize + 2]);
    script.push(true);
    let mut told = Vec::new();
    for (look, holds) in script.iter().enumerate() {
        let said = match holds {
            true => says(&dead),
            false => says(&[]),
        };
        let changes = board.look(&said, Time::from_secs(look as i64));
        told.extend(brief(&changes).into_iter().map(|change| (look, change)));
    }
    let cleared = 3 + QUIET_LOOKS as usize;
    let want = [
        (0, "raised effects".to_owned()),
        (cleared, "cleared effects".to_owned()),
        (script.len() - 1, "raised effects".to_owned()),
    ];
    assert_eq!(told, want);
    let active: Vec<Time> = board.active().map(|alert| alert.since).collect();
    assert_eq!(active, [Time::from_secs(script.len() as i64 - 1)]);
    let past: Vec<_> = board
        .cleared()
        .map(|alert| (alert.since, alert.cleared_at))
        .collect();
    assert_eq!(
        past,
        [(Time::from_secs(0), Some(Time::from_secs(cleared as i64)))]
    );
}

#[test]
fn an_alert_that_stands_shows_the_latest_figures() {
    let mut board = Board::default();
    board.look(&says(&[finding(Kind::Disk, "store", "one")]), AT);
    let critical = Finding {
        severity: Severity::Critical,
        ..finding(Kind::Disk, "store", "two")
    };
    assert!(board.look(&says(&[critical]), AT).is_empty());
    let alert = board.active().next().expect("an alert");
    assert_eq!(
        (alert.text.as_str(), alert.severity),
        ("two", Severity::Critical)
    );
}

#[test]
fn what_is_not_judged_stays() {
    let mut board = Board::default();
    board.look(&says(&[finding(Kind::DeadLetters, "effects", "")]), AT);
    for _ in 0..3 * QUIET_LOOKS {
        assert!(board.look(&Judgement::default(), AT).is_empty());
    }
    assert_eq!(board.active().count(), 1);
}

#[test]
fn what_another_node_tells_goes_without_a_word() {
    let mut board = Board::default();
    let found = [
        finding(Kind::DeadLetters, "effects", ""),
        finding(Kind::Disk, "store", ""),
    ];
    board.look(&says(&found), AT);
    board.hand_over(&Kind::OF_ALL);
    assert_eq!(
        board.active().map(|alert| alert.kind).collect::<Vec<_>>(),
        [Kind::Disk]
    );
    assert_eq!(board.cleared().count(), 0);
}

#[test]
fn alerts_about_alerts_are_known() {
    let mut board = Board::default();
    let found = [
        finding(Kind::DeadLetters, ALERT_LANE, ""),
        finding(Kind::DeadLetters, "effects", ""),
    ];
    let changes = board.look(&says(&found), AT);
    let about: Vec<bool> = changes
        .iter()
        .map(|change| change.alert().is_about_alerts())
        .collect();
    assert_eq!(about, [true, false]);
}

#[test]
fn memory_is_bounded() {
    let mut board = Board::default();
    let of_each_kind = |number: usize| {
        let subject = number.to_string();
        Kind::ALL.map(|kind| finding(kind, &subject, ""))
    };
    let many: Vec<Finding> = (0..ACTIVE_MAX).flat_map(of_each_kind).collect();
    assert_eq!(board.look(&says(&many), AT).len(), ACTIVE_MAX);
    for _ in 0..QUIET_LOOKS {
        board.look(&says(&[]), AT);
    }
    assert_eq!(
        (board.active().count(), board.cleared().count()),
        (0, CLEARED_MAX)
    );
}

#[test]
fn many_alerts_of_one_kind_hide_no_other_and_stay_the_same() {
    let mut board = Board::default();
    let closed = |from: usize| {
        (from..2 * KIND_MAX)
            .map(|number| finding(Kind::EndpointDisabled, &format!("{number:04}"), ""))
            .collect::<Vec<_>>()
    };
    let first = board.look(&says(&closed(1)), AT);
    assert_eq!(first.len(), KIND_MAX);
    assert_eq!(board.standing(Kind::EndpointDisabled), KIND_MAX);
    assert_eq!(board.standing(Kind::Disk), 0);
    // One more, which comes before all others, takes nobody's place.
    for _ in 0..=QUIET_LOOKS {
        assert!(board.look(&says(&closed(0)), AT).is_empty());
    }
    let disk = [closed(0), vec![finding(Kind::Disk, "store", "")]].concat();
    assert_eq!(brief(&board.look(&says(&disk), AT)), ["raised store"]);
}

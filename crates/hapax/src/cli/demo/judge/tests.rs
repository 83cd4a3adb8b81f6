//! The judge finds each way in which the two may differ, and nothing where they agree.

use super::super::deed::Mishap;
use super::*;

fn sent(object: &str, manner: Manner, heard: Heard) -> Deed {
    let taken = matches!(heard, Heard::Accepted | Heard::Duplicate);
    Deed::Sent {
        object: object.to_owned(),
        manner,
        heard,
        event: taken.then(|| format!("evt_{object}")),
    }
}

fn asked(effect: &str, key: &str, version: Option<u64>) -> Deed {
    Deed::Asked {
        effect: effect.to_owned(),
        key: key.to_owned(),
        fact: "fact".to_owned(),
        version,
        mishap: Mishap::None,
        did: true,
    }
}

fn received(message: &str, genuine: bool) -> Deed {
    Deed::Received {
        message: message.to_owned(),
        genuine,
        took: genuine,
    }
}

fn charged() -> Deed {
    Deed::Charged {
        order: "order_1".to_owned(),
    }
}

fn answered(body: &str) -> Deed {
    Deed::Answered {
        order: "order_1".to_owned(),
        status: 201,
        body: body.to_owned(),
    }
}

/// A world in which everything happened once, with duplicates, a forgery and a repeat that converges.
fn world() -> Vec<Deed> {
    vec![
        sent("in_1", Manner::Honest, Heard::Accepted),
        sent("in_1", Manner::Honest, Heard::Duplicate),
        sent("in_forged_1", Manner::Forged, Heard::Refused),
        asked("mail", "k", None),
        asked("set", "k", None),
        asked("set", "k", None),
        asked("ensure-workspace", "k:2", Some(2)),
        Deed::Published {
            message: "msg_1".to_owned(),
        },
        received("msg_1", true),
        charged(),
        answered("1"),
        answered("1"),
    ]
}

fn ledger() -> Ledger {
    let pair = |one: &str, other: &str| (one.to_owned(), other.to_owned());
    let effects = [
        (pair("mail", "k"), pair("once", "done")),
        (pair("set", "k"), pair("converges", "done")),
        (pair("ensure-workspace", "k:2"), pair("converges", "done")),
        (
            pair("ensure-workspace", "k:1"),
            pair("converges", "skipped"),
        ),
    ];
    Ledger {
        events: [("evt_in_1".to_owned(), pair("in_1", "completed"))].into(),
        effects: effects.into(),
        messages: [pair("msg_1", "success")].into(),
        keys: [pair("order_1", "completed")].into(),
    }
}

#[test]
fn where_they_agree_nothing_differs() {
    let account = judge(&world(), &ledger());
    assert_eq!(account.differences, Vec::<String>::new());
    let counts = (
        account.sent,
        account.accepted,
        account.duplicates,
        account.refused,
    );
    assert_eq!(counts, (3, 1, 1, 1));
    assert_eq!(account.repeats, 0);
}

#[test]
fn each_difference_is_found() {
    let cases: [(Deed, &str); 9] = [
        (
            sent("in_forged_2", Manner::Forged, Heard::Accepted),
            "was not sent by the provider, and was taken",
        ),
        (
            sent("in_2", Manner::Honest, Heard::Refused),
            "was sent by the provider, and was refused",
        ),
        (
            sent("in_3", Manner::Honest, Heard::Accepted),
            "was acknowledged, and is not in the ledger",
        ),
        (asked("mail", "k", None), "mail happened 2 times for fact"),
        (
            asked("unheard-of", "k", None),
            "the ledger does not know it",
        ),
        (
            asked("ensure-workspace", "k:1", Some(1)),
            "went back from 2 to 1",
        ),
        (
            received("msg_2", true),
            "msg_2 was taken 1 times, and is not in the ledger",
        ),
        (charged(), "order_1 was charged 2 times under one key"),
        (answered("2"), "order_1 was answered in 2 ways"),
    ];
    for (deed, words) in cases {
        let mut deeds = world();
        deeds.push(deed);
        let found = judge(&deeds, &ledger()).differences;
        assert!(
            found.iter().any(|found| found.contains(words)),
            "`{words}` is not in {found:?}"
        );
    }
}

/// What is missing in the world is found as well.
#[test]
fn what_the_ledger_has_and_the_world_has_not_is_found() {
    for (missing, words) in [
        ("Asked", "is done, and never happened"),
        ("Received", "msg_1 is success, and was taken 0 times"),
        ("Charged", "and was charged 0 times"),
        ("Sent", "nothing was accepted at all"),
    ] {
        let mut deeds = world();
        deeds.retain(|deed| !format!("{deed:?}").starts_with(missing));
        let found = judge(&deeds, &ledger()).differences;
        assert!(
            found.iter().any(|found| found.contains(words)),
            "`{words}` is not in {found:?}"
        );
    }
}

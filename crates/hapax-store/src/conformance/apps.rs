//! The catalogue of the outbox: applications, endpoints, types of events.

use std::collections::BTreeMap;

use hapax_ledger::time::Span;

use super::operator::{actions, asking, log};
use super::publisher::{
    app, app_id, boxed, changes, done, endpoint, endpoint_id, event_type, message, put, revision,
    stored,
};
use super::sample::{Subject, all, at, reap_all};
use super::worker::{SETTLED, done as moved, start_one};
use crate::nouns::{
    App, Before, CHANGES_PER_PART, DELETED_KEPT, Endpoint, Entry, EventType, Mark, Put, Standing,
};

/// Every field comes back, whatever text is in it, and each change makes the next revision.
pub async fn the_catalogue_comes_back_whole(store: Subject) {
    assert_eq!(revision(&store).await, 0);
    let whole = App {
        uid: Some("ü\0' --".into()),
        throttle_rate: Some(7),
        metadata: BTreeMap::from([("k\0".into(), "v\"".into())]),
        extra: "{\"envelope\":true}".into(),
        ..app(1)
    };
    let where_to = Endpoint {
        uid: Some("".into()),
        description: "\0".into(),
        event_types: vec!["a.b".into(), "".into()],
        channels: vec!["\u{1a}0".into()],
        throttle_rate: Some(u32::MAX),
        metadata: BTreeMap::from([("x".into(), "y".into())]),
        standing: Standing::Failed,
        failing_since: Some(at(3)),
        disabled_from: Some(at(4)),
        ..endpoint(1, 1)
    };
    let what = EventType {
        description: "d".into(),
        archived: true,
        deprecated: true,
        group_name: Some("g".into()),
        feature_flags: vec!["f".into()],
        schemas: Some("{\"1\":{}}".into()),
        ..event_type("a.b")
    };
    let entries = [Entry::App(whole), boxed(where_to), Entry::EventType(what)];
    for (number, entry) in (1..).zip(&entries) {
        assert_eq!(done(&store, entry.clone(), 0).await, number);
    }
    let put = (1..).zip(entries);
    let expected: Vec<Entry> = put
        .map(|(number, entry)| entry.at_revision(number))
        .collect();
    let all = changes(&store, 0).await;
    assert_eq!((all.entries, all.revision), (expected.clone(), 3));
    let some = changes(&store, 2).await;
    assert_eq!((&some.entries[..], some.revision), (&expected[2..], 3));
    assert_eq!(changes(&store, 3).await.entries, []);
    let subjects: Vec<String> = log(&store)
        .await
        .into_iter()
        .map(|one| one.subject)
        .collect();
    let ids = [app_id(1).to_string(), endpoint_id(1).to_string()];
    assert_eq!(subjects, [&ids[0], &ids[1], "a.b"]);
}

/// What was decided on a state that has changed is not made.
pub async fn a_change_needs_the_latest_state(store: Subject) {
    let first = done(&store, Entry::App(app(1)), 0).await;
    let renamed = App {
        name: "renamed".into(),
        ..app(1)
    };
    assert_eq!(put(&store, Entry::App(app(1)), 0).await, Put::Moved);
    let second = done(&store, Entry::App(renamed.clone()), first).await;
    assert_eq!(put(&store, Entry::App(app(1)), first).await, Put::Moved);
    assert_eq!(put(&store, Entry::App(app(2)), 1).await, Put::Moved);
    let stranger = boxed(endpoint(1, 9));
    assert_eq!(put(&store, stranger, 0).await, Put::Moved, "no such app");
    let now = Entry::App(renamed).at_revision(second);
    assert_eq!(changes(&store, 0).await.entries, [now]);
    assert_eq!((second, actions(&store).await.len()), (2, 2));
}

/// A uid belongs to one that is there: among applications, and among the endpoints of one.
pub async fn a_uid_belongs_to_one_that_is_there(store: Subject) {
    let called = |number| App {
        uid: Some("u".into()),
        ..app(number)
    };
    let first = done(&store, Entry::App(called(1)), 0).await;
    assert_eq!(put(&store, Entry::App(called(2)), 0).await, Put::Taken);
    done(&store, Entry::App(called(1)), first).await;
    done(&store, Entry::App(app(2)), 0).await;
    let hook = |number, app| Endpoint {
        uid: Some("u".into()),
        ..endpoint(number, app)
    };
    let made = done(&store, boxed(hook(1, 1)), 0).await;
    assert_eq!(put(&store, boxed(hook(2, 1)), 0).await, Put::Taken);
    done(&store, boxed(hook(3, 2)), 0).await;
    let gone = Endpoint {
        deleted_at: Some(at(5)),
        ..hook(1, 1)
    };
    done(&store, boxed(gone.clone()), made).await;
    done(&store, boxed(hook(2, 1)), 0).await;
    let at_last = revision(&store).await;
    assert_eq!(put(&store, boxed(hook(1, 1)), made).await, Put::Moved);
    assert_eq!(revision(&store).await, at_last);
}

/// There is one type of a name; when it is deleted the name is free.
pub async fn a_deleted_types_name_is_free(store: Subject) {
    let named = || Entry::EventType(event_type("a"));
    let first = done(&store, named(), 0).await;
    assert_eq!(put(&store, named(), 0).await, Put::Taken);
    let gone = EventType {
        deleted_at: Some(at(5)),
        ..event_type("a")
    };
    let second = done(&store, Entry::EventType(gone), first).await;
    assert_eq!(put(&store, named(), second).await, Put::Moved);
    let third = done(&store, named(), 0).await;
    assert_eq!(
        changes(&store, 0).await.entries,
        [named().at_revision(third)]
    );
}

/// An application takes its endpoints along; whoever knew them hears of each, and whoever did not hears of none.
pub async fn a_deleted_app_takes_its_endpoints_along(store: Subject) {
    let made = done(&store, Entry::App(app(1)), 0).await;
    done(&store, Entry::App(app(2)), 0).await;
    for number in 1..4 {
        done(&store, boxed(endpoint(number, 1)), 0).await;
    }
    done(&store, boxed(endpoint(4, 2)), 0).await;
    let before = revision(&store).await;
    let gone = App {
        deleted_at: Some(at(9)),
        ..app(1)
    };
    let after = done(&store, Entry::App(gone), made).await;
    let heard = changes(&store, before).await;
    assert_eq!((heard.revision, heard.entries.len()), (after, 4));
    let deleted_at = heard.entries.iter().map(Entry::deleted_at);
    assert!(deleted_at.into_iter().all(|time| time == Some(at(9))));
    let numbers: Vec<u64> = heard.entries.iter().map(Entry::revision).collect();
    assert!(numbers.is_sorted() && numbers.iter().all(|number| *number <= after));
    assert_eq!(changes(&store, 0).await.entries.len(), 2);
    assert_eq!(put(&store, boxed(endpoint(9, 1)), 0).await, Put::Moved);
    assert_eq!(actions(&store).await.len(), 7, "one record for all of it");
}

/// J1: a change is made once per request, and another request under its key is told so.
pub async fn a_change_of_the_catalogue_is_made_once_per_request(store: Subject) {
    let ask = |number, what| {
        let (store, by) = (store.clone(), asking("r", what));
        async move {
            let entry = Entry::App(app(number));
            let put = store.put(entry, 0, "app.create", by, "{\"n\":1}".into());
            put.await.expect("the store changes its catalogue")
        }
    };
    assert_eq!(ask(1, 1).await, Put::Done { revision: 1 });
    let same = Before::Same("{\"n\":1}".into());
    assert_eq!(ask(1, 1).await, Put::Repeated(same));
    assert_eq!(ask(2, 2).await, Put::Repeated(Before::Other));
    assert_eq!(actions(&store).await, ["app.create"]);
    assert_eq!(revision(&store).await, 1);
}

/// A large catalogue comes in parts that meet.
pub async fn changes_come_in_parts(store: Subject) {
    let many = CHANGES_PER_PART as u64 + 3;
    for number in 1..=many {
        done(&store, Entry::App(app(number)), 0).await;
    }
    let first = store.changes(0).await.expect("the store reads");
    assert_eq!(first.entries.len(), CHANGES_PER_PART);
    assert_eq!(
        (first.more, first.revision),
        (true, CHANGES_PER_PART as u64)
    );
    let all = changes(&store, 0).await;
    let numbers: Vec<u64> = all.entries.iter().map(Entry::revision).collect();
    assert_eq!(numbers, (1..=many).collect::<Vec<u64>>());
}

/// Of many changes at once each has a revision of its own, and of many that want the same only one is made.
pub async fn racing_changes_come_one_after_the_other(store: Subject) {
    let racing = (0..24).map(|number| {
        let store = store.clone();
        let one = App {
            uid: Some(format!("u{}", number / 2).into()),
            ..app(number)
        };
        async move { put(&store, Entry::App(one), 0).await }
    });
    let mut revisions = Vec::new();
    for answer in all(racing).await {
        match answer {
            Put::Done { revision } => revisions.push(revision),
            other => assert_eq!(other, Put::Taken),
        }
    }
    revisions.sort_unstable();
    assert_eq!(revisions, (1..=12).collect::<Vec<u64>>());
    let one = changes(&store, 0).await.entries.remove(0);
    let was = one.revision();
    let racing = (0..12).map(|_| {
        let (store, one) = (store.clone(), one.clone());
        async move { put(&store, one, was).await }
    });
    let answers = all(racing).await;
    let made = answers
        .iter()
        .filter(|one| **one == Put::Done { revision: 13 });
    assert_eq!(made.count(), 1);
    let moved = answers.iter().filter(|one| **one == Put::Moved);
    assert_eq!((moved.count(), log(&store).await.len()), (11, 13));
}

/// What the dispatcher has seen of an endpoint is kept, and told to all; only a new standing is a decision.
pub async fn an_endpoint_is_marked(store: Subject) {
    done(&store, Entry::App(app(1)), 0).await;
    let made = done(&store, boxed(endpoint(1, 1)), 0).await;
    let mark = |was, standing, failing_since| {
        let store = store.clone();
        async move {
            let mark = Mark {
                endpoint: endpoint_id(1),
                was,
                standing,
                failing_since,
                disabled_from: None,
            };
            let marked = store.mark_endpoints(vec![mark], at(9)).await;
            marked.expect("the store marks it").remove(0)
        }
    };
    let failing = mark(made, Standing::Enabled, Some(at(8))).await;
    assert_eq!(failing, Put::Done { revision: 3 });
    let again = mark(3, Standing::Enabled, Some(at(8))).await;
    assert_eq!(again, Put::Done { revision: 3 }, "nothing is new");
    assert_eq!(mark(made, Standing::Gone, None).await, Put::Moved);
    assert_eq!(actions(&store).await.len(), 2);
    let gone = mark(3, Standing::Gone, Some(at(8))).await;
    assert_eq!(gone, Put::Done { revision: 4 });
    let record = log(&store).await.remove(2);
    assert_eq!(
        (record.action.as_str(), &*record.actor),
        ("endpoint.disable", "~hapax")
    );
    assert_eq!(
        (record.subject, record.at),
        (endpoint_id(1).to_string(), at(9))
    );
    let expected = Endpoint {
        standing: Standing::Gone,
        failing_since: Some(at(8)),
        revision: 4,
        ..endpoint(1, 1)
    };
    assert_eq!(changes(&store, 3).await.entries, [boxed(expected)]);
    let nobody = Mark {
        endpoint: endpoint_id(9),
        was: 0,
        standing: Standing::Gone,
        failing_since: None,
        disabled_from: None,
    };
    let nobody = store.mark_endpoints(vec![nobody], at(9)).await;
    assert_eq!(nobody.expect("the store looks"), [Put::Moved]);
}

/// What was deleted is forgotten after a while, unless deliveries refer to it.
pub async fn what_is_deleted_is_forgotten_after_a_while(store: Subject) {
    let known = done(&store, Entry::App(app(1)), 0).await;
    let unused = done(&store, boxed(endpoint(1, 1)), 0).await;
    let used = done(&store, boxed(endpoint(2, 1)), 0).await;
    let named = done(&store, Entry::EventType(event_type("a")), 0).await;
    let now = revision(&store).await;
    stored(&store, message(1, "m", at(0), &[2], now)).await;
    moved(&store, &start_one(&store).await, SETTLED).await;
    let deleted = Endpoint {
        deleted_at: Some(at(0)),
        ..endpoint(1, 1)
    };
    done(&store, boxed(deleted.clone()), unused).await;
    let deleted = Endpoint {
        id: endpoint_id(2),
        ..deleted
    };
    done(&store, boxed(deleted), used).await;
    let deleted = EventType {
        deleted_at: Some(at(0)),
        ..event_type("a")
    };
    done(&store, Entry::EventType(deleted), named).await;
    let deleted = App {
        deleted_at: Some(at(0)),
        ..app(1)
    };
    done(&store, Entry::App(deleted), known).await;
    let heard = || async { changes(&store, 1).await.entries.len() };
    let early = at(0) + DELETED_KEPT - Span::from_micros(1);
    reap_all(&store, early).await;
    assert_eq!(heard().await, 4);
    reap_all(&store, at(0) + DELETED_KEPT).await;
    assert_eq!(heard().await, 2, "the app and the endpoint of the message");
    reap_all(&store, at(0) + Span::from_days(365)).await;
    assert_eq!(heard().await, 0);
    assert_eq!(revision(&store).await, 8, "it never falls");
}

//! What operators are to hear: kept with what it tells of, once, until it is told.

use hapax_ledger::id::{AttemptId, EventId};
use hapax_ledger::retry::Next;
use hapax_ledger::time::Span;

use super::operator::carried;
use super::publisher::{
    app, app_id, boxed, done as put_done, endpoint, endpoint_id, message, put, stored,
};
use super::sample::{Dial, Subject, at};
use super::worker::{BROKEN, GIVEN_UP, SETTLED, START, claim_one, done, ended, rescue, start_one};
use crate::nouns::{Attempted, Decision, Endpoint, Entry, Mark, News, Put, Standing, Untold};

async fn untold(store: &Subject) -> Vec<Untold> {
    store.untold(0).await.expect("the store reads")
}

async fn news(store: &Subject) -> Vec<News> {
    let untold = untold(store).await.into_iter();
    let tidings = untold.map(|one| one.tiding.expect("it is of this version"));
    tidings.map(|tiding| tiding.news).collect()
}

/// All that is untold is told.
async fn tell_all(store: &Subject) {
    let numbers = untold(store).await.into_iter().map(|one| one.number);
    store
        .told(numbers.collect())
        .await
        .expect("the store forgets");
}

/// What is done to endpoints is told, what is refused is not, and what was told is not told again.
pub async fn what_is_done_to_an_endpoint_is_told(store: Subject, _: Dial) {
    put_done(&store, Entry::App(app(1)), 0).await;
    let made = put_done(&store, boxed(endpoint(1, 1)), 0).await;
    assert_eq!(put(&store, boxed(endpoint(1, 1)), 0).await, Put::Moved);
    let changed = put_done(&store, boxed(endpoint(1, 1)), made).await;
    let mark = |was, standing| Mark {
        endpoint: endpoint_id(1),
        was,
        standing,
        failing_since: Some(at(8)),
        disabled_from: None,
    };
    let marks = vec![mark(changed, Standing::Enabled), mark(made, Standing::Gone)];
    let marked = store.mark_endpoints(marks, at(9)).await;
    let failing = changed + 1;
    let expected = [Put::Done { revision: failing }, Put::Moved];
    assert_eq!(marked.expect("the store marks"), expected);
    let marks = vec![mark(failing, Standing::Failed)];
    let marked = store.mark_endpoints(marks, at(9)).await;
    let disabled = failing + 1;
    assert_eq!(
        marked.expect("the store marks"),
        [Put::Done { revision: disabled }]
    );
    let gone = Endpoint {
        deleted_at: Some(at(10)),
        ..endpoint(1, 1)
    };
    // By its owner, while it is disabled already; enabled; and disabled once more.
    let mut revision = disabled;
    for standing in [Standing::Disabled, Standing::Enabled, Standing::Disabled] {
        let changed = Endpoint {
            standing,
            ..endpoint(1, 1)
        };
        revision = put_done(&store, boxed(changed), revision).await;
    }
    put_done(&store, boxed(gone), revision).await;
    let standing = Standing::Failed;
    let failing_since = Some(at(8));
    let expected = [
        News::Created,
        News::Updated,
        News::Disabled {
            standing,
            failing_since,
        },
        News::Updated,
        News::Updated,
        News::Updated,
        News::Disabled {
            standing: Standing::Disabled,
            failing_since: None,
        },
        News::Deleted,
    ];
    assert_eq!(news(&store).await, expected);
    let all = untold(&store).await;
    let first = all[0].tiding.clone().expect("it is of this version");
    assert_eq!(
        (first.app, first.endpoint),
        (Some(app_id(1)), endpoint_id(1))
    );
    they_are_forgotten_by_number(&store, &all).await;
}

async fn they_are_forgotten_by_number(store: &Subject, all: &[Untold]) {
    let behind = store.untold(all[1].number).await;
    assert_eq!(behind.expect("the store reads"), all[2..]);
    let told = vec![all[0].number, all[7].number];
    store.told(told.clone()).await.expect("the store forgets");
    assert_eq!(untold(store).await, all[1..7]);
    put_done(store, boxed(endpoint(2, 1)), 0).await;
    let last = untold(store).await.pop().expect("it is there");
    assert!(!told.contains(&last.number), "no number is given twice");
}

/// That an endpoint will be disabled is told once, by whoever writes it down first, and anew when it was well meanwhile.
pub async fn a_warning_is_told_once(store: Subject, _: Dial) {
    put_done(&store, Entry::App(app(1)), 0).await;
    let made = put_done(&store, boxed(endpoint(1, 1)), 0).await;
    tell_all(&store).await;
    let mark = async |was, failing_since, disabled_from, standing| {
        let mark = Mark {
            endpoint: endpoint_id(1),
            was,
            standing,
            failing_since,
            disabled_from,
        };
        let marked = store.mark_endpoints(vec![mark], at(30)).await;
        marked.expect("the store marks").remove(0)
    };
    let enabled = Standing::Enabled;
    let mut revision = made;
    for (since, from) in [(8, 20), (21, 29)] {
        let (since, from) = (at(since), at(from));
        mark(revision, Some(since), None, enabled).await;
        assert_eq!(news(&store).await, [], "that it fails is nobody's news");
        let warned = mark(revision + 1, Some(since), Some(from), enabled).await;
        let expected = Put::Done {
            revision: revision + 2,
        };
        assert_eq!(warned, expected);
        let warning = News::Disabling {
            failing_since: since,
            disabled_from: from,
        };
        assert_eq!(news(&store).await, [warning]);
        tell_all(&store).await;
        let late = mark(revision + 1, Some(since), Some(from), enabled).await;
        assert_eq!(late, Put::Moved, "another node was first");
        let again = mark(revision + 2, Some(since), Some(from), enabled).await;
        assert_eq!(again, expected, "nothing is new");
        let known = super::publisher::changes(&store, revision + 1).await;
        let Entry::Endpoint(known) = &known.entries[0] else {
            panic!("only an endpoint has changed");
        };
        assert_eq!(known.disabled_from, Some(from));
        mark(revision + 2, None, None, enabled).await;
        assert_eq!(news(&store).await, [], "well again");
        revision += 3;
    }
    mark(revision, Some(at(29)), Some(at(30)), Standing::Failed).await;
    let disabled = News::Disabled {
        standing: Standing::Failed,
        failing_since: Some(at(29)),
    };
    assert_eq!(news(&store).await, [disabled], "one thing is told of it");
}

/// Many endpoints are marked at once, each by what was seen of it.
pub async fn many_endpoints_are_marked_at_once(store: Subject, _: Dial) {
    put_done(&store, Entry::App(app(1)), 0).await;
    let mut marks = Vec::new();
    for number in 1..20 {
        let was = put_done(&store, boxed(endpoint(number, 1)), 0).await;
        marks.push(Mark {
            endpoint: endpoint_id(number),
            was,
            standing: [Standing::Enabled, Standing::Gone][number as usize % 2],
            failing_since: Some(at(number as i64)),
            disabled_from: None,
        });
    }
    tell_all(&store).await;
    let before = super::publisher::revision(&store).await;
    let marked = store.mark_endpoints(marks.clone(), at(30)).await;
    let expected: Vec<Put> = (1..20)
        .map(|n| Put::Done {
            revision: before + n,
        })
        .collect();
    assert_eq!(marked.expect("the store marks"), expected);
    assert_eq!(news(&store).await.len(), 10);
    let changes = super::publisher::changes(&store, before).await.entries;
    for (entry, mark) in changes.iter().zip(&marks) {
        let Entry::Endpoint(endpoint) = entry else {
            panic!("only endpoints have changed");
        };
        let seen = (endpoint.id, endpoint.standing, endpoint.failing_since);
        assert_eq!(seen, (mark.endpoint, mark.standing, mark.failing_since));
    }
    let again = store.mark_endpoints(marks, at(31)).await;
    assert_eq!(again.expect("the store looks"), vec![Put::Moved; 19]);
    assert_eq!(news(&store).await.len(), 10);
}

/// An attempt at the one delivery of a message, as it is told.
async fn attempted(store: &Subject, event: EventId, number: u32) -> Attempted {
    let addressed = store.addressed(event, endpoint_id(1)).await;
    let addressed = addressed.expect("the store reads").expect("it is there");
    let delivery = addressed.delivery.expect("it is delivered").id;
    let detail = store.effect(delivery).await.expect("the store reads");
    let mut attempts = detail.expect("it is there").attempts.into_iter();
    let attempt = attempts.find(|attempt| attempt.number == number);
    let attempt = attempt.expect("it was made");
    Attempted {
        message: event,
        attempt: AttemptId::of(delivery, attempt.fence, attempt.started_at),
        outcome: attempt.outcome,
        generation: 1,
        attempts: number,
    }
}

/// A delivery is told of when it keeps failing, when it is given up, and when it gets through after that; others are not.
pub async fn the_ends_of_deliveries_are_told(store: Subject, dial: Dial) {
    let event = stored(&store, message(1, "m", at(0), &[1], 0)).await.event;
    let fail = async || {
        let effect = start_one(&store).await;
        done(&store, &effect, ended(BROKEN, Next::At(Span::ZERO))).await;
    };
    for n in 1..=5 {
        fail().await;
        let expected = match n {
            1..4 => vec![],
            _ => vec![News::Failing(attempted(&store, event, 4).await)],
        };
        assert_eq!(news(&store).await, expected, "after {n}");
    }
    tell_all(&store).await;
    done(&store, &start_one(&store).await, GIVEN_UP).await;
    let expected = News::Exhausted(attempted(&store, event, 6).await);
    assert_eq!(news(&store).await, [expected]);
    tell_all(&store).await;
    carried(&store, event, Decision::Retry).await;
    let again = claim_one(&store).await;
    done(&store, &again, START).await;
    done(&store, &again, SETTLED).await;
    let [News::Recovered(recovered)] = &news(&store).await[..] else {
        panic!("it got through after it was given up");
    };
    assert_eq!(recovered.message, event);
    tell_all(&store).await;
    // The fourth failure is told, and so is a success after it; one before it is not.
    for failures in [3, 4] {
        let key = format!("after {failures}");
        let event = stored(&store, message(1, &key, at(1), &[1], 0)).await.event;
        for _ in 0..failures {
            fail().await;
        }
        done(&store, &start_one(&store).await, SETTLED).await;
        let expected = match failures {
            4 => vec![
                News::Failing(attempted(&store, event, 4).await),
                News::GotThrough(attempted(&store, event, 5).await),
            ],
            _ => vec![],
        };
        assert_eq!(news(&store).await, expected, "{key}");
        tell_all(&store).await;
    }
    stored(&store, message(1, "well", at(1), &[1], 0)).await;
    done(&store, &start_one(&store).await, SETTLED).await;
    stored(&store, message(1, "lost", at(2), &[1], 0)).await;
    start_one(&store).await;
    dial.set(at(100_000));
    assert_eq!(rescue(&store).await, 1);
    assert_eq!(news(&store).await, []);
}

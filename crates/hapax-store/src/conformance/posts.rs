//! Deliveries and attempts as they are read, tallied and asked for again.

use hapax_ledger::effect::EffectState;
use hapax_ledger::id::EffectId;
use hapax_ledger::retry::Next;
use hapax_ledger::time::Span;

use super::messages::narrowed;
use super::publisher::{
    app, app_id, boxed, done as put_done, endpoint, endpoint_id, message, ordered, stored,
};
use super::sample::{Dial, Subject, at, reap_all};
use super::worker::{BROKEN, GIVEN_UP, SETTLED, START, claim, done, ended, rescue, start_one};
use crate::nouns::{
    Deliveries, Endpoint, Entry, MessageFilter, PAGE_MAX, Page, PageFrom, Posted, PostedFilter,
    TALLIES_KEPT, Tally, Tried, TriedPlace,
};

fn any() -> PostedFilter {
    PostedFilter::default()
}

async fn deliveries(store: &Subject, which: Deliveries, filter: PostedFilter) -> Vec<Posted> {
    let page = Page {
        limit: PAGE_MAX,
        from: PageFrom::Newest,
    };
    let listed = store.deliveries(which, filter, page).await;
    let listed = listed.expect("the store lists");
    assert_eq!(listed.next, None);
    listed.rows
}

async fn attempts(store: &Subject, which: Deliveries, filter: PostedFilter) -> Vec<Tried> {
    let page = Page {
        limit: PAGE_MAX,
        from: PageFrom::Newest,
    };
    let listed = store.attempts(which, filter, page).await;
    let listed = listed.expect("the store lists");
    assert_eq!(listed.next, None);
    listed.rows
}

/// Messages `a` to `d`, a second apart, to endpoints 1 and 2.
async fn four(store: &Subject) {
    for (second, key) in (0..).zip(["a", "b", "c", "d"]) {
        let mut new = message(1, key, at(second), &[1, 2], 0);
        new.about.channels = vec![key.into()];
        stored(store, new).await;
    }
}

fn keys(posted: &[Posted]) -> Vec<&str> {
    let messages = posted.iter().filter_map(|one| one.message.as_ref());
    messages.map(|message| &*message.event.key).collect()
}

/// Deliveries to an endpoint and of a message, newest first, each with its message.
pub async fn deliveries_are_listed_by_every_filter(store: Subject, _: Dial) {
    four(&store).await;
    super::worker::accept_effects(
        &store,
        "k",
        vec![super::worker::planned(
            "e",
            "k",
            hapax_ledger::effect::Repeat::Keyed,
        )],
    )
    .await;
    let to_first = || Deliveries::To(endpoint_id(1));
    let all = deliveries(&store, to_first(), any()).await;
    assert_eq!(keys(&all), ["d", "c", "b", "a"]);
    assert!(
        all.iter()
            .all(|one| *one.effect.lane == *endpoint_id(1).to_string())
    );
    let about = &all[0].message.as_ref().expect("a message").about;
    assert_eq!(about.channels, ["d"]);
    let event = all[0].effect.event;
    let of = deliveries(&store, Deliveries::Of(event), any()).await;
    assert_eq!(keys(&of), ["d", "d"]);
    assert_eq!(
        deliveries(&store, Deliveries::To(endpoint_id(9)), any()).await,
        []
    );
    for effect in claim(&store).await {
        if *effect.lane == *endpoint_id(1).to_string() && effect.event != event {
            done(&store, &effect, START).await;
            done(&store, &effect, SETTLED).await;
        }
    }
    let table = [
        (standing(&[EffectState::Done]), "cba"),
        (standing(&[EffectState::Claimed, EffectState::Dead]), "d"),
        (of_message(narrowed(|f| f.channel = Some("b".into()))), "b"),
        (of_message(narrowed(|f| f.app = Some(app_id(2)))), ""),
        (
            of_message(narrowed(|f| {
                (f.since, f.until) = (Some(at(1)), Some(at(3)))
            })),
            "cb",
        ),
        (
            of_message(narrowed(|f| f.event_types = vec!["x".into()])),
            "",
        ),
    ];
    for (filter, expected) in table {
        let said = format!("{filter:?}");
        let found = deliveries(&store, to_first(), filter).await;
        assert_eq!(keys(&found).concat(), expected, "{said}");
    }
}

fn standing(states: &[EffectState]) -> PostedFilter {
    PostedFilter {
        states: states.to_vec(),
        ..any()
    }
}

fn of_message(message: MessageFilter) -> PostedFilter {
    PostedFilter { message, ..any() }
}

/// Pages of deliveries meet, both ways.
pub async fn pages_of_deliveries_meet_both_ways(store: Subject, _: Dial) {
    four(&store).await;
    let event = deliveries(&store, Deliveries::To(endpoint_id(1)), any()).await[0]
        .effect
        .event;
    for which in [Deliveries::To(endpoint_id(1)), Deliveries::Of(event)] {
        let expected: Vec<EffectId> = deliveries(&store, which.clone(), any())
            .await
            .iter()
            .map(|one| one.effect.id)
            .collect();
        let page = async |from| {
            let listed = store
                .deliveries(which.clone(), any(), Page { limit: 1, from })
                .await;
            listed.expect("the store lists")
        };
        let (mut from, mut seen) = (PageFrom::Newest, Vec::new());
        loop {
            let listed = page(from).await;
            seen.extend(listed.rows.iter().map(|one| one.effect.id));
            match listed.next {
                Some(next) => from = PageFrom::OlderThan(next),
                None => break,
            }
        }
        assert_eq!(seen, expected);
        for (newer, older) in seen.iter().zip(&seen[1..]) {
            let back = page(PageFrom::NewerThan(*older)).await;
            assert_eq!(back.rows[0].effect.id, *newer);
        }
    }
}

/// Attempts: newest message first, of each the latest first; their pages meet.
pub async fn attempts_are_listed_latest_first(store: Subject, _: Dial) {
    four(&store).await;
    for _ in 0..3 {
        for effect in claim(&store).await {
            done(&store, &effect, START).await;
            done(&store, &effect, ended(BROKEN, Next::At(Span::ZERO))).await;
        }
    }
    let which = || Deliveries::To(endpoint_id(1));
    let all = attempts(&store, which(), any()).await;
    assert_eq!(all.len(), 12);
    let numbers: Vec<u32> = all.iter().map(|one| one.attempt.number).collect();
    assert_eq!(numbers[..6], [3, 2, 1, 3, 2, 1]);
    let posted: Vec<Posted> = all.iter().map(|one| one.posted.clone()).collect();
    assert_eq!(keys(&posted)[2..5], ["d", "c", "c"]);
    let whole = store
        .effect(posted[0].effect.id)
        .await
        .expect("the store reads");
    let whole = whole.expect("the effect is there");
    assert_eq!(all[0].attempt, whole.attempts[2]);
    let filter = of_message(narrowed(|f| f.channel = Some("b".into())));
    assert_eq!(attempts(&store, which(), filter).await.len(), 3);
    let of = Deliveries::Of(posted[0].effect.event);
    assert_eq!(attempts(&store, of, any()).await.len(), 6);
    for limit in [1, 2, 5] {
        let (mut from, mut seen) = (PageFrom::Newest, Vec::new());
        loop {
            let listed = store.attempts(which(), any(), Page { limit, from }).await;
            let listed = listed.expect("the store lists");
            seen.extend(listed.rows);
            match listed.next {
                Some(next) => from = PageFrom::OlderThan(next),
                None => break,
            }
        }
        assert_eq!(seen, all, "{limit}");
    }
    let places: Vec<TriedPlace> = all.iter().map(place).collect();
    for (newer, older) in places.iter().zip(&places[1..]) {
        let page = Page {
            limit: 1,
            from: PageFrom::NewerThan(*older),
        };
        let back = store
            .attempts(which(), any(), page)
            .await
            .expect("the store lists");
        assert_eq!(place(&back.rows[0]), *newer);
    }
}

fn place(tried: &Tried) -> TriedPlace {
    TriedPlace {
        effect: tried.posted.effect.id,
        fence: tried.attempt.fence.as_u64(),
    }
}

async fn tallies(store: &Subject, endpoint: u64) -> Vec<Tally> {
    let tallies = store.tallies(endpoint_id(endpoint), at(-86_400), at(86_400 * 365));
    tallies.await.expect("the store counts")
}

/// What attempts came to, hour by hour, for endpoints and nobody else.
pub async fn attempts_are_tallied_by_the_hour(store: Subject, dial: Dial) {
    let hour = |number: i64| Tally::of(at(number * 3_600));
    stored(&store, message(1, "a", at(0), &[1], 0)).await;
    let first = start_one(&store).await;
    done(&store, &first, ended(BROKEN, Next::At(Span::ZERO))).await;
    dial.set(at(3_600));
    let second = start_one(&store).await;
    done(&store, &second, SETTLED).await;
    stored(&store, message(1, "b", at(1), &[1], 0)).await;
    done(&store, &start_one(&store).await, GIVEN_UP).await;
    stored(&store, message(1, "c", at(2), &[1], 0)).await;
    start_one(&store).await;
    dial.set(at(2 * 3_600));
    assert_eq!(rescue(&store).await, 1);
    let expected = [
        Tally {
            failed: 1,
            ..hour(0)
        },
        Tally {
            done: 1,
            failed: 1,
            dead: 1,
            ..hour(1)
        },
        Tally {
            failed: 1,
            ..hour(2)
        },
    ];
    assert_eq!(tallies(&store, 1).await, expected);
    assert_eq!(tallies(&store, 2).await, []);
    let one_hour = store.tallies(endpoint_id(1), hour(1).hour, hour(2).hour);
    assert_eq!(one_hour.await.expect("the store counts"), expected[1..2]);
    let late = hour(0).hour + TALLIES_KEPT;
    reap_all(&store, late).await;
    assert_eq!(tallies(&store, 1).await, expected[1..]);
}

/// Attempts are summed over all endpoints of an application, also over those that are gone from it, and over no other's.
pub async fn attempts_are_summed_by_application(store: Subject, dial: Dial) {
    put_done(&store, Entry::App(app(1)), 0).await;
    put_done(&store, Entry::App(app(2)), 0).await;
    let mut revision = 0;
    for (number, of) in [(1, 1), (2, 1), (3, 2)] {
        revision = put_done(&store, boxed(endpoint(number, of)), 0).await;
    }
    stored(&store, message(1, "a", at(0), &[1, 2], revision)).await;
    stored(&store, message(2, "b", at(0), &[3], revision)).await;
    for effect in claim(&store).await {
        done(&store, &effect, START).await;
        done(&store, &effect, SETTLED).await;
    }
    dial.set(at(3_600));
    stored(&store, message(1, "c", at(1), &[1], revision)).await;
    done(&store, &start_one(&store).await, GIVEN_UP).await;
    let gone = Endpoint {
        deleted_at: Some(at(9)),
        ..endpoint(2, 1)
    };
    put_done(&store, boxed(gone), 4).await;
    let usage = async |app, since, until| {
        let usage = store.usage(app_id(app), at(since), at(until)).await;
        usage.expect("the store counts")
    };
    assert_eq!(usage(1, 0, 7_200).await, 3);
    assert_eq!(usage(1, 0, 3_600).await, 2);
    assert_eq!(usage(1, 3_600, 7_200).await, 1);
    assert_eq!(usage(2, 0, 7_200).await, 1);
    assert_eq!(usage(3, 0, 7_200).await, 0);
}

/// Many at once in one lane and hour are counted, each.
pub async fn racing_attempts_are_all_tallied(store: Subject, _: Dial) {
    for number in 0..30 {
        stored(
            &store,
            message(1, &format!("m{number}"), at(number), &[1, 2], 0),
        )
        .await;
    }
    let racing = claim(&store).await.into_iter().map(|effect| {
        let store = store.clone();
        async move {
            done(&store, &effect, START).await;
            done(&store, &effect, SETTLED).await;
        }
    });
    super::sample::all(racing).await;
    for endpoint in [1, 2] {
        let sum: u64 = tallies(&store, endpoint)
            .await
            .iter()
            .map(|one| one.done)
            .sum();
        assert_eq!(sum, 30);
    }
}

/// What waits for an endpoint, for its time or its turn, and what is under way.
pub async fn what_waits_is_counted(store: Subject, _: Dial) {
    for (second, key) in (0..).zip(["a", "b", "c"]) {
        stored(&store, ordered(message(1, key, at(second), &[1], 0), "o")).await;
    }
    let mut new = message(1, "d", at(4), &[1], 0);
    new.arrival.events[0].effects[0].wait = Span::from_secs(1_000_000);
    stored(&store, new).await;
    stored(&store, message(1, "e", at(5), &[2], 0)).await;
    let waiting = async |endpoint| {
        let waiting = store.waiting(endpoint_id(endpoint)).await;
        waiting.expect("the store counts")
    };
    assert_eq!(waiting(1).await, (4, 0));
    assert_eq!(claim(&store).await.len(), 2);
    assert_eq!((waiting(1).await, waiting(2).await), ((3, 1), (0, 1)));
    assert_eq!(waiting(3).await, (0, 0));
}

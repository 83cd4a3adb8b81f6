//! Effects listed and counted, and what their requests are made of.

use bytes::Bytes;
use hapax_ledger::effect::{EffectState, Repeat, SkipReason};
use hapax_ledger::id::{EffectId, EventId};
use hapax_ledger::key::{KeyHash, KeyKind};
use hapax_ledger::outcome::Outcome;
use hapax_ledger::retry::Next;
use hapax_ledger::time::Span;

use super::sample::{Dial, KEEP, Subject, accept_one, at, event, reap_all};
use super::worker::{
    GIVEN_UP, LEASE, SETTLED, START, accept_effects, calling_for, claim_lanes, claim_one, done,
    effect_detail, ended, planned, serial,
};
use crate::nouns::{EffectCounts, EffectFilter, Move, NewEffect, NewEvent, Page, PageFrom, Parcel};

async fn page(
    store: &Subject,
    filter: &EffectFilter,
    from: PageFrom<EffectId>,
    limit: u32,
) -> (Vec<String>, Option<EffectId>) {
    let listed = store.effects(filter.clone(), Page { limit, from }).await;
    let listed = listed.expect("the store lists");
    let keys = listed.rows.into_iter().map(|effect| effect.key).collect();
    (keys, listed.next)
}

/// All that fits, newest first, page by page.
async fn list(store: &Subject, filter: &EffectFilter, limit: u32) -> Vec<String> {
    let mut all = Vec::new();
    let mut from = PageFrom::Newest;
    loop {
        let (keys, next) = page(store, filter, from, limit).await;
        all.extend(keys);
        let Some(next) = next else { return all };
        from = PageFrom::OlderThan(next);
    }
}

/// One effect in each state, of events a second apart: the state is the effect's key.
async fn one_of_each(store: &Subject) {
    for (second, state) in EffectState::ALL.iter().enumerate() {
        let effect = NewEffect {
            lane: if second % 2 == 0 { "even" } else { "odd" }.into(),
            ..planned("e", state.word(), Repeat::Once)
        };
        let source = if second < 3 { "a" } else { "b" };
        let mut new = calling_for(state.word(), vec![effect]);
        new.key_hash = KeyHash::of(KeyKind::Identity, source, &new.key);
        accept_one(store, source, at(second as i64), new).await;
    }
    let refused = Outcome::Answered {
        status: 404,
        retry_after: None,
    };
    for claimed in claim_lanes(store, "n", &[("even", 9), ("odd", 9)], LEASE).await {
        let effect = claimed.effect;
        let moves = match effect.key.as_str() {
            "pending" => vec![Move::Release(Span::ZERO)],
            "skipped" => vec![Move::Skip(SkipReason::Operator)],
            "done" => vec![START, SETTLED],
            "uncertain" => vec![START, GIVEN_UP],
            "dead" => vec![START, ended(refused, Next::Exhausted)],
            _ => Vec::new(),
        };
        for what in moves {
            done(store, &effect, what).await;
        }
    }
}

/// Every filter narrows to what fits, newest first, whatever the size of the pages.
pub async fn effects_are_listed_by_every_filter(store: Subject, _dial: Dial) {
    one_of_each(&store).await;
    let all = EffectFilter::default();
    let newest_first = ["skipped", "dead", "uncertain", "done", "claimed", "pending"];
    for limit in [1, 4, 100] {
        assert_eq!(list(&store, &all, limit).await, newest_first);
    }
    for state in EffectState::ALL {
        let filter = EffectFilter {
            state: Some(*state),
            ..all.clone()
        };
        assert_eq!(list(&store, &filter, 1).await, [state.word()]);
    }
    let table: [(EffectFilter, &[&str]); 6] = [
        (
            EffectFilter {
                lane: Some("odd".into()),
                ..all.clone()
            },
            &["skipped", "uncertain", "claimed"],
        ),
        (
            EffectFilter {
                source: Some("a".into()),
                ..all.clone()
            },
            &["done", "claimed", "pending"],
        ),
        (
            EffectFilter {
                source: Some("b".into()),
                state: Some(EffectState::Dead),
                ..all.clone()
            },
            &["dead"],
        ),
        (
            EffectFilter {
                name: Some("other".into()),
                ..all.clone()
            },
            &[],
        ),
        (
            EffectFilter {
                name: Some("e".into()),
                since: Some(at(1)),
                until: Some(at(3)),
                ..all.clone()
            },
            &["done", "claimed"],
        ),
        (
            EffectFilter {
                state: Some(EffectState::Pending),
                since: Some(at(1)),
                ..all.clone()
            },
            &[],
        ),
    ];
    for (filter, expected) in table {
        assert_eq!(list(&store, &filter, 2).await, expected, "{filter:?}");
    }
}

/// Pages meet without gap or overlap both ways, and rows are the effects as they are.
pub async fn pages_of_effects_meet_both_ways(store: Subject, _dial: Dial) {
    one_of_each(&store).await;
    let everything = EffectFilter::default();
    let (keys, next) = page(&store, &everything, PageFrom::Newest, 2).await;
    assert_eq!(keys, ["skipped", "dead"]);
    let next = next.expect("there is more");
    let (older, further) = page(&store, &everything, PageFrom::OlderThan(next), 3).await;
    assert_eq!(older, ["uncertain", "done", "claimed"]);
    let further = further.expect("there is more");
    let (newer, _) = page(&store, &everything, PageFrom::NewerThan(further), 2).await;
    assert_eq!(
        newer,
        ["uncertain", "done"],
        "the two next newer, newest first"
    );
    let limit = 100;
    let from = PageFrom::Newest;
    let listed = store.effects(everything, Page { limit, from }).await;
    for effect in listed.expect("the store lists").rows {
        assert_eq!(effect, effect_detail(&store, &effect).await.effect);
    }
}

/// Counts of what has not ended well are exact; what waits behind another is pending.
pub async fn effects_that_have_not_ended_well_are_counted(store: Subject, _dial: Dial) {
    let counts = async || store.effect_counts().await.expect("the store counts");
    assert_eq!(counts().await, EffectCounts::default());
    one_of_each(&store).await;
    let one_each = EffectCounts {
        pending: 1,
        claimed: 1,
        uncertain: 1,
        dead: 1,
    };
    assert_eq!(counts().await, one_each);
    let behind = |key: &str| NewEffect {
        order: Some(serial("in_1")),
        ..planned("o", key, Repeat::Keyed)
    };
    accept_effects(&store, "k", vec![behind("1"), behind("2")]).await;
    let more = EffectCounts {
        pending: 3,
        ..one_each
    };
    assert_eq!(counts().await, more);
}

/// A parcel has what a request is made of, in the order asked, as often as asked; without its bytes there is none.
pub async fn parcels_come_in_the_order_asked(store: Subject, _dial: Dial) {
    let bytes = Bytes::from_static(b"\0\xff{");
    let first = NewEvent {
        event_type: None,
        object_id: Some("in_1".into()),
        content_type: None,
        body: bytes.clone(),
        ..event("a", "one", "")
    };
    let gone = accept_one(&store, "a", at(-90_000_000), event("a", "gone", "{}")).await;
    let one = accept_one(&store, "a", at(1), first).await.event;
    let two = accept_one(&store, "b", at(2), event("b", "two", "{}"))
        .await
        .event;
    reap_all(&store, at(0) - Span::from_secs(90_000_000) + KEEP.payload).await;
    let unknown = EventId::from_bytes([7; 16]);
    let asked = vec![two, gone.event, one, unknown, two];
    let parcels = store.parcels(asked).await.expect("the store reads");
    let first = Parcel {
        source: "a".into(),
        event_type: None,
        key: "one".into(),
        object_id: Some("in_1".into()),
        received_at: at(1),
        content_type: None,
        body: bytes,
        about: None,
    };
    let second = Parcel {
        source: "b".into(),
        event_type: Some("invoice.paid".into()),
        key: "two".into(),
        object_id: None,
        received_at: at(2),
        content_type: Some("application/json".into()),
        body: Bytes::from_static(b"{}"),
        about: None,
    };
    let expected = [Some(second.clone()), None, Some(first), None, Some(second)];
    assert_eq!(parcels, expected);
    assert_eq!(store.parcels(Vec::new()).await.expect("it reads"), []);
}

/// D6: an effect names every event that calls for it, the first one first.
pub async fn an_effect_names_the_events_that_call_for_it(store: Subject, _dial: Dial) {
    let mut events = Vec::new();
    for key in ["1", "2", "3"] {
        let effects = vec![planned("e", "x", Repeat::Keyed)];
        events.push(accept_effects(&store, key, effects).await.event);
    }
    let effect = claim_one(&store).await;
    let mut named = effect_detail(&store, &effect).await.events;
    assert_eq!(named[0], events[0]);
    named.sort_unstable();
    events.sort_unstable();
    assert_eq!(named, events);
}

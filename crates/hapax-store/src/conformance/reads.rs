//! Details, lists, pages and filters.

use hapax_ledger::event::EventStatus;
use hapax_ledger::id::{EventId, RawId};
use hapax_ledger::time::{Span, Time};

use super::sample::{Subject, accept, accept_one, all, at, event, page, review};
use crate::nouns::{EventFilter, PAGE_MAX, PageFrom, PayloadAnswer};

/// J3: an id that was not given names nothing, however near it is to one that was.
pub async fn ids_that_were_never_given_find_nothing(store: Subject) {
    let given = accept(&store, at(0), "k", "A").await.event.0;
    let moment = Time::from_micros(given.millis() as i64 * 1_000);
    let foreign = [
        RawId::new(moment + Span::from_millis(1), given.shard(), given.row()),
        RawId::new(moment, given.shard() + 1, given.row()),
        RawId::new(moment, given.shard(), given.row() + 1),
        RawId::new(moment, 4_000, given.row()),
        RawId::from_bytes([0; 16]),
        RawId::from_bytes([0xff; 16]),
    ];
    for id in foreign.map(EventId) {
        assert_eq!(
            store.event(id).await.expect("the store reads"),
            None,
            "{id}"
        );
        assert_eq!(
            store.payload(id).await.expect("the store reads"),
            PayloadAnswer::NoEvent,
            "{id}"
        );
    }
}

/// A3: what a caller asks after an unknown commit has an honest answer.
pub async fn keys_that_were_never_seen_are_not_sighted(store: Subject) {
    accept(&store, at(0), "k", "A").await;
    for (source, key) in [("a", "j"), ("b", "k"), ("", ""), ("a", "k\0")] {
        assert_eq!(
            store
                .sighted(source, key, at(0))
                .await
                .expect("the store reads"),
            None,
            "{source} {key}"
        );
    }
}

/// Nine events, a second apart, oldest first.
async fn nine(store: &Subject) -> Vec<EventId> {
    let mut ids = Vec::new();
    for n in 0..9 {
        ids.push(accept(store, at(n), &format!("k{n}"), "A").await.event);
    }
    ids
}

/// Whoever walks a list sees every event once, forth and back.
pub async fn pages_meet_without_gap_or_overlap_both_ways(store: Subject) {
    let ids = nine(&store).await;
    let everything = EventFilter::default();
    let newest_first: Vec<EventId> = ids.iter().rev().copied().collect();
    assert_eq!(
        page(&store, &everything, PageFrom::Newest, 100).await,
        (newest_first.clone(), None)
    );
    // Forth, in pages of four: 4, 4, 1.
    let mut walked = Vec::new();
    let mut from = PageFrom::Newest;
    loop {
        let (rows, next) = page(&store, &everything, from, 4).await;
        walked.extend(rows);
        let Some(next) = next else { break };
        from = PageFrom::OlderThan(next);
    }
    assert_eq!(walked, newest_first);
    // Exactly full: there is nothing behind the last page.
    assert_eq!(page(&store, &everything, PageFrom::Newest, 9).await.1, None);
    // Back, from the oldest: the nearest newer ones, still newest first.
    let (rows, next) = page(&store, &everything, PageFrom::NewerThan(ids[0]), 3).await;
    assert_eq!((rows, next), (vec![ids[3], ids[2], ids[1]], Some(ids[1])));
    assert_eq!(
        page(&store, &everything, PageFrom::NewerThan(ids[8]), 3).await,
        (Vec::new(), None)
    );
    assert_eq!(
        page(&store, &everything, PageFrom::OlderThan(ids[0]), 3).await,
        (Vec::new(), None)
    );
}

/// I2: after a clock jumped back, lists go by receipt time or by accept order, as the store keeps them, but pages still meet
/// without gap or overlap.
pub async fn a_clock_that_jumped_back_hides_nothing_from_lists(store: Subject) {
    let mut ids = Vec::new();
    for (key, second) in [("k0", 10), ("k1", 30), ("k2", 20), ("k3", 0)] {
        ids.push(accept(&store, at(second), key, "A").await.event);
    }
    let everything = EventFilter::default();
    let (whole, _) = page(&store, &everything, PageFrom::Newest, 10).await;
    let (mut rows, mut next) = page(&store, &everything, PageFrom::Newest, 1).await;
    while let Some(last) = next {
        let (more, after) = page(&store, &everything, PageFrom::OlderThan(last), 1).await;
        rows.extend(more);
        next = after;
    }
    assert_eq!(rows, whole);
    let (newer, _) = page(&store, &everything, PageFrom::NewerThan(whole[3]), 10).await;
    assert_eq!(newer, whole[..3]);
    rows.sort_unstable();
    ids.sort_unstable();
    assert_eq!(rows, ids);
}

/// A page is never empty by request and never longer than promised.
pub async fn limits_are_kept_within_their_bounds(store: Subject) {
    let racing = (0..PAGE_MAX + 5).map(|n| {
        let store = store.clone();
        async move { accept(&store, at(n.into()), &format!("k{n}"), "A").await }
    });
    all(racing).await;
    let everything = EventFilter::default();
    for (limit, expected) in [(0, 1), (1, 1), (PAGE_MAX, PAGE_MAX), (u32::MAX, PAGE_MAX)] {
        let (rows, next) = page(&store, &everything, PageFrom::Newest, limit).await;
        assert_eq!(rows.len(), expected as usize, "limit {limit}");
        assert_eq!(next, rows.last().copied());
    }
}

/// Five events that differ in what filters look at, oldest first.
async fn five(store: &Subject) -> [EventId; 5] {
    let plain = event("a", "k0", "A");
    let other_source = event("b", "k0", "A");
    let mut untyped = event("a", "k2", "A");
    untyped.event_type = None;
    let mut about = event("a", "k3", "A");
    about.entity = Some("cus_1".into());
    let mut waiting = event("a", "k4", "A");
    waiting.review = Some(review());
    [
        accept_one(store, "a", at(0), plain).await.event,
        accept_one(store, "b", at(1), other_source).await.event,
        accept_one(store, "a", at(2), untyped).await.event,
        accept_one(store, "a", at(3), about).await.event,
        accept_one(store, "a", at(4), waiting).await.event,
    ]
}

/// Each part of a filter on its own, and two together.
pub async fn every_filter_narrows_to_what_fits(store: Subject) {
    let [plain, other_source, untyped, about, waiting] = five(&store).await;
    let all = EventFilter::default;
    let source = |source: &str| EventFilter {
        source: Some(source.into()),
        ..all()
    };
    let kind = |kind: &str| EventFilter {
        event_type: Some(kind.into()),
        ..all()
    };
    let status = |status| EventFilter {
        status: Some(status),
        ..all()
    };
    let key = |key: &str| EventFilter {
        key: Some(key.into()),
        ..all()
    };
    let entity = |entity: &str| EventFilter {
        entity: Some(entity.into()),
        ..all()
    };
    let both = EventFilter {
        source: Some("b".into()),
        ..key("k0")
    };
    let text = |text: &str| EventFilter {
        key_contains: Some(text.into()),
        ..all()
    };
    let text_too = EventFilter {
        status: Some(EventStatus::NeedsReview),
        ..text("4")
    };
    let table: Vec<(EventFilter, Vec<EventId>)> = vec![
        (all(), vec![waiting, about, untyped, other_source, plain]),
        (source("a"), vec![waiting, about, untyped, plain]),
        (source("c"), vec![]),
        (
            kind("invoice.paid"),
            vec![waiting, about, other_source, plain],
        ),
        (status(EventStatus::NeedsReview), vec![waiting]),
        (status(EventStatus::Dead), vec![]),
        (key("k0"), vec![other_source, plain]),
        (both, vec![other_source]),
        (key("k"), vec![]),
        (text("0"), vec![other_source, plain]),
        (text("k3"), vec![about]),
        (text("3k"), vec![]),
        (text("K3"), vec![]),
        (text(""), vec![waiting, about, untyped, other_source, plain]),
        (text_too, vec![waiting]),
        (entity("cus_1"), vec![about]),
    ];
    for (filter, expected) in table {
        let (rows, next) = page(&store, &filter, PageFrom::Newest, 10).await;
        assert_eq!((rows, next), (expected.clone(), None), "{filter:?}");
        let newer: Vec<EventId> = expected.into_iter().filter(|id| *id > plain).collect();
        assert_eq!(
            page(&store, &filter, PageFrom::NewerThan(plain), 10)
                .await
                .0,
            newer,
            "{filter:?}"
        );
    }
}

/// A text in a key is that text and nothing else: no pattern, no other letters, whatever a store makes of them.
pub async fn a_text_in_a_key_is_found_letter_by_letter(store: Subject) {
    let mut ids = Vec::new();
    for (n, key) in (0..).zip([
        "in_100%_x",
        "in_1000_x",
        "nul\0byte",
        "nul\u{1a}byte",
        "Grüße",
    ]) {
        ids.push(accept(&store, at(n), key, "A").await.event);
    }
    let table: [(&str, &[usize]); 9] = [
        ("100%", &[0]),
        ("0_x", &[1]),
        ("_1", &[0, 1]),
        (".*", &[]),
        ("\0b", &[2]),
        ("\u{1a}", &[3]),
        ("0b", &[]),
        ("1b", &[]),
        ("üß", &[4]),
    ];
    for (text, expected) in table {
        let filter = EventFilter {
            key_contains: Some(text.into()),
            ..EventFilter::default()
        };
        let expected: Vec<EventId> = expected.iter().rev().map(|at| ids[*at]).collect();
        let (rows, _) = page(&store, &filter, PageFrom::Newest, 10).await;
        assert_eq!(rows, expected, "{text:?}");
    }
}

/// What was given up or waits for a person is listed page by page like all else.
pub async fn what_waits_for_a_person_is_listed_in_pages(store: Subject) {
    let mut wanted = Vec::new();
    for n in 0..12 {
        let mut new = event("a", &format!("k{n}"), "A");
        new.review = (n % 3 == 0).then(review);
        let id = accept_one(&store, "a", at(n), new).await.event;
        if n % 3 == 0 {
            wanted.insert(0, id);
        }
    }
    let filter = EventFilter {
        status: Some(EventStatus::NeedsReview),
        ..EventFilter::default()
    };
    let (first, next) = page(&store, &filter, PageFrom::Newest, 3).await;
    assert_eq!((&first[..], next), (&wanted[..3], Some(wanted[2])));
    let (rest, next) = page(&store, &filter, PageFrom::OlderThan(wanted[2]), 3).await;
    assert_eq!((&rest[..], next), (&wanted[3..], None));
    let (back, _) = page(&store, &filter, PageFrom::NewerThan(wanted[3]), 2).await;
    assert_eq!(&back[..], &wanted[1..3]);
}

/// To the microsecond, though ids only know milliseconds.
pub async fn times_include_their_beginning_and_exclude_their_end(store: Subject) {
    let moment = |micros| at(0) + Span::from_micros(micros);
    let mut ids = Vec::new();
    // Apart by more than a millisecond where their order matters.
    for (n, micros) in [0, 2_001, 4_002].into_iter().enumerate() {
        ids.push(
            accept(&store, moment(micros), &format!("k{n}"), "A")
                .await
                .event,
        );
    }
    let table = [
        (Some(moment(2_001)), None, vec![ids[2], ids[1]]),
        (Some(moment(2_002)), None, vec![ids[2]]),
        (None, Some(moment(2_001)), vec![ids[0]]),
        (None, Some(moment(2_002)), vec![ids[1], ids[0]]),
        (Some(moment(0)), Some(moment(4_002)), vec![ids[1], ids[0]]),
        (Some(moment(4_003)), None, vec![]),
        (Some(moment(4_000)), Some(moment(2_000)), vec![]),
    ];
    for (since, until, expected) in table {
        let filter = EventFilter {
            since,
            until,
            ..EventFilter::default()
        };
        assert_eq!(
            page(&store, &filter, PageFrom::Newest, 10).await,
            (expected, None),
            "{filter:?}"
        );
    }
}

/// A filter does not cut the list short, and its pages do not repeat.
pub async fn a_filtered_list_goes_on_after_its_pages(store: Subject) {
    let mut wanted = Vec::new();
    for n in 0..10 {
        let source = if n % 2 == 0 { "even" } else { "odd" };
        let id = accept_one(&store, source, at(n), event(source, &format!("k{n}"), "A"))
            .await
            .event;
        if n % 2 == 0 {
            wanted.insert(0, id);
        }
    }
    let filter = EventFilter {
        source: Some("even".into()),
        ..EventFilter::default()
    };
    let (first, next) = page(&store, &filter, PageFrom::Newest, 2).await;
    assert_eq!((&first[..], next), (&wanted[..2], Some(wanted[1])));
    let (second, next) = page(&store, &filter, PageFrom::OlderThan(wanted[1]), 2).await;
    assert_eq!((&second[..], next), (&wanted[2..4], Some(wanted[3])));
    let (third, next) = page(&store, &filter, PageFrom::OlderThan(wanted[3]), 2).await;
    assert_eq!((&third[..], next), (&wanted[4..], None));
    let (back, _) = page(&store, &filter, PageFrom::NewerThan(wanted[4]), 2).await;
    assert_eq!(&back[..], &wanted[2..4]);
}

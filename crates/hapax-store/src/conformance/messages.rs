//! Messages: stored with their deliveries, numbered, read back.

use hapax_ledger::event::EventStatus;
use hapax_ledger::id::EventId;
use hapax_ledger::time::{Span, Time};

use super::publisher::{
    app, app_id, done, endpoint_id, later, message, ordered, publish, stored, with_body,
};
use super::sample::{Dial, KEEP, Subject, all, at, detail, reap_all};
use super::worker::{LEASE, SETTLED, claim, done as moved, due};
use crate::nouns::{
    About, Born, Entry, Message, MessageFilter, NewMessage, PAGE_MAX, Page, PageFrom,
    PayloadAnswer, Published, Receipted, app_source,
};

async fn read(store: &Subject, id: EventId) -> Option<Message> {
    store.message(id).await.expect("the store reads")
}

async fn about(store: &Subject, id: EventId) -> About {
    read(store, id).await.expect("the message is there").about
}

/// All that a publisher may say.
fn whole() -> About {
    About {
        event_id: Some("order-1\0".into()),
        channels: vec!["c1".into(), "ü\0".into()],
        tags: vec!["t".into()],
        deliver_at: Some(at(60)),
        api_version: Some("2026-01".into()),
        ordering_key: None,
        sequence_key: Some("s".into()),
        sequence: None,
        only_to: None,
    }
}

/// B2, G1: message and deliveries are stored together, and what was said about it goes along with what is sent.
pub async fn a_message_comes_back_whole(store: Subject, _: Dial) {
    let mut new = message(1, "m", at(0), &[1, 2], 0);
    new.about = whole();
    let receipt = stored(&store, new).await;
    assert_eq!(receipt.sighting, Receipted::New);
    let kept = read(&store, receipt.event).await.expect("it is there");
    let numbered = About {
        sequence: Some(1),
        ..whole()
    };
    assert_eq!(kept.about, numbered);
    assert_eq!(*kept.event.source, *app_source(app_id(1)));
    assert_eq!(kept.event.provider_event_id, whole().event_id);
    let detail = detail(&store, receipt.event).await;
    assert_eq!(detail.event, kept.event);
    let lanes: Vec<String> = detail
        .effects
        .iter()
        .map(|one| one.lane.to_string())
        .collect();
    let ids = [endpoint_id(1), endpoint_id(2)];
    assert_eq!(lanes, ids.map(|id| id.to_string()));
    let parcels = store.parcels(vec![receipt.event]).await;
    let parcel = parcels.expect("the store reads").remove(0).expect("bytes");
    assert_eq!(parcel.about, Some(numbered));
    let plain = super::sample::accept(&store, at(0), "k", "A").await.event;
    assert_eq!(read(&store, plain).await, None, "no message");
    let parcels = store.parcels(vec![plain]).await;
    assert_eq!(
        parcels.expect("the store reads")[0]
            .as_ref()
            .map(|one| &one.about),
        Some(&None)
    );
}

/// G1: what was planned by an older catalogue is not stored; but a message that is known is told so whatever the plan.
pub async fn a_plan_by_an_old_catalogue_is_refused(store: Subject, _: Dial) {
    let known = stored(&store, message(1, "known", at(0), &[1], 0)).await;
    done(&store, Entry::App(app(1)), 0).await;
    let old = message(1, "m", at(1), &[1], 0);
    assert_eq!(publish(&store, old.clone()).await, Published::Outdated);
    let sighted = store.sighted(&app_source(app_id(1)), "m", at(1)).await;
    assert_eq!(sighted.expect("the store looks"), None);
    let early = message(1, "m", at(1), &[1], 2);
    assert_eq!(publish(&store, early).await, Published::Outdated);
    let again = stored(&store, message(1, "known", at(1), &[1], 0)).await;
    assert_eq!(
        (again.event, again.sighting),
        (known.event, Receipted::Duplicate)
    );
    let new = NewMessage { revision: 1, ..old };
    assert_eq!(stored(&store, new).await.sighting, Receipted::New);
}

/// A4, B3: the same again is a delivery more of the same message; another body under its key is answered, and changes nothing.
pub async fn a_repeated_message_is_the_same_message(store: Subject, _: Dial) {
    let new = message(1, "m", at(0), &[1], 0);
    let first = stored(&store, new.clone()).await;
    let again = stored(&store, message(1, "m", at(1), &[1, 2], 0)).await;
    assert_eq!(
        (again.event, again.sighting),
        (first.event, Receipted::Duplicate)
    );
    let before = detail(&store, first.event).await;
    assert_eq!((before.event.delivery_count, before.effects.len()), (2, 1));
    let other = stored(&store, with_body(message(1, "m", at(2), &[1], 0), "[]")).await;
    assert_eq!(
        (other.event, other.sighting),
        (first.event, Receipted::Conflict)
    );
    assert_eq!(detail(&store, first.event).await, before);
    let elsewhere = stored(&store, message(2, "m", at(2), &[3], 0)).await;
    assert_eq!(elsewhere.sighting, Receipted::New, "apps do not share keys");
}

/// A message of one endpoint may be born claimed, like any other event.
pub async fn a_delivery_may_be_born_claimed(store: Subject, _: Dial) {
    let mut new = message(1, "m", at(0), &[1], 0);
    new.arrival.events[0].effects[0].born = Some(Born {
        node: "node".into(),
        lease: LEASE,
    });
    let receipt = stored(&store, new).await;
    let [Some(claimed)] = &receipt.claims[..] else {
        panic!("it is claimed: {:?}", receipt.claims);
    };
    moved(&store, &claimed.effect, SETTLED).await;
    let now = detail(&store, receipt.event).await.event;
    assert_eq!(now.status, EventStatus::Completed);
}

/// Numbers rise by one within an application and key; what is known or refused takes none.
pub async fn numbers_rise_without_a_gap(store: Subject, _: Dial) {
    let numbered = |app, key: &str, under: &str, second| {
        let mut new = message(app, key, at(second), &[1], 0);
        new.about.sequence_key = Some(under.into());
        new
    };
    let number = async |new: NewMessage| {
        let event = stored(&store, new).await.event;
        about(&store, event).await.sequence
    };
    assert_eq!(number(numbered(1, "a", "s", 0)).await, Some(1));
    assert_eq!(number(numbered(1, "b", "s", 1)).await, Some(2));
    assert_eq!(number(numbered(1, "a", "s", 2)).await, Some(1), "known");
    stored(&store, with_body(numbered(1, "a", "s", 3), "[]")).await;
    let mut old = numbered(1, "x", "s", 3);
    old.revision = 7;
    assert_eq!(publish(&store, old).await, Published::Outdated);
    assert_eq!(number(numbered(1, "c", "s", 4)).await, Some(3));
    assert_eq!(number(numbered(1, "d", "t\0", 5)).await, Some(1));
    assert_eq!(number(numbered(2, "a", "s", 6)).await, Some(1));
    assert_eq!(number(message(1, "e", at(7), &[1], 0)).await, None);
    let mut both = ordered(numbered(1, "f", "s", 8), "o");
    both.about.sequence_key = Some("s".into());
    assert_eq!(number(both).await, Some(1), "by the ordering key");
}

/// A count goes with the last message that it was given to, and not before: there are never more counts than messages.
pub async fn a_count_goes_with_its_last_message(store: Subject, _: Dial) {
    let number = async |key: &str, under: &str, second| {
        let mut new = message(1, key, at(second), &[], 0);
        new.about.sequence_key = Some(under.into());
        let event = stored(&store, new).await.event;
        about(&store, event).await.sequence
    };
    let a_day = 24 * 60 * 60;
    assert_eq!(number("a", "s", 0).await, Some(1));
    assert_eq!(number("b", "s", a_day).await, Some(2));
    assert_eq!(number("c", "t", 0).await, Some(1));
    let first_gone = at(0) + KEEP.identity;
    assert_eq!(reap_all(&store, first_gone).await.identities, 2);
    assert_eq!(
        number("d", "s", 2 * a_day).await,
        Some(3),
        "the second is kept"
    );
    assert_eq!(number("e", "t", 2 * a_day).await, Some(1), "it begins anew");
    assert_eq!(number("f", "t", 2 * a_day).await, Some(2));
}

/// However many come at once: each number is given once, and each message is stored once.
pub async fn racing_messages_are_numbered_once_each(store: Subject, _: Dial) {
    let racing = (0..120).map(|n: u32| {
        let store = store.clone();
        async move {
            // Each twice, under three keys.
            let mut new = message(1, &format!("m{}", n / 2), at(0), &[1], 0);
            new.about.sequence_key = Some(format!("s{}", n / 2 % 3));
            let receipt = stored(&store, new).await;
            let about = about(&store, receipt.event).await;
            (about.sequence_key, about.sequence, receipt.sighting)
        }
    });
    let mut numbers: Vec<_> = all(racing)
        .await
        .into_iter()
        .filter(|(.., sighting)| *sighting == Receipted::New)
        .map(|(key, number, _)| (key, number))
        .collect();
    numbers.sort();
    let each = |key: u32| (1..=20).map(move |number| (Some(format!("s{key}")), Some(number)));
    let expected: Vec<_> = (0..3).flat_map(each).collect();
    assert_eq!(numbers, expected);
}

/// F1: with an ordering key, numbers are in the order in which deliveries go out.
pub async fn numbers_follow_the_order_of_delivery(store: Subject, _: Dial) {
    let racing = (0..20).map(|n: u32| {
        let store = store.clone();
        async move {
            stored(
                &store,
                ordered(message(1, &format!("m{n}"), at(0), &[1], 0), "o"),
            )
            .await
        }
    });
    all(racing).await;
    for expected in 1..=20 {
        let effect = super::worker::start_one(&store).await;
        assert_eq!(about(&store, effect.event).await.sequence, Some(expected));
        moved(&store, &effect, SETTLED).await;
    }
}

/// What is no message is refused, and leaves nothing.
pub async fn what_is_no_message_is_refused(store: Subject, _: Dial) {
    let good = || message(1, "m", at(0), &[1], 0);
    let mut nobody = good();
    nobody.arrival.source = "a".into();
    let mut two = good();
    let twin = two.arrival.events[0].clone();
    two.arrival.events.push(twin);
    let mut stranger = good();
    stranger.arrival.events[0].effects[0].lane = "lane".into();
    let mut other_key = good();
    other_key.arrival.events[0].effects[0].key = "n".into();
    let mut like_none = message(1, "m", at(0), &[], 0);
    like_none.later = later(1..3);
    for bad in [nobody, two, stranger, other_key, like_none] {
        assert!(store.publish(bad).await.is_err());
    }
    let counted = store.stats().await.expect("the store counts");
    assert_eq!(counted.events, 0);
}

async fn listed(store: &Subject, filter: MessageFilter) -> Vec<String> {
    let page = Page {
        limit: PAGE_MAX,
        from: PageFrom::Newest,
    };
    let listed = store.messages(filter, page).await.expect("the store lists");
    assert_eq!(listed.next, None);
    listed.rows.into_iter().map(|one| one.event.key).collect()
}

/// Four messages of two applications, a second apart, and something that is none.
async fn some(store: &Subject) {
    super::sample::accept(store, at(0), "inbound", "A").await;
    let texts = [
        (1, "a", "x", "c1"),
        (1, "b", "y", "c2"),
        (2, "c", "x", "c1"),
        (1, "d", "y", "c1"),
    ];
    for (second, (app, key, kind, channel)) in (1..).zip(texts) {
        let mut new = message(app, key, at(second), &[app], 0);
        new.arrival.events[0].event_type = Some(kind.into());
        new.about.channels = vec!["all".into(), channel.into()];
        new.about.tags = vec![format!("t{app}")];
        stored(store, new).await;
    }
    super::sample::accept(store, at(9), "later", "A").await;
}

/// A filter that narrows a little.
pub fn narrowed(narrow: impl FnOnce(&mut MessageFilter)) -> MessageFilter {
    let mut filter = MessageFilter::default();
    narrow(&mut filter);
    filter
}

/// Lists hold messages and nothing else, newest first, by every filter.
pub async fn messages_are_listed_by_every_filter(store: Subject, _: Dial) {
    some(&store).await;
    let (one, two) = (Some(app_id(1)), Some(app_id(2)));
    let table = [
        (MessageFilter::default(), "dcba"),
        (narrowed(|f| f.app = one), "dba"),
        (narrowed(|f| f.app = Some(app_id(3))), ""),
        (
            narrowed(|f| f.event_types = vec!["x".into(), "z".into()]),
            "ca",
        ),
        (narrowed(|f| f.channel = Some("c1".into())), "dca"),
        (
            narrowed(|f| (f.channel, f.app) = (Some("all".into()), two)),
            "c",
        ),
        (narrowed(|f| f.tag = Some("t1".into())), "dba"),
        (narrowed(|f| f.tag = Some("c1".into())), ""),
        (
            narrowed(|f| (f.since, f.until) = (Some(at(2)), Some(at(4)))),
            "cb",
        ),
        (narrowed(|f| (f.app, f.until) = (one, Some(at(4)))), "ba"),
    ];
    for (filter, expected) in table {
        let said = format!("{filter:?}");
        assert_eq!(listed(&store, filter).await.concat(), expected, "{said}");
    }
}

/// Pages meet without gap or overlap, both ways, with and without a filter.
pub async fn pages_of_messages_meet_both_ways(store: Subject, _: Dial) {
    some(&store).await;
    for app in [None, Some(app_id(1))] {
        let filter = MessageFilter {
            app,
            ..MessageFilter::default()
        };
        let expected = listed(&store, filter.clone()).await;
        let page = async |from| {
            let listed = store
                .messages(filter.clone(), Page { limit: 1, from })
                .await;
            listed.expect("the store lists")
        };
        let (mut from, mut seen) = (PageFrom::Newest, Vec::new());
        loop {
            let listed = page(from).await;
            seen.extend(listed.rows.into_iter().map(|one| one.event));
            match listed.next {
                Some(next) => from = PageFrom::OlderThan(next),
                None => break,
            }
        }
        let keys: Vec<String> = seen.iter().map(|event| event.key.clone()).collect();
        assert_eq!(keys, expected);
        for (newer, older) in seen.iter().zip(&seen[1..]) {
            let back = page(PageFrom::NewerThan(older.id)).await;
            assert_eq!(back.rows[0].event.id, newer.id);
        }
    }
}

/// Whoever goes from the oldest on begins with the first that came in the time that is asked for.
pub async fn messages_are_gone_through_from_the_oldest_on(store: Subject, _: Dial) {
    some(&store).await;
    for (since, expected) in [
        (None, "abcd"),
        (Some(at(2)), "bcd"),
        (Some(at(3)), "cd"),
        (Some(at(9_999)), ""),
    ] {
        let filter = narrowed(|f| f.since = since);
        let (mut after, mut seen) = (EventId::from_bytes([0; 16]), String::new());
        loop {
            let from = PageFrom::NewerThan(after);
            let page = store.messages(filter.clone(), Page { limit: 1, from });
            let Some(message) = page.await.expect("the store lists").rows.pop() else {
                break;
            };
            after = message.event.id;
            seen.push_str(&message.event.key);
        }
        assert_eq!(seen, expected, "{since:?}");
    }
}

/// I1: bytes go first; what a publisher said is known as long as the message is.
pub async fn what_was_said_goes_with_the_message(store: Subject, _: Dial) {
    let mut new = message(1, "m", at(0), &[1], 0);
    new.about = whole();
    let event = stored(&store, new).await.event;
    let later_on = |span: Span| -> Time { at(0) + span };
    assert_eq!(
        reap_all(&store, later_on(KEEP.identity)).await.payloads,
        0,
        "it is on its way"
    );
    for effect in claim(&store).await {
        moved(&store, &effect, super::worker::START).await;
        moved(&store, &effect, SETTLED).await;
    }
    assert_eq!(reap_all(&store, later_on(KEEP.payload)).await.payloads, 1);
    let bytes = store.payload(event).await.expect("the store reads");
    assert_eq!(bytes, PayloadAnswer::Reaped);
    assert_eq!(about(&store, event).await.tags, whole().tags);
    assert_eq!(
        reap_all(&store, later_on(KEEP.identity)).await.identities,
        1
    );
    assert_eq!(read(&store, event).await, None);
    assert_eq!(
        listed(&store, MessageFilter::default()).await,
        Vec::<String>::new()
    );
    assert_eq!(due(&store).await, []);
    let mut next = message(1, "m2", at(9), &[1], 0);
    next.about = whole();
    let next = stored(&store, next).await.event;
    let number = about(&store, next).await.sequence;
    assert_eq!(number, Some(1), "its count went with it");
}

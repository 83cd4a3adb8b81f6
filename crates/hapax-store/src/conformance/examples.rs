//! Messages that are only for one endpoint: kept like any other, and no other endpoint's.

use hapax_ledger::id::EventId;
use hapax_ledger::time::Time;

use super::messages::narrowed;
use super::publisher::{app_id, endpoint_id, later, message, stored};
use super::sample::{Dial, Subject, at};
use super::worker::LEASE;
use crate::nouns::{
    Born, MessageFilter, NewMessage, Page, PageFrom, PollAsk, PollPlace, Published, Receipted,
};

/// After all that is to be sent later in these checks.
const AFTERWARDS: i64 = 100_000;

/// A message that is only for an endpoint.
fn example(key: &str, time: Time, endpoint: u64) -> NewMessage {
    let mut new = message(1, key, time, &[endpoint], 0);
    new.about.only_to = Some(endpoint_id(endpoint));
    new
}

fn born(mut message: NewMessage) -> NewMessage {
    for event in &mut message.arrival.events {
        for effect in &mut event.effects {
            effect.born = Some(Born {
                node: "node".into(),
                lease: LEASE,
            });
        }
    }
    message
}

async fn listed(store: &Subject, filter: MessageFilter) -> Vec<EventId> {
    let (limit, from) = (100, PageFrom::Newest);
    let listed = store.messages(filter, Page { limit, from }).await;
    let rows = listed.expect("the store lists").rows;
    rows.iter().map(|message| message.event.id).collect()
}

fn may_have(endpoint: Option<u64>) -> MessageFilter {
    narrowed(|filter| {
        filter.app = Some(app_id(1));
        filter.may_have = endpoint.map(endpoint_id);
    })
}

/// It is read back as what it is, whichever way it was stored, and what is sent says so too.
pub async fn an_example_comes_back_as_one(store: Subject, _: Dial) {
    for (key, new) in [
        ("claimed later", example("claimed later", at(0), 1)),
        ("born claimed", born(example("born claimed", at(0), 1))),
    ] {
        let about = new.about.clone();
        let receipt = stored(&store, new.clone()).await;
        assert_eq!(receipt.sighting, Receipted::New, "{key}");
        let kept = store.message(receipt.event).await.expect("the store reads");
        assert_eq!(kept.expect("it is there").about, about, "{key}");
        let parcels = store.parcels(vec![receipt.event]).await;
        let parcel = parcels.expect("the store reads").remove(0).expect("bytes");
        assert_eq!(parcel.about, Some(about), "{key}");
        let again = stored(&store, new).await;
        let said = (again.event, again.sighting);
        assert_eq!(said, (receipt.event, Receipted::Duplicate), "{key}");
    }
}

/// Lists of all show it, and lists of what an endpoint may have only if it is that endpoint's.
pub async fn an_example_is_listed_for_its_endpoint_and_for_no_other(store: Subject, _: Dial) {
    let plain = stored(&store, message(1, "plain", at(0), &[1], 0)).await;
    let to_one = stored(&store, example("one", at(1), 1)).await;
    let to_two = stored(&store, example("two", at(2), 2)).await;
    let [plain, to_one, to_two] = [plain, to_one, to_two].map(|receipt| receipt.event);
    let table = [
        (None, vec![to_two, to_one, plain]),
        (Some(1), vec![to_one, plain]),
        (Some(2), vec![to_two, plain]),
        (Some(3), vec![plain]),
    ];
    for (endpoint, expected) in table {
        let seen = listed(&store, may_have(endpoint)).await;
        assert_eq!(seen, expected, "{endpoint:?}");
    }
}

/// All from a place on, one at a time, and where that leads.
async fn polled(
    store: &Subject,
    endpoint: u64,
    mut from: PollPlace,
    now: Time,
) -> (Vec<EventId>, PollPlace) {
    let mut given = Vec::new();
    loop {
        let ask = PollAsk {
            filter: may_have(Some(endpoint)),
            from,
            limit: 1,
            now,
        };
        let polled = store.poll(ask).await.expect("the store reads");
        given.extend(polled.messages.iter().map(|message| message.event.id));
        from = polled.place;
        if !polled.more {
            return (given, from);
        }
    }
}

/// Those who poll another endpoint go past it, before and after its time, and lose nothing that comes behind it; its own endpoint is given it.
pub async fn an_example_is_polled_at_its_endpoint_and_at_no_other(store: Subject, _: Dial) {
    let first = stored(&store, example("first", at(0), 1)).await.event;
    let plain = stored(&store, message(1, "plain", at(1), &[], 0)).await;
    let mut timed = example("timed", at(2), 1);
    timed.about.deliver_at = Some(at(500));
    let timed = stored(&store, timed).await.event;
    let last = stored(&store, message(1, "last", at(3), &[], 0)).await;
    let (plain, last) = (plain.event, last.event);

    let beginning = PollPlace::BEGINNING;
    let (given, place) = polled(&store, 2, beginning, at(400)).await;
    assert_eq!(given, [plain, last]);
    let next = stored(&store, message(1, "next", at(401), &[], 0)).await;
    let (given, place) = polled(&store, 2, place, at(AFTERWARDS)).await;
    assert_eq!(given, [next.event], "its time came, and it is not theirs");
    let behind = stored(&store, example("behind", at(402), 1)).await.event;
    let (given, place) = polled(&store, 2, place, at(AFTERWARDS)).await;
    assert_eq!(given, []);
    let end = stored(&store, message(1, "end", at(403), &[], 0)).await;
    let (given, _) = polled(&store, 2, place, at(AFTERWARDS)).await;
    assert_eq!(given, [end.event]);

    let (mut own, _) = polled(&store, 1, beginning, at(AFTERWARDS)).await;
    let mut expected = [first, plain, timed, last, next.event, behind, end.event];
    own.sort();
    expected.sort();
    assert_eq!(own, expected, "each once");
}

/// One that would go to others, or to others too, is refused, and nothing of it is kept.
pub async fn an_example_that_goes_to_others_is_refused(store: Subject, _: Dial) {
    let other = {
        let mut new = message(1, "other", at(0), &[2], 0);
        new.about.only_to = Some(endpoint_id(1));
        new
    };
    let both = {
        let mut new = message(1, "both", at(0), &[1, 2], 0);
        new.about.only_to = Some(endpoint_id(1));
        new
    };
    let followed = {
        let mut new = example("followed", at(0), 1);
        new.later = later(2..3);
        new
    };
    for new in [other, both, followed] {
        let key = new.arrival.events[0].key.clone();
        store.publish(new).await.expect_err(&key);
    }
    // The endpoint was deleted meanwhile: nothing goes out, and it is still nobody else's.
    let mut nowhere = message(1, "nowhere", at(0), &[], 0);
    nowhere.about.only_to = Some(endpoint_id(1));
    let published = store.publish(nowhere).await.expect("the store takes it");
    assert!(matches!(published, Published::Stored(_)));
    assert_eq!(listed(&store, may_have(Some(2))).await, []);
    assert_eq!(listed(&store, may_have(None)).await.len(), 1);
}

//! Messages for those who ask: none early, none lost, none twice.

use hapax_ledger::id::EventId;
use hapax_ledger::time::{Span, Time};

use super::operator::{actions, ada, asking};
use super::publisher::{app_id, endpoint_id, message, stored};
use super::sample::{Dial, Subject, all, at, reap_all};
use crate::nouns::{
    Before, CONSUMERS_KEPT, CONSUMERS_MAX, Consumed, MessageFilter, NewMessage, PollAsk, PollPlace,
    Polled, Sought,
};
use crate::polling;

/// After all that is to be sent later in these checks.
const AFTERWARDS: i64 = 100_000;

fn ask(from: PollPlace, limit: u32, now: Time) -> PollAsk {
    let filter = MessageFilter {
        app: Some(app_id(1)),
        ..MessageFilter::default()
    };
    PollAsk {
        filter,
        from,
        limit,
        now,
    }
}

async fn poll(store: &Subject, ask: PollAsk) -> Polled {
    store.poll(ask).await.expect("the store reads")
}

/// All from a place on, in pages of this size, and where that leads.
async fn rest(
    store: &Subject,
    mut from: PollPlace,
    limit: u32,
    now: Time,
) -> (Vec<EventId>, PollPlace) {
    let mut given = Vec::new();
    loop {
        let polled = poll(store, ask(from, limit, now)).await;
        assert!(polled.messages.len() <= limit as usize);
        given.extend(polled.messages.iter().map(|message| message.event.id));
        from = polled.place;
        if !polled.more {
            return (given, from);
        }
    }
}

fn delayed(mut message: NewMessage, until: Time) -> NewMessage {
    message.about.deliver_at = Some(until);
    message
}

async fn publish(store: &Subject, key: &str, seconds: i64) -> EventId {
    stored(store, message(1, key, at(seconds), &[], 0))
        .await
        .event
}

async fn publish_later(store: &Subject, key: &str, seconds: i64, until: i64) -> EventId {
    let new = message(1, key, at(seconds), &[], 0);
    stored(store, delayed(new, at(until))).await.event
}

/// Pages meet without gap or overlap, and what comes later comes after them; other applications' messages do not come.
pub async fn messages_are_given_once_and_in_order(store: Subject, _: Dial) {
    let mut ids = Vec::new();
    for n in 0..7 {
        ids.push(publish(&store, &format!("m{n}"), n).await);
        stored(&store, message(2, &format!("other{n}"), at(n), &[], 0)).await;
    }
    let now = at(AFTERWARDS);
    for limit in [1, 2, 7, 100] {
        let (given, place) = rest(&store, PollPlace::BEGINNING, limit, now).await;
        assert_eq!(given, ids);
        assert_eq!(rest(&store, place, limit, now).await, (Vec::new(), place));
    }
    let (_, place) = rest(&store, PollPlace::BEGINNING, 100, now).await;
    let next = publish(&store, "next", 50).await;
    assert_eq!(rest(&store, place, 100, now).await.0, [next]);
    let nobody = PollAsk {
        filter: MessageFilter::default(),
        ..ask(PollPlace::BEGINNING, 100, now)
    };
    assert_eq!(poll(&store, nobody).await.messages, []);
}

/// What is to be sent later is not there before, to the microsecond.
pub async fn a_message_is_not_given_before_its_time(store: Subject, _: Dial) {
    let early = publish(&store, "early", 0).await;
    let later = publish_later(&store, "later", 1, 500).await;
    let before = at(500) - Span::from_micros(1);
    let (given, _) = rest(&store, PollPlace::BEGINNING, 100, before).await;
    assert_eq!(given, [early]);
    let (given, _) = rest(&store, PollPlace::BEGINNING, 100, at(500)).await;
    assert_eq!(given, [early, later]);
}

/// Whoever has read past the place where it was accepted gets it when its time has come: once, and so does everybody else.
pub async fn a_message_whose_time_came_is_given_to_whoever_has_read_on(store: Subject, _: Dial) {
    let later = publish_later(&store, "later", 0, 500).await;
    let past = publish_later(&store, "past", 1, -10).await;
    let first = publish(&store, "first", 2).await;
    let (given, place) = rest(&store, PollPlace::BEGINNING, 1, at(400)).await;
    assert_eq!(given, [past, first]);
    let second = publish(&store, "second", 401).await;
    let (given, place) = rest(&store, place, 1, at(600)).await;
    assert_eq!(given, [second, later]);
    assert_eq!(rest(&store, place, 1, at(AFTERWARDS)).await.0, []);
    let (all, _) = rest(&store, PollPlace::BEGINNING, 1, at(AFTERWARDS)).await;
    assert_eq!(all, [past, first, second, later]);
}

/// One that is accepted after its time, or late, has its turn behind those that were given: nobody has read past it.
pub async fn turns_are_never_given_behind_one_that_was_read(store: Subject, _: Dial) {
    let first = publish_later(&store, "first", 0, 100).await;
    let (given, place) = rest(&store, PollPlace::BEGINNING, 10, at(300)).await;
    assert_eq!(given, [first]);
    let slow = publish_later(&store, "slow", 1, 50).await;
    let same = publish_later(&store, "same", 2, 100).await;
    let (given, place) = rest(&store, place, 10, at(300)).await;
    assert_eq!(given, [slow, same]);
    assert_eq!(rest(&store, place, 10, at(AFTERWARDS)).await.0, []);
}

/// A message is there as soon as it is stored, and one that is stored with an older time than what was read comes behind that: nobody has
/// read past it.
pub async fn a_message_that_is_stored_late_is_given_behind_what_was_read(store: Subject, _: Dial) {
    let first = publish(&store, "first", 100).await;
    let (given, place) = rest(&store, PollPlace::BEGINNING, 10, at(100)).await;
    assert_eq!(given, [first]);
    let late = publish(&store, "late", 40).await;
    let later = publish(&store, "later", 30).await;
    for limit in [1, 10] {
        let (mut given, place) = rest(&store, place, limit, at(100)).await;
        given.sort_unstable_by_key(|id| *id != late);
        assert_eq!(given, [late, later]);
        assert_eq!(rest(&store, place, limit, at(100)).await.0, []);
    }
}

/// However many have their turn at once and are not asked for, whoever is told that there is no more has been given what is.
pub async fn more_turns_than_are_given_in_one_step_all_come(store: Subject, _: Dial) {
    let many = polling::TURNS_PER_STEP as i64 + 1;
    let publishing = (0..many).map(|n| {
        let store = store.clone();
        async move { publish_later(&store, &format!("m{n}"), 0, n).await }
    });
    let ids = all(publishing).await;
    let begin = PollPlace::since(at(many - 1));
    let (given, _) = rest(&store, begin, 250, at(AFTERWARDS)).await;
    assert_eq!(given, ids[ids.len() - 1..]);
}

/// However many ask at once, each sees every message once.
pub async fn racing_polls_give_each_turn_once(store: Subject, _: Dial) {
    let mut ids = Vec::new();
    for n in 0..20 {
        ids.push(publish_later(&store, &format!("m{n}"), n, 100 + n).await);
    }
    let everybody = (0..8).map(|_| {
        let store = store.clone();
        async move { rest(&store, PollPlace::BEGINNING, 3, at(200)).await }
    });
    for (given, _) in all(everybody).await {
        assert_eq!(given, ids);
    }
}

/// A place moves on over what does not fit: whoever wants little does not look at the rest again and again.
pub async fn what_does_not_fit_is_passed_by_for_good(store: Subject, _: Dial) {
    for n in 0..3 {
        publish(&store, &format!("m{n}"), n).await;
        publish_later(&store, &format!("l{n}"), n, n).await;
    }
    let picky = |from| {
        let mut ask = ask(from, 10, at(AFTERWARDS));
        ask.filter.event_types = vec!["nobody sends this".into()];
        ask
    };
    let polled = poll(&store, picky(PollPlace::BEGINNING)).await;
    assert_eq!(polled.messages, []);
    assert_eq!(rest(&store, polled.place, 10, at(AFTERWARDS)).await.0, []);
}

/// A time to begin at counts for when a message came, or was to be sent.
pub async fn a_poll_may_begin_at_a_time(store: Subject, _: Dial) {
    publish(&store, "old", 0).await;
    let late = publish_later(&store, "late", 0, 200).await;
    publish_later(&store, "soon", 0, 99).await;
    let on_time = publish(&store, "on time", 100).await;
    let begin = PollPlace::since(at(100));
    for limit in [1, 10] {
        let (given, _) = rest(&store, begin, limit, at(AFTERWARDS)).await;
        assert_eq!(given, [on_time, late]);
    }
}

async fn consume(store: &Subject, name: &str, read: Option<PollPlace>, now: Time) -> Consumed {
    let consumed = store.consume(endpoint_id(1), name.into(), read, now).await;
    consumed.expect("the store keeps it")
}

/// Without a word a consumer is given the same again; what it says it has read it is not given any more, not even after a restart.
pub async fn a_consumer_goes_on_where_it_stands(store: Subject, _: Dial) {
    publish(&store, "one", 0).await;
    publish_later(&store, "two", 0, 1).await;
    let (_, place) = rest(&store, PollPlace::BEGINNING, 10, at(AFTERWARDS)).await;
    let beginning = Consumed::At(PollPlace::BEGINNING);
    assert_eq!(consume(&store, "ü\0", None, at(1)).await, beginning);
    assert_eq!(consume(&store, "ü\0", None, at(2)).await, beginning);
    let read = consume(&store, "ü\0", Some(place), at(3)).await;
    assert_eq!(read, Consumed::At(place));
    assert_eq!(consume(&store, "ü\0", None, at(4)).await, read);
    assert_eq!(
        consume(&store, "ü\0", Some(place), at(5)).await,
        read,
        "again"
    );
    assert_eq!(consume(&store, "other", None, at(6)).await, beginning);
}

/// Two that share a name do not take messages from each other: the one that has read less hears so.
pub async fn a_consumer_that_has_read_less_is_told(store: Subject, _: Dial) {
    publish(&store, "one", 0).await;
    publish_later(&store, "two", 0, 1).await;
    let once = poll(&store, ask(PollPlace::BEGINNING, 1, at(AFTERWARDS))).await;
    let (_, place) = rest(&store, once.place, 1, at(AFTERWARDS)).await;
    consume(&store, "c", Some(place), at(1)).await;
    for less in [PollPlace::BEGINNING, once.place] {
        let told = consume(&store, "c", Some(less), at(2)).await;
        assert_eq!(told, Consumed::Behind(place));
    }
    let stands = consume(&store, "c", None, at(3)).await;
    assert_eq!(stands, Consumed::At(place));
}

/// A seek moves a consumer either way, is written down, and is made once per request.
pub async fn a_consumer_goes_where_it_is_sent_once_per_request(store: Subject, _: Dial) {
    let place = PollPlace::since(at(10));
    let seek = |by, place| {
        let answer = "{\"iterator\":\"i\"}".to_owned();
        store.seek(endpoint_id(1), "c".into(), place, by, answer)
    };
    let sought = seek(asking("seek", 1), place).await;
    assert_eq!(sought.expect("the store keeps it"), Sought::Done);
    assert_eq!(consume(&store, "c", None, at(1)).await, Consumed::At(place));
    let elsewhere = PollPlace::since(at(5));
    let sought = seek(ada(), elsewhere).await;
    assert_eq!(sought.expect("the store keeps it"), Sought::Done);
    let again = seek(asking("seek", 1), place).await;
    let answer = "{\"iterator\":\"i\"}".to_owned();
    let repeated = Sought::Repeated(Before::Same(answer));
    assert_eq!(again.expect("the store reads"), repeated);
    let stands = consume(&store, "c", None, at(2)).await;
    assert_eq!(stands, Consumed::At(elsewhere), "once per request");
    assert_eq!(actions(&store).await, ["poller.seek", "poller.seek"]);
}

/// An endpoint has so many consumers, and those that do not ask any more make room.
pub async fn consumers_are_so_many_and_are_forgotten(store: Subject, _: Dial) {
    for n in 0..CONSUMERS_MAX {
        consume(&store, &format!("c{n}"), None, at(0)).await;
    }
    assert_eq!(
        consume(&store, "one more", None, at(1)).await,
        Consumed::TooMany
    );
    let sought = store.seek(
        endpoint_id(1),
        "one more".into(),
        PollPlace::BEGINNING,
        ada(),
        String::new(),
    );
    assert_eq!(sought.await.expect("the store looks"), Sought::TooMany);
    let end = at(0) + CONSUMERS_KEPT;
    let kept = PollPlace::since(at(3));
    let asks = consume(&store, "c0", Some(kept), end - Span::from_secs(1)).await;
    assert_eq!(asks, Consumed::At(kept));
    reap_all(&store, end).await;
    let fresh = consume(&store, "one more", None, end).await;
    assert_eq!(fresh, Consumed::At(PollPlace::BEGINNING));
    assert_eq!(consume(&store, "c0", None, end).await, Consumed::At(kept));
}

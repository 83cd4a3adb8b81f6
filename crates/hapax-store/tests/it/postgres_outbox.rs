//! The outbox on PostgreSQL with more than one node.

use std::collections::BTreeMap;

use hapax_ledger::event::EventStatus;
use hapax_ledger::id::EventId;
use hapax_store::conformance::fan_out::fan_out;
use hapax_store::conformance::operator::{command, give};
use hapax_store::conformance::publisher::{
    app, app_id, boxed, changes, endpoint, endpoint_id, event_type, later, message, ordered, put,
    stored,
};
use hapax_store::conformance::sample::{Dial, Subject, all, at, detail};
use hapax_store::conformance::worker::{GIVEN_UP, SETTLED, START, claim, claim_one, done, names};
use hapax_store::nouns::{
    Command, Commanded, Decision, Entry, MessageFilter, PollAsk, PollPlace, Put, Receipted,
};

use crate::database::{Database, with_database};
use crate::postgres::open_with;

async fn nodes(database: &Database, dial: &Dial) -> [Subject; 3] {
    [
        open_with(database, dial).await,
        open_with(database, dial).await,
        open_with(database, dial).await,
    ]
}

/// Numbers have no gap and each is given once, whichever node a message comes to; and each message is stored once.
#[test]
fn nodes_number_messages_together() {
    with_database(|database| async move {
        let dial = Dial::default();
        let nodes = nodes(&database, &dial).await;
        let racing = (0..150u64).map(|n| {
            let store = nodes[n as usize % 3].clone();
            async move {
                // Each comes to all three, under four keys.
                let (key, under) = (format!("m{}", n / 3), format!("o{}", n / 3 % 4));
                let receipt =
                    stored(&store, ordered(message(1, &key, at(0), &[1, 2], 0), &under)).await;
                let read = store.message(receipt.event).await.expect("the store reads");
                let about = read.expect("it is there").about;
                (under, about.sequence.unwrap_or_default(), receipt.sighting)
            }
        });
        let mut numbers: BTreeMap<String, Vec<u64>> = BTreeMap::new();
        for (under, number, sighting) in all(racing).await {
            if sighting == Receipted::New {
                numbers.entry(under).or_default().push(number);
            }
        }
        for given in numbers.values_mut() {
            given.sort_unstable();
            assert_eq!(*given, (1..=given.len() as u64).collect::<Vec<u64>>());
        }
        assert_eq!(numbers.values().map(Vec::len).sum::<usize>(), 50);
    });
}

/// A delivery is sent again while others of its message are under way: it does not wait for those, whether or not they have an order.
#[test]
fn a_delivery_that_is_sent_again_does_not_wait_for_others_of_its_message() {
    with_database(|database| async move {
        let dial = Dial::default();
        let store = open_with(&database, &dial).await;
        for new in [
            message(1, "plain", at(0), &[1, 2, 3], 0),
            ordered(message(1, "ordered", at(0), &[1, 2, 3], 0), "o"),
        ] {
            let event = stored(&store, new).await.event;
            for effect in claim(&store).await {
                done(&store, &effect, START).await;
                done(&store, &effect, GIVEN_UP).await;
            }
            let first = endpoint_id(1).to_string();
            let other = database.client().await;
            let hold = format!("BEGIN; SELECT FROM hapax.queue WHERE lane <> '{first}' FOR UPDATE");
            other.batch_execute(&hold).await.expect("the server obeys");
            let resend = |decision| Command {
                only: Some(vec![first.clone()]),
                ..command(event, decision)
            };
            let sent = give(&store, resend(Decision::Retry)).await;
            assert!(
                matches!(&sent, Commanded::Done(sent) if names(sent.opened.clone()) == [&*first]),
                "{sent:?}"
            );
            let again = claim_one(&store).await;
            assert_eq!(*again.lane, *first);
            done(&store, &again, START).await;
            done(&store, &again, SETTLED).await;
            let force = vec![first.clone()];
            let forced = give(&store, resend(Decision::Replay { force })).await;
            assert!(matches!(forced, Commanded::Done(_)), "{forced:?}");
            done(&store, &claim_one(&store).await, START).await;
            let status = detail(&store, event).await.event.status;
            assert_eq!(status, EventStatus::Dead, "the others are");
        }
    });
}

/// G1, F1: nodes that publish and fan out at once make each delivery once, and of one order in the order of the numbers.
#[test]
fn nodes_fan_out_together() {
    with_database(|database| async move {
        let dial = Dial::default();
        let nodes = nodes(&database, &dial).await;
        let many = 12;
        let racing = (0..24u64).map(|n| {
            let store = nodes[n as usize % 3].clone();
            async move {
                let mut new = message(1, &format!("m{n}"), at(0), &[1], 0);
                if n % 2 == 0 {
                    new = ordered(new, "o");
                }
                // Now a large set, now one that would be made at once.
                new.later = if n % 3 == 0 {
                    Vec::new()
                } else {
                    later(2..2 + many)
                };
                let event = stored(&store, new).await.event;
                fan_out(&store).await;
                (event, n)
            }
        });
        let events = all(racing).await;
        fan_out(&nodes[0]).await;
        for (event, n) in events {
            let mut lanes: BTreeMap<String, u32> = BTreeMap::new();
            for effect in detail(&nodes[0], event).await.effects {
                *lanes.entry(effect.lane.to_string()).or_default() += 1;
            }
            let expected = if n % 3 == 0 { 1 } else { many as usize + 1 };
            assert_eq!(lanes.len(), expected);
            assert!(lanes.values().all(|times| *times == 1));
        }
        in_the_order_of_numbers(&nodes[1]).await;
    });
}

/// Sends all that is due until nothing is; of each lane, ordered messages go out by their number.
async fn in_the_order_of_numbers(store: &Subject) {
    let mut last: BTreeMap<String, u64> = BTreeMap::new();
    loop {
        let due = claim(store).await;
        if due.is_empty() {
            return;
        }
        for effect in due {
            let read = store.message(effect.event).await.expect("the store reads");
            if let Some(number) = read.and_then(|message| message.about.sequence) {
                let before = last.insert(effect.lane.to_string(), number);
                assert!(before < Some(number), "{} after {before:?}", number);
            }
            done(store, &effect, START).await;
            done(store, &effect, SETTLED).await;
        }
    }
}

/// Whoever reads changes while others make them misses none: revisions become visible in their order.
#[test]
fn changes_become_visible_in_order() {
    with_database(|database| async move {
        let dial = Dial::default();
        let nodes = nodes(&database, &dial).await;
        put(&nodes[0], Entry::App(app(1)), 0).await;
        let writers = (0..40u64).map(|n| {
            let store = nodes[n as usize % 2].clone();
            async move {
                let entry = match n % 2 {
                    0 => boxed(endpoint(n, 1)),
                    _ => Entry::EventType(event_type(&n.to_string())),
                };
                assert!(matches!(put(&store, entry, 0).await, Put::Done { .. }));
            }
        });
        let reader = nodes[2].clone();
        let reading = tokio::spawn(async move {
            let (mut known, mut seen) = (0, 0);
            while seen < 41 {
                let new = changes(&reader, known).await;
                assert!(new.revision >= known);
                known = new.revision;
                seen += new.entries.len();
            }
            (known, seen)
        });
        all(writers).await;
        assert_eq!(reading.await.expect("the reader ends well"), (41, 41));
    });
}

/// Messages after a place, and where that leads.
async fn polled(store: &Subject, mut from: PollPlace) -> (Vec<EventId>, PollPlace) {
    let mut given = Vec::new();
    loop {
        let filter = MessageFilter {
            app: Some(app_id(1)),
            ..MessageFilter::default()
        };
        let ask = PollAsk {
            filter,
            from,
            limit: 3,
            now: at(1_000),
        };
        let polled = store.poll(ask).await.expect("the store reads");
        given.extend(polled.messages.iter().map(|message| message.event.id));
        from = polled.place;
        if !polled.more {
            return (given, from);
        }
    }
}

/// The lock that holds a message back whose tag says so.
const HELD_BACK: &str = "
    CREATE FUNCTION hold_back() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
            IF NEW.tags LIKE '%held%' THEN PERFORM pg_advisory_xact_lock(42); END IF;
            RETURN NEW;
        END $$;
    CREATE TRIGGER hold_back BEFORE INSERT ON hapax.message FOR EACH ROW EXECUTE FUNCTION hold_back()";

/// However long a commit takes: whoever has meanwhile read what came after it gets it then, once.
#[test]
fn a_message_whose_commit_was_held_back_is_polled_once() {
    with_database(|database| async move {
        let dial = Dial::default();
        let [slow, quick, reader] = nodes(&database, &dial).await;
        let client = database.client().await;
        let obey = async |sql: &str| client.batch_execute(sql).await.expect("the server obeys");
        obey(HELD_BACK).await;
        obey("SELECT pg_advisory_lock(42)").await;
        let holding = tokio::spawn(async move {
            let mut new = message(1, "held", at(0), &[1], 0);
            new.about.tags = vec!["held".into()];
            stored(&slow, new).await.event
        });
        let waits = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND objid = 42 AND NOT granted";
        loop {
            let waiting = client.query_one(waits, &[]).await;
            if waiting.expect("the server answers").get::<_, i64>(0) > 0 {
                break;
            }
            tokio::task::yield_now().await;
        }
        let mut quicker = Vec::new();
        for n in 1..8 {
            let new = message(1, &format!("quick{n}"), at(n), &[1], 0);
            quicker.push(stored(&quick, new).await.event);
        }
        let (given, place) = polled(&reader, PollPlace::BEGINNING).await;
        assert_eq!(given, quicker);
        obey("SELECT pg_advisory_unlock(42)").await;
        let held = holding.await.expect("it is stored");
        assert!(held < quicker[0], "its id is the oldest");
        let (given, place) = polled(&reader, place).await;
        assert_eq!(given, [held]);
        assert_eq!(polled(&reader, place).await, (Vec::new(), place));
        quicker.push(held);
        assert_eq!(polled(&quick, PollPlace::BEGINNING).await.0, quicker);
    });
}

/// Whoever polls while nodes publish gets every message once, in whatever order their commits end.
#[test]
fn messages_that_are_polled_while_nodes_publish_come_once() {
    with_database(|database| async move {
        let dial = Dial::default();
        let [first, second, reader] = nodes(&database, &dial).await;
        let racing = (0..200u64).map(|n| {
            let store = [&first, &second][n as usize % 2].clone();
            async move {
                // Times run backwards, as among nodes whose clocks differ.
                let time = at(500 - n as i64);
                stored(&store, message(1, &format!("m{n}"), time, &[], 0))
                    .await
                    .event
            }
        });
        let reading = tokio::spawn(async move {
            let (mut seen, mut from) = (Vec::new(), PollPlace::BEGINNING);
            while seen.len() < 200 {
                let (given, place) = polled(&reader, from).await;
                seen.extend(given);
                from = place;
            }
            seen.extend(polled(&reader, from).await.0);
            seen
        });
        let mut stored = all(racing).await;
        let mut seen = reading.await.expect("the reader ends well");
        stored.sort_unstable();
        seen.sort_unstable();
        assert_eq!(seen, stored);
    });
}

//! The outbox on PostgreSQL with more than one node.

use std::collections::BTreeMap;

use hapax_store::conformance::fan_out::fan_out;
use hapax_store::conformance::publisher::{
    app, boxed, changes, endpoint, event_type, later, message, ordered, put, stored,
};
use hapax_store::conformance::sample::{Dial, Subject, all, at, detail};
use hapax_store::conformance::worker::{SETTLED, START, claim, done};
use hapax_store::nouns::{Entry, Put, Receipted};

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

//! The outbox on SQLite after a restart: in the middle of a fan-out, and with its key index gone.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use hapax_ledger::event::EventStatus;
use hapax_ledger::id::EventId;
use hapax_ledger::outcome::Lost;
use hapax_ledger::outcome::Outcome;
use hapax_store::Store;
use hapax_store::conformance::fan_out::{fan_out, send_all};
use hapax_store::conformance::operator::{carried, facts};
use hapax_store::conformance::publisher::{endpoint_id, later, message, ordered, stored, to};
use hapax_store::conformance::sample::{at, detail};
use hapax_store::conformance::worker::start_one;
use hapax_store::nouns::{Decision, FAN_OUT_STEP, Receipted, Tally};

use crate::sqlite::open;

fn with_store<T>(folder: &Path, work: impl AsyncFnOnce(Arc<dyn Store>) -> T) -> T {
    crate::runtime().block_on(async {
        let store: Arc<dyn Store> = Arc::new(open(folder).expect("the store opens"));
        let result = work(store.clone()).await;
        store.close().await;
        result
    })
}

/// Has each of so many endpoints one delivery?
async fn each_has_one(store: &Arc<dyn Store>, event: EventId, endpoints: u64) {
    let mut lanes: BTreeMap<String, u32> = BTreeMap::new();
    for effect in detail(store, event).await.effects {
        *lanes.entry(effect.lane.to_string()).or_default() += 1;
    }
    assert_eq!(lanes.len() as u64, endpoints);
    assert!(lanes.values().all(|times| *times == 1), "{lanes:?}");
}

/// G1: what is frozen with a message is made exactly once, wherever in between the process ends; and what was made after its event is
/// known when the index is made anew.
#[test]
fn a_fan_out_goes_on_where_it_stopped() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let many = 2 * FAN_OUT_STEP as u64 + 7;
    let event = with_store(folder.path(), async |store| {
        let mut new = message(1, "m", at(0), &[1], 0);
        new.later = later(2..2 + many);
        stored(&store, new).await.event
    });
    with_store(folder.path(), async |store| {
        assert!(store.fan_out().await.expect("the store goes on").more);
    });
    fs::remove_dir_all(folder.path().join("hapax.db.keys")).expect("the index was there");
    with_store(folder.path(), async |store| {
        let left = facts(&store, event).await.to_come;
        assert_eq!(left, many - FAN_OUT_STEP as u64);
        fan_out(&store).await;
        each_has_one(&store, event, many + 1).await;
    });
    fs::remove_dir_all(folder.path().join("hapax.db.keys")).expect("the index was there");
    with_store(folder.path(), async |store| {
        // Whoever asks for what was made in a step finds it.
        let effects = vec![to(many, "m")];
        carried(&store, event, Decision::Deliver { effects }).await;
        each_has_one(&store, event, many + 1).await;
        send_all(&store).await;
        let now = detail(&store, event).await.event;
        assert_eq!(now.status, EventStatus::Completed);
    });
}

/// A restart changes neither numbers nor who waits in line.
#[test]
fn numbers_and_order_go_on_after_a_restart() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let publish = async |store: &Arc<dyn Store>, key: &str, second| {
        let mut new = ordered(message(1, key, at(second), &[1], 0), "o");
        new.later = later(2..4);
        let receipt = stored(store, new).await;
        assert_eq!(receipt.sighting, Receipted::New);
        let message = store.message(receipt.event).await.expect("the store reads");
        message.expect("it is there").about.sequence
    };
    for (number, key) in (1..).zip(["a", "b", "c"]) {
        let given = with_store(folder.path(), async |store| {
            publish(&store, key, number as i64).await
        });
        assert_eq!(given, Some(number));
    }
    with_store(folder.path(), async |store| {
        fan_out(&store).await;
        for endpoint in 1..4 {
            let lane = endpoint_id(endpoint).to_string();
            let listed = store.due(0, None).await.expect("the store looks");
            assert!(listed.iter().any(|due| *due.lane == *lane));
        }
        send_all(&store).await;
        let counts = store.effect_counts().await.expect("the store counts");
        assert_eq!(counts.pending, 0);
    });
}

/// An attempt that ended with its process is tallied like any other.
#[test]
fn an_attempt_that_a_crash_ended_is_tallied() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    with_store(folder.path(), async |store| {
        stored(&store, message(1, "m", at(0), &[1], 0)).await;
        start_one(&store).await;
    });
    with_store(folder.path(), async |store| {
        let tallies = store.tallies(endpoint_id(1), at(-86_400), at(86_400)).await;
        let mut expected = Tally::of(at(0));
        expected.count(Outcome::Lost { why: Lost::Crash }, false);
        assert_eq!(tallies.expect("the store counts"), [expected]);
    });
}

//! A store that was filled in bulk says what a store says that has seen it all: otherwise nothing would be measured there.

use std::sync::Arc;

use hapax_ledger::time::{Span, Time};
use hapax_store::conformance::history::{History, WAITING_EACH};
use hapax_store::conformance::publisher::{app, app_id, boxed, done, endpoint, endpoint_id};
use hapax_store::conformance::sample::{Subject, at};
use hapax_store::nouns::{Deliveries, Entry, Page, PageFrom, PostedFilter};

use crate::database::with_database;
use crate::sqlite::open;

const ENDPOINTS: u64 = 2;
/// One for each hour of 28 days, at each endpoint.
const DELIVERIES: u64 = ENDPOINTS * 28 * 24;

fn history() -> History {
    History {
        endpoints: (1..=ENDPOINTS).map(endpoint_id).collect(),
        deliveries: DELIVERIES,
        until: at(0),
    }
}

async fn make_endpoints(store: &Subject) {
    done(store, Entry::App(app(1)), 0).await;
    for number in 1..=ENDPOINTS {
        done(store, boxed(endpoint(number, 1)), 0).await;
    }
}

async fn says_so(store: &Subject) {
    for number in 1..=ENDPOINTS {
        let id = endpoint_id(number);
        let tallies = store.tallies(id, at(0) - Span::from_days(28), at(1)).await;
        let tallies = tallies.expect("the store counts");
        let count = |of: fn(u64, u64) -> u64| -> u64 {
            let each = tallies.iter().map(|tally| of(tally.done, tally.failed));
            each.sum()
        };
        let counted = (count(|done, _| done), count(|_, failed| failed));
        assert_eq!(counted, (28 * 24, 4 * 28 * 24));
        let waiting = store.waiting(id).await.expect("the store counts");
        assert_eq!(waiting, (WAITING_EACH, 0));
        let page = Page {
            limit: 7,
            from: PageFrom::Newest,
        };
        let (which, all) = (Deliveries::To(id), PostedFilter::default());
        let tried = store.attempts(which, all, page).await;
        assert_eq!(tried.expect("the store lists").rows.len(), 7);
    }
    let usage = store.usage(app_id(1), Time::MIN, Time::MAX).await;
    assert_eq!(usage.expect("the store counts"), 5 * DELIVERIES);
}

#[test]
fn figures_of_a_filled_file_are_those_of_its_attempts() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    crate::runtime().block_on(async {
        let store: Subject = Arc::new(open(folder.path()).expect("the store opens"));
        make_endpoints(&store).await;
        store.close().await;
        drop(store);
        let filled = history().fill_sqlite(&folder.path().join("hapax.db"));
        filled.expect("it is filled");
        let store: Subject = Arc::new(open(folder.path()).expect("the store opens"));
        says_so(&store).await;
        store.close().await;
    });
}

#[test]
fn figures_of_a_filled_database_are_those_of_its_attempts() {
    with_database(|database| async move {
        let store: Subject = Arc::new(database.open().await);
        make_endpoints(&store).await;
        let filled = history().fill_postgres(&database.url()).await;
        filled.expect("it is filled");
        says_so(&store).await;
        store.close().await;
    });
}

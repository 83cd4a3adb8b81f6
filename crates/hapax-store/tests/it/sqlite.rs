//! SQLite, through the suite.

use std::path::Path;
use std::sync::{Arc, Mutex};

use hapax_store::conformance::sample::{Dial, still_clock};
use hapax_store::sqlite::{DiskLimits, Options, SqliteStore};
use hapax_store::{Clock, Store};

/// Opens a store in `folder`. No ballast: tests come in hundreds.
pub(crate) fn open(folder: &Path) -> Result<SqliteStore, hapax_store::StoreError> {
    open_as(folder, [7; 16])
}

/// The same; a new store gets this id.
pub(crate) fn open_as(
    folder: &Path,
    new_store_id: [u8; 16],
) -> Result<SqliteStore, hapax_store::StoreError> {
    open_with(folder, new_store_id, still_clock())
}

/// The same; leases end by this clock.
pub(crate) fn open_with(
    folder: &Path,
    new_store_id: [u8; 16],
    clock: Clock,
) -> Result<SqliteStore, hapax_store::StoreError> {
    let disk = DiskLimits {
        free_bytes_min: 0,
        ballast_bytes: 0,
    };
    let options = Options {
        nonce: new_store_id,
        clock,
        disk,
    };
    SqliteStore::open(&folder.join("hapax.db"), options)
}

fn run<F, Fut>(check: F)
where
    F: FnOnce(Arc<dyn Store>) -> Fut,
    Fut: Future<Output = ()>,
{
    let folder = tempfile::tempdir().expect("a temporary folder");
    crate::runtime().block_on(async {
        let store: Arc<dyn Store> = Arc::new(open(folder.path()).expect("the store opens"));
        check(store.clone()).await;
        store.close().await;
    });
}

hapax_store::conformance_tests!(crate::sqlite::run);

fn run_effects<F, Fut>(check: F)
where
    F: FnOnce(Arc<dyn Store>, Dial) -> Fut,
    Fut: Future<Output = ()>,
{
    let folder = tempfile::tempdir().expect("a temporary folder");
    let dial = Dial::default();
    crate::runtime().block_on(async {
        let store = open_with(folder.path(), [7; 16], dial.clock()).expect("the store opens");
        let store: Arc<dyn Store> = Arc::new(store);
        check(store.clone(), dial).await;
        store.close().await;
    });
}

hapax_store::conformance_tests!(effects crate::sqlite::run_effects);

/// A4, B1-B5, C1-C3, D2-D7, I1, I2: whatever is done to it, SQLite answers as the model does.
#[test]
fn sqlite_agrees_with_the_model() {
    use hapax_store::conformance::differential::agrees_with_the_model;
    // Only the last folder is needed: its store is the one in use.
    let folder = Mutex::new(None);
    let dial = Dial::default();
    let fresh = || async {
        let new = tempfile::tempdir().expect("a temporary folder");
        let store: Arc<dyn Store> =
            Arc::new(open_with(new.path(), [7; 16], dial.clock()).expect("the store opens"));
        *folder.lock().expect("no test panicked holding it") = Some(new);
        store
    };
    agrees_with_the_model(
        &crate::runtime(),
        crate::differential_cases(48),
        &dial,
        fresh,
    );
}

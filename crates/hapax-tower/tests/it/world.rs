//! A store for each check: the model, SQLite in a temporary folder, and PostgreSQL where a server is named.

use std::sync::Arc;

use hapax_store::conformance::database::with_database;
use hapax_store::conformance::sample::Dial;
use hapax_store::model::ModelStore;
use hapax_store::postgres::{self, PostgresStore};
use hapax_store::sqlite::{self, DiskLimits, SqliteStore};
use hapax_store::{Keys, Store};

use crate::watched::Watched;

/// What a check has.
#[derive(Clone)]
pub(crate) struct World {
    /// The store's keys, watched and broken at will.
    pub(crate) keys: Arc<Watched>,
    /// The store's clock.
    pub(crate) dial: Dial,
}

impl World {
    fn on(store: Arc<dyn Keys>, dial: Dial) -> World {
        World {
            keys: Arc::new(Watched::new(store)),
            dial,
        }
    }
}

/// Runs a check in memory.
pub(crate) fn model<Fut: Future<Output = ()>>(check: impl FnOnce(World) -> Fut) {
    let dial = Dial::default();
    let store = Arc::new(ModelStore::new(dial.clock()));
    runtime().block_on(check(World::on(store, dial)));
}

/// Runs a check on SQLite.
pub(crate) fn sqlite<Fut: Future<Output = ()>>(check: impl FnOnce(World) -> Fut) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let dial = Dial::default();
    runtime().block_on(async {
        let options = sqlite::Options {
            nonce: [7; 16],
            clock: dial.clock(),
            // No ballast: tests come in hundreds.
            disk: DiskLimits {
                free_bytes_min: 0,
                ballast_bytes: 0,
            },
        };
        let store = SqliteStore::open(&folder.path().join("hapax.db"), options);
        let store = Arc::new(store.expect("the store opens"));
        check(World::on(store.clone(), dial)).await;
        store.close().await;
    });
}

/// Runs a check on PostgreSQL.
pub(crate) fn postgres<Fut>(check: impl FnOnce(World) -> Fut + Send + 'static)
where
    Fut: Future<Output = ()> + Send + 'static,
{
    with_database(async move |database| {
        let dial = Dial::default();
        let options = postgres::Options {
            clock: Some(dial.clock()),
            ..database.options()
        };
        let store = PostgresStore::open(options).await.expect("the store opens");
        let store = Arc::new(store);
        check(World::on(store.clone(), dial)).await;
        store.close().await;
    });
}

/// A runtime with real parallelism, since races are among what is tested.
fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("a runtime starts")
}

/// Makes three tests of each check.
macro_rules! on_every_store {
    ($($check:ident),+ $(,)?) => {
        $(mod $check {
            #[test]
            fn model() {
                crate::world::model(super::$check);
            }
            #[test]
            fn sqlite() {
                crate::world::sqlite(super::$check);
            }
            #[test]
            fn postgres() {
                crate::world::postgres(super::$check);
            }
        })+
    };
}
pub(crate) use on_every_store;

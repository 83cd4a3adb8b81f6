//! A PostgreSQL database of its own for each test, on the server that `HAPAX_TEST_POSTGRES` names.

use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use hapax_ledger::time::Time;
use tokio_postgres::{Client, NoTls};

use crate::nouns::lane_shard;
use crate::postgres::{Options, PostgresStore, SHARDS};

/// Where the server is. Tests without one say so and pass.
const SERVER: &str = "HAPAX_TEST_POSTGRES";

/// An empty database.
#[derive(Debug)]
pub struct Database {
    server: String,
    name: String,
}

impl Database {
    /// How a store gets there.
    pub fn options(&self) -> Options {
        Options::new(self.url(), [7; 16], Arc::new(|| lots(&LOTS)))
    }

    /// Where it is.
    pub fn url(&self) -> String {
        let (path, query) = self.server.split_once('?').unwrap_or((&self.server, ""));
        let host = path.rsplit_once('/').map_or(path, |(host, _)| host);
        format!("{host}/{}?{query}", self.name)
    }

    /// Its name on the server.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// A node on this database.
    pub async fn open(&self) -> PostgresStore {
        PostgresStore::open(self.options())
            .await
            .expect("the store opens")
    }

    /// A session of somebody else's in this database.
    pub async fn client(&self) -> Client {
        connect(&self.url()).await
    }

    /// How many shards each node looks after that looks after any.
    pub async fn shares(&self) -> Vec<usize> {
        let sql = "SELECT count(*) FROM hapax.shard WHERE node IS NOT NULL GROUP BY node";
        let rows = self.client().await.query(sql, &[]).await;
        let rows = rows.expect("the server answers");
        let share = |row: &tokio_postgres::Row| row.get::<_, i64>(0) as usize;
        rows.iter().map(share).collect()
    }

    /// Until when a lane's shard is held, or what is claimed in that lane if that is longer; by the database's clock.
    pub async fn held_until(&self, lane: &str) -> Time {
        let sql = "SELECT greatest(until, (
                 SELECT max(lease_until) FROM hapax.queue WHERE shard = s.shard AND state = 1 AND lane = $2
             )) FROM hapax.shard s WHERE shard = $1";
        let shard = lane_shard(lane, SHARDS) as i16;
        let row = self.client().await.query_one(sql, &[&shard, &lane]).await;
        Time::from_micros(row.expect("the server answers").get(0))
    }

    /// A session that keeps everybody from changing the outbox's catalogue, until it is dropped.
    pub async fn hold_catalogue(&self) -> Client {
        let client = self.client().await;
        let hold = "BEGIN; SELECT FROM hapax.catalogue FOR UPDATE";
        client.batch_execute(hold).await.expect("the server obeys");
        client
    }

    /// A session in the server's own database.
    pub async fn server_client(&self) -> Client {
        connect(&self.server).await
    }
}

static LOTS: AtomicU64 = AtomicU64::new(0);

/// Numbers that look random and never repeat.
fn lots(drawn: &AtomicU64) -> u64 {
    let mut lot = drawn
        .fetch_add(1, Ordering::Relaxed)
        .wrapping_mul(0x9e37_79b9_7f4a_7c15);
    lot = (lot ^ (lot >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    lot ^ (lot >> 31)
}

async fn connect(url: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(url, NoTls)
        .await
        .expect("the server answers");
    tokio::spawn(connection);
    client
}

/// Runs a test in an empty database, and drops the database whatever became of the test.
pub fn with_database<F, Fut>(test: F)
where
    F: FnOnce(Arc<Database>) -> Fut + Send + 'static,
    Fut: Future<Output = ()> + Send + 'static,
{
    let Ok(server) = std::env::var(SERVER) else {
        eprintln!("skipped: {SERVER} names no PostgreSQL server");
        return;
    };
    static MADE: AtomicU64 = AtomicU64::new(0);
    let name = format!(
        "hapax_test_{}_{}",
        std::process::id(),
        MADE.fetch_add(1, Ordering::Relaxed)
    );
    runtime().block_on(async {
        let admin = connect(&server).await;
        let run = async |sql: String| admin.batch_execute(&sql).await.expect("the server obeys");
        run(format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)")).await;
        run(format!("CREATE DATABASE {name}")).await;
        let database = Arc::new(Database {
            server: server.clone(),
            name: name.clone(),
        });
        let outcome = tokio::spawn(test(database)).await;
        run(format!("DROP DATABASE {name} WITH (FORCE)")).await;
        if let Err(failed) = outcome {
            resume_unwind(failed.into_panic());
        }
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

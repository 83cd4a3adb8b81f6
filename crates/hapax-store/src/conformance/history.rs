//! Deliveries that were tried long ago, by the million: put into the tables in bulk, for those who measure what reading costs then.
//!
//! Only what statistics could come across is there: effects, their attempts, and what the hours came to. Their events are not, so this is a
//! store to read figures from, and nothing else.

use std::path::Path;

use hapax_ledger::id::EndpointId;
use hapax_ledger::time::{Span, Time};
use tokio_postgres::NoTls;

use crate::error::{StoreError, StoreErrorKind};
use crate::nouns::{Tally, lane_shard};
use crate::postgres::SHARDS;

/// Attempts at each delivery: the last got through.
pub const ATTEMPTS_EACH: u64 = 5;
/// Deliveries that wait, at each endpoint.
pub const WAITING_EACH: u64 = 100;
/// Figures go back so far.
const HOURS: i64 = 28 * 24;
/// Deliveries of one transaction.
const AT_ONCE: u64 = 200_000;

/// What is to be there.
#[derive(Clone, Debug)]
pub struct History {
    /// Deliveries are theirs by turns.
    pub endpoints: Vec<EndpointId>,
    /// Deliveries that were tried [`ATTEMPTS_EACH`] times each.
    pub deliveries: u64,
    /// Its end: the hours before it are what attempts are counted in.
    pub until: Time,
}

fn failed<E: std::error::Error + Send + Sync + 'static>(error: E) -> StoreError {
    StoreError::new(StoreErrorKind::Unavailable, "could not be filled").caused_by(error)
}

impl History {
    fn first_hour(&self) -> i64 {
        let hour = Span::from_hours(1).micros();
        Tally::of(self.until).hour.micros() - (HOURS - 1) * hour
    }

    /// What one hour of one endpoint came to: those of all hours and endpoints together are at least the deliveries there are.
    fn each_hour(&self) -> i64 {
        let places = self.endpoints.len().max(1) as u64 * HOURS as u64;
        self.deliveries.div_ceil(places) as i64
    }

    /// Fills the SQLite file of a store that nobody has open.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn fill_sqlite(&self, database: &Path) -> Result<(), StoreError> {
        let mut db = rusqlite::Connection::open(database).map_err(failed)?;
        // It need not outlive a crash.
        db.pragma_update(None, "synchronous", "OFF")
            .map_err(failed)?;
        let lanes: Vec<String> = self.endpoints.iter().map(EndpointId::to_string).collect();
        let tx = db.transaction().map_err(failed)?;
        tx.execute_batch("CREATE TEMP TABLE lane (place INTEGER PRIMARY KEY, name TEXT NOT NULL)")
            .map_err(failed)?;
        for (number, lane) in (0_i64..).zip(&lanes) {
            tx.execute("INSERT INTO temp.lane VALUES (?1, ?2)", (number, lane))
                .map_err(failed)?;
        }
        let hours = (self.first_hour(), HOURS, self.each_hour());
        tx.execute(SQLITE_TALLIES, hours).map_err(failed)?;
        let waiting = WAITING_EACH as i64 * lanes.len() as i64;
        tx.execute(SQLITE_EFFECTS, (1, waiting, 0))
            .map_err(failed)?;
        tx.commit().map_err(failed)?;
        for (from, until) in self.parts() {
            let tx = db.transaction().map_err(failed)?;
            tx.execute(SQLITE_EFFECTS, (from, until, 2))
                .map_err(failed)?;
            // The latest attempt of each is in its effect's own row.
            let earlier = ATTEMPTS_EACH as i64 - 1;
            tx.execute(SQLITE_ATTEMPTS, (from, until, earlier))
                .map_err(failed)?;
            tx.commit().map_err(failed)?;
        }
        db.execute_batch("PRAGMA wal_checkpoint(TRUNCATE)")
            .map_err(failed)
    }

    /// Numbers of deliveries, from and to: those that wait come first.
    fn parts(&self) -> impl Iterator<Item = (i64, i64)> {
        let first = WAITING_EACH * self.endpoints.len() as u64 + 1;
        let end = first + self.deliveries;
        let starts = (first..end).step_by(AT_ONCE as usize);
        starts.map(move |from| (from as i64, (from + AT_ONCE).min(end) as i64 - 1))
    }

    /// Fills a database that a store was made in.
    ///
    /// # Errors
    /// If it cannot be written.
    pub async fn fill_postgres(&self, url: &str) -> Result<(), StoreError> {
        let connected = tokio_postgres::connect(url, NoTls).await;
        let (db, connection) = connected.map_err(failed)?;
        let driver = tokio::spawn(connection);
        let lanes: Vec<String> = self.endpoints.iter().map(EndpointId::to_string).collect();
        let shards: Vec<i16> = lanes
            .iter()
            .map(|lane| lane_shard(lane, SHARDS) as i16)
            .collect();
        db.batch_execute(
            "SET synchronous_commit = off; CREATE TEMP TABLE lane (place int8, shard int2, name text)",
        )
        .await
        .map_err(failed)?;
        db.execute(
            "INSERT INTO lane SELECT generate_subscripts($1::int2[], 1) - 1, unnest($1::int2[]), unnest($2::text[])",
            &[&shards, &lanes],
        )
        .await
        .map_err(failed)?;
        let (first, each) = (self.first_hour(), self.each_hour());
        db.execute(POSTGRES_TALLIES, &[&first, &HOURS, &each])
            .await
            .map_err(failed)?;
        let waiting = WAITING_EACH as i64 * lanes.len() as i64;
        let all = std::iter::once((1, waiting, 0_i16));
        for (from, until, state) in all.chain(self.parts().map(|(from, until)| (from, until, 2))) {
            let tried = if state == 2 { ATTEMPTS_EACH as i64 } else { 0 };
            for statement in [POSTGRES_EFFECTS, POSTGRES_QUEUE] {
                db.execute(statement, &[&from, &until, &state])
                    .await
                    .map_err(failed)?;
            }
            db.execute(POSTGRES_ATTEMPTS, &[&from, &until, &tried])
                .await
                .map_err(failed)?;
        }
        db.batch_execute("VACUUM ANALYZE").await.map_err(failed)?;
        drop(db);
        driver.await.map_err(failed)?.map_err(failed)
    }
}

const SQLITE_TALLIES: &str =
    "WITH RECURSIVE hours (n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM hours WHERE n + 1 < ?2)
     INSERT OR REPLACE INTO tally (lane, hour, done, failed, dead)
     SELECT l.name, ?1 + h.n * 3600000000, ?3, ?3 * 4, 0 FROM temp.lane l, hours h";

const SQLITE_EFFECTS: &str = "WITH RECURSIVE numbers (n) AS (SELECT ?1 UNION ALL SELECT n + 1 FROM numbers WHERE n < ?2)
     INSERT INTO effect (seq, at, name, key, key_hash, lane, attempts_max, repeat, state, generation, attempts, pass_from, fence,
         lease_until, next_at, started, ambiguous, gate, last_fence, last_generation, last_number, last_node, last_started_at,
         last_ended_at, last_outcome, last_detail)
     SELECT n << 20, n, l.name, 'k' || n, CAST('0123456789abcdef' AS BLOB), l.name, 7, 1, ?3, 1, 5, 0, 5, 0, 9000000000000000, 0, 0, 0,
         5, 1, 5, 'node', n, n, 0, 200
     FROM numbers JOIN temp.lane l ON l.place = numbers.n % (SELECT count(*) FROM temp.lane)";

const SQLITE_ATTEMPTS: &str = "WITH RECURSIVE numbers (n) AS (SELECT ?1 UNION ALL SELECT n + 1 FROM numbers WHERE n < ?2),
         fences (f) AS (SELECT 1 UNION ALL SELECT f + 1 FROM fences WHERE f < ?3)
     INSERT INTO attempt (effect, fence, generation, number, node, started_at, ended_at, outcome, detail)
     SELECT n << 20, f, 1, f, 'node', n, n, 0, 503 FROM numbers, fences";

const POSTGRES_TALLIES: &str = "INSERT INTO hapax.tally (shard, lane, hour, done, failed, dead)
     SELECT l.shard, l.name, $1::int8 + n * 3600000000, $3::int8, $3::int8 * 4, 0 FROM lane l, generate_series(0, $2::int8 - 1) n
     ON CONFLICT (shard, lane, hour) DO UPDATE SET done = excluded.done, failed = excluded.failed";

/// A number as an id that sorts by it.
macro_rules! numbered {
    () => {
        "lpad(to_hex(n), 32, '0')::uuid"
    };
}

const POSTGRES_EFFECTS: &str = concat!(
    "INSERT INTO hapax.effect (id, event, key_hash, attempts_max, place, shard, event_shard, queue_shard, name, key, lane)
     SELECT ",
    numbered!(),
    ", ",
    numbered!(),
    ", ",
    numbered!(),
    ", 7, 0, 0, 0, l.shard, l.name, 'k' || n, l.name
     FROM generate_series($1::int8, $2::int8) n JOIN lane l ON l.place = n % (SELECT count(*) FROM lane) WHERE $3::int2 >= 0"
);

const POSTGRES_QUEUE: &str = concat!(
    "INSERT INTO hapax.queue (effect, event, fence, lease_until, next_at, generation, attempts, pass_from, shard, event_shard,
         state, gate, repeat, started, ambiguous, alone, lane)
     SELECT ",
    numbered!(),
    ", ",
    numbered!(),
    ", 5, 0, 9000000000000000, 1, 5, 0, l.shard, 0, $3, 0, 1, false, false, true, l.name
     FROM generate_series($1::int8, $2::int8) n JOIN lane l ON l.place = n % (SELECT count(*) FROM lane)"
);

const POSTGRES_ATTEMPTS: &str = concat!(
    "INSERT INTO hapax.attempt (effect, fence, started_at, ended_at, generation, number, shard, outcome, detail, node)
     SELECT ",
    numbered!(),
    ", f, n, n, 1, f, 0, 0, 503, 'node'
     FROM generate_series($1::int8, $2::int8) n, generate_series(1, $3::int8) f"
);

//! What attempts to endpoints came to, by lane and hour. Counted in memory and written once per group, whatever the number of
//! attempts in it.

use std::collections::HashMap;
use std::sync::Arc;

use hapax_ledger::id::{AppId, EndpointId};
use hapax_ledger::outcome::Outcome;
use hapax_ledger::time::Time;
use rusqlite::{Connection, params};

use super::sql_error;
use crate::error::StoreError;
use crate::nouns::{TALLIES_KEPT, Tally, is_endpoint_lane};

/// So many rows are deleted in one step of the reaper.
const ROWS_PER_STEP: i64 = 500;

/// So many endpoints are summed up before others may read: there are two readers for all.
pub(super) const ENDPOINTS_PER_STEP: usize = 100;

/// What the attempts of the open transaction came to.
#[derive(Default)]
pub(super) struct Tallies(HashMap<(Arc<str>, Time), Tally>);

impl Tallies {
    /// An attempt has ended.
    pub(super) fn count(&mut self, lane: &Arc<str>, at: Time, outcome: Outcome, gave_up: bool) {
        if is_endpoint_lane(lane) {
            let none = Tally::of(at);
            let tally = self.0.entry((lane.clone(), none.hour)).or_insert(none);
            tally.count(outcome, gave_up);
        }
    }

    /// Writes them down, before the transaction ends.
    pub(super) fn write(&mut self, db: &Connection) -> Result<(), StoreError> {
        for ((lane, hour), tally) in self.0.drain() {
            db.prepare_cached(
                "INSERT INTO tally (lane, hour, done, failed, dead) VALUES (?1, ?2, ?3, ?4, ?5)
                 ON CONFLICT (lane, hour) DO UPDATE SET done = done + excluded.done,
                     failed = failed + excluded.failed, dead = dead + excluded.dead",
            )
            .and_then(|mut insert| {
                insert.execute(params![
                    lane,
                    hour.micros(),
                    tally.done as i64,
                    tally.failed as i64,
                    tally.dead as i64
                ])
            })
            .map_err(sql_error)?;
        }
        Ok(())
    }
}

/// The tallies of an endpoint within these times, oldest first.
pub(super) fn read(
    db: &Connection,
    endpoint: EndpointId,
    since: Time,
    until: Time,
) -> Result<Vec<Tally>, StoreError> {
    db.prepare_cached(
        "SELECT hour, done, failed, dead FROM tally WHERE lane = ?1 AND hour >= ?2 AND hour < ?3 ORDER BY hour",
    )
    .and_then(|mut read| {
        let named = params![endpoint.to_string(), since.micros(), until.micros()];
        let tallies = read.query_map(named, |row| {
            Ok(Tally {
                hour: Time::from_micros(row.get(0)?),
                done: row.get::<_, i64>(1)? as u64,
                failed: row.get::<_, i64>(2)? as u64,
                dead: row.get::<_, i64>(3)? as u64,
            })
        })?;
        tallies.collect()
    })
    .map_err(sql_error)
}

/// All endpoints of an application, also those that were deleted and are still kept.
pub(super) fn endpoints(db: &Connection, app: AppId) -> Result<Vec<EndpointId>, StoreError> {
    db.prepare_cached("SELECT id FROM endpoint WHERE app = ?1")
        .and_then(|mut read| {
            let ids = read.query_map([app.bytes()], |row| row.get(0))?;
            ids.map(|id| id.map(EndpointId::from_bytes)).collect()
        })
        .map_err(sql_error)
}

/// Attempts to these endpoints within these times.
pub(super) fn attempts(
    db: &Connection,
    endpoints: &[EndpointId],
    since: Time,
    until: Time,
) -> Result<u64, StoreError> {
    let mut sum = 0;
    for endpoint in endpoints {
        let lane = endpoint.to_string();
        let attempts: i64 = db
            .prepare_cached(
                "SELECT coalesce(sum(done + failed), 0) FROM tally WHERE lane = ?1 AND hour >= ?2 AND hour < ?3",
            )
            .and_then(|mut read| {
                let named = params![lane, since.micros(), until.micros()];
                read.query_row(named, |row| row.get(0))
            })
            .map_err(sql_error)?;
        sum += attempts as u64;
    }
    Ok(sum)
}

/// Deletes some that are too old. Is there more?
pub(super) fn reap(db: &Connection, now: Time) -> Result<bool, StoreError> {
    let gone = db
        .prepare_cached(
            "DELETE FROM tally WHERE (lane, hour) IN (
                 SELECT lane, hour FROM tally INDEXED BY tally_hour WHERE hour <= ?1 LIMIT ?2)",
        )
        .and_then(|mut delete| delete.execute([(now - TALLIES_KEPT).micros(), ROWS_PER_STEP]))
        .map_err(sql_error)?;
    Ok(gone as i64 == ROWS_PER_STEP)
}

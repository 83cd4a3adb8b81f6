//! What attempts to endpoints came to, by lane and hour, written once per group; see also [`super::happy`].

use std::collections::BTreeMap;

use hapax_ledger::effect::EffectState;
use hapax_ledger::id::{AppId, EndpointId};
use hapax_ledger::time::Time;
use tokio_postgres::types::Type;

use super::SHARDS;
use super::held::Hand;
use super::pool::{Param, Pool, Statement};
use super::wire::Uuid;
use crate::error::StoreError;
use crate::nouns::{TALLIES_KEPT, Tally, is_endpoint_lane, lane_shard};

/// So many rows are deleted in one step of the reaper.
const ROWS_PER_STEP: i64 = 500;

/// So many endpoints are summed up by one statement: none takes long, however many endpoints an application has.
pub(super) const ENDPOINTS_PER_STEP: usize = 100;

/// The tallies of a group, in the order in which they are locked.
#[derive(Default)]
pub(super) struct TallyColumns {
    shard: Vec<i16>,
    lane: Vec<String>,
    hour: Vec<i64>,
    done: Vec<i64>,
    failed: Vec<i64>,
    dead: Vec<i64>,
}

impl TallyColumns {
    /// Of all attempts that have ended here.
    pub(super) fn of(hand: &Hand) -> TallyColumns {
        let mut tallies: BTreeMap<(i16, &str, Time), Tally> = BTreeMap::new();
        for (id, attempt) in &hand.ended {
            let held = hand.held.get(id);
            let effect = held.map(|held| &held.effect);
            let Some(effect) = effect.filter(|effect| is_endpoint_lane(&effect.lane)) else {
                continue;
            };
            let none = Tally::of(attempt.ended_at);
            let shard = lane_shard(&effect.lane, SHARDS) as i16;
            let place = (shard, &*effect.lane, none.hour);
            // One that was given up and brought back in the same group is counted as it stands: nobody saw it in between.
            let gave_up =
                effect.record.state == EffectState::Dead && effect.record.fence == attempt.fence;
            let tally = tallies.entry(place).or_insert(none);
            tally.count(attempt.outcome, gave_up);
        }
        let mut columns = TallyColumns::default();
        for ((shard, lane, hour), tally) in tallies {
            columns.shard.push(shard);
            columns.lane.push(lane.to_owned());
            columns.hour.push(hour.micros());
            columns.done.push(tally.done as i64);
            columns.failed.push(tally.failed as i64);
            columns.dead.push(tally.dead as i64);
        }
        columns
    }

    /// `None` if there are none. To be run behind all else: nothing is waited for while these are locked.
    pub(super) fn statement(&self) -> Option<Statement<'_>> {
        let params: Vec<Param<'_>> = vec![
            (&self.shard, Type::INT2_ARRAY),
            (&self.lane, Type::TEXT_ARRAY),
            (&self.hour, Type::INT8_ARRAY),
            (&self.done, Type::INT8_ARRAY),
            (&self.failed, Type::INT8_ARRAY),
            (&self.dead, Type::INT8_ARRAY),
        ];
        let sql = "INSERT INTO hapax.tally (shard, lane, hour, done, failed, dead)
             SELECT unnest($1::int2[]), unnest($2::text[]), unnest($3::int8[]), unnest($4::int8[]), unnest($5::int8[]),
                 unnest($6::int8[])
             ON CONFLICT (shard, lane, hour) DO UPDATE SET done = tally.done + excluded.done,
                 failed = tally.failed + excluded.failed, dead = tally.dead + excluded.dead";
        (!self.lane.is_empty()).then_some((sql, params))
    }
}

/// The tallies of an endpoint within these times, oldest first.
pub(super) async fn read(
    pool: &Pool,
    endpoint: EndpointId,
    since: Time,
    until: Time,
) -> Result<Vec<Tally>, StoreError> {
    let lane = endpoint.to_string();
    let rows = pool
        .read(
            "SELECT hour, done, failed, dead FROM hapax.tally
             WHERE shard = $1 AND lane = $2 AND hour >= $3 AND hour < $4 ORDER BY hour",
            &[
                (&(lane_shard(&lane, SHARDS) as i16), Type::INT2),
                (&lane, Type::TEXT),
                (&since.micros(), Type::INT8),
                (&until.micros(), Type::INT8),
            ],
        )
        .await?;
    let tallies = rows.iter().map(|row| Tally {
        hour: Time::from_micros(row.get(0)),
        done: row.get::<_, i64>(1) as u64,
        failed: row.get::<_, i64>(2) as u64,
        dead: row.get::<_, i64>(3) as u64,
    });
    Ok(tallies.collect())
}

/// All endpoints of an application, also those that were deleted and are still kept.
pub(super) async fn endpoints(pool: &Pool, app: AppId) -> Result<Vec<EndpointId>, StoreError> {
    let rows = pool
        .read(
            "SELECT id FROM hapax.endpoint WHERE app = $1",
            &[(&Uuid(app.bytes()), Type::UUID)],
        )
        .await?;
    let ids = rows.iter().map(|row| row.get::<_, Uuid>(0));
    Ok(ids.map(|id| EndpointId::from_bytes(id.0)).collect())
}

/// Attempts to these endpoints within these times. Each endpoint's hours are read along the key, whatever else there is.
pub(super) async fn attempts(
    pool: &Pool,
    endpoints: &[EndpointId],
    since: Time,
    until: Time,
) -> Result<u64, StoreError> {
    let lanes: Vec<String> = endpoints.iter().map(EndpointId::to_string).collect();
    let shards: Vec<i16> = lanes
        .iter()
        .map(|lane| lane_shard(lane, SHARDS) as i16)
        .collect();
    let rows = pool
        .walk(
            "SELECT coalesce(sum(t.attempts), 0)::int8 FROM (SELECT unnest($1::int2[]), unnest($2::text[])) AS k (shard, lane)
             CROSS JOIN LATERAL (
                 SELECT sum(done + failed) AS attempts FROM hapax.tally
                 WHERE shard = k.shard AND lane = k.lane COLLATE \"C\" AND hour >= $3 AND hour < $4
             ) t",
            &[
                (&shards, Type::INT2_ARRAY),
                (&lanes, Type::TEXT_ARRAY),
                (&since.micros(), Type::INT8),
                (&until.micros(), Type::INT8),
            ],
        )
        .await?;
    Ok(rows.first().map_or(0, |row| row.get::<_, i64>(0)) as u64)
}

/// Deletes some that are too old. Is there more?
pub(super) async fn reap(pool: &Pool, now: Time) -> Result<bool, StoreError> {
    let taken = pool.take().await?;
    let until = (now - TALLIES_KEPT).micros();
    let gone = taken
        .query_and_commit(
            "DELETE FROM hapax.tally WHERE (shard, lane, hour) IN (
                 SELECT shard, lane, hour FROM hapax.tally WHERE hour <= $1 LIMIT $2
             ) RETURNING hour",
            &[(&until, Type::INT8), (&ROWS_PER_STEP, Type::INT8)],
        )
        .await?;
    Ok(gone.len() as i64 == ROWS_PER_STEP)
}

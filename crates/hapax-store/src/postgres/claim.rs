//! Which lanes have something to do, claims in them, and rescues: one transaction each.
//!
//! Effects are locked first, then the moment is read, then the ledger decides in memory, then all of it is written. What others
//! hold is skipped.

use bytes::Bytes;
use hapax_ledger::id::EffectId;
use hapax_ledger::time::Time;
use tokio_postgres::types::Type;

use super::carry::carry_out;
use super::chain;
use super::effect::{KEY_HASH, effect_columns, text, time, to_held};
use super::gate::{GateChange, opened};
use super::held::Hand;
use super::moment::{LeaseClock, moment, now};
use super::pool::{Param, Pool};
use super::wire::{Uuid, sendable};
use crate::error::StoreError;
use crate::nouns::{ClaimAsk, Claimed, LANES_PER_LOOK_MAX, LaneDue, Rescued};

/// Effects that one claim takes at most, whatever is asked for: they are locked until its commit.
const CLAIM_ROWS_MAX: i64 = 1_000;
/// Effects that one step of the rescue looks at.
const RESCUE_ROWS: i64 = 500;

/// Lanes of a shard that have claimable effects. The index is entered once for each lane, at the earliest of its effects.
pub(super) async fn due(
    pool: &Pool,
    shard: u16,
    after: Option<&str>,
) -> Result<Vec<LaneDue>, StoreError> {
    // The first text behind another is that text with the least character there is. (NUL is never sent.)
    let from = after.map_or_else(String::new, |after| format!("{}\u{1}", sendable(after)));
    let rows = pool
        .read(
            "WITH RECURSIVE due (lane, next_at) AS (
                 (
                     SELECT lane, next_at FROM hapax.queue
                     WHERE shard = $1 AND state = 0 AND gate = 0 AND lane >= $2
                     ORDER BY lane, next_at LIMIT 1
                 )
                 UNION ALL
                 SELECT n.lane, n.next_at FROM due CROSS JOIN LATERAL (
                     SELECT lane, next_at FROM hapax.queue
                     WHERE shard = $1 AND state = 0 AND gate = 0 AND lane > due.lane
                     ORDER BY lane, next_at LIMIT 1
                 ) n
             )
             SELECT lane, next_at FROM due LIMIT $3",
            &[
                (&(shard as i16), Type::INT2),
                (&from, Type::TEXT),
                (&i64::from(LANES_PER_LOOK_MAX), Type::INT8),
            ],
        )
        .await?;
    let lanes = rows.iter().map(|row| LaneDue {
        lane: text(row, 0),
        at: time(row, 1),
    });
    Ok(lanes.collect())
}

/// Claims what is due in some lanes of one shard, earliest first in each.
pub(super) async fn claim(
    pool: &Pool,
    ask: &ClaimAsk,
    clock: &LeaseClock,
) -> Result<Vec<Claimed>, StoreError> {
    let lanes: Vec<_> = ask.lanes.iter().map(|lane| sendable(&lane.lane)).collect();
    let rooms: Vec<i64> = ask.lanes.iter().map(|lane| lane.room.into()).collect();
    let (shard, given) = (ask.shard as i16, clock.given());
    let params: [Param<'_>; 5] = [
        (&shard, Type::INT2),
        (&given, Type::INT8),
        (&lanes, Type::TEXT_ARRAY),
        (&rooms, Type::INT8_ARRAY),
        (&CLAIM_ROWS_MAX, Type::INT8),
    ];
    let taken = pool.take().await?;
    let due = taken.begin(
        effect_columns!(
            concat!(
                "WITH q AS MATERIALIZED (
                     SELECT k.number, q.*
                     FROM (SELECT unnest($3::text[]), unnest($4::int8[]), generate_subscripts($3::text[], 1)) AS k (lane, room, number)
                     CROSS JOIN LATERAL (
                         SELECT * FROM hapax.queue
                         WHERE shard = $1 AND lane = k.lane COLLATE \"C\" AND state = 0 AND gate = 0 AND next_at <= ",
                now!("$2"),
                "        ORDER BY next_at, effect LIMIT k.room FOR UPDATE SKIP LOCKED
                     ) q
                     LIMIT $5
                 ) "
            ),
            ", s.body FROM q JOIN hapax.effect e ON e.id = q.effect
             LEFT JOIN hapax.snapshot s ON s.shard = e.shard AND s.effect = e.id
             ORDER BY q.number, q.next_at, q.effect"
        ),
        &params,
    );
    let (due, moment) = tokio::try_join!(biased; due, moment(&taken, clock))?;
    let mut wanted: Vec<(EffectId, Option<Bytes>)> = Vec::with_capacity(due.len());
    for row in &due {
        let snapshot = row.get::<_, Option<Vec<u8>>>(KEY_HASH + 1);
        let id = EffectId::from_bytes(row.get::<_, Uuid>(0).0);
        wanted.push((id, snapshot.map(Bytes::from)));
    }
    let mut hand = Hand::new(moment, due.iter().map(to_held));
    let claimed = wanted
        .into_iter()
        .filter_map(|(id, snapshot)| hand.claim(id, ask, snapshot))
        .collect();
    carry_out(taken, &hand).await?;
    Ok(claimed)
}

/// When the earliest is due of what can be claimed in each of these lanes, once the claim is through.
pub(super) async fn next_due(pool: &Pool, ask: &ClaimAsk) -> Result<Vec<Option<Time>>, StoreError> {
    let lanes: Vec<_> = ask.lanes.iter().map(|lane| sendable(&lane.lane)).collect();
    let rows = pool
        .read(
            "SELECT n.next_at FROM unnest($2::text[]) WITH ORDINALITY AS k (lane, number)
             LEFT JOIN LATERAL (
                 SELECT next_at FROM hapax.queue
                 WHERE shard = $1 AND lane = k.lane COLLATE \"C\" AND state = 0 AND gate = 0
                 ORDER BY next_at LIMIT 1
             ) n ON true
             ORDER BY k.number",
            &[
                (&(ask.shard as i16), Type::INT2),
                (&lanes, Type::TEXT_ARRAY),
            ],
        )
        .await?;
    let next = rows.iter().map(|row| row.get::<_, Option<i64>>(0));
    Ok(next.map(|at| at.map(Time::from_micros)).collect())
}

/// One of these shards in which something is held beyond its lease.
pub(super) async fn overdue(
    pool: &Pool,
    shards: &[u16],
    clock: &LeaseClock,
) -> Result<Option<u16>, StoreError> {
    let shards: Vec<i16> = shards.iter().map(|shard| *shard as i16).collect();
    let rows = pool
        .read(
            concat!(
                "SELECT k.shard FROM unnest($1::int2[]) AS k (shard)
                 WHERE EXISTS (
                     SELECT FROM hapax.queue WHERE shard = k.shard AND state = 1 AND lease_until <= ",
                now!("$2"),
                ") LIMIT 1"
            ),
            &[(&shards, Type::INT2_ARRAY), (&clock.given(), Type::INT8)],
        )
        .await?;
    Ok(rows.first().map(|row| row.get::<_, i16>(0) as u16))
}

/// Frees what is held beyond its lease in one shard; its attempts are lost. Chains are locked first, as everywhere; what belongs
/// to another chain has expired since, and waits for the next step.
pub(super) async fn rescue(
    pool: &Pool,
    shard: u16,
    clock: &LeaseClock,
) -> Result<Rescued, StoreError> {
    let taken = pool.take().await?;
    let (shard, given) = (shard as i16, clock.given());
    let mut params: Vec<Param<'_>> = vec![
        (&shard, Type::INT2),
        (&given, Type::INT8),
        (&RESCUE_ROWS, Type::INT8),
    ];
    let chains = chain::lock_expired(&taken, &params).await?;
    let locked: Vec<Uuid> = chains.keys().map(|hash| Uuid(hash.bytes())).collect();
    params.push((&locked, Type::UUID_ARRAY));
    let expired = taken.query(
        effect_columns!(
            concat!(
                "WITH q AS MATERIALIZED (
                     SELECT * FROM hapax.queue
                     WHERE shard = $1 AND state = 1 AND (chain IS NULL OR chain = ANY ($4)) AND lease_until <= ",
                now!("$2"),
                " ORDER BY lease_until LIMIT $3 FOR UPDATE SKIP LOCKED
                 ) "
            ),
            "FROM q JOIN hapax.effect e ON e.id = q.effect"
        ),
        &params,
    );
    let (expired, moment) = tokio::try_join!(biased; expired, moment(&taken, clock))?;
    let mut hand = Hand::new(moment, expired.iter().map(to_held));
    hand.chains = chains;
    let freed = hand.expire_all();
    let changes = carry_out(taken, &hand).await?;
    hand.regate(&changes);
    let effects = freed.iter().filter_map(|id| hand.held.get(id));
    Ok(Rescued {
        effects: effects.map(|held| held.effect.clone()).collect(),
        opened: opened(&changes),
    })
}

impl Hand {
    /// Takes note of gates that have changed.
    pub(super) fn regate(&mut self, changes: &[GateChange]) {
        for change in changes {
            if let Some(held) = self.held.get_mut(&change.effect) {
                held.effect.gate = change.to;
            }
        }
    }
}

//! Effects as rows: reading them, and writing what the ledger decided.

use std::sync::Arc;

use hapax_ledger::effect::{EffectRecord, EffectState, Repeat, SkipReason};
use hapax_ledger::id::{EffectId, EventId};
use hapax_ledger::lease::Fence;
use hapax_ledger::time::Time;
use tokio_postgres::Row;
use tokio_postgres::types::Type;

use super::effect_columns::{AttemptColumns, QueueColumns};
use super::held::{Hand, Held, Late};
use super::pool::{Param, Pool, Taken};
use super::status;
use super::wire::{Uuid, received};
use crate::error::StoreError;
use crate::nouns::{Attempt, Effect, EffectDetail};
use crate::outcome_code::OutcomeCode;

/// The columns of [`to_held`], in its order, and the hash of the key.
macro_rules! effect_columns {
    ($before:expr, $after:expr) => {
        concat!(
            $before,
            "SELECT e.id, e.event, e.name, e.key, e.lane, e.attempts_max, q.repeat, q.state, q.generation, q.attempts,
                 q.pass_from, q.fence, q.lease_until, q.next_at, q.started, q.ambiguous, q.skip, q.node, q.started_at,
                 e.key_hash ",
            $after
        )
    };
}
pub(super) use effect_columns;

/// The number of [`effect_columns`] at which the hash of the key stands.
pub(super) const KEY_HASH: usize = 19;

fn text(row: &Row, column: usize) -> Arc<str> {
    received(row.get(column)).into()
}

fn number(row: &Row, column: usize) -> u32 {
    row.get::<_, i32>(column) as u32
}

fn code(row: &Row, column: usize) -> u8 {
    row.get::<_, i16>(column) as u8
}

fn time(row: &Row, column: usize) -> Time {
    Time::from_micros(row.get(column))
}

fn fence(row: &Row, column: usize) -> Fence {
    Fence::from_u64(row.get::<_, i64>(column) as u64)
}

pub(super) fn to_held(row: &Row) -> Held {
    let skip = row.get::<_, Option<i16>>(16);
    let record = EffectRecord {
        // What cannot be read counts as the strictest there is.
        repeat: Repeat::from_code(code(row, 6)).unwrap_or(Repeat::Once),
        state: EffectState::from_code(code(row, 7)).unwrap_or(EffectState::Uncertain),
        generation: number(row, 8),
        attempts: number(row, 9),
        pass_from: number(row, 10),
        fence: fence(row, 11),
        lease_until: time(row, 12),
        next_attempt_at: time(row, 13),
        started: row.get(14),
        ambiguous: row.get(15),
        skip: skip.and_then(|code| SkipReason::from_code(code as u8)),
    };
    let effect = Effect {
        id: EffectId::from_bytes(row.get::<_, Uuid>(0).0),
        event: EventId::from_bytes(row.get::<_, Uuid>(1).0),
        name: text(row, 2),
        key: received(row.get(3)),
        lane: text(row, 4),
        record,
    };
    Held {
        effect,
        attempts_max: number(row, 5),
        node: row
            .get::<_, Option<String>>(17)
            .map(|node| received(node).into()),
        started_at: row.get::<_, Option<i64>>(18).map(Time::from_micros),
    }
}

/// The effects of an event: its own in plan order, then those it shares with an earlier event.
pub(super) async fn of_event(pool: &Pool, event: EventId) -> Result<Vec<Effect>, StoreError> {
    let rows = pool
        .read(
            effect_columns!(
                "",
                "FROM (
                     SELECT shard, id, place FROM hapax.effect WHERE event = $2
                     UNION ALL
                     SELECT effect_shard, effect, NULL FROM hapax.effect_link WHERE shard = $1 AND event = $2
                 ) AS c (shard, id, place)
                 JOIN hapax.effect e ON e.shard = c.shard AND e.id = c.id
                 JOIN hapax.queue q ON q.shard = c.shard AND q.effect = c.id
                 ORDER BY c.place NULLS LAST, e.id"
            ),
            &[
                (&(event.0.shard() as i16), Type::INT2),
                (&Uuid(event.bytes()), Type::UUID),
            ],
        )
        .await?;
    Ok(rows.iter().map(|row| to_held(row).effect).collect())
}

/// One effect with its attempts.
pub(super) async fn detail(pool: &Pool, id: EffectId) -> Result<Option<EffectDetail>, StoreError> {
    let (shard, raw) = (id.0.shard() as i16, Uuid(id.bytes()));
    let named: [Param<'_>; 2] = [(&shard, Type::INT2), (&raw, Type::UUID)];
    let found = pool
        .read(
            effect_columns!(
                "",
                "FROM hapax.effect e JOIN hapax.queue q ON q.shard = e.shard AND q.effect = e.id
                 WHERE e.shard = $1 AND e.id = $2"
            ),
            &named,
        )
        .await?;
    let Some(row) = found.first() else {
        return Ok(None);
    };
    let attempts = pool
        .read(
            "SELECT generation, number, fence, node, started_at, ended_at, outcome, detail, retry_after, late_at,
                 late_outcome, late_detail
             FROM hapax.attempt WHERE shard = $1 AND effect = $2 ORDER BY fence",
            &named,
        )
        .await?;
    Ok(Some(EffectDetail {
        effect: to_held(row).effect,
        attempts: attempts.iter().map(to_attempt).collect(),
    }))
}

fn to_attempt(row: &Row) -> Attempt {
    let ended = OutcomeCode {
        kind: row.get(6),
        detail: row.get(7),
        retry_after: row.get(8),
    };
    let late = OutcomeCode {
        kind: row.get::<_, Option<i16>>(10).unwrap_or(-1),
        detail: row.get::<_, Option<i16>>(11).unwrap_or(-1),
        retry_after: None,
    };
    let late_at = row.get::<_, Option<i64>>(9).map(Time::from_micros);
    Attempt {
        generation: number(row, 0),
        number: number(row, 1),
        fence: fence(row, 2),
        node: text(row, 3),
        started_at: time(row, 4),
        ended_at: time(row, 5),
        outcome: ended.outcome(),
        late: late_at.map(|at| (at, late.outcome())),
    }
}

/// Writes all that was decided, and brings the events level with it (D7).
pub(super) async fn write(taken: &Taken, hand: &Hand) -> Result<(), StoreError> {
    let columns = QueueColumns::of(hand.written());
    let rows = async {
        match columns.is_empty() {
            true => Ok(()),
            false => update_queue(taken, &columns).await,
        }
    };
    let ended = async {
        match hand.ended.is_empty() {
            true => Ok(()),
            false => insert_attempts(taken, &AttemptColumns::of(&hand.ended)).await,
        }
    };
    // One behind the other without waiting: none of them needs the other's answer, but each sees what the other did.
    tokio::try_join!(biased; rows, ended)?;
    for late in &hand.late {
        keep_late(taken, late, hand.now).await?;
    }
    status::touch_events(taken, hand.shown()).await
}

async fn update_queue(taken: &Taken, columns: &QueueColumns<'_>) -> Result<(), StoreError> {
    taken
        .query(
            "UPDATE hapax.queue q SET fence = x.fence, lease_until = x.lease_until, next_at = x.next_at,
                 generation = x.generation, attempts = x.attempts, pass_from = x.pass_from, state = x.state,
                 repeat = x.repeat, started = x.started, ambiguous = x.ambiguous, skip = x.skip,
                 started_at = x.started_at, node = x.node
             FROM unnest($1::int2[], $2::uuid[], $3::int8[], $4::int8[], $5::int8[], $6::int4[], $7::int4[], $8::int4[],
                 $9::int2[], $10::int2[], $11::bool[], $12::bool[], $13::int2[], $14::int8[], $15::text[])
                 AS x (shard, effect, fence, lease_until, next_at, generation, attempts, pass_from, state, repeat,
                 started, ambiguous, skip, started_at, node)
             WHERE q.shard = x.shard AND q.effect = x.effect",
            &columns.params(),
        )
        .await?;
    Ok(())
}

async fn insert_attempts(taken: &Taken, columns: &AttemptColumns<'_>) -> Result<(), StoreError> {
    taken
        .query(
            "INSERT INTO hapax.attempt (shard, effect, fence, generation, number, node, started_at, ended_at, outcome,
                 detail, retry_after)
             SELECT * FROM unnest($1::int2[], $2::uuid[], $3::int8[], $4::int4[], $5::int4[], $6::text[], $7::int8[],
                 $8::int8[], $9::int2[], $10::int2[], $11::int8[])",
            &columns.params(),
        )
        .await?;
    Ok(())
}

/// Seldom needed, so one by one: the first to speak for an attempt is the one that is kept.
async fn keep_late(taken: &Taken, late: &Late, now: Time) -> Result<(), StoreError> {
    let code = OutcomeCode::of(late.outcome);
    taken
        .query(
            "UPDATE hapax.attempt SET late_at = $4, late_outcome = $5, late_detail = $6
             WHERE shard = $1 AND effect = $2 AND fence = $3 AND late_at IS NULL",
            &[
                (&(late.effect.0.shard() as i16), Type::INT2),
                (&Uuid(late.effect.bytes()), Type::UUID),
                (&(late.fence.as_u64() as i64), Type::INT8),
                (&now.micros(), Type::INT8),
                (&code.kind, Type::INT2),
                (&code.detail, Type::INT2),
            ],
        )
        .await?;
    Ok(())
}

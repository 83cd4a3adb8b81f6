//! Effects as they are read.

use std::sync::Arc;

use bytes::Bytes;
use hapax_ledger::effect::{EffectRecord, EffectState, Repeat, SkipReason};
use hapax_ledger::id::{EffectId, EventId};
use hapax_ledger::key::KeyHash;
use hapax_ledger::lease::Fence;
use hapax_ledger::order::Gate;
use hapax_ledger::time::Time;
use tokio_postgres::Row;
use tokio_postgres::types::Type;

use super::attempt;
use super::chain::Seat;
use super::effect_id::{key_shard, queue_shard};
use super::held::Held;
use super::order_rule::to_order;
use super::pool::{Param, Pool};
use super::wire::{Uuid, received};
use crate::error::StoreError;
use crate::nouns::{Effect, EffectDetail};
use crate::outcome_code::OutcomeCode;

/// The columns of [`to_held`], in its order, and the hash of the key.
macro_rules! effect_columns {
    ($before:expr, $after:expr) => {
        concat!(
            $before,
            "SELECT e.id, e.event, e.name, e.key, e.lane, e.attempts_max, q.repeat, q.state, q.generation, q.attempts,
                 q.pass_from, q.fence, q.lease_until, q.next_at, q.started, q.ambiguous, q.skip, q.node, q.started_at,
                 q.gate, q.last_outcome, q.last_detail, q.last_retry_after, e.order_rule, e.entity, e.version,
                 e.after IS NOT NULL, q.chain, q.turn, q.ended_by, q.released, e.key_hash ",
            $after
        )
    };
}
pub(super) use effect_columns;

/// The number of [`effect_columns`] at which the hash of the key stands; whatever else is asked for stands behind it.
pub(super) const KEY_HASH: usize = 31;

pub(super) fn text(row: &Row, column: usize) -> Arc<str> {
    received(row.get(column)).into()
}

pub(super) fn number(row: &Row, column: usize) -> u32 {
    row.get::<_, i32>(column) as u32
}

fn code(row: &Row, column: usize) -> u8 {
    row.get::<_, i16>(column) as u8
}

pub(super) fn time(row: &Row, column: usize) -> Time {
    Time::from_micros(row.get(column))
}

pub(super) fn fence(row: &Row, column: usize) -> Fence {
    Fence::from_u64(row.get::<_, i64>(column) as u64)
}

pub(super) fn skip(row: &Row, column: usize) -> Option<SkipReason> {
    let code = row.get::<_, Option<i16>>(column)?;
    SkipReason::from_code(code as u8)
}

fn to_record(row: &Row) -> EffectRecord {
    EffectRecord {
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
        skip: skip(row, 16),
    }
}

/// An effect with its record, gate, order and latest outcome.
pub(super) fn to_effect(row: &Row) -> Effect {
    let last = row.get::<_, Option<i16>>(20).map(|kind| OutcomeCode {
        kind,
        detail: row.get::<_, Option<i16>>(21).unwrap_or(-1),
        retry_after: row.get(22),
    });
    let order = row.get::<_, Option<i16>>(23).map(|rule| {
        let entity = row.get::<_, Option<String>>(24).unwrap_or_default();
        let version = row.get::<_, Option<String>>(25).map(received);
        to_order(rule, received(entity), version)
    });
    Effect {
        id: EffectId::from_bytes(row.get::<_, Uuid>(0).0),
        event: EventId::from_bytes(row.get::<_, Uuid>(1).0),
        name: text(row, 2),
        key: received(row.get(3)),
        lane: text(row, 4),
        record: to_record(row),
        gate: Gate::from_code(code(row, 19)).unwrap_or(Gate::Review),
        order,
        released: row.get(30),
        last: last.map(OutcomeCode::outcome),
    }
}

pub(super) fn to_held(row: &Row) -> Held {
    let chain = row.get::<_, Option<Uuid>>(27);
    let seat = chain.map(|chain| Seat {
        chain: KeyHash::from_bytes(chain.0),
        turn: row.get::<_, Option<i64>>(28).unwrap_or_default(),
        ended_by: row.get::<_, Option<String>>(29).map(received),
    });
    let node = row.get::<_, Option<String>>(17);
    Held {
        effect: to_effect(row),
        attempts_max: number(row, 5),
        node: node.map(|node| received(node).into()),
        started_at: row.get::<_, Option<i64>>(18).map(Time::from_micros),
        comes_after: row.get(26),
        seat,
    }
}

/// Reads the effects of an event: its own in plan order, then those it shares with an earlier event. Shard and id of the event are
/// its parameters.
pub(super) const OF_EVENT: &str = effect_columns!(
    "",
    "FROM (
         SELECT shard, id, place FROM hapax.effect WHERE event = $2
         UNION ALL
         SELECT effect_shard, effect, NULL FROM hapax.effect_link WHERE shard = $1 AND event = $2
     ) AS c (shard, id, place)
     JOIN hapax.effect e ON e.shard = c.shard AND e.id = c.id
     JOIN hapax.queue q ON q.shard = e.queue_shard AND q.effect = e.id
     ORDER BY c.place NULLS LAST, e.id"
);

/// One effect with its attempts, its snapshot and all events that call for it.
pub(super) async fn detail(pool: &Pool, id: EffectId) -> Result<Option<EffectDetail>, StoreError> {
    let (shard, raw) = (key_shard(id), Uuid(id.bytes()));
    let queue_shard = queue_shard(id);
    let named: [Param<'_>; 3] = [
        (&shard, Type::INT2),
        (&raw, Type::UUID),
        (&queue_shard, Type::INT2),
    ];
    // One picture: an attempt that has ended beside an effect that is still claimed would be a riddle.
    let found = pool
        .read_all(&[
            (DETAIL, named.to_vec()),
            (CALLING, named[..2].to_vec()),
            (attempt::OF_EFFECT, named[..2].to_vec()),
        ])
        .await?;
    let [found, calling, attempts] = &found[..] else {
        return Ok(None);
    };
    let Some(row) = found.first() else {
        return Ok(None);
    };
    let snapshot = row.get::<_, Option<Vec<u8>>>(KEY_HASH + 1);
    Ok(Some(EffectDetail {
        effect: to_effect(row),
        attempts: attempts.iter().map(attempt::to_attempt).collect(),
        events: calling
            .iter()
            .map(|row| EventId::from_bytes(row.get::<_, Uuid>(0).0))
            .collect(),
        snapshot: snapshot.map(Bytes::from),
    }))
}

const DETAIL: &str = effect_columns!(
    "",
    ", (SELECT body FROM hapax.snapshot s WHERE s.shard = $1 AND s.effect = $2)
     FROM hapax.effect e JOIN hapax.queue q ON q.shard = $3 AND q.effect = e.id
     WHERE e.shard = $1 AND e.id = $2"
);

const CALLING: &str = "SELECT v.id FROM (
         SELECT event_shard, event, 0 FROM hapax.effect WHERE shard = $1 AND id = $2
         UNION ALL
         SELECT shard, event, 1 FROM hapax.effect_link WHERE effect = $2
     ) AS c (shard, event, place)
     JOIN hapax.event v ON v.shard = c.shard AND v.id = c.event
     ORDER BY c.place, v.id";

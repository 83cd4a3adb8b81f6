//! Details, on connections of their own: reading never waits for the lanes. Lists of events are in `list.rs`.

use std::sync::Arc;

use bytes::Bytes;
use hapax_ledger::event::{DeliveryOutcome, EventStatus, KeyOrigin};
use hapax_ledger::id::EventId;
use hapax_ledger::key::{BodyHash, KeyHash, KeyKind};
use hapax_ledger::time::Time;
use tokio_postgres::Row;
use tokio_postgres::types::Type;

use super::conflict::{to_decision, to_number};
use super::pool::{Param, Pool};
use super::wire::{Hash, Uuid, received, sendable};
use super::{SHARDS, effect, run};
use crate::error::StoreError;
use crate::nouns::{Delivery, Event, EventDetail, Payload, PayloadAnswer, Proof, Review};

/// Rows that one page may look at to find those that fit its filter. A page that looked at so many ends early and says
/// where to go on, so that a rare filter cannot hold a connection for seconds.
pub(super) const ROWS_LOOKED_AT_MAX: i64 = 50_000;

/// The columns of [`to_event`] and [`to_proof`], in their order. One text, so that list and detail cannot drift apart.
macro_rules! event_columns {
    ($($rest:expr),+) => {
        concat!(
            "SELECT e.scheme, e.secret_index, e.signed_at, e.remote, e.id, e.at, e.source, e.type, e.key, e.key_origin,
                 e.provider_event_id, e.object_id, e.entity, e.version, e.status, e.review_code, e.review_message,
                 e.body_hash, e.expires_at,
                 coalesce((SELECT d.n FROM hapax.delivery d
                     WHERE d.shard = e.shard AND d.event = e.id ORDER BY d.n DESC LIMIT 1), 0),
                 coalesce((SELECT d.conflicts FROM hapax.delivery d
                     WHERE d.shard = e.shard AND d.event = e.id ORDER BY d.n DESC LIMIT 1), 0), e.outcome ",
            $($rest),+
        )
    };
}
pub(super) use event_columns;

fn text(row: &Row, column: usize) -> Option<String> {
    row.get::<_, Option<String>>(column).map(received)
}

fn arc(row: &Row, column: usize) -> Arc<str> {
    received(row.get(column)).into()
}

fn to_proof(row: &Row) -> Proof {
    Proof {
        scheme: arc(row, 0),
        secret_index: row.get::<_, Option<i16>>(1).map(|index| index as u8),
        signed_at: row.get::<_, Option<i64>>(2).map(Time::from_micros),
        remote: text(row, 3).map(Into::into),
    }
}

pub(super) fn to_event(row: &Row) -> Event {
    let repeats = row.get::<_, i32>(19) as u32;
    let review = match (text(row, 15), text(row, 16)) {
        (Some(code), Some(message)) => Some(Review { code, message }),
        _ => None,
    };
    Event {
        id: EventId::from_bytes(row.get::<_, Uuid>(4).0),
        source: arc(row, 6),
        event_type: text(row, 7),
        key: received(row.get(8)),
        key_origin: KeyOrigin::from_code(row.get::<_, i16>(9) as u8).unwrap_or(KeyOrigin::Body),
        provider_event_id: text(row, 10),
        object_id: text(row, 11),
        entity: text(row, 12),
        version: text(row, 13),
        status: EventStatus::from_code(row.get::<_, i16>(14) as u8)
            .unwrap_or(EventStatus::NeedsReview),
        received_at: Time::from_micros(row.get(5)),
        review,
        delivery_count: repeats + 1,
        duplicate_count: repeats,
        conflict_count: row.get::<_, i32>(20) as u32,
        body_hash: BodyHash::from_bytes(row.get::<_, Hash>(17).0),
        identity_expires_at: Time::from_micros(row.get(18)),
    }
}

/// The event that holds a key now.
pub(super) async fn sighted(
    pool: &Pool,
    source: &str,
    key: &str,
    now: Time,
) -> Result<Option<EventId>, StoreError> {
    let hash = KeyHash::of(KeyKind::Identity, source, key);
    let rows = pool
        .read(
            "SELECT e.id, e.status, e.expires_at
             FROM hapax.identity i JOIN hapax.event e ON e.shard = i.shard AND e.id = i.event
             WHERE i.shard = $1 AND i.source = $2 AND i.key_hash = $3 AND e.key = $4",
            &[
                (&(hash.shard(SHARDS) as i16), Type::INT2),
                (&sendable(source), Type::TEXT),
                (&Uuid(hash.bytes()), Type::UUID),
                (&sendable(key), Type::TEXT),
            ],
        )
        .await?;
    let holds = |row: &&Row| {
        let status = EventStatus::from_code(row.get::<_, i16>(1) as u8);
        !status.is_some_and(EventStatus::is_settled) || now < Time::from_micros(row.get(2))
    };
    Ok(rows
        .first()
        .filter(holds)
        .map(|row| EventId::from_bytes(row.get::<_, Uuid>(0).0)))
}

/// One event with all that hangs on it.
pub(super) async fn event(pool: &Pool, id: EventId) -> Result<Option<EventDetail>, StoreError> {
    let (shard, raw) = (id.0.shard() as i16, Uuid(id.bytes()));
    let named: [Param<'_>; 2] = [(&shard, Type::INT2), (&raw, Type::UUID)];
    // One picture: an event that is done beside an effect that is not would be a riddle.
    let found = pool
        .read_all(&[
            (
                event_columns!("FROM hapax.event e WHERE e.shard = $1 AND e.id = $2"),
                named.to_vec(),
            ),
            (
                "SELECT scheme, secret_index, signed_at, remote, at, outcome, body_hash, conflict, n, decided, promoted
                 FROM hapax.delivery WHERE shard = $1 AND event = $2 ORDER BY n",
                named.to_vec(),
            ),
            (effect::OF_EVENT, named.to_vec()),
            (run::OF_EVENT, named.to_vec()),
        ])
        .await?;
    let [found, later, effects, runs] = &found[..] else {
        return Ok(None);
    };
    let Some(row) = found.first() else {
        return Ok(None);
    };
    let event = to_event(row);
    let outcome = DeliveryOutcome::from_code(row.get::<_, i16>(21) as u8);
    let first = Delivery {
        at: event.received_at,
        outcome: outcome.unwrap_or(DeliveryOutcome::Accepted),
        proof: to_proof(row),
        body_hash: event.body_hash,
        conflict: false,
        number: 0,
        decided: None,
    };
    let deliveries = std::iter::once(first)
        .chain(later.iter().map(to_delivery))
        .collect();
    Ok(Some(EventDetail {
        event,
        deliveries,
        effects: effects.iter().map(effect::to_effect).collect(),
        runs: runs.iter().map(run::to_run).collect(),
    }))
}

fn to_delivery(row: &Row) -> Delivery {
    Delivery {
        at: Time::from_micros(row.get(4)),
        outcome: DeliveryOutcome::from_code(row.get::<_, i16>(5) as u8)
            .unwrap_or(DeliveryOutcome::Duplicate),
        proof: to_proof(row),
        body_hash: BodyHash::from_bytes(row.get::<_, Hash>(6).0),
        conflict: row.get(7),
        number: to_number(row.get(8)),
        decided: to_decision(row.get(9), row.get(10)),
    }
}

/// The bytes of one event.
pub(super) async fn payload(pool: &Pool, id: EventId) -> Result<PayloadAnswer, StoreError> {
    let found = pool
        .read(
            "SELECT p.content_type, p.body
             FROM hapax.event e LEFT JOIN hapax.payload p ON p.shard = e.shard AND p.event = e.id
             WHERE e.shard = $1 AND e.id = $2",
            &[
                (&(id.0.shard() as i16), Type::INT2),
                (&Uuid(id.bytes()), Type::UUID),
            ],
        )
        .await?;
    let Some(row) = found.first() else {
        return Ok(PayloadAnswer::NoEvent);
    };
    Ok(match row.get::<_, Option<Vec<u8>>>(1) {
        Some(body) => PayloadAnswer::Kept(Payload {
            body: Bytes::from(body),
            content_type: text(row, 0),
        }),
        None => PayloadAnswer::Reaped,
    })
}

/// How many events there are, how many keys are held by more than one live event, the bytes on disk, and
/// how many events have their bytes.
pub(super) async fn count(pool: &Pool) -> Result<[u64; 4], StoreError> {
    // Two events may share a key only if the first had expired when the second came.
    let rows = pool
        .read(
            "SELECT count(*), count(*) FILTER (WHERE held_until > at),
                 (SELECT sum(pg_total_relation_size(c.oid))::int8 FROM pg_class c
                  WHERE c.relnamespace = 'hapax'::regnamespace AND c.relkind = 'r'),
                 (SELECT count(*) FROM hapax.payload)
             FROM (
                 SELECT at, lag(expires_at) OVER (PARTITION BY shard, source, key_hash ORDER BY at, id) AS held_until
                 FROM hapax.event
             ) held",
            &[],
        )
        .await?;
    let number = |column| {
        rows.first()
            .map_or(0, |row| row.get::<_, i64>(column) as u64)
    };
    Ok([0, 1, 2, 3].map(number))
}

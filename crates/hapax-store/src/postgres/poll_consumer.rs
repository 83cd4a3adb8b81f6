//! How far those have read who ask for messages.

use hapax_ledger::id::{EndpointId, EventId};
use hapax_ledger::time::Time;
use tokio_postgres::Row;
use tokio_postgres::types::Type;

use super::audit::{self, Entry as Record, Way};
use super::pool::{Param, Pool, Taken};
use super::wire::{Uuid, sendable};
use crate::error::StoreError;
use crate::nouns::{Authority, CONSUMERS_KEPT, CONSUMERS_MAX, Consumed, PollPlace, Sought};
use crate::polling::{self, Consumer};

fn to_consumer(row: &Row) -> Consumer {
    Consumer {
        place: PollPlace {
            at_once: EventId::from_bytes(row.get::<_, Uuid>(0).0),
            later: row.get(1),
            since: row.get::<_, Option<i64>>(2).map(Time::from_micros),
        },
        seen_at: Time::from_micros(row.get(3)),
    }
}

/// One consumer.
pub(super) async fn read(
    pool: &Pool,
    endpoint: EndpointId,
    name: &str,
) -> Result<Option<Consumer>, StoreError> {
    let rows = pool
        .read(
            "SELECT at_once, later, since, seen_at FROM hapax.consumer WHERE endpoint = $1 AND name = $2",
            &[
                (&Uuid(endpoint.bytes()), Type::UUID),
                (&sendable(name), Type::TEXT),
            ],
        )
        .await?;
    Ok(rows.first().map(to_consumer))
}

/// The same, held until the transaction ends. One that is not there cannot be held: see [`write`].
async fn hold(
    taken: &Taken,
    endpoint: EndpointId,
    name: &str,
) -> Result<Option<Consumer>, StoreError> {
    let rows = taken
        .query(
            "SELECT at_once, later, since, seen_at FROM hapax.consumer WHERE endpoint = $1 AND name = $2 FOR UPDATE",
            &[
                (&Uuid(endpoint.bytes()), Type::UUID),
                (&sendable(name), Type::TEXT),
            ],
        )
        .await?;
    Ok(rows.first().map(to_consumer))
}

/// Keeps what a consumer says it has read.
pub(super) async fn consume(
    pool: &Pool,
    endpoint: EndpointId,
    name: &str,
    said: Option<PollPlace>,
    now: Time,
) -> Result<Consumed, StoreError> {
    let taken = pool.take().await?;
    let ((), known) = tokio::try_join!(biased; taken.open(), hold(&taken, endpoint, name))?;
    let (consumed, keep) = polling::consume(known, said, now);
    match keep {
        Some(_) if known.is_none() && is_full(&taken, endpoint).await? => {
            taken.roll_back().await;
            Ok(Consumed::TooMany)
        }
        Some(consumer) => {
            write(&taken, endpoint, name, consumer).await?;
            taken.commit().await?;
            Ok(consumed)
        }
        None => {
            taken.roll_back().await;
            Ok(consumed)
        }
    }
}

/// A consumer goes on elsewhere.
pub(super) async fn seek(
    pool: &Pool,
    endpoint: EndpointId,
    name: &str,
    place: PollPlace,
    by: &Authority,
    answer: &str,
) -> Result<Sought, StoreError> {
    let taken = pool.take().await?;
    let ((), way) = tokio::try_join!(biased; taken.open(), audit::enter(&taken, by))?;
    let head = match way {
        Way::Free(head) => head,
        Way::Taken(before) => {
            taken.roll_back().await;
            return Ok(Sought::Repeated(before));
        }
    };
    let known = hold(&taken, endpoint, name).await?;
    if known.is_none() && is_full(&taken, endpoint).await? {
        taken.roll_back().await;
        return Ok(Sought::TooMany);
    }
    let consumer = Consumer {
        place,
        seen_at: by.at,
    };
    write(&taken, endpoint, name, consumer).await?;
    let record = Record {
        by,
        action: polling::SOUGHT,
        subject: endpoint.to_string(),
        event: None,
        detail: answer,
    };
    head.commit(taken, &record).await?;
    Ok(Sought::Done)
}

/// Several that come at the same moment may pass the limit together, by as many as come: it keeps a table small, and nothing hangs on it.
async fn is_full(taken: &Taken, endpoint: EndpointId) -> Result<bool, StoreError> {
    let rows = taken
        .query(
            "SELECT count(*) FROM hapax.consumer WHERE endpoint = $1",
            &[(&Uuid(endpoint.bytes()), Type::UUID)],
        )
        .await?;
    let consumers: i64 = rows.first().map_or(0, |row| row.get(0));
    Ok(consumers >= CONSUMERS_MAX as i64)
}

/// Of two that make the same consumer at the same moment the second has the last word. It knows of nothing that was read, so messages may
/// come again, and none is lost.
async fn write(
    taken: &Taken,
    endpoint: EndpointId,
    name: &str,
    consumer: Consumer,
) -> Result<(), StoreError> {
    let place = consumer.place;
    let named: [Param<'_>; 6] = [
        (&Uuid(endpoint.bytes()), Type::UUID),
        (&sendable(name), Type::TEXT),
        (&Uuid(place.at_once.bytes()), Type::UUID),
        (&place.later, Type::INT8),
        (&place.since.map(Time::micros), Type::INT8),
        (&consumer.seen_at.micros(), Type::INT8),
    ];
    taken
        .query(
            "INSERT INTO hapax.consumer (endpoint, name, at_once, later, since, seen_at) VALUES ($1, $2, $3, $4, $5, $6)
             ON CONFLICT (endpoint, name) DO UPDATE SET at_once = excluded.at_once, later = excluded.later,
                 since = excluded.since, seen_at = excluded.seen_at",
            &named,
        )
        .await?;
    Ok(())
}

/// Forgets those that have not asked for long. They are few: as many as there are programs.
pub(super) async fn reap(pool: &Pool, now: Time) -> Result<(), StoreError> {
    let until = (now - CONSUMERS_KEPT).micros();
    let taken = pool.take().await?;
    taken
        .query_and_commit(
            "DELETE FROM hapax.consumer WHERE seen_at <= $1",
            &[(&until, Type::INT8)],
        )
        .await?;
    Ok(())
}

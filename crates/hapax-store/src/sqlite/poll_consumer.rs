//! How far those have read who ask for messages.

use hapax_ledger::id::{EndpointId, EventId};
use hapax_ledger::time::Time;
use rusqlite::{Connection, OptionalExtension, Row, params};

use super::audit::{self, Entry as Record};
use super::sql_error;
use crate::error::StoreError;
use crate::nouns::{Authority, CONSUMERS_KEPT, CONSUMERS_MAX, Consumed, PollPlace, Sought};
use crate::polling::{self, Consumer};

/// One consumer.
pub(super) fn read(
    db: &Connection,
    endpoint: EndpointId,
    name: &str,
) -> Result<Option<Consumer>, StoreError> {
    db.prepare_cached(
        "SELECT at_once, later, since, seen_at FROM consumer WHERE endpoint = ?1 AND name = ?2",
    )
    .and_then(|mut read| {
        read.query_row(params![endpoint.bytes(), name], to_consumer)
            .optional()
    })
    .map_err(sql_error)
}

fn to_consumer(row: &Row<'_>) -> rusqlite::Result<Consumer> {
    let since: Option<i64> = row.get(2)?;
    Ok(Consumer {
        place: PollPlace {
            at_once: EventId::from_bytes(row.get(0)?),
            later: row.get(1)?,
            since: since.map(Time::from_micros),
        },
        seen_at: Time::from_micros(row.get(3)?),
    })
}

/// Keeps what a consumer says it has read.
pub(super) fn consume(
    db: &Connection,
    endpoint: EndpointId,
    name: &str,
    said: Option<PollPlace>,
    now: Time,
) -> Result<Consumed, StoreError> {
    let known = read(db, endpoint, name)?;
    let (consumed, keep) = polling::consume(known, said, now);
    match keep {
        Some(_) if known.is_none() && is_full(db, endpoint)? => Ok(Consumed::TooMany),
        Some(consumer) => {
            write(db, endpoint, name, consumer)?;
            Ok(consumed)
        }
        None => Ok(consumed),
    }
}

/// A consumer goes on elsewhere.
pub(super) fn seek(
    db: &Connection,
    endpoint: EndpointId,
    name: &str,
    place: PollPlace,
    by: &Authority,
    answer: String,
) -> Result<Sought, StoreError> {
    if let Some(before) = audit::before(db, by)? {
        return Ok(Sought::Repeated(before));
    }
    if read(db, endpoint, name)?.is_none() && is_full(db, endpoint)? {
        return Ok(Sought::TooMany);
    }
    let consumer = Consumer {
        place,
        seen_at: by.at,
    };
    write(db, endpoint, name, consumer)?;
    let record = Record {
        action: polling::SOUGHT,
        subject: endpoint.to_string(),
        detail: answer,
        event: None,
    };
    audit::write_down(db, by, record)?;
    Ok(Sought::Done)
}

fn is_full(db: &Connection, endpoint: EndpointId) -> Result<bool, StoreError> {
    let consumers: i64 = db
        .prepare_cached("SELECT count(*) FROM consumer WHERE endpoint = ?1")
        .and_then(|mut count| count.query_row([endpoint.bytes()], |row| row.get(0)))
        .map_err(sql_error)?;
    Ok(consumers >= CONSUMERS_MAX as i64)
}

fn write(
    db: &Connection,
    endpoint: EndpointId,
    name: &str,
    consumer: Consumer,
) -> Result<(), StoreError> {
    let place = consumer.place;
    db.prepare_cached(
        "INSERT INTO consumer (endpoint, name, at_once, later, since, seen_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
         ON CONFLICT (endpoint, name) DO UPDATE SET at_once = excluded.at_once, later = excluded.later,
             since = excluded.since, seen_at = excluded.seen_at",
    )
    .and_then(|mut insert| {
        insert.execute(params![
            endpoint.bytes(),
            name,
            place.at_once.bytes(),
            place.later,
            place.since.map(Time::micros),
            consumer.seen_at.micros(),
        ])
    })
    .map_err(sql_error)?;
    Ok(())
}

/// Forgets those that have not asked for long. They are few: as many as there are programs.
pub(super) fn reap(db: &Connection, now: Time) -> Result<(), StoreError> {
    let until = (now - CONSUMERS_KEPT).micros();
    db.prepare_cached("DELETE FROM consumer WHERE seen_at <= ?1")
        .and_then(|mut delete| delete.execute([until]))
        .map_err(sql_error)?;
    Ok(())
}

//! Details, on connections of their own: reading never waits for the writer. Lists of events are in `list.rs`.

use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use hapax_ledger::event::{DeliveryOutcome, EventStatus, KeyOrigin};
use hapax_ledger::id::EventId;
use hapax_ledger::key::BodyHash;
use hapax_ledger::time::Time;
use rusqlite::{Connection, OptionalExtension, Row};
use tokio::sync::Semaphore;

use super::accept::event_id;
use super::index::{KeyIndex, Latest};
use super::open::{self, Paths};
use super::{conflict, effect, run, sql_error};
use crate::error::{StoreError, StoreErrorKind};
use crate::nouns::{Delivery, Event, EventDetail, Payload, PayloadAnswer, Proof, Review};

/// Reading connections. Two are enough for an API on the side; each costs its page cache.
const READERS: usize = 2;
/// Rows that one page may look at to find those that fit its filter. A page that looked at so many ends early and says
/// where to go on, so that a rare filter cannot hold a reader for seconds.
pub(super) const ROWS_LOOKED_AT_MAX: u32 = 50_000;

/// A small pool of reading connections.
pub(super) struct Readers {
    free: Arc<Mutex<Vec<Connection>>>,
    permits: Arc<Semaphore>,
}

impl Readers {
    pub(super) fn open(paths: &Paths) -> Result<Readers, StoreError> {
        let free = (0..READERS)
            .map(|_| open::reader(paths))
            .collect::<Result<Vec<_>, _>>()?;
        Ok(Readers {
            free: Arc::new(Mutex::new(free)),
            permits: Arc::new(Semaphore::new(READERS)),
        })
    }

    /// Runs `read` on a thread that may block.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        read: impl FnOnce(&Connection) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let gone = |_| StoreError::new(StoreErrorKind::Unavailable, "the store is closed");
        let permit = self.permits.clone().acquire_owned().await.map_err(gone)?;
        let free = self.free.clone();
        let work = tokio::task::spawn_blocking(move || {
            let db = free.lock().unwrap_or_else(PoisonError::into_inner).pop();
            let db = db.ok_or_else(|| {
                StoreError::new(StoreErrorKind::Unavailable, "no reading connection is left")
            })?;
            let result = read(&db);
            free.lock().unwrap_or_else(PoisonError::into_inner).push(db);
            drop(permit);
            result
        });
        work.await.unwrap_or_else(|error| {
            Err(
                StoreError::new(StoreErrorKind::Unavailable, "a read was given up")
                    .caused_by(error),
            )
        })
    }
}

/// The columns of [`to_event`], in its order. One text, so that list and detail cannot drift apart.
macro_rules! event_columns {
    ($($rest:expr),+) => {
        concat!(
            "SELECT e.seq, e.at, e.source, e.type, e.key, e.key_origin, e.provider_event_id, e.object_id, e.entity,
                 e.version, e.status, e.review_code, e.review_message, e.body_hash, e.expires_at
             FROM event e ",
            $($rest),+
        )
    };
}

pub(super) use event_columns;

/// The event of a row, as if it had come once; [`count_deliveries`] says how often it came.
pub(super) fn to_event(row: &Row<'_>) -> rusqlite::Result<Event> {
    let at = Time::from_micros(row.get(1)?);
    let review = match (row.get(11)?, row.get(12)?) {
        (Some(code), Some(message)) => Some(Review { code, message }),
        _ => None,
    };
    Ok(Event {
        id: event_id(at, row.get(0)?),
        source: row.get(2)?,
        event_type: row.get(3)?,
        key: row.get(4)?,
        key_origin: KeyOrigin::from_code(row.get(5)?).unwrap_or(KeyOrigin::Body),
        provider_event_id: row.get(6)?,
        object_id: row.get(7)?,
        entity: row.get(8)?,
        version: row.get(9)?,
        status: EventStatus::from_code(row.get(10)?).unwrap_or(EventStatus::NeedsReview),
        received_at: at,
        review,
        delivery_count: 1,
        duplicate_count: 0,
        conflict_count: 0,
        body_hash: BodyHash::from_bytes(row.get(13)?),
        identity_expires_at: Time::from_micros(row.get(14)?),
    })
}

pub(super) fn count_deliveries(event: &mut Event, latest: Option<Latest>) {
    if let Some(latest) = latest {
        event.delivery_count = latest.n + 1;
        event.duplicate_count = latest.n;
        event.conflict_count = latest.conflicts;
    }
}

/// The row of an id, if the id is one of ours.
pub(super) fn row_of(id: EventId) -> i64 {
    id.0.row() as i64
}

/// Is there an event of this id? A row number alone does not make an id: the time has to be the row's too.
pub(super) fn is_there(db: &Connection, id: EventId) -> Result<bool, StoreError> {
    let at: Option<i64> = db
        .prepare_cached("SELECT at FROM event WHERE seq = ?1")
        .and_then(|mut read| read.query_row([row_of(id)], |row| row.get(0)).optional())
        .map_err(sql_error)?;
    Ok(at.is_some_and(|at| event_id(Time::from_micros(at), row_of(id)) == id))
}

/// The event of a row.
pub(super) fn row(
    db: &Connection,
    index: &KeyIndex,
    row: i64,
) -> Result<Option<Event>, StoreError> {
    let event = db
        .prepare_cached(event_columns!("WHERE e.seq = ?1"))
        .and_then(|mut read| read.query_row([row], to_event).optional())
        .map_err(sql_error)?;
    let Some(mut event) = event else {
        return Ok(None);
    };
    count_deliveries(&mut event, index.latest(row)?);
    Ok(Some(event))
}

/// The event of an id. A row number alone does not make an id: the time has to be the row's too.
pub(super) fn one(
    db: &Connection,
    index: &KeyIndex,
    id: EventId,
) -> Result<Option<Event>, StoreError> {
    Ok(row(db, index, row_of(id))?.filter(|event| event.id == id))
}

/// The bytes of a delivery that brought another body.
pub(super) fn conflict_body(
    db: &Connection,
    index: &KeyIndex,
    id: EventId,
    delivery: u32,
) -> Result<Option<Bytes>, StoreError> {
    let latest = index.latest(row_of(id))?.unwrap_or_default();
    let db = &db.unchecked_transaction().map_err(sql_error)?;
    match is_there(db, id)? {
        true => conflict::body(db, latest, delivery),
        false => Ok(None),
    }
}

/// One event with all that hangs on it.
pub(super) fn event(
    db: &Connection,
    index: &KeyIndex,
    id: EventId,
) -> Result<Option<EventDetail>, StoreError> {
    // Before the picture is taken: the index hears of rows after their commit, so that all it names are in the picture.
    let latest = index.latest(row_of(id))?;
    // One picture: an event that is done beside an effect that is not would be a riddle.
    let db = &db.unchecked_transaction().map_err(sql_error)?;
    let event = db
        .prepare_cached(event_columns!("WHERE e.seq = ?1"))
        .and_then(|mut read| read.query_row([row_of(id)], to_event).optional())
        .map_err(sql_error)?;
    // A row number alone does not make an id: the time has to be the row's too.
    let Some(mut event) = event.filter(|event| event.id == id) else {
        return Ok(None);
    };
    count_deliveries(&mut event, latest);
    let mut deliveries = vec![first_delivery(db, id, &event)?];
    deliveries.extend(later_deliveries(db, latest)?);
    let effects = effect::of_event(db, row_of(id))?
        .into_iter()
        .map(|held| held.effect)
        .collect();
    Ok(Some(EventDetail {
        event,
        deliveries,
        effects,
        runs: run::of_event(db, row_of(id))?,
    }))
}

fn first_delivery(db: &Connection, id: EventId, event: &Event) -> Result<Delivery, StoreError> {
    let (proof, outcome) = db
        .prepare_cached(
            "SELECT scheme, secret_index, signed_at, remote, outcome FROM event WHERE seq = ?1",
        )
        .and_then(|mut read| {
            read.query_row([row_of(id)], |row| {
                let outcome = DeliveryOutcome::from_code(row.get(4)?);
                Ok((to_proof(row, 0)?, outcome))
            })
        })
        .map_err(sql_error)?;
    Ok(Delivery {
        at: event.received_at,
        outcome: outcome.unwrap_or(DeliveryOutcome::Accepted),
        proof,
        body_hash: event.body_hash,
        conflict: false,
        number: 0,
        decided: None,
    })
}

/// The deliveries after the first, oldest first: the chain is walked from its end.
fn later_deliveries(db: &Connection, latest: Option<Latest>) -> Result<Vec<Delivery>, StoreError> {
    let mut deliveries = Vec::new();
    let mut next = latest.map(|latest| latest.row);
    while let Some(at) = next {
        let found = db
            .prepare_cached(
                "SELECT scheme, secret_index, signed_at, remote, at, outcome, body_hash, conflict, n, decided, promoted, previous
                 FROM delivery WHERE seq = ?1",
            )
            .and_then(|mut read| read.query_row([at], |row| Ok((to_delivery(row)?, row.get(11)?))).optional())
            .map_err(sql_error)?;
        let Some((delivery, previous)) = found else {
            break;
        };
        deliveries.push(delivery);
        next = previous;
    }
    deliveries.reverse();
    Ok(deliveries)
}

fn to_delivery(row: &Row<'_>) -> rusqlite::Result<Delivery> {
    Ok(Delivery {
        at: Time::from_micros(row.get(4)?),
        outcome: DeliveryOutcome::from_code(row.get(5)?).unwrap_or(DeliveryOutcome::Duplicate),
        proof: to_proof(row, 0)?,
        body_hash: BodyHash::from_bytes(row.get(6)?),
        conflict: row.get(7)?,
        number: conflict::number(row.get(8)?),
        decided: conflict::decision(row.get(9)?, row.get(10)?),
    })
}

fn to_proof(row: &Row<'_>, from: usize) -> rusqlite::Result<Proof> {
    let signed_at: Option<i64> = row.get(from + 2)?;
    Ok(Proof {
        scheme: row.get(from)?,
        secret_index: row.get(from + 1)?,
        signed_at: signed_at.map(Time::from_micros),
        remote: row.get(from + 3)?,
    })
}

/// The bytes of one event.
pub(super) fn payload(db: &Connection, id: EventId) -> Result<PayloadAnswer, StoreError> {
    let found = db
        .prepare_cached(
            "SELECT e.at, p.content_type, p.body FROM event e LEFT JOIN payload p ON p.seq = e.seq WHERE e.seq = ?1",
        )
        .and_then(|mut read| {
            read.query_row([row_of(id)], |row| {
                let body: Option<Vec<u8>> = row.get(2)?;
                Ok((Time::from_micros(row.get(0)?), row.get(1)?, body))
            })
            .optional()
        })
        .map_err(sql_error)?;
    Ok(match found {
        Some((at, content_type, body)) if event_id(at, row_of(id)) == id => match body {
            Some(body) => PayloadAnswer::Kept(Payload {
                body: Bytes::from(body),
                content_type,
            }),
            None => PayloadAnswer::Reaped,
        },
        _ => PayloadAnswer::NoEvent,
    })
}

/// How many events there are, how many keys are held by more than one live event, and how many events have their bytes.
pub(super) fn count(db: &Connection) -> Result<(u64, u64, u64), StoreError> {
    let (events, payloads): (i64, i64) = db
        .query_row(
            "SELECT (SELECT count(*) FROM event), (SELECT count(*) FROM payload)",
            [],
            |row| Ok((row.get(0)?, row.get(1)?)),
        )
        .map_err(sql_error)?;
    // Two rows may share a key only if the first had expired when the second came.
    let twice: i64 = db
        .query_row(
            "SELECT count(*) FROM (
                 SELECT at, lag(expires_at) OVER (PARTITION BY key_hash ORDER BY seq) AS held_until FROM event
             ) WHERE held_until > at",
            [],
            |row| row.get(0),
        )
        .map_err(sql_error)?;
    Ok((events as u64, twice as u64, payloads as u64))
}

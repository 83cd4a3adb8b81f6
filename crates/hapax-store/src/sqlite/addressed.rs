//! A message as far as one endpoint is concerned: found by the endpoint's lane, however many others the message went to.

use hapax_ledger::id::{EndpointId, EventId};
use hapax_ledger::time::Time;
use hapax_ledger::verdict::Kept;
use rusqlite::{Connection, OptionalExtension, params};

use super::accept::event_id;
use super::effect::{self, PLACE_BITS, PLACE_MAX};
use super::read::row_of;
use super::sql_error;
use crate::error::StoreError;
use crate::nouns::Addressed;

/// The message's payload and its delivery to the endpoint.
pub(super) fn addressed(
    db: &Connection,
    id: EventId,
    endpoint: EndpointId,
) -> Result<Option<Addressed>, StoreError> {
    let db = &db.unchecked_transaction().map_err(sql_error)?;
    let row = row_of(id);
    let found: Option<(i64, bool)> = db
        .prepare_cached(
            "SELECT at, EXISTS (SELECT 1 FROM payload WHERE seq = ?1) FROM event WHERE seq = ?1",
        )
        .and_then(|mut read| {
            read.query_row([row], |row| Ok((row.get(0)?, row.get(1)?)))
                .optional()
        })
        .map_err(sql_error)?;
    // A row number alone does not make an id: the time has to be the row's too.
    let found = found.filter(|(at, _)| event_id(Time::from_micros(*at), row) == id);
    let Some((_, has_payload)) = found else {
        return Ok(None);
    };
    let held = match delivery(db, row, &endpoint.to_string())? {
        Some(row) => effect::read(db, row)?,
        None => None,
    };
    Ok(Some(Addressed {
        payload: match has_payload {
            true => Kept::Whole,
            false => Kept::Reaped,
        },
        delivery: held.map(|held| held.effect),
    }))
}

/// The row of the delivery: among the message's own, or one that an earlier message of the same key has called for.
pub(super) fn delivery(db: &Connection, event: i64, lane: &str) -> Result<Option<i64>, StoreError> {
    let first = event << PLACE_BITS;
    db.prepare_cached(
        "SELECT seq FROM effect INDEXED BY effect_posted
         WHERE lane >= 'ep_' AND lane < 'ep`' AND lane = ?3 AND seq BETWEEN ?1 AND ?2
         UNION ALL
         SELECT l.effect FROM effect_link l JOIN effect e ON e.seq = l.effect WHERE l.event = ?4 AND e.lane = ?3
         LIMIT 1",
    )
    .and_then(|mut find| {
        let named = params![first, first | PLACE_MAX, lane, event];
        find.query_row(named, |row| row.get(0)).optional()
    })
    .map_err(sql_error)
}

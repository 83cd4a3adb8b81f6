//! Deliveries with another body: which of them wait for a person, their bytes, and what was decided.

use bytes::Bytes;
use hapax_ledger::id::EventId;
use rusqlite::{Connection, OptionalExtension, params};

use super::index::Latest;
use super::sql_error;
use crate::error::StoreError;
use crate::nouns::{ConflictDecision, DELIVERIES_KEPT_MAX};

const ACKNOWLEDGED: u8 = 0;
const PROMOTED: u8 = 1;

/// A delivery that brought another body.
pub(super) struct Conflict {
    pub(super) row: i64,
    pub(super) number: u32,
    decided: Option<u8>,
}

/// The number of a delivery whose row counts so many: the last row that is kept counts on for all later ones.
pub(super) fn number(n: u32) -> u32 {
    n.min(DELIVERIES_KEPT_MAX)
}

/// What a row says was decided. What cannot be read was looked at all the same.
pub(super) fn decision(
    decided: Option<u8>,
    promoted: Option<[u8; 16]>,
) -> Option<ConflictDecision> {
    decided.map(|_| {
        let event = promoted.map(EventId::from_bytes);
        event.map_or(ConflictDecision::Acknowledged, ConflictDecision::Promoted)
    })
}

/// The conflicts of an event that have a row: the chain of its deliveries is walked from its end.
fn all(db: &Connection, latest: Latest) -> Result<Vec<Conflict>, StoreError> {
    let mut found = Vec::new();
    let mut next = (latest.conflicts > 0).then_some(latest.row);
    while let Some(row) = next {
        let read = db
            .prepare_cached("SELECT n, conflict, decided, previous FROM delivery WHERE seq = ?1")
            .and_then(|mut read| {
                read.query_row([row], |read| {
                    let conflict = Conflict {
                        row,
                        number: number(read.get(0)?),
                        decided: read.get(2)?,
                    };
                    Ok((conflict, read.get(1)?, read.get(3)?))
                })
                .optional()
            })
            .map_err(sql_error)?;
        let Some((conflict, is_conflict, previous)) = read else {
            break;
        };
        found.extend(Some(conflict).filter(|_| is_conflict));
        next = previous;
    }
    Ok(found)
}

/// Those that nobody has decided on.
pub(super) fn open(db: &Connection, latest: Latest) -> Result<Vec<Conflict>, StoreError> {
    let mut open = all(db, latest)?;
    open.retain(|conflict| conflict.decided.is_none());
    Ok(open)
}

/// The bytes that a delivery brought, as far as they are kept.
pub(super) fn body(
    db: &Connection,
    latest: Latest,
    wanted: u32,
) -> Result<Option<Bytes>, StoreError> {
    let mut conflicts = all(db, latest)?.into_iter();
    let Some(conflict) = conflicts.find(|conflict| conflict.number == wanted) else {
        return Ok(None);
    };
    let body: Option<Vec<u8>> = db
        .prepare_cached("SELECT body FROM delivery WHERE seq = ?1")
        .and_then(|mut read| read.query_row([conflict.row], |row| row.get(0)))
        .map_err(sql_error)?;
    Ok(body.map(Bytes::from))
}

/// Somebody has decided on one.
pub(super) fn decide(
    db: &Connection,
    conflict: &Conflict,
    decision: ConflictDecision,
) -> Result<(), StoreError> {
    let (decided, promoted) = match decision {
        ConflictDecision::Acknowledged => (ACKNOWLEDGED, None),
        ConflictDecision::Promoted(event) => (PROMOTED, Some(event.bytes())),
    };
    db.prepare_cached("UPDATE delivery SET decided = ?2, promoted = ?3 WHERE seq = ?1")
        .and_then(|mut update| update.execute(params![conflict.row, decided, promoted]))
        .map_err(sql_error)?;
    Ok(())
}

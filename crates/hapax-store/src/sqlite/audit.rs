//! The audit log: who decided what, in a chain of hashes. Appended to in the transaction of what was decided (J1).

use hapax_ledger::id::EventId;
use hapax_ledger::time::Time;
use rusqlite::{Connection, OptionalExtension, Row, params};

use super::sql_error;
use crate::error::StoreError;
use crate::nouns::{AuditFilter, AuditRecord, Authority, Before, Listed, PAGE_MAX, Page, PageFrom};

/// What is written down.
pub(super) struct Entry {
    pub(super) action: &'static str,
    pub(super) subject: String,
    pub(super) detail: String,
    /// The event that it was a command about.
    pub(super) event: Option<EventId>,
}

/// What an earlier request with the same key was.
pub(super) fn before(db: &Connection, by: &Authority) -> Result<Option<Before>, StoreError> {
    let Some(request) = by.request else {
        return Ok(None);
    };
    let earlier = db
        .prepare_cached(
            "SELECT fingerprint, detail FROM audit WHERE request IS NOT NULL AND request = ?1",
        )
        .and_then(|mut read| {
            read.query_row([request.key.bytes()], |row| Ok((row.get(0)?, row.get(1)?)))
                .optional()
        })
        .map_err(sql_error)?;
    Ok(earlier.map(|(fingerprint, answer)| request.before(fingerprint, answer)))
}

/// The next record of the log.
pub(super) fn write_down(db: &Connection, by: &Authority, entry: Entry) -> Result<(), StoreError> {
    let last: Option<(i64, [u8; 32])> = db
        .prepare_cached("SELECT seq, hash FROM audit ORDER BY seq DESC LIMIT 1")
        .and_then(|mut read| {
            read.query_row([], |row| Ok((row.get(0)?, row.get(1)?)))
                .optional()
        })
        .map_err(sql_error)?;
    let last = last.map(|(seq, hash)| (seq as u64, hash));
    let record = AuditRecord::following(last, by, entry.action, entry.subject, entry.detail);
    db.prepare_cached(
        "INSERT INTO audit (seq, at, actor, action, subject, reason, detail, previous, hash, event, request, fingerprint)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)",
    )
    .and_then(|mut insert| {
        insert.execute(params![
            record.seq as i64,
            record.at.micros(),
            record.actor,
            record.action,
            record.subject,
            record.reason,
            record.detail,
            record.previous,
            record.hash,
            entry.event.map(EventId::bytes),
            by.request.map(|request| request.key.bytes()),
            by.request.map(|request| request.fingerprint),
        ])
    })
    .map_err(sql_error)?;
    Ok(())
}

/// The columns of [`to_record`], in its order.
macro_rules! audit_columns {
    ($rest:literal) => {
        concat!(
            "SELECT seq, at, actor, action, subject, reason, detail, previous, hash FROM audit ",
            $rest
        )
    };
}

fn to_record(row: &Row<'_>) -> rusqlite::Result<AuditRecord> {
    Ok(AuditRecord {
        seq: row.get::<_, i64>(0)? as u64,
        at: Time::from_micros(row.get(1)?),
        actor: row.get(2)?,
        action: row.get(3)?,
        subject: row.get(4)?,
        reason: row.get(5)?,
        detail: row.get(6)?,
        previous: row.get(7)?,
        hash: row.get(8)?,
    })
}

/// A page of the log, newest first.
pub(super) fn list(
    db: &Connection,
    filter: &AuditFilter,
    page: Page<u64>,
) -> Result<Listed<AuditRecord, u64>, StoreError> {
    let limit = page.limit.clamp(1, PAGE_MAX) as usize;
    match page.from {
        PageFrom::Newest => older(db, filter, i64::MAX, limit),
        PageFrom::OlderThan(seq) => older(db, filter, seq as i64, limit),
        PageFrom::NewerThan(seq) => newer(db, filter, seq as i64, limit),
    }
}

fn older(
    db: &Connection,
    filter: &AuditFilter,
    before: i64,
    limit: usize,
) -> Result<Listed<AuditRecord, u64>, StoreError> {
    // All take the same parameters, so some name what they do not need.
    let statement = match (filter.event, &filter.actor) {
        (Some(_), _) => audit_columns!(
            "INDEXED BY audit_event WHERE event IS NOT NULL AND event = ?1 AND seq < ?3
                 AND (?2 IS NULL OR actor = ?2) ORDER BY seq DESC LIMIT ?4"
        ),
        (None, Some(_)) => audit_columns!(
            "INDEXED BY audit_actor WHERE ?1 IS NULL AND actor = ?2 AND seq < ?3 ORDER BY seq DESC LIMIT ?4"
        ),
        (None, None) => audit_columns!(
            "WHERE ?1 IS NULL AND ?2 IS NULL AND seq < ?3 ORDER BY seq DESC LIMIT ?4"
        ),
    };
    // One more than fits says whether the list goes on.
    let mut rows = run(db, statement, filter, before, limit + 1)?;
    let next = match rows.len() > limit {
        true => {
            rows.truncate(limit);
            rows.last().map(|last| last.seq)
        }
        false => None,
    };
    Ok(Listed {
        rows,
        next,
        newer: None,
    })
}

fn newer(
    db: &Connection,
    filter: &AuditFilter,
    after: i64,
    limit: usize,
) -> Result<Listed<AuditRecord, u64>, StoreError> {
    let statement = match (filter.event, &filter.actor) {
        (Some(_), _) => audit_columns!(
            "INDEXED BY audit_event WHERE event IS NOT NULL AND event = ?1 AND seq > ?3
                 AND (?2 IS NULL OR actor = ?2) ORDER BY seq LIMIT ?4"
        ),
        (None, Some(_)) => audit_columns!(
            "INDEXED BY audit_actor WHERE ?1 IS NULL AND actor = ?2 AND seq > ?3 ORDER BY seq LIMIT ?4"
        ),
        (None, None) => {
            audit_columns!("WHERE ?1 IS NULL AND ?2 IS NULL AND seq > ?3 ORDER BY seq LIMIT ?4")
        }
    };
    let mut rows = run(db, statement, filter, after, limit)?;
    rows.reverse();
    // There is always something older: the record this page began after.
    let next = rows.last().map(|last| last.seq);
    Ok(Listed {
        rows,
        next,
        newer: None,
    })
}

fn run(
    db: &Connection,
    statement: &str,
    filter: &AuditFilter,
    from: i64,
    limit: usize,
) -> Result<Vec<AuditRecord>, StoreError> {
    let event = filter.event.map(EventId::bytes);
    db.prepare_cached(statement)
        .and_then(|mut read| {
            read.query_map(params![event, filter.actor, from, limit as i64], to_record)?
                .collect()
        })
        .map_err(sql_error)
}

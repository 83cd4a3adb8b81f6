//! The audit log: each record with what it is about, in one transaction (J1).
//!
//! Whoever writes a record holds the lock of the log's head. So its numbers have no gaps, its chain is whole, and of two requests
//! with one key the second sees the first.

use std::sync::Arc;

use hapax_ledger::id::EventId;
use hapax_ledger::key::KeyHash;
use hapax_ledger::time::Time;
use tokio_postgres::Row;
use tokio_postgres::types::Type;

use super::pool::{Pool, Statement, Taken};
use super::wire::{Hash, Uuid, received, sendable};
use crate::error::{StoreError, StoreErrorKind};
use crate::nouns::{
    AuditFilter, AuditRecord, Authority, Before, Listed, PAGE_MAX, Page, PageFrom, RequestKey,
};

/// A record that is about to be written.
pub(super) struct Entry<'a> {
    pub(super) by: &'a Authority,
    pub(super) action: &'a str,
    pub(super) subject: String,
    /// The event that the command was about.
    pub(super) event: Option<EventId>,
    pub(super) detail: &'a str,
}

/// The last record of the log, locked.
pub(super) struct Head {
    seq: u64,
    hash: [u8; 32],
}

/// The way into the log.
pub(super) enum Way {
    /// The next record may be written.
    Free(Head),
    /// The same key was used before.
    Taken(Before),
}

/// What the request's key was used for before, if it has one and it was.
pub(super) async fn earlier(taken: &Taken, by: &Authority) -> Result<Option<Before>, StoreError> {
    let Some(request) = &by.request else {
        return Ok(None);
    };
    let look = RequestLook::of(request);
    let (sql, params) = look.statement();
    let rows = taken.query(sql, &params).await?;
    Ok(to_before(&rows, request))
}

/// The look for a request's key.
pub(super) struct RequestLook {
    key: Uuid,
}

impl RequestLook {
    pub(super) fn of(request: &RequestKey) -> RequestLook {
        RequestLook {
            key: key_of(request.key),
        }
    }

    pub(super) fn statement(&self) -> Statement<'_> {
        let sql = "SELECT fingerprint, detail FROM hapax.audit WHERE request = $1";
        (sql, vec![(&self.key, Type::UUID)])
    }
}

fn key_of(key: KeyHash) -> Uuid {
    Uuid(key.bytes())
}

/// What [`RequestLook`] found.
pub(super) fn to_before(rows: &[Row], request: &RequestKey) -> Option<Before> {
    let row = rows.first()?;
    let fingerprint = row.get::<_, Hash>(0).0;
    Some(request.before(fingerprint, received(row.get(1))))
}

/// Locks the head of the log, and then looks once more whether the request's key is free: whoever used it has committed.
pub(super) async fn enter(taken: &Taken, by: &Authority) -> Result<Way, StoreError> {
    let head = taken.query(
        "SELECT seq, hash FROM hapax.audit_head WHERE one = 1 FOR UPDATE",
        &[],
    );
    // Sent behind the first without waiting, and begun when that holds its lock.
    let (head, before) = tokio::try_join!(biased; head, earlier(taken, by))?;
    if let Some(before) = before {
        return Ok(Way::Taken(before));
    }
    let head = head.first().map(|row| Head {
        seq: row.get::<_, i64>(0) as u64,
        hash: row.get::<_, Hash>(1).0,
    });
    head.map(Way::Free).ok_or_else(|| {
        StoreError::new(
            StoreErrorKind::Corrupt,
            "the head of the audit log cannot be read",
        )
    })
}

impl Head {
    /// Writes the next record and commits.
    pub(super) async fn commit(self, taken: Taken, entry: &Entry<'_>) -> Result<(), StoreError> {
        let next = NextRecord::of(&self, entry);
        taken.commit_behind(&next.statements()).await?;
        Ok(())
    }

    /// Writes the next record; others may follow it in the same transaction.
    pub(super) async fn write(self, taken: &Taken, entry: &Entry<'_>) -> Result<Head, StoreError> {
        let next = NextRecord::of(&self, entry);
        taken.run_all(&next.statements()).await?;
        Ok(Head {
            seq: next.seq as u64,
            hash: next.hash.0,
        })
    }
}

/// A record as columns, behind the head that it follows.
struct NextRecord {
    seq: i64,
    at: i64,
    event: Option<Uuid>,
    key: Option<Uuid>,
    fingerprint: Option<Hash>,
    previous: Hash,
    hash: Hash,
    actor: String,
    action: String,
    subject: String,
    reason: String,
    detail: String,
}

impl NextRecord {
    fn of(head: &Head, entry: &Entry<'_>) -> NextRecord {
        let record = AuditRecord::following(
            Some((head.seq, head.hash)),
            entry.by,
            entry.action,
            entry.subject.clone(),
            entry.detail.to_owned(),
        );
        let request = entry.by.request.as_ref();
        let text = |text: &str| sendable(text).into_owned();
        NextRecord {
            seq: record.seq as i64,
            at: record.at.micros(),
            event: entry.event.map(|event| Uuid(event.bytes())),
            key: request.map(|request| key_of(request.key)),
            fingerprint: request.map(|request| Hash(request.fingerprint)),
            previous: Hash(record.previous),
            hash: Hash(record.hash),
            actor: text(&record.actor),
            action: text(&record.action),
            subject: text(&record.subject),
            reason: text(&record.reason),
            detail: text(&record.detail),
        }
    }

    fn statements(&self) -> [Statement<'_>; 2] {
        let written: Statement<'_> = (
            "INSERT INTO hapax.audit (seq, at, event, request, fingerprint, previous, hash, actor, action, subject, reason, detail)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)",
            vec![
                (&self.seq, Type::INT8),
                (&self.at, Type::INT8),
                (&self.event, Type::UUID),
                (&self.key, Type::UUID),
                (&self.fingerprint, Type::BYTEA),
                (&self.previous, Type::BYTEA),
                (&self.hash, Type::BYTEA),
                (&self.actor, Type::TEXT),
                (&self.action, Type::TEXT),
                (&self.subject, Type::TEXT),
                (&self.reason, Type::TEXT),
                (&self.detail, Type::TEXT),
            ],
        );
        let moved: Statement<'_> = (
            "UPDATE hapax.audit_head SET seq = $1, hash = $2 WHERE one = 1",
            vec![(&self.seq, Type::INT8), (&self.hash, Type::BYTEA)],
        );
        [written, moved]
    }
}

/// The columns of [`to_record`], in its order, of those records that a page looks for; the planner drops what is NULL.
macro_rules! page {
    ($rest:literal) => {
        concat!(
            "SELECT seq, at, actor, action, subject, reason, detail, previous, hash FROM hapax.audit
             WHERE ($3::text IS NULL OR actor = $3) AND ($4::uuid IS NULL OR event = $4) ",
            $rest
        )
    };
}

fn to_record(row: &Row) -> AuditRecord {
    let text = |column| received(row.get(column));
    AuditRecord {
        seq: row.get::<_, i64>(0) as u64,
        at: Time::from_micros(row.get(1)),
        actor: Arc::from(text(2)),
        action: text(3),
        subject: text(4),
        reason: text(5),
        detail: text(6),
        previous: row.get::<_, Hash>(7).0,
        hash: row.get::<_, Hash>(8).0,
    }
}

/// A page of the log, newest first.
pub(super) async fn list(
    pool: &Pool,
    filter: &AuditFilter,
    page: Page<u64>,
) -> Result<Listed<AuditRecord, u64>, StoreError> {
    let limit = i64::from(page.limit.clamp(1, PAGE_MAX));
    match page.from {
        PageFrom::Newest => older(pool, filter, i64::MAX, limit).await,
        PageFrom::OlderThan(seq) => older(pool, filter, place(seq), limit).await,
        PageFrom::NewerThan(seq) => newer(pool, filter, place(seq), limit).await,
    }
}

/// A number that somebody made up may be beyond all that are counted.
fn place(seq: u64) -> i64 {
    i64::try_from(seq).unwrap_or(i64::MAX)
}

async fn older(
    pool: &Pool,
    filter: &AuditFilter,
    from: i64,
    limit: i64,
) -> Result<Listed<AuditRecord, u64>, StoreError> {
    // One more than wanted says whether the list goes on.
    let mut rows = read(
        pool,
        page!("AND seq < $1 ORDER BY seq DESC LIMIT $2 + 1"),
        filter,
        from,
        limit,
    )
    .await?;
    let more = rows.len() as i64 > limit;
    rows.truncate(limit as usize);
    let next = rows.last().filter(|_| more).map(|record| record.seq);
    Ok(Listed {
        rows,
        next,
        newer: None,
    })
}

async fn newer(
    pool: &Pool,
    filter: &AuditFilter,
    from: i64,
    limit: i64,
) -> Result<Listed<AuditRecord, u64>, StoreError> {
    let mut rows = read(
        pool,
        page!("AND seq > $1 ORDER BY seq LIMIT $2"),
        filter,
        from,
        limit,
    )
    .await?;
    rows.reverse();
    // There is always something older: the record this page began after.
    let next = rows.last().map(|record| record.seq);
    Ok(Listed {
        rows,
        next,
        newer: None,
    })
}

async fn read(
    pool: &Pool,
    sql: &'static str,
    filter: &AuditFilter,
    from: i64,
    limit: i64,
) -> Result<Vec<AuditRecord>, StoreError> {
    let actor = filter.actor.as_deref().map(sendable);
    let event = filter.event.map(|event| Uuid(event.bytes()));
    let rows = pool
        .walk(
            sql,
            &[
                (&from, Type::INT8),
                (&limit, Type::INT8),
                (&actor, Type::TEXT),
                (&event, Type::UUID),
            ],
        )
        .await?;
    Ok(rows.iter().map(to_record).collect())
}

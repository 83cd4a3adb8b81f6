//! Replays of many events as rows.

use hapax_ledger::event::EventStatus;
use hapax_ledger::id::{EventId, ReplayId};
use hapax_ledger::time::Time;
use rusqlite::{Connection, OptionalExtension, Row, params};

use super::sql_error;
use crate::error::StoreError;
use crate::nouns::{Changed, EventFilter, PAGE_MAX, Replay, ReplayProgress, ReplayState};

/// Keeps a new replay.
pub(super) fn start(db: &Connection, replay: &Replay) -> Result<Changed, StoreError> {
    let (filter, progress) = (&replay.filter, &replay.progress);
    db.execute(
        "INSERT INTO replay (id, source, type, status, key, entity, since, until, actor, reason, created_at, dry_run,
             rate, state, after, total, done, skipped, blocked, failed, task)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21)",
        params![
            replay.id.bytes(),
            filter.source,
            filter.event_type,
            filter.status.map(EventStatus::code),
            filter.key,
            filter.entity,
            filter.since.map(Time::micros),
            filter.until.map(Time::micros),
            replay.actor,
            replay.reason,
            replay.created_at.micros(),
            replay.dry_run,
            replay.rate,
            replay.state.code(),
            progress.after.map(EventId::bytes),
            progress.total as i64,
            progress.done as i64,
            progress.skipped as i64,
            progress.blocked as i64,
            progress.failed as i64,
            replay.task,
        ],
    )
    .map_err(sql_error)?;
    Ok(Changed::Done)
}

/// The columns of [`to_replay`], in its order.
macro_rules! replay_columns {
    ($rest:literal) => {
        concat!(
            "SELECT id, source, type, status, key, entity, since, until, actor, reason, created_at, dry_run, rate, state,
                 after, total, done, skipped, blocked, failed, task
             FROM replay ",
            $rest
        )
    };
}

fn to_replay(row: &Row<'_>) -> rusqlite::Result<Replay> {
    let time = |column| -> rusqlite::Result<Option<Time>> {
        let micros: Option<i64> = row.get(column)?;
        Ok(micros.map(Time::from_micros))
    };
    let status: Option<u8> = row.get(3)?;
    Ok(Replay {
        id: ReplayId::from_bytes(row.get(0)?),
        filter: EventFilter {
            source: row.get(1)?,
            event_type: row.get(2)?,
            status: status.and_then(EventStatus::from_code),
            key: row.get(4)?,
            key_contains: None,
            entity: row.get(5)?,
            since: time(6)?,
            until: time(7)?,
        },
        actor: row.get(8)?,
        reason: row.get(9)?,
        created_at: Time::from_micros(row.get(10)?),
        dry_run: row.get(11)?,
        rate: row.get(12)?,
        task: row.get(20)?,
        // What cannot be read sends nothing.
        state: ReplayState::from_code(row.get(13)?).unwrap_or(ReplayState::Cancelled),
        progress: to_progress(row)?,
    })
}

fn to_progress(row: &Row<'_>) -> rusqlite::Result<ReplayProgress> {
    let after: Option<[u8; 16]> = row.get(14)?;
    let count = |column| -> rusqlite::Result<u64> { Ok(row.get::<_, i64>(column)? as u64) };
    Ok(ReplayProgress {
        after: after.map(EventId::from_bytes),
        total: count(15)?,
        done: count(16)?,
        skipped: count(17)?,
        blocked: count(18)?,
        failed: count(19)?,
    })
}

/// One replay.
pub(super) fn read(db: &Connection, id: ReplayId) -> Result<Option<Replay>, StoreError> {
    db.prepare_cached(replay_columns!("WHERE id = ?1"))
        .and_then(|mut read| read.query_row([id.bytes()], to_replay).optional())
        .map_err(sql_error)
}

/// Replays in this state, newest first.
pub(super) fn all(db: &Connection, state: Option<ReplayState>) -> Result<Vec<Replay>, StoreError> {
    db.prepare_cached(replay_columns!(
        "WHERE ?1 IS NULL OR state = ?1 ORDER BY id DESC LIMIT ?2"
    ))
    .and_then(|mut read| {
        read.query_map(params![state.map(ReplayState::code), PAGE_MAX], to_replay)?
            .collect()
    })
    .map_err(sql_error)
}

/// A running replay has come from here to there; not if it has ended, or somebody else has carried it further.
pub(super) fn carry(
    db: &Connection,
    id: ReplayId,
    from: ReplayProgress,
    to: ReplayProgress,
    state: ReplayState,
    found: Option<&str>,
) -> Result<bool, StoreError> {
    let stands = read(db, id)?
        .is_some_and(|replay| replay.state == ReplayState::Running && replay.progress == from);
    if !stands {
        return Ok(false);
    }
    db.prepare_cached(
        "UPDATE replay SET state = ?2, after = ?3, total = ?4, done = ?5, skipped = ?6, blocked = ?7, failed = ?8,
             found = coalesce(?9, found)
         WHERE id = ?1",
    )
    .and_then(|mut update| {
        update.execute(params![
            id.bytes(),
            state.code(),
            to.after.map(EventId::bytes),
            to.total as i64,
            to.done as i64,
            to.skipped as i64,
            to.blocked as i64,
            to.failed as i64,
            found,
        ])
    })
    .map_err(sql_error)?;
    Ok(true)
}

/// What a replay has found out.
pub(super) fn found(db: &Connection, id: ReplayId) -> Result<Option<String>, StoreError> {
    let found = db
        .prepare_cached("SELECT found FROM replay WHERE id = ?1")
        .and_then(|mut read| read.query_row([id.bytes()], |row| row.get(0)).optional())
        .map_err(sql_error)?;
    Ok(found.flatten())
}

/// Stops a running replay.
pub(super) fn cancel(db: &Connection, id: ReplayId) -> Result<Changed, StoreError> {
    let stopped = db
        .execute(
            "UPDATE replay SET state = ?3 WHERE id = ?1 AND state = ?2",
            params![
                id.bytes(),
                ReplayState::Running.code(),
                ReplayState::Cancelled.code()
            ],
        )
        .map_err(sql_error)?;
    Ok(match stopped {
        0 => Changed::NotFound,
        _ => Changed::Done,
    })
}

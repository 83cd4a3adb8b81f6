//! Runs: passes over an event that somebody asked for.

use bytes::Bytes;
use hapax_ledger::id::RunId;
use hapax_ledger::run::RunKind;
use hapax_ledger::time::Time;
use rusqlite::{Connection, OptionalExtension, Row, params};

use super::read::row_of;
use super::sql_error;
use crate::error::StoreError;
use crate::nouns::{Command, Run};

/// The runs of an event, oldest first.
pub(super) fn of_event(db: &Connection, event: i64) -> Result<Vec<Run>, StoreError> {
    db.prepare_cached(
        "SELECT id, kind, actor, reason, at, parent, snapshot FROM run WHERE event = ?1 ORDER BY n",
    )
    .and_then(|mut read| read.query_map([event], to_run)?.collect())
    .map_err(sql_error)
}

fn to_run(row: &Row<'_>) -> rusqlite::Result<Run> {
    let snapshot: Option<Vec<u8>> = row.get(6)?;
    Ok(Run {
        id: RunId::from_bytes(row.get(0)?),
        // What cannot be read was asked for all the same.
        kind: RunKind::from_code(row.get(1)?).unwrap_or(RunKind::Replay),
        actor: row.get(2)?,
        reason: row.get(3)?,
        at: Time::from_micros(row.get(4)?),
        parent: RunId::from_bytes(row.get(5)?),
        snapshot: snapshot.map(Bytes::from),
    })
}

/// The run that a command makes, if it makes one: it follows the latest.
pub(super) fn add(db: &Connection, command: &Command) -> Result<Option<RunId>, StoreError> {
    let Some(kind) = command.decision.run() else {
        return Ok(None);
    };
    let event = row_of(command.event);
    let latest: Option<(i64, [u8; 16])> = db
        .prepare_cached("SELECT n, id FROM run WHERE event = ?1 ORDER BY n DESC LIMIT 1")
        .and_then(|mut read| {
            read.query_row([event], |row| Ok((row.get(0)?, row.get(1)?)))
                .optional()
        })
        .map_err(sql_error)?;
    let (n, parent) = latest.unwrap_or((0, RunId::initial(command.event).bytes()));
    db.prepare_cached(
        "INSERT INTO run (event, n, id, kind, actor, reason, at, parent, snapshot)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
    )
    .and_then(|mut insert| {
        insert.execute(params![
            event,
            n + 1,
            command.run.bytes(),
            kind.code(),
            command.by.actor,
            command.by.reason,
            command.by.at.micros(),
            parent,
            command.decision.snapshot().map(|snapshot| &snapshot[..]),
        ])
    })
    .map_err(sql_error)?;
    Ok(Some(command.run))
}

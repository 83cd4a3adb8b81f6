//! What a publisher said about a message, as rows.

use hapax_ledger::id::{AppId, EndpointId, EventId};
use hapax_ledger::time::Time;
use rusqlite::{Connection, OptionalExtension, Row, params};

use super::index::KeyIndex;
use super::{number, read, sql_error};
use crate::error::StoreError;
use crate::nouns::{About, Event, Message, app_of_source};
use crate::posting_code::{from_texts, to_texts};

/// Keeps what was said about a message, with the next number of its key.
pub(super) fn keep_about(
    db: &Connection,
    app: AppId,
    row: i64,
    about: &About,
) -> Result<(), StoreError> {
    let sequence = match about.numbered_by() {
        Some(key) => Some(number::next(db, app, key)?),
        None => None,
    };
    let list = |texts: &[String]| (!texts.is_empty()).then(|| from_texts(texts));
    db.prepare_cached(
        "INSERT INTO message (app, seq, channels, tags, deliver_at, api_version, ordering_key, sequence_key, sequence, only_to)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
    )
    .and_then(|mut insert| {
        insert.execute(params![
            app.bytes(),
            row,
            list(&about.channels),
            list(&about.tags),
            about.deliver_at.map(Time::micros),
            about.api_version,
            about.ordering_key,
            about.sequence_key,
            sequence,
            about.only_to.map(EndpointId::bytes),
        ])
    })
    .map_err(sql_error)?;
    Ok(())
}

/// What was said about a message; `None` if the event is none. Its id is the event's.
pub(super) fn about(
    db: &Connection,
    source: &str,
    row: i64,
    event_id: Option<&str>,
) -> Result<Option<About>, StoreError> {
    let Some(app) = app_of_source(source) else {
        return Ok(None);
    };
    let about = db
        .prepare_cached(
            "SELECT channels, tags, deliver_at, api_version, ordering_key, sequence_key, sequence, only_to
             FROM message WHERE app = ?1 AND seq = ?2",
        )
        .and_then(|mut read| {
            read.query_row(params![app.bytes(), row], to_about)
                .optional()
        })
        .map_err(sql_error)?;
    Ok(about.map(|about| About {
        event_id: event_id.map(str::to_owned),
        ..about
    }))
}

fn to_about(row: &Row<'_>) -> rusqlite::Result<About> {
    let list = |column| -> rusqlite::Result<Vec<String>> {
        let kept: Option<String> = row.get(column)?;
        Ok(kept.as_deref().map(to_texts).unwrap_or_default())
    };
    let deliver_at: Option<i64> = row.get(2)?;
    let sequence: Option<i64> = row.get(6)?;
    let only_to: Option<[u8; 16]> = row.get(7)?;
    Ok(About {
        event_id: None,
        channels: list(0)?,
        tags: list(1)?,
        deliver_at: deliver_at.map(Time::from_micros),
        api_version: row.get(3)?,
        ordering_key: row.get(4)?,
        sequence_key: row.get(5)?,
        sequence: sequence.map(|number| number as u64),
        only_to: only_to.map(EndpointId::from_bytes),
    })
}

/// An event as a message, if it is one.
pub(super) fn of_event(db: &Connection, event: Event) -> Result<Option<Message>, StoreError> {
    let row = read::row_of(event.id);
    let about = about(db, &event.source, row, event.provider_event_id.as_deref())?;
    Ok(about.map(|about| Message { event, about }))
}

/// One message.
pub(super) fn message(
    db: &Connection,
    index: &KeyIndex,
    id: EventId,
) -> Result<Option<Message>, StoreError> {
    match read::one(db, index, id)? {
        Some(event) => of_event(db, event),
        None => Ok(None),
    }
}

/// Its event is gone.
pub(super) fn forget(db: &Connection, source: &str, row: i64) -> Result<(), StoreError> {
    if let Some(app) = app_of_source(source) {
        number::forget(db, app, row)?;
        db.prepare_cached("DELETE FROM message WHERE app = ?1 AND seq = ?2")
            .and_then(|mut delete| delete.execute(params![app.bytes(), row]))
            .map_err(sql_error)?;
    }
    Ok(())
}

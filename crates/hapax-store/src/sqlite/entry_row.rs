//! What stands in the catalogue, row by row.

use bytes::Bytes;
use hapax_ledger::id::{AppId, EndpointId};
use hapax_ledger::time::Time;
use rusqlite::{Connection, Row, params};

use super::sql_error;
use crate::error::StoreError;
use crate::nouns::{App, Endpoint, Entry, EventType, Standing};
use crate::posting_code::{from_map, from_texts, to_map, to_texts};

/// The columns of [`to_app`], in its order.
macro_rules! app_columns {
    ($rest:literal) => {
        concat!(
            "SELECT id, uid, name, throttle_rate, metadata, extra, created_at, updated_at, deleted_at, revision
             FROM app ",
            $rest
        )
    };
}

/// The columns of [`to_endpoint`], in its order.
macro_rules! endpoint_columns {
    ($rest:literal) => {
        concat!(
            "SELECT id, app, uid, url, description, event_types, channels, throttle_rate, metadata, sealed, extra,
                 standing, failing_since, disabled_from, created_at, updated_at, deleted_at, revision
             FROM endpoint ",
            $rest
        )
    };
}

/// The columns of [`to_event_type`], in its order.
macro_rules! event_type_columns {
    ($rest:literal) => {
        concat!(
            "SELECT name, description, archived, deprecated, group_name, feature_flags, schemas, extra, created_at,
                 updated_at, deleted_at, revision
             FROM event_type ",
            $rest
        )
    };
}
pub(super) use {app_columns, endpoint_columns, event_type_columns};

fn time(row: &Row<'_>, column: usize) -> rusqlite::Result<Time> {
    Ok(Time::from_micros(row.get(column)?))
}

fn maybe_time(row: &Row<'_>, column: usize) -> rusqlite::Result<Option<Time>> {
    let micros: Option<i64> = row.get(column)?;
    Ok(micros.map(Time::from_micros))
}

fn revision(row: &Row<'_>, column: usize) -> rusqlite::Result<u64> {
    Ok(row.get::<_, i64>(column)? as u64)
}

pub(super) fn to_app(row: &Row<'_>) -> rusqlite::Result<Entry> {
    Ok(Entry::App(App {
        id: AppId::from_bytes(row.get(0)?),
        uid: row.get(1)?,
        name: row.get(2)?,
        throttle_rate: row.get(3)?,
        metadata: to_map(row.get_ref(4)?.as_str()?),
        extra: row.get(5)?,
        created_at: time(row, 6)?,
        updated_at: time(row, 7)?,
        deleted_at: maybe_time(row, 8)?,
        revision: revision(row, 9)?,
    }))
}

pub(super) fn to_endpoint(row: &Row<'_>) -> rusqlite::Result<Endpoint> {
    let sealed: Vec<u8> = row.get(9)?;
    Ok(Endpoint {
        id: EndpointId::from_bytes(row.get(0)?),
        app: AppId::from_bytes(row.get(1)?),
        uid: row.get(2)?,
        url: row.get(3)?,
        description: row.get(4)?,
        event_types: to_texts(row.get_ref(5)?.as_str()?),
        channels: to_texts(row.get_ref(6)?.as_str()?),
        throttle_rate: row.get(7)?,
        metadata: to_map(row.get_ref(8)?.as_str()?),
        sealed: Bytes::from(sealed),
        extra: row.get(10)?,
        // What cannot be read is sent nothing.
        standing: Standing::from_code(row.get(11)?).unwrap_or(Standing::Disabled),
        failing_since: maybe_time(row, 12)?,
        disabled_from: maybe_time(row, 13)?,
        created_at: time(row, 14)?,
        updated_at: time(row, 15)?,
        deleted_at: maybe_time(row, 16)?,
        revision: revision(row, 17)?,
    })
}

pub(super) fn to_event_type(row: &Row<'_>) -> rusqlite::Result<Entry> {
    Ok(Entry::EventType(EventType {
        name: row.get(0)?,
        description: row.get(1)?,
        archived: row.get(2)?,
        deprecated: row.get(3)?,
        group_name: row.get(4)?,
        feature_flags: to_texts(row.get_ref(5)?.as_str()?),
        schemas: row.get(6)?,
        extra: row.get(7)?,
        created_at: time(row, 8)?,
        updated_at: time(row, 9)?,
        deleted_at: maybe_time(row, 10)?,
        revision: revision(row, 11)?,
    }))
}

/// Writes an entry in the place of the one that was there.
pub(super) fn write(db: &Connection, entry: &Entry) -> Result<(), StoreError> {
    match entry {
        Entry::App(app) => write_app(db, app),
        Entry::Endpoint(endpoint) => write_endpoint(db, endpoint),
        Entry::EventType(event_type) => write_event_type(db, event_type),
    }
    .map_err(sql_error)
}

fn write_app(db: &Connection, app: &App) -> rusqlite::Result<()> {
    db.execute("DELETE FROM app WHERE id = ?1", [app.id.bytes()])?;
    db.execute(
        "INSERT INTO app (id, uid, name, throttle_rate, metadata, extra, created_at, updated_at, deleted_at, revision)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
        params![
            app.id.bytes(),
            app.uid,
            app.name,
            app.throttle_rate,
            from_map(&app.metadata),
            app.extra,
            app.created_at.micros(),
            app.updated_at.micros(),
            app.deleted_at.map(Time::micros),
            app.revision as i64,
        ],
    )?;
    Ok(())
}

fn write_endpoint(db: &Connection, endpoint: &Endpoint) -> rusqlite::Result<()> {
    db.execute("DELETE FROM endpoint WHERE id = ?1", [endpoint.id.bytes()])?;
    db.execute(
        "INSERT INTO endpoint (id, app, uid, url, description, event_types, channels, throttle_rate, metadata, sealed,
             extra, standing, failing_since, disabled_from, created_at, updated_at, deleted_at, revision)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18)",
        params![
            endpoint.id.bytes(),
            endpoint.app.bytes(),
            endpoint.uid,
            endpoint.url,
            endpoint.description,
            from_texts(&endpoint.event_types),
            from_texts(&endpoint.channels),
            endpoint.throttle_rate,
            from_map(&endpoint.metadata),
            &endpoint.sealed[..],
            endpoint.extra,
            endpoint.standing.code(),
            endpoint.failing_since.map(Time::micros),
            endpoint.disabled_from.map(Time::micros),
            endpoint.created_at.micros(),
            endpoint.updated_at.micros(),
            endpoint.deleted_at.map(Time::micros),
            endpoint.revision as i64,
        ],
    )?;
    Ok(())
}

fn write_event_type(db: &Connection, event_type: &EventType) -> rusqlite::Result<()> {
    db.execute("DELETE FROM event_type WHERE name = ?1", [&event_type.name])?;
    db.execute(
        "INSERT INTO event_type (name, description, archived, deprecated, group_name, feature_flags, schemas, extra,
             created_at, updated_at, deleted_at, revision)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)",
        params![
            event_type.name,
            event_type.description,
            event_type.archived,
            event_type.deprecated,
            event_type.group_name,
            from_texts(&event_type.feature_flags),
            event_type.schemas,
            event_type.extra,
            event_type.created_at.micros(),
            event_type.updated_at.micros(),
            event_type.deleted_at.map(Time::micros),
            event_type.revision as i64,
        ],
    )?;
    Ok(())
}

//! What stands in the catalogue, row by row.

use bytes::Bytes;
use hapax_ledger::id::{AppId, EndpointId};
use hapax_ledger::time::Time;
use tokio_postgres::Row;
use tokio_postgres::types::Type;

use super::pool::Taken;
use super::wire::{Uuid, received, sendable};
use crate::error::StoreError;
use crate::nouns::{App, Endpoint, Entry, EventType, Standing};
use crate::posting_code::{from_map, from_texts, to_map, to_texts};

/// The columns of [`to_app`], in its order.
macro_rules! app_columns {
    ($rest:literal) => {
        concat!(
            "SELECT id, uid, name, throttle_rate, metadata, extra, created_at, updated_at, deleted_at, revision
             FROM hapax.app ",
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
             FROM hapax.endpoint ",
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
             FROM hapax.event_type ",
            $rest
        )
    };
}
pub(super) use {app_columns, endpoint_columns, event_type_columns};

fn text(row: &Row, column: usize) -> String {
    received(row.get(column))
}

fn maybe_text(row: &Row, column: usize) -> Option<String> {
    row.get::<_, Option<String>>(column).map(received)
}

fn time(row: &Row, column: usize) -> Time {
    Time::from_micros(row.get(column))
}

fn maybe_time(row: &Row, column: usize) -> Option<Time> {
    row.get::<_, Option<i64>>(column).map(Time::from_micros)
}

fn rate(row: &Row, column: usize) -> Option<u32> {
    row.get::<_, Option<i64>>(column).map(|rate| rate as u32)
}

fn revision(row: &Row, column: usize) -> u64 {
    row.get::<_, i64>(column) as u64
}

pub(super) fn to_app(row: &Row) -> Entry {
    Entry::App(App {
        id: AppId::from_bytes(row.get::<_, Uuid>(0).0),
        uid: maybe_text(row, 1).map(Into::into),
        name: text(row, 2),
        throttle_rate: rate(row, 3),
        metadata: to_map(&text(row, 4)),
        extra: text(row, 5),
        created_at: time(row, 6),
        updated_at: time(row, 7),
        deleted_at: maybe_time(row, 8),
        revision: revision(row, 9),
    })
}

pub(super) fn to_endpoint(row: &Row) -> Endpoint {
    Endpoint {
        id: EndpointId::from_bytes(row.get::<_, Uuid>(0).0),
        app: AppId::from_bytes(row.get::<_, Uuid>(1).0),
        uid: maybe_text(row, 2).map(Into::into),
        url: text(row, 3),
        description: text(row, 4),
        event_types: to_texts(&text(row, 5)),
        channels: to_texts(&text(row, 6)),
        throttle_rate: rate(row, 7),
        metadata: to_map(&text(row, 8)),
        sealed: Bytes::from(row.get::<_, Vec<u8>>(9)),
        extra: text(row, 10),
        // What cannot be read is sent nothing.
        standing: Standing::from_code(row.get::<_, i16>(11) as u8).unwrap_or(Standing::Disabled),
        failing_since: maybe_time(row, 12),
        disabled_from: maybe_time(row, 13),
        created_at: time(row, 14),
        updated_at: time(row, 15),
        deleted_at: maybe_time(row, 16),
        revision: revision(row, 17),
    }
}

pub(super) fn to_event_type(row: &Row) -> Entry {
    Entry::EventType(EventType {
        name: text(row, 0).into(),
        description: text(row, 1),
        archived: row.get(2),
        deprecated: row.get(3),
        group_name: maybe_text(row, 4),
        feature_flags: to_texts(&text(row, 5)),
        schemas: maybe_text(row, 6),
        extra: text(row, 7),
        created_at: time(row, 8),
        updated_at: time(row, 9),
        deleted_at: maybe_time(row, 10),
        revision: revision(row, 11),
    })
}

/// Writes an entry in the place of the one that was there.
pub(super) async fn write(taken: &Taken, entry: &Entry) -> Result<(), StoreError> {
    match entry {
        Entry::App(app) => write_app(taken, app).await,
        Entry::Endpoint(endpoint) => write_endpoint(taken, endpoint).await,
        Entry::EventType(event_type) => write_event_type(taken, event_type).await,
    }
}

async fn write_app(taken: &Taken, app: &App) -> Result<(), StoreError> {
    let id = Uuid(app.id.bytes());
    let uid = app.uid.as_deref().map(sendable);
    let rate = app.throttle_rate.map(i64::from);
    taken
        .query("DELETE FROM hapax.app WHERE id = $1", &[(&id, Type::UUID)])
        .await?;
    taken
        .query(
            "INSERT INTO hapax.app (id, uid, name, throttle_rate, metadata, extra, created_at, updated_at, deleted_at, revision)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)",
            &[
                (&id, Type::UUID),
                (&uid, Type::TEXT),
                (&sendable(&app.name), Type::TEXT),
                (&rate, Type::INT8),
                (&sendable(&from_map(&app.metadata)), Type::TEXT),
                (&sendable(&app.extra), Type::TEXT),
                (&app.created_at.micros(), Type::INT8),
                (&app.updated_at.micros(), Type::INT8),
                (&app.deleted_at.map(Time::micros), Type::INT8),
                (&(app.revision as i64), Type::INT8),
            ],
        )
        .await?;
    Ok(())
}

async fn write_endpoint(taken: &Taken, endpoint: &Endpoint) -> Result<(), StoreError> {
    let id = Uuid(endpoint.id.bytes());
    let uid = endpoint.uid.as_deref().map(sendable);
    let rate = endpoint.throttle_rate.map(i64::from);
    taken
        .query(
            "DELETE FROM hapax.endpoint WHERE id = $1",
            &[(&id, Type::UUID)],
        )
        .await?;
    taken
        .query(
            "INSERT INTO hapax.endpoint (id, app, uid, url, description, event_types, channels, throttle_rate, metadata,
                 sealed, extra, standing, failing_since, disabled_from, created_at, updated_at, deleted_at, revision)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18)",
            &[
                (&id, Type::UUID),
                (&Uuid(endpoint.app.bytes()), Type::UUID),
                (&uid, Type::TEXT),
                (&sendable(&endpoint.url), Type::TEXT),
                (&sendable(&endpoint.description), Type::TEXT),
                (&sendable(&from_texts(&endpoint.event_types)), Type::TEXT),
                (&sendable(&from_texts(&endpoint.channels)), Type::TEXT),
                (&rate, Type::INT8),
                (&sendable(&from_map(&endpoint.metadata)), Type::TEXT),
                (&&endpoint.sealed[..], Type::BYTEA),
                (&sendable(&endpoint.extra), Type::TEXT),
                (&i16::from(endpoint.standing.code()), Type::INT2),
                (&endpoint.failing_since.map(Time::micros), Type::INT8),
                (&endpoint.disabled_from.map(Time::micros), Type::INT8),
                (&endpoint.created_at.micros(), Type::INT8),
                (&endpoint.updated_at.micros(), Type::INT8),
                (&endpoint.deleted_at.map(Time::micros), Type::INT8),
                (&(endpoint.revision as i64), Type::INT8),
            ],
        )
        .await?;
    Ok(())
}

async fn write_event_type(taken: &Taken, event_type: &EventType) -> Result<(), StoreError> {
    let name = sendable(&event_type.name);
    let group = event_type.group_name.as_deref().map(sendable);
    let schemas = event_type.schemas.as_deref().map(sendable);
    taken
        .query(
            "DELETE FROM hapax.event_type WHERE name = $1",
            &[(&name, Type::TEXT)],
        )
        .await?;
    taken
        .query(
            "INSERT INTO hapax.event_type (name, description, archived, deprecated, group_name, feature_flags, schemas, extra,
                 created_at, updated_at, deleted_at, revision)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)",
            &[
                (&name, Type::TEXT),
                (&sendable(&event_type.description), Type::TEXT),
                (&event_type.archived, Type::BOOL),
                (&event_type.deprecated, Type::BOOL),
                (&group, Type::TEXT),
                (&sendable(&from_texts(&event_type.feature_flags)), Type::TEXT),
                (&schemas, Type::TEXT),
                (&sendable(&event_type.extra), Type::TEXT),
                (&event_type.created_at.micros(), Type::INT8),
                (&event_type.updated_at.micros(), Type::INT8),
                (&event_type.deleted_at.map(Time::micros), Type::INT8),
                (&(event_type.revision as i64), Type::INT8),
            ],
        )
        .await?;
    Ok(())
}

//! The catalogue of the outbox: changed one after the other, each change at a revision of its own.

use hapax_ledger::id::{AppId, EndpointId};
use hapax_ledger::time::Time;
use rusqlite::{Connection, OptionalExtension, Params, params};

use super::audit::{self, Entry as Record};
use super::entry_row::{
    app_columns, endpoint_columns, event_type_columns, to_app, to_endpoint, to_event_type, write,
};
use super::{poll_turn, sql_error, tiding};
use crate::error::StoreError;
use crate::nouns::{
    Authority, CHANGES_PER_PART, Changes, DELETED_KEPT, Endpoint, Entry, Put, Tiding,
};
use crate::posting::{self, Stands};

/// So many of each kind are looked at in one step of the reaper.
const ROWS_PER_STEP: i64 = 500;

/// The catalogue's revision.
pub(super) fn revision(db: &Connection) -> Result<u64, StoreError> {
    let revision: i64 = db
        .prepare_cached("SELECT revision FROM catalogue WHERE one = 1")
        .and_then(|mut read| read.query_row([], |row| row.get(0)))
        .map_err(sql_error)?;
    Ok(revision as u64)
}

/// Raises the revision by one.
pub(super) fn next_revision(db: &Connection) -> Result<u64, StoreError> {
    let revision: i64 = db
        .prepare_cached(
            "UPDATE catalogue SET revision = revision + 1 WHERE one = 1 RETURNING revision",
        )
        .and_then(|mut next| next.query_row([], |row| row.get(0)))
        .map_err(sql_error)?;
    Ok(revision as u64)
}

/// What has changed since a revision, in one picture.
pub(super) fn changes(db: &Connection, since: u64) -> Result<Changes, StoreError> {
    let db = &db.unchecked_transaction().map_err(sql_error)?;
    let now = revision(db)?;
    // One more than is given: whether there is more.
    let few = CHANGES_PER_PART as i64 + 1;
    let some = (since as i64, since > 0, few);
    let read = || -> rusqlite::Result<Vec<Entry>> {
        let mut apps = db.prepare_cached(app_columns!(
            "WHERE revision > ?1 AND (?2 OR deleted_at IS NULL) ORDER BY revision LIMIT ?3"
        ))?;
        let mut endpoints = db.prepare_cached(endpoint_columns!(
            "WHERE revision > ?1 AND (?2 OR deleted_at IS NULL) ORDER BY revision LIMIT ?3"
        ))?;
        let mut types = db.prepare_cached(event_type_columns!(
            "WHERE revision > ?1 AND (?2 OR deleted_at IS NULL) ORDER BY revision LIMIT ?3"
        ))?;
        let endpoints = endpoints.query_map(some, |row| Ok(boxed(to_endpoint(row)?)))?;
        let all = apps.query_map(some, to_app)?.chain(endpoints);
        all.chain(types.query_map(some, to_event_type)?).collect()
    };
    let mut entries = read().map_err(sql_error)?;
    entries.sort_by_key(Entry::revision);
    let more = entries.len() > CHANGES_PER_PART;
    entries.truncate(CHANGES_PER_PART);
    let last = entries.last().map(Entry::revision).filter(|_| more);
    Ok(Changes {
        entries,
        revision: last.unwrap_or(now),
        more,
    })
}

pub(super) fn boxed(endpoint: Endpoint) -> Entry {
    Entry::Endpoint(Box::new(endpoint))
}

/// Makes a change unless the same request came before, and writes down that it was made.
pub(super) fn put(
    db: &Connection,
    entry: Entry,
    was: u64,
    action: &'static str,
    by: &Authority,
    answer: String,
) -> Result<Put, StoreError> {
    if let Some(before) = audit::before(db, by)? {
        return Ok(Put::Repeated(before));
    }
    let stood = stands(db, &entry)?;
    if let Err(refused) = posting::may_put(&entry, was, stood) {
        return Ok(refused);
    }
    match (has_app(db, &entry)?, is_taken(db, &entry)?) {
        (false, _) => return Ok(Put::Moved),
        (true, true) => return Ok(Put::Taken),
        (true, false) => {}
    }
    let subject = posting::subject(&entry);
    let mut revision = next_revision(db)?;
    let entry = entry.at_revision(revision);
    write(db, &entry)?;
    if let (Entry::App(app), Some(at)) = (&entry, entry.deleted_at()) {
        revision = delete_endpoints(db, app.id, at, revision)?;
    }
    for tiding in Tiding::of_change(&entry, stood, by.at) {
        tiding::write(db, &tiding)?;
    }
    let record = Record {
        action,
        subject,
        detail: answer,
        event: None,
    };
    audit::write_down(db, by, record)?;
    Ok(Put::Done { revision })
}

/// What stands where the entry wants to be.
fn stands(db: &Connection, entry: &Entry) -> Result<Option<Stands>, StoreError> {
    let found = match entry {
        Entry::App(app) => found(
            db,
            "SELECT revision, deleted_at IS NOT NULL, FALSE FROM app WHERE id = ?1",
            [app.id.bytes()],
        ),
        Entry::Endpoint(endpoint) => found(
            db,
            "SELECT revision, deleted_at IS NOT NULL, standing = 0 FROM endpoint WHERE id = ?1",
            [endpoint.id.bytes()],
        ),
        Entry::EventType(event_type) => found(
            db,
            "SELECT revision, deleted_at IS NOT NULL, FALSE FROM event_type WHERE name = ?1",
            [&event_type.name],
        ),
    };
    found.map_err(sql_error)
}

fn found(db: &Connection, statement: &str, of: impl Params) -> rusqlite::Result<Option<Stands>> {
    let mut read = db.prepare_cached(statement)?;
    let found = read.query_row(of, |row| {
        Ok(Stands {
            revision: row.get::<_, i64>(0)? as u64,
            deleted: row.get(1)?,
            enabled: row.get(2)?,
        })
    });
    found.optional()
}

/// Is the application there that it belongs to?
fn has_app(db: &Connection, entry: &Entry) -> Result<bool, StoreError> {
    let Entry::Endpoint(endpoint) = entry else {
        return Ok(true);
    };
    db.prepare_cached("SELECT EXISTS (SELECT 1 FROM app WHERE id = ?1 AND deleted_at IS NULL)")
        .and_then(|mut read| read.query_row([endpoint.app.bytes()], |row| row.get(0)))
        .map_err(sql_error)
}

/// Does another one that is there have its uid?
fn is_taken(db: &Connection, entry: &Entry) -> Result<bool, StoreError> {
    match entry {
        _ if entry.deleted_at().is_some() => Ok(false),
        Entry::App(app) => db
            .prepare_cached(
                "SELECT EXISTS (SELECT 1 FROM app WHERE uid IS NOT NULL AND deleted_at IS NULL AND uid = ?1 AND id <> ?2)",
            )
            .and_then(|mut read| read.query_row(params![app.uid, app.id.bytes()], |row| row.get(0))),
        Entry::Endpoint(endpoint) => db
            .prepare_cached(
                "SELECT EXISTS (SELECT 1 FROM endpoint
                 WHERE uid IS NOT NULL AND deleted_at IS NULL AND app = ?3 AND uid = ?1 AND id <> ?2)",
            )
            .and_then(|mut read| {
                let endpoint = params![endpoint.uid, endpoint.id.bytes(), endpoint.app.bytes()];
                read.query_row(endpoint, |row| row.get(0))
            }),
        Entry::EventType(_) => Ok(false),
    }
    .map_err(sql_error)
}

/// An application that is deleted takes its endpoints along, each at a revision of its own; the last of them.
fn delete_endpoints(
    db: &Connection,
    app: AppId,
    at: Time,
    mut revision: u64,
) -> Result<u64, StoreError> {
    let ids: Vec<[u8; 16]> = db
        .prepare_cached("SELECT id FROM endpoint WHERE app = ?1 AND deleted_at IS NULL ORDER BY id")
        .and_then(|mut read| read.query_map([app.bytes()], |row| row.get(0))?.collect())
        .map_err(sql_error)?;
    for id in ids {
        revision = next_revision(db)?;
        db.prepare_cached(
            "UPDATE endpoint SET deleted_at = ?2, updated_at = ?2, revision = ?3 WHERE id = ?1",
        )
        .and_then(|mut update| update.execute(params![id, at.micros(), revision as i64]))
        .map_err(sql_error)?;
    }
    Ok(revision)
}

/// Forgets what was deleted long ago, as far as nothing refers to it.
pub(super) fn reap(db: &Connection, now: Time) -> Result<(), StoreError> {
    let until = (now - DELETED_KEPT).micros();
    let old = |statement: &str| -> rusqlite::Result<Vec<[u8; 16]>> {
        let mut read = db.prepare_cached(statement)?;
        read.query_map([until, ROWS_PER_STEP], |row| row.get(0))?
            .collect()
    };
    let endpoints = old(
        "SELECT id FROM endpoint WHERE deleted_at IS NOT NULL AND deleted_at <= ?1 ORDER BY deleted_at LIMIT ?2",
    )
    .map_err(sql_error)?;
    for id in endpoints {
        let lane = EndpointId::from_bytes(id).to_string();
        db.prepare_cached(
            "DELETE FROM endpoint WHERE id = ?1 AND NOT EXISTS (
                 SELECT 1 FROM effect INDEXED BY effect_posted
                 WHERE lane >= 'ep_' AND lane < 'ep`' AND lane = ?2)",
        )
        .and_then(|mut delete| delete.execute(params![id, lane]))
        .map_err(sql_error)?;
    }
    let apps = old(
        "SELECT id FROM app WHERE deleted_at IS NOT NULL AND deleted_at <= ?1 ORDER BY deleted_at LIMIT ?2",
    )
    .map_err(sql_error)?;
    for id in apps {
        forget_app(db, id)?;
    }
    db.prepare_cached("DELETE FROM event_type WHERE deleted_at IS NOT NULL AND deleted_at <= ?1")
        .and_then(|mut delete| delete.execute([until]))
        .map_err(sql_error)?;
    Ok(())
}

/// Forgets an application that has no messages and no endpoints any more, with its numbers and turns.
fn forget_app(db: &Connection, id: [u8; 16]) -> Result<(), StoreError> {
    let gone = db
        .prepare_cached(
            "DELETE FROM app WHERE id = ?1
                 AND NOT EXISTS (SELECT 1 FROM endpoint WHERE app = ?1)
                 AND NOT EXISTS (SELECT 1 FROM message WHERE app = ?1)",
        )
        .and_then(|mut delete| delete.execute([id]))
        .map_err(sql_error)?;
    if gone > 0 {
        db.prepare_cached("DELETE FROM number WHERE app = ?1")
            .and_then(|mut delete| delete.execute([id]))
            .map_err(sql_error)?;
        poll_turn::forget(db, id)?;
    }
    Ok(())
}

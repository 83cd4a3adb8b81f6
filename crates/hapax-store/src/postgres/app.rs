//! The catalogue of the outbox: changed one after the other, each change at a revision of its own.
//!
//! Whoever changes it enters the audit log first, as for all that is kept beside the ledger, and then holds the lock of the revision.

use hapax_ledger::id::{AppId, EndpointId};
use hapax_ledger::time::Time;
use tokio_postgres::types::Type;

use super::audit::{self, Entry as Record, Way};
use super::entry_row::{
    app_columns, endpoint_columns, event_type_columns, to_app, to_endpoint, to_event_type, write,
};
use super::pool::{Param, Pool, Taken};
use super::tiding::TidingColumns;
use super::wire::{Uuid, sendable};
use crate::error::{StoreError, StoreErrorKind};
use crate::nouns::{
    Authority, CHANGES_PER_PART, Changes, DELETED_KEPT, Endpoint, Entry, Put, Tiding,
};
use crate::posting::{self, Stands};

/// So many of each kind are looked at in one step of the reaper.
const ROWS_PER_STEP: i64 = 500;

const REVISION: &str = "SELECT revision FROM hapax.catalogue WHERE one = 1";

fn to_revision(rows: &[tokio_postgres::Row]) -> Result<u64, StoreError> {
    let revision = rows.first().map(|row| row.get::<_, i64>(0) as u64);
    revision.ok_or_else(|| {
        StoreError::new(
            StoreErrorKind::Corrupt,
            "the revision of the catalogue cannot be read",
        )
    })
}

/// The catalogue's revision.
pub(super) async fn revision(pool: &Pool) -> Result<u64, StoreError> {
    to_revision(&pool.read(REVISION, &[]).await?)
}

/// The same in an open transaction.
pub(super) async fn revision_now(taken: &Taken) -> Result<u64, StoreError> {
    to_revision(&taken.query(REVISION, &[]).await?)
}

/// The same, and nobody else changes it before our transaction has ended.
pub(super) async fn lock_revision(taken: &Taken) -> Result<u64, StoreError> {
    let locked = "SELECT revision FROM hapax.catalogue WHERE one = 1 FOR UPDATE";
    to_revision(&taken.query(locked, &[]).await?)
}

pub(super) async fn set_revision(taken: &Taken, revision: u64) -> Result<(), StoreError> {
    taken
        .query(
            "UPDATE hapax.catalogue SET revision = $1 WHERE one = 1",
            &[(&(revision as i64), Type::INT8)],
        )
        .await?;
    Ok(())
}

/// What has changed since a revision, in one picture.
pub(super) async fn changes(pool: &Pool, since: u64) -> Result<Changes, StoreError> {
    // One more than is given: whether there is more.
    let (from, with_deleted, few) = (since as i64, since > 0, CHANGES_PER_PART as i64 + 1);
    let some = || -> Vec<Param<'_>> {
        vec![
            (&from, Type::INT8),
            (&with_deleted, Type::BOOL),
            (&few, Type::INT8),
        ]
    };
    let found = pool
        .read_all(&[
            (REVISION, Vec::new()),
            (
                app_columns!(
                    "WHERE revision > $1 AND ($2 OR deleted_at IS NULL) ORDER BY revision LIMIT $3"
                ),
                some(),
            ),
            (
                endpoint_columns!(
                    "WHERE revision > $1 AND ($2 OR deleted_at IS NULL) ORDER BY revision LIMIT $3"
                ),
                some(),
            ),
            (
                event_type_columns!(
                    "WHERE revision > $1 AND ($2 OR deleted_at IS NULL) ORDER BY revision LIMIT $3"
                ),
                some(),
            ),
        ])
        .await?;
    let [now, apps, endpoints, types] = &found[..] else {
        return Err(StoreError::new(
            StoreErrorKind::Unavailable,
            "the catalogue was not read whole",
        ));
    };
    let now = to_revision(now)?;
    let endpoints = endpoints.iter().map(|row| boxed(to_endpoint(row)));
    let mut entries: Vec<Entry> = apps.iter().map(to_app).chain(endpoints).collect();
    entries.extend(types.iter().map(to_event_type));
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
pub(super) async fn put(
    pool: &Pool,
    entry: Entry,
    was: u64,
    action: &'static str,
    by: &Authority,
    answer: &str,
) -> Result<Put, StoreError> {
    let taken = pool.take().await?;
    let ((), way) = tokio::try_join!(biased; taken.open(), audit::enter(&taken, by))?;
    let head = match way {
        Way::Free(head) => head,
        Way::Taken(before) => return give_up(taken, Put::Repeated(before)).await,
    };
    let mut revision = lock_revision(&taken).await?;
    let stood = stands(&taken, &entry).await?;
    if let Err(refused) = posting::may_put(&entry, was, stood) {
        return give_up(taken, refused).await;
    }
    if !has_app(&taken, &entry).await? {
        return give_up(taken, Put::Moved).await;
    }
    if is_taken(&taken, &entry).await? {
        return give_up(taken, Put::Taken).await;
    }
    let subject = posting::subject(&entry);
    revision += 1;
    let entry = entry.at_revision(revision);
    write(&taken, &entry).await?;
    if let (Entry::App(app), Some(at)) = (&entry, entry.deleted_at()) {
        revision += delete_endpoints(&taken, app.id, at, revision).await?;
    }
    set_revision(&taken, revision).await?;
    let tiding = Tiding::of_change(&entry, stood, by.at);
    let tidings = TidingColumns::of(&tiding);
    if let Some((sql, params)) = tidings.statement() {
        taken.query(sql, &params).await?;
    }
    let record = Record {
        by,
        action,
        subject,
        event: None,
        detail: answer,
    };
    head.commit(taken, &record).await?;
    Ok(Put::Done { revision })
}

/// Nothing is written, and this is why.
async fn give_up(taken: Taken, why: Put) -> Result<Put, StoreError> {
    taken.roll_back().await;
    Ok(why)
}

/// What stands where the entry wants to be.
async fn stands(taken: &Taken, entry: &Entry) -> Result<Option<Stands>, StoreError> {
    let rows = match entry {
        Entry::App(app) => {
            let sql = "SELECT revision, deleted_at IS NOT NULL, FALSE FROM hapax.app WHERE id = $1";
            let id = Uuid(app.id.bytes());
            taken.query(sql, &[(&id, Type::UUID)]).await?
        }
        Entry::Endpoint(endpoint) => {
            let sql = "SELECT revision, deleted_at IS NOT NULL, standing = 0 FROM hapax.endpoint WHERE id = $1";
            let id = Uuid(endpoint.id.bytes());
            taken.query(sql, &[(&id, Type::UUID)]).await?
        }
        Entry::EventType(event_type) => {
            let sql = "SELECT revision, deleted_at IS NOT NULL, FALSE FROM hapax.event_type WHERE name = $1";
            let name = sendable(&event_type.name);
            taken.query(sql, &[(&name, Type::TEXT)]).await?
        }
    };
    Ok(rows.first().map(|row| Stands {
        revision: row.get::<_, i64>(0) as u64,
        deleted: row.get(1),
        enabled: row.get(2),
    }))
}

/// Is the application there that it belongs to?
async fn has_app(taken: &Taken, entry: &Entry) -> Result<bool, StoreError> {
    let Entry::Endpoint(endpoint) = entry else {
        return Ok(true);
    };
    let found = taken
        .query(
            "SELECT FROM hapax.app WHERE id = $1 AND deleted_at IS NULL",
            &[(&Uuid(endpoint.app.bytes()), Type::UUID)],
        )
        .await?;
    Ok(!found.is_empty())
}

/// Does another one that is there have its uid?
async fn is_taken(taken: &Taken, entry: &Entry) -> Result<bool, StoreError> {
    if entry.deleted_at().is_some() {
        return Ok(false);
    }
    let others = match entry {
        Entry::App(app) => {
            let uid = app.uid.as_deref().map(sendable);
            let sql = "SELECT FROM hapax.app WHERE deleted_at IS NULL AND uid = $1 AND id <> $2";
            let id = Uuid(app.id.bytes());
            let named: [Param<'_>; 2] = [(&uid, Type::TEXT), (&id, Type::UUID)];
            taken.query(sql, &named).await?
        }
        Entry::Endpoint(endpoint) => {
            let uid = endpoint.uid.as_deref().map(sendable);
            let sql = "SELECT FROM hapax.endpoint WHERE deleted_at IS NULL AND uid = $1 AND id <> $2 AND app = $3";
            let (id, app) = (Uuid(endpoint.id.bytes()), Uuid(endpoint.app.bytes()));
            let named: [Param<'_>; 3] = [(&uid, Type::TEXT), (&id, Type::UUID), (&app, Type::UUID)];
            taken.query(sql, &named).await?
        }
        Entry::EventType(_) => Vec::new(),
    };
    Ok(!others.is_empty())
}

/// An application that is deleted takes its endpoints along, each at a revision of its own after this one; how many they are.
async fn delete_endpoints(
    taken: &Taken,
    app: AppId,
    at: Time,
    revision: u64,
) -> Result<u64, StoreError> {
    let gone = taken
        .query(
            "UPDATE hapax.endpoint p SET deleted_at = $2, updated_at = $2, revision = $3 + x.number
             FROM (
                 SELECT id, row_number() OVER (ORDER BY id) AS number FROM hapax.endpoint
                 WHERE app = $1 AND deleted_at IS NULL
             ) x
             WHERE p.id = x.id RETURNING p.id",
            &[
                (&Uuid(app.bytes()), Type::UUID),
                (&at.micros(), Type::INT8),
                (&(revision as i64), Type::INT8),
            ],
        )
        .await?;
    Ok(gone.len() as u64)
}

/// Forgets what was deleted long ago, as far as nothing refers to it.
pub(super) async fn reap(pool: &Pool, now: Time) -> Result<(), StoreError> {
    let until = (now - DELETED_KEPT).micros();
    let taken = pool.take().await?;
    let old = taken
        .begin(
            "SELECT id FROM hapax.endpoint WHERE deleted_at IS NOT NULL AND deleted_at <= $1 ORDER BY deleted_at LIMIT $2",
            &[(&until, Type::INT8), (&ROWS_PER_STEP, Type::INT8)],
        )
        .await?;
    let ids: Vec<Uuid> = old.iter().map(|row| row.get(0)).collect();
    let lanes = ids
        .iter()
        .map(|id| EndpointId::from_bytes(id.0).to_string());
    let lanes: Vec<String> = lanes.collect();
    if !ids.is_empty() {
        taken
            .query(
                "DELETE FROM hapax.endpoint p USING (SELECT unnest($1::uuid[]), unnest($2::text[])) AS k (id, lane)
                 WHERE p.id = k.id AND NOT EXISTS (
                     SELECT FROM hapax.effect e
                     WHERE e.lane >= 'ep_' AND e.lane < 'ep`' AND e.lane = k.lane COLLATE \"C\"
                 )",
                &[(&ids, Type::UUID_ARRAY), (&lanes, Type::TEXT_ARRAY)],
            )
            .await?;
    }
    let named: [Param<'_>; 1] = [(&until, Type::INT8)];
    taken
        .commit_behind(&[
            (
                "WITH gone AS (
                     DELETE FROM hapax.app a WHERE a.deleted_at IS NOT NULL AND a.deleted_at <= $1
                         AND NOT EXISTS (SELECT FROM hapax.endpoint p WHERE p.app = a.id)
                         AND NOT EXISTS (SELECT FROM hapax.message m WHERE m.app = a.id)
                     RETURNING a.id
                 ), turned AS (DELETE FROM hapax.turn t USING gone WHERE t.app = gone.id)
                 DELETE FROM hapax.number n USING gone WHERE n.app = gone.id",
                named.to_vec(),
            ),
            (
                "DELETE FROM hapax.event_type WHERE deleted_at IS NOT NULL AND deleted_at <= $1",
                named.to_vec(),
            ),
        ])
        .await?;
    Ok(())
}

//! Opening the file: connections with the settings that the promises rest on, and the key index brought level.

use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use hapax_ledger::key::KeyHash;
use rusqlite::{Connection, OpenFlags, OptionalExtension};
use rustix::fs::{Access, access};

use super::effect::PLACE_BITS;
use super::group::Group;
use super::index::{Additions, KeyIndex, Latest, Stamp};
use super::writer::Tx;
use super::{Clock, backup, claim, delivery_key, key_reap, key_sweep, migrate, sql_error};
use crate::error::{StoreError, StoreErrorKind};
use crate::nouns::app_of_source;

/// The oldest SQLite whose WAL is sound under checkpoints from another connection.
const SQLITE_VERSION_MIN: i32 = 3_051_003;
/// The writer's page cache, in KiB (SQLite counts it as a negative number of them).
const WRITER_CACHE_KIB: i64 = 32 * 1024;
/// Each reader's page cache, in KiB.
const READER_CACHE_KIB: i64 = 4 * 1024;
/// How long a connection waits for another one's lock; only checkpoints and start-up ever collide.
pub(super) const BUSY_WAIT: Duration = Duration::from_secs(5);
/// Rows read at a time when the index catches up.
const CATCH_UP_ROWS: i64 = 20_000;

/// Where the files of a store are.
#[derive(Clone, Debug)]
pub(super) struct Paths {
    pub(super) database: PathBuf,
    pub(super) log: PathBuf,
    pub(super) index: PathBuf,
    pub(super) ballast: PathBuf,
    pub(super) lock: PathBuf,
    pub(super) folder: PathBuf,
}

impl Paths {
    pub(super) fn beside(database: &Path) -> Paths {
        let suffixed = |suffix: &str| {
            let mut name = database.as_os_str().to_owned();
            name.push(suffix);
            PathBuf::from(name)
        };
        let folder = match database.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent.to_owned(),
            _ => PathBuf::from("."),
        };
        Paths {
            database: database.to_owned(),
            log: suffixed("-wal"),
            index: suffixed(".keys"),
            ballast: suffixed(".ballast"),
            lock: suffixed(".lock"),
            folder,
        }
    }
}

/// The connection that writes.
pub(super) fn writer(paths: &Paths) -> Result<Connection, StoreError> {
    if rusqlite::version_number() < SQLITE_VERSION_MIN {
        return Err(StoreError::new(
            StoreErrorKind::Incompatible,
            format!(
                "SQLite {} is too old; 3.51.3 or newer is needed",
                rusqlite::version()
            ),
        ));
    }
    make_private(&paths.database)?;
    let db =
        Connection::open(&paths.database).map_err(|error| cannot_open(&paths.database, error))?;
    db.busy_timeout(BUSY_WAIT).map_err(sql_error)?;
    db.pragma_update(None, "journal_mode", "WAL")
        .map_err(sql_error)?;
    // FULL: every commit waits for a sync of the log. NORMAL would ack what a power cut takes back (A1).
    db.pragma_update(None, "synchronous", "FULL")
        .map_err(sql_error)?;
    // What is deleted is overwritten: erased bytes are not left in free pages, nor those that were reaped.
    db.pragma_update(None, "secure_delete", "ON")
        .map_err(sql_error)?;
    // Checkpoints belong to their own thread, off the path of the acks.
    db.pragma_update(None, "wal_autocheckpoint", 0)
        .map_err(sql_error)?;
    db.pragma_update(None, "cache_size", -WRITER_CACHE_KIB)
        .map_err(sql_error)?;
    db.pragma_update(None, "temp_store", "MEMORY")
        .map_err(sql_error)?;
    db.set_prepared_statement_cache_capacity(64);
    Ok(db)
}

/// The file holds other people's data: it is made so that only its owner reads it. Log and shared memory follow it. One that is there
/// already is not opened: closing it would end every lock that SQLite has on it in this process, and then somebody who looks at the
/// file with another program takes the log away with him.
fn make_private(database: &Path) -> Result<(), StoreError> {
    let made = std::fs::OpenOptions::new()
        .create_new(true)
        .append(true)
        .mode(0o600)
        .open(database);
    match made {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
            let both = Access::READ_OK | Access::WRITE_OK;
            access(database, both).map_err(|error| cannot_open(database, error))
        }
        Err(error) => Err(cannot_open(database, error)),
    }
}

fn cannot_open(
    database: &Path,
    error: impl std::error::Error + Send + Sync + 'static,
) -> StoreError {
    let what = format!("cannot open {}", database.display());
    StoreError::new(StoreErrorKind::Unavailable, what).caused_by(error)
}

/// A connection that only reads.
pub(super) fn reader(paths: &Paths) -> Result<Connection, StoreError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    #[cfg_attr(
        not(all(test, feature = "conformance")),
        expect(unused_mut, reason = "only the test of plans listens")
    )]
    let mut db = Connection::open_with_flags(&paths.database, flags).map_err(sql_error)?;
    #[cfg(all(test, feature = "conformance"))]
    super::plans::listen(&mut db);
    db.busy_timeout(BUSY_WAIT).map_err(sql_error)?;
    db.pragma_update(None, "cache_size", -READER_CACHE_KIB)
        .map_err(sql_error)?;
    Ok(db)
}

/// A database and an index that agree with each other.
pub(super) struct Opened {
    pub(super) db: Connection,
    pub(super) index: KeyIndex,
    pub(super) epoch: u32,
}

/// Opens database and index, raises the epoch, and brings the index level with the database.
pub(super) fn open(paths: &Paths, nonce: [u8; 16], clock: &Clock) -> Result<Opened, StoreError> {
    backup::sweep(paths);
    let mut db = writer(paths)?;
    migrate::migrate(&mut db)?;
    let index = KeyIndex::open(&paths.index)?;
    let known = stamp_of(&db)?;
    let trusted = known.is_some() && index.stamp()? == known;
    let epoch_before = known.map_or(0, |stamp| stamp.epoch);
    let indexed = index.stamp()?;
    let index_epoch = indexed.map_or(0, |stamp| stamp.epoch);
    let copied = backup::is_copy(&db)?;
    let of_this_store = indexed.map(|stamp| stamp.store_id) == known.map(|stamp| stamp.store_id);
    let restored = copied || known.is_some() && of_this_store && index_epoch > epoch_before;
    let stamp = Stamp {
        store_id: known.map_or(nonce, |stamp| stamp.store_id),
        // An index that is ahead tells of a restored backup: outrun the epochs that the backup does not know.
        epoch: epoch_before.max(index_epoch) + if copied { backup::EPOCHS_AHEAD } else { 1 },
        mark: nonce,
    };
    if !trusted || ahead(&db, &index)? {
        if known.is_some() {
            tracing::info!("the key index does not belong to this database file; rebuilding it");
        }
        index.empty()?;
    }
    catch_up(&db, &index)?;
    set_stamp(&db, stamp)?;
    index.set_stamp(stamp)?;
    if restored {
        tracing::warn!(
            "this is a restored backup: what it calls unfinished may have been sent since"
        );
        restore(&mut db, &index, stamp.epoch, clock)?;
        backup::is_opened(&db)?;
    }
    void_old_leases(&mut db, &index, stamp.epoch, clock)?;
    key_sweep::void(&db, clock())?;
    Ok(Opened {
        db,
        index,
        epoch: stamp.epoch,
    })
}

/// Makes what is unfinished ambiguous (C1). Again, if it is interrupted: that changes nothing about what is ambiguous already.
fn restore(
    db: &mut Connection,
    index: &KeyIndex,
    epoch: u32,
    clock: &Clock,
) -> Result<(), StoreError> {
    let mut group = Group::new(db, index, epoch)?;
    let mut after = i64::MIN;
    loop {
        let open = db.transaction().map_err(sql_error)?;
        let mut tx = Tx {
            db: &open,
            index,
            group: &mut group,
            now: clock(),
        };
        let last = backup::restore(&mut tx, after)?;
        open.commit().map_err(sql_error)?;
        match last {
            Some(last) => after = last,
            None => return Ok(()),
        }
    }
}

/// A restart ends every lease that the process before it gave (C3).
fn void_old_leases(
    db: &mut Connection,
    index: &KeyIndex,
    epoch: u32,
    clock: &Clock,
) -> Result<(), StoreError> {
    let mut group = Group::new(db, index, epoch)?;
    loop {
        let open = db.transaction().map_err(sql_error)?;
        let mut tx = Tx {
            db: &open,
            index,
            group: &mut group,
            now: clock(),
        };
        let freed = claim::void(&mut tx)?;
        tx.group.tallies.write(&open)?;
        open.commit().map_err(sql_error)?;
        if freed == 0 {
            return Ok(());
        }
        tracing::info!(
            freed,
            "took over effects that the process before this one held"
        );
    }
}

/// Reads into the index what the database has and the index has not.
pub(super) fn catch_up(db: &Connection, index: &KeyIndex) -> Result<(), StoreError> {
    let mut at = index.watermark()?;
    loop {
        let unread = event_keys(db, at.event)?;
        let Some(last) = unread.last().map(|event| event.row) else {
            break;
        };
        let mut added = Additions {
            keys: unread.iter().map(|event| (event.key, event.row)).collect(),
            latest: Vec::new(),
        };
        added
            .keys
            .extend(delivery_key::inherited(db, index, &unread)?);
        added.keys.extend(effect_keys(db, at.event, last)?);
        at.event = last;
        index.put(&added, at)?;
        if added.keys.len() as i64 >= CATCH_UP_ROWS {
            tracing::info!(row = last, "reading the key index up to date");
        }
    }
    loop {
        let (numbers, keys): (Vec<i64>, Vec<_>) = joined_keys(db, at.joined)?.into_iter().unzip();
        let Some(last) = numbers.last() else {
            break;
        };
        at.joined = *last;
        let latest = Vec::new();
        index.put(&Additions { keys, latest }, at)?;
    }
    loop {
        let keys = guarded_keys(db, at.key)?;
        let Some(&(_, last)) = keys.last() else {
            break;
        };
        at.key = last;
        let latest = Vec::new();
        index.put(&Additions { keys, latest }, at)?;
    }
    loop {
        let latest = latest_deliveries(db, at.delivery)?;
        let Some(last) = latest.last().map(|(_, latest)| latest.row) else {
            return Ok(());
        };
        at.delivery = last;
        index.put(
            &Additions {
                keys: Vec::new(),
                latest,
            },
            at,
        )?;
    }
}

/// An event that the index has not read.
pub(super) struct Unread {
    pub(super) row: i64,
    pub(super) key: KeyHash,
    pub(super) is_message: bool,
}

fn event_keys(db: &Connection, after: i64) -> Result<Vec<Unread>, StoreError> {
    db.prepare_cached(
        "SELECT seq, key_hash, source FROM event WHERE seq > ?1 ORDER BY seq LIMIT ?2",
    )
    .and_then(|mut read| {
        let rows = read.query_map((after, CATCH_UP_ROWS), |row| {
            Ok(Unread {
                row: row.get(0)?,
                key: KeyHash::from_bytes(row.get(1)?),
                is_message: app_of_source(row.get_ref(2)?.as_str()?).is_some(),
            })
        })?;
        rows.collect()
    })
    .map_err(sql_error)
}

/// In the order they came, so that the last of an event is what stays.
fn latest_deliveries(db: &Connection, after: i64) -> Result<Vec<(i64, Latest)>, StoreError> {
    db.prepare_cached(
        "SELECT event, seq, n, conflicts FROM delivery WHERE seq > ?1 ORDER BY seq LIMIT ?2",
    )
    .and_then(|mut read| {
        let rows = read.query_map((after, CATCH_UP_ROWS), |row| {
            Ok((
                row.get(0)?,
                Latest {
                    row: row.get(1)?,
                    n: row.get(2)?,
                    conflicts: row.get(3)?,
                },
            ))
        })?;
        rows.collect()
    })
    .map_err(sql_error)
}

/// The keys of effects that events after `from` up to `last` planned, but for deliveries (`delivery_key.rs`).
fn effect_keys(db: &Connection, from: i64, last: i64) -> Result<Vec<(KeyHash, i64)>, StoreError> {
    db.prepare_cached(
        "SELECT seq, key_hash FROM effect WHERE seq >= ?1 AND seq < ?2 AND NOT (name >= 'ep_' AND name < 'ep`')",
    )
        .and_then(|mut read| {
            let rows = read.query_map(
                [(from + 1) << PLACE_BITS, (last + 1) << PLACE_BITS],
                |row| Ok((KeyHash::from_bytes(row.get(1)?), row.get(0)?)),
            )?;
            rows.collect()
        })
        .map_err(sql_error)
}

/// The key of an effect that joined an event after it was accepted, with its row, after its number among them.
type JoinedKey = (i64, (KeyHash, i64));

/// The keys of effects that joined late, in the order in which they did.
fn joined_keys(db: &Connection, after: i64) -> Result<Vec<JoinedKey>, StoreError> {
    db.prepare_cached(
        "SELECT joined, seq, key_hash FROM effect WHERE joined IS NOT NULL AND joined > ?1
         AND NOT (name >= 'ep_' AND name < 'ep`') ORDER BY joined LIMIT ?2",
    )
    .and_then(|mut read| {
        let rows = read.query_map((after, CATCH_UP_ROWS), |row| {
            Ok((row.get(0)?, (KeyHash::from_bytes(row.get(2)?), row.get(1)?)))
        })?;
        rows.collect()
    })
    .map_err(sql_error)
}

/// The keys of guarded requests.
fn guarded_keys(db: &Connection, after: i64) -> Result<Vec<(KeyHash, i64)>, StoreError> {
    db.prepare_cached("SELECT seq, key_hash FROM guard_key WHERE seq > ?1 ORDER BY seq LIMIT ?2")
        .and_then(|mut read| {
            let rows = read.query_map((after, CATCH_UP_ROWS), |row| {
                Ok((KeyHash::from_bytes(row.get(1)?), row.get(0)?))
            })?;
            rows.collect()
        })
        .map_err(sql_error)
}

/// Does the index know of rows that the database does not have? Then the database was put back to an earlier state.
fn ahead(db: &Connection, index: &KeyIndex) -> Result<bool, StoreError> {
    let last: (Option<i64>, Option<i64>) = db
        .query_row(
            "SELECT (SELECT max(seq) FROM event), (SELECT max(seq) FROM delivery)",
            [],
            |row| Ok((row.get(0)?, row.get(1)?)),
        )
        .map_err(sql_error)?;
    let read = index.watermark()?;
    Ok(read.event > last.0.unwrap_or(0)
        || read.delivery > last.1.unwrap_or(0)
        || read.key > key_reap::last_row(db)?)
}

fn stamp_of(db: &Connection) -> Result<Option<Stamp>, StoreError> {
    db.query_row("SELECT store_id, epoch, mark FROM store", [], |row| {
        Ok(Stamp {
            store_id: row.get(0)?,
            epoch: row.get(1)?,
            mark: row.get(2)?,
        })
    })
    .optional()
    .map_err(sql_error)
}

fn set_stamp(db: &Connection, stamp: Stamp) -> Result<(), StoreError> {
    db.execute(
        "INSERT INTO store (one, store_id, epoch, mark) VALUES (1, ?1, ?2, ?3)
         ON CONFLICT (one) DO UPDATE SET epoch = excluded.epoch, mark = excluded.mark",
        (stamp.store_id, stamp.epoch, stamp.mark),
    )
    .map_err(sql_error)?;
    Ok(())
}

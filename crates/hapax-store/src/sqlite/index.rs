//! The key index: which row holds a key. Derived from the database, never the truth.
//!
//! Rules that keep it honest: it is written only after COMMIT, keys and watermark in one batch; every hit is
//! confirmed against its row by the caller; it carries the database's store id and epoch, and if they differ, or if it
//! claims to have read further than the database reaches (a restored backup), it is rebuilt before the store is ready.
//! It needs no sync of its own: what a crash takes from its end is read again from the database.

use std::path::{Path, PathBuf};

use fjall::{Database, Keyspace, KeyspaceCreateOptions};
use hapax_ledger::key::KeyHash;

use crate::error::{StoreError, StoreErrorKind};

/// Cached blocks. Small: filters answer most questions, and they are asked once per new key.
const CACHE_BYTES: u64 = 24 * 1024 * 1024;
/// Keys held in memory before they are written out as a sorted file.
const MEMTABLE_BYTES: u64 = 8 * 1024 * 1024;
/// Its journal may take this much before memtables are flushed.
const JOURNAL_BYTES: u64 = 64 * 1024 * 1024;
/// Background threads for flushing and merging.
const WORKERS: usize = 1;

const STAMP: &[u8] = b"stamp";
const WATERMARK: &[u8] = b"watermark";

/// What ties an index to its database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stamp {
    pub(super) store_id: [u8; 16],
    pub(super) epoch: u32,
}

/// How far the index has read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Watermark {
    /// The last row of `event`, and so of `effect`.
    pub(super) event: i64,
    /// The last row of `delivery`.
    pub(super) delivery: i64,
}

/// The latest delivery of an event, after its first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Latest {
    /// Its row.
    pub(super) row: i64,
    /// Its number; so many came after the first.
    pub(super) n: u32,
    /// How many of them conflicted.
    pub(super) conflicts: u32,
}

/// What a committed group adds.
#[derive(Default)]
pub(super) struct Additions {
    pub(super) keys: Vec<(KeyHash, i64)>,
    pub(super) latest: Vec<(i64, Latest)>,
}

/// Keys to rows, and events to their latest delivery.
#[derive(Clone)]
pub(super) struct KeyIndex {
    path: PathBuf,
    db: Database,
    keys: Keyspace,
    latest: Keyspace,
    meta: Keyspace,
}

impl KeyIndex {
    /// Opens the index in the folder `path`, or makes an empty one; one that cannot be read is thrown away.
    pub(super) fn open(path: &Path) -> Result<KeyIndex, StoreError> {
        match KeyIndex::open_existing(path) {
            Ok(index) => Ok(index),
            Err(error) => {
                tracing::warn!(%error, "the key index cannot be read and will be rebuilt");
                KeyIndex::discard(path)?;
                KeyIndex::open_existing(path)
            }
        }
    }

    fn open_existing(path: &Path) -> Result<KeyIndex, StoreError> {
        let open = || -> fjall::Result<KeyIndex> {
            let db = Database::builder(path)
                .cache_size(CACHE_BYTES)
                .max_journaling_size(JOURNAL_BYTES)
                .worker_threads(WORKERS)
                // What a crash takes from the journal's buffer is read again from the database.
                .manual_journal_persist(true)
                .open()?;
            let keys = db.keyspace("keys", || {
                KeyspaceCreateOptions::default().max_memtable_size(MEMTABLE_BYTES)
            })?;
            let latest = db.keyspace("latest", || {
                KeyspaceCreateOptions::default().max_memtable_size(MEMTABLE_BYTES)
            })?;
            let meta = db.keyspace("meta", KeyspaceCreateOptions::default)?;
            Ok(KeyIndex { path: path.to_owned(), db, keys, latest, meta })
        };
        open().map_err(index_error)
    }

    fn discard(path: &Path) -> Result<(), StoreError> {
        match std::fs::remove_dir_all(path) {
            Ok(()) => Ok(()),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(StoreError::new(StoreErrorKind::Unavailable, "cannot clear the key index").caused_by(error)),
        }
    }

    /// An empty index in place of this one.
    pub(super) fn emptied(self) -> Result<KeyIndex, StoreError> {
        let path = self.path.clone();
        drop(self);
        KeyIndex::discard(&path)?;
        KeyIndex::open_existing(&path)
    }

    /// Which database it belongs to.
    pub(super) fn stamp(&self) -> Result<Option<Stamp>, StoreError> {
        let bytes = self.meta.get(STAMP).map_err(index_error)?;
        Ok(bytes.and_then(|bytes| {
            let (store_id, epoch) = bytes.split_first_chunk::<16>()?;
            Some(Stamp { store_id: *store_id, epoch: u32::from_be_bytes(epoch.try_into().ok()?) })
        }))
    }

    /// Ties it to a database, and puts that on disk.
    pub(super) fn set_stamp(&self, stamp: Stamp) -> Result<(), StoreError> {
        let mut bytes = stamp.store_id.to_vec();
        bytes.extend_from_slice(&stamp.epoch.to_be_bytes());
        self.meta.insert(STAMP, bytes).map_err(index_error)?;
        self.db.persist(fjall::PersistMode::SyncAll).map_err(index_error)
    }

    /// How far it has read.
    pub(super) fn watermark(&self) -> Result<Watermark, StoreError> {
        let bytes = self.meta.get(WATERMARK).map_err(index_error)?;
        let parts = bytes.as_deref().and_then(<[u8]>::split_first_chunk::<8>);
        Ok(parts.map_or_else(Watermark::default, |(event, delivery)| Watermark {
            event: i64::from_be_bytes(*event),
            delivery: delivery.try_into().map_or(0, i64::from_be_bytes),
        }))
    }

    /// The row that held this key when it was last written; to be confirmed.
    pub(super) fn get(&self, key: KeyHash) -> Result<Option<i64>, StoreError> {
        let row = self.keys.get(key.bytes()).map_err(index_error)?;
        Ok(row.and_then(|bytes| Some(i64::from_be_bytes(bytes.as_ref().try_into().ok()?))))
    }

    /// The latest delivery of an event, if it had more than one.
    pub(super) fn latest(&self, event: i64) -> Result<Option<Latest>, StoreError> {
        let bytes = self.latest.get(event.to_be_bytes()).map_err(index_error)?;
        Ok(bytes.and_then(|bytes| {
            let (row, counts) = bytes.split_first_chunk::<8>()?;
            let (n, conflicts) = counts.split_first_chunk::<4>()?;
            Some(Latest {
                row: i64::from_be_bytes(*row),
                n: u32::from_be_bytes(*n),
                conflicts: u32::from_be_bytes(conflicts.try_into().ok()?),
            })
        }))
    }

    /// Records what committed rows say and how far that goes, in one batch.
    pub(super) fn put(&self, added: &Additions, watermark: Watermark) -> Result<(), StoreError> {
        let mut batch = self.db.batch();
        for (key, row) in &added.keys {
            batch.insert(&self.keys, key.bytes(), row.to_be_bytes());
        }
        for (event, latest) in &added.latest {
            let mut value = [0; 16];
            value[..8].copy_from_slice(&latest.row.to_be_bytes());
            value[8..12].copy_from_slice(&latest.n.to_be_bytes());
            value[12..].copy_from_slice(&latest.conflicts.to_be_bytes());
            batch.insert(&self.latest, event.to_be_bytes(), value);
        }
        let mut mark = [0; 16];
        mark[..8].copy_from_slice(&watermark.event.to_be_bytes());
        mark[8..].copy_from_slice(&watermark.delivery.to_be_bytes());
        batch.insert(&self.meta, WATERMARK, mark);
        batch.commit().map_err(index_error)
    }

    /// Forgets keys whose rows are gone, unless another row has taken the key since, and the deliveries of such events.
    pub(super) fn forget(&self, entries: &[(KeyHash, i64)]) -> Result<(), StoreError> {
        let mut batch = self.db.batch();
        for (key, row) in entries {
            if self.get(*key)? == Some(*row) {
                batch.remove(&self.keys, key.bytes());
            }
            batch.remove(&self.latest, row.to_be_bytes());
        }
        batch.commit().map_err(index_error)
    }

    /// Bytes on disk.
    pub(super) fn bytes(&self) -> u64 {
        self.db.disk_space().unwrap_or(0)
    }
}

fn index_error(error: fjall::Error) -> StoreError {
    StoreError::new(StoreErrorKind::Unavailable, "the key index failed").caused_by(error)
}

//! The key index: which row holds a key. Derived from the database, never the truth.
//!
//! Rules that keep it honest: it is written only after COMMIT, keys and watermark in one batch; every hit is
//! confirmed against its row by the caller; it carries the database's store id and epoch, and if they differ, or if it
//! claims to have read further than the database reaches (a restored backup), it is rebuilt before the store is ready.
//! It needs no sync of its own: what a crash takes from its end is read again from the database. A failed write closes it for good
//! (the library refuses everything from then on), so the writer has it opened anew before it goes on.

use std::error::Error;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use fjall::config::PartitioningPolicy;
use fjall::{Database, Keyspace, KeyspaceCreateOptions};
use hapax_ledger::key::KeyHash;

use crate::error::{StoreError, StoreErrorKind};

/// Cached blocks. Small: filters answer most questions, and they are asked once per new key.
const CACHE_BYTES: u64 = 32 * 1024 * 1024;
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
    /// Rises at every start.
    pub(super) epoch: u32,
    /// Random at every start: two copies of one file that went on apart may count the same epochs.
    pub(super) mark: [u8; 16],
}

/// How far the index has read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Watermark {
    /// The last row of `event`, and so of `effect`.
    pub(super) event: i64,
    /// The last row of `delivery`.
    pub(super) delivery: i64,
    /// The last of the effects that joined an event which was there before them.
    pub(super) joined: i64,
    /// The last row of `guard_key`.
    pub(super) key: i64,
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

/// What a committed group deletes.
#[derive(Default)]
pub(super) struct Removals {
    /// Keys, each with the row that held it: of an event, an effect or a guarded request.
    pub(super) keys: Vec<(KeyHash, i64)>,
    /// Events whose deliveries are gone with them.
    pub(super) events: Vec<i64>,
}

/// Keys to rows, and events to their latest delivery. Clones are the same index, also after it was opened anew.
#[derive(Clone)]
pub(super) struct KeyIndex {
    path: PathBuf,
    open: Arc<RwLock<Option<Open>>>,
    failed: Arc<AtomicBool>,
    /// How often keys were put into it, or it was made anew.
    puts: Arc<AtomicU64>,
}

/// The index's files, locked for this process as long as the value lives.
struct Open {
    db: Database,
    keys: Keyspace,
    latest: Keyspace,
    meta: Keyspace,
}

impl KeyIndex {
    /// Opens the index in the folder `path`, or makes an empty one; one that cannot be read is thrown away.
    pub(super) fn open(path: &Path) -> Result<KeyIndex, StoreError> {
        let open = Open::or_empty(path)?;
        Ok(KeyIndex {
            path: path.to_owned(),
            open: Arc::new(RwLock::new(Some(open))),
            failed: Arc::new(AtomicBool::new(false)),
            puts: Arc::new(AtomicU64::new(0)),
        })
    }

    /// Throws away all that it knows.
    pub(super) fn empty(&self) -> Result<(), StoreError> {
        let mut open = self.open.write().unwrap_or_else(PoisonError::into_inner);
        *open = None;
        discard(&self.path)?;
        *open = Some(Open::existing(&self.path).map_err(index_error)?);
        self.puts.fetch_add(1, Ordering::Release);
        Ok(())
    }

    /// If anything in it failed, closes it and opens it anew. It may know less then; the caller has it catch up.
    pub(super) fn renew_if_failed(&self) -> Result<(), StoreError> {
        if !self.failed.load(Ordering::Relaxed) {
            return Ok(());
        }
        let stamp = self.stamp().ok().flatten();
        {
            let mut open = self.open.write().unwrap_or_else(PoisonError::into_inner);
            // First of all, since it holds the folder's lock.
            *open = None;
            *open = Some(Open::or_empty(&self.path)?);
            self.puts.fetch_add(1, Ordering::Release);
        }
        match stamp {
            Some(stamp) if self.stamp()? != Some(stamp) => self.set_stamp(stamp)?,
            _ => {}
        }
        self.failed.store(false, Ordering::Relaxed);
        Ok(())
    }

    fn with<T>(&self, ask: impl FnOnce(&Open) -> fjall::Result<T>) -> Result<T, StoreError> {
        let open = self.open.read().unwrap_or_else(PoisonError::into_inner);
        let Some(open) = open.as_ref() else {
            return Err(StoreError::new(
                StoreErrorKind::Unavailable,
                "the key index could not be opened again",
            ));
        };
        ask(open).map_err(|error| {
            self.failed.store(true, Ordering::Relaxed);
            index_error(error)
        })
    }

    /// Which database it belongs to.
    pub(super) fn stamp(&self) -> Result<Option<Stamp>, StoreError> {
        let bytes = self.with(|open| open.meta.get(STAMP))?;
        Ok(bytes.and_then(|bytes| {
            let (store_id, rest) = bytes.split_first_chunk::<16>()?;
            let (mark, epoch) = rest.split_first_chunk::<16>()?;
            Some(Stamp {
                store_id: *store_id,
                epoch: u32::from_be_bytes(epoch.try_into().ok()?),
                mark: *mark,
            })
        }))
    }

    /// Ties it to a database, and puts that on disk.
    pub(super) fn set_stamp(&self, stamp: Stamp) -> Result<(), StoreError> {
        let mut bytes = stamp.store_id.to_vec();
        bytes.extend_from_slice(&stamp.mark);
        bytes.extend_from_slice(&stamp.epoch.to_be_bytes());
        self.with(|open| {
            open.meta.insert(STAMP, bytes)?;
            open.db.persist(fjall::PersistMode::SyncAll)
        })
    }

    /// How far it has read.
    pub(super) fn watermark(&self) -> Result<Watermark, StoreError> {
        let bytes = self.with(|open| open.meta.get(WATERMARK))?;
        let (parts, _) = bytes.as_deref().unwrap_or_default().as_chunks::<8>();
        let part = |place: usize| parts.get(place).copied().map_or(0, i64::from_be_bytes);
        Ok(Watermark {
            event: part(0),
            delivery: part(1),
            joined: part(2),
            key: part(3),
        })
    }

    /// How often keys were put into it so far. Who asks for a key after this finds what was put before.
    pub(super) fn puts(&self) -> u64 {
        self.puts.load(Ordering::Acquire)
    }

    /// The row that held this key when it was last written; to be confirmed.
    pub(super) fn get(&self, key: KeyHash) -> Result<Option<i64>, StoreError> {
        let row = self.with(|open| open.keys.get(key.bytes()))?;
        Ok(row.and_then(|bytes| Some(i64::from_be_bytes(bytes.as_ref().try_into().ok()?))))
    }

    /// The latest delivery of an event, if it had more than one.
    pub(super) fn latest(&self, event: i64) -> Result<Option<Latest>, StoreError> {
        let bytes = self.with(|open| open.latest.get(event.to_be_bytes()))?;
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
        let parts = [
            watermark.event,
            watermark.delivery,
            watermark.joined,
            watermark.key,
        ];
        let mark = parts.map(i64::to_be_bytes).concat();
        self.with(|open| {
            let mut batch = open.db.batch();
            for (key, row) in &added.keys {
                batch.insert(&open.keys, key.bytes(), row.to_be_bytes());
            }
            for (event, latest) in &added.latest {
                let mut value = [0; 16];
                value[..8].copy_from_slice(&latest.row.to_be_bytes());
                value[8..12].copy_from_slice(&latest.n.to_be_bytes());
                value[12..].copy_from_slice(&latest.conflicts.to_be_bytes());
                batch.insert(&open.latest, event.to_be_bytes(), value);
            }
            batch.insert(&open.meta, WATERMARK, mark);
            batch.commit()
        })?;
        self.puts.fetch_add(1, Ordering::Release);
        Ok(())
    }

    /// Forgets keys whose rows are gone, unless another row has taken the key since, and the deliveries of such events.
    pub(super) fn forget(&self, gone: &Removals) -> Result<(), StoreError> {
        self.with(|open| {
            let mut batch = open.db.batch();
            for (key, row) in &gone.keys {
                if open
                    .keys
                    .get(key.bytes())?
                    .is_some_and(|held| *held == row.to_be_bytes())
                {
                    batch.remove(&open.keys, key.bytes());
                }
            }
            for event in &gone.events {
                batch.remove(&open.latest, event.to_be_bytes());
            }
            batch.commit()
        })
    }

    /// Bytes on disk.
    pub(super) fn bytes(&self) -> u64 {
        self.with(|open| open.db.disk_space()).unwrap_or(0)
    }
}

impl Open {
    /// Opens what is there, or an empty index; one that cannot be read is thrown away.
    fn or_empty(path: &Path) -> Result<Open, StoreError> {
        match Open::existing(path) {
            Ok(open) => Ok(open),
            Err(error) if is_passing(&error) => Err(index_error(error)),
            Err(error) => {
                tracing::warn!(%error, "the key index cannot be read and will be rebuilt");
                discard(path)?;
                Open::existing(path).map_err(index_error)
            }
        }
    }

    fn existing(path: &Path) -> fjall::Result<Open> {
        let db = Database::builder(path)
            .cache_size(CACHE_BYTES)
            .max_journaling_size(JOURNAL_BYTES)
            .worker_threads(WORKERS)
            // What a crash takes from the journal's buffer is read again from the database.
            .manual_journal_persist(true)
            .open()?;
        let keys = db.keyspace("keys", lookups)?;
        let latest = db.keyspace("latest", lookups)?;
        let meta = db.keyspace("meta", KeyspaceCreateOptions::default)?;
        Ok(Open {
            db,
            keys,
            latest,
            meta,
        })
    }
}

/// Filters and indexes in small pieces that the cache can hold. A filter in one piece is megabytes, does not fit the cache, and
/// is read and checked whole for every key that is asked for.
fn lookups() -> KeyspaceCreateOptions {
    KeyspaceCreateOptions::default()
        .max_memtable_size(MEMTABLE_BYTES)
        .filter_block_partitioning_policy(PartitioningPolicy::all(true))
        .index_block_partitioning_policy(PartitioningPolicy::all(true))
}

/// Says nothing against the files: there is no space now, or they are still held. A whole index is not thrown away for that.
fn is_passing(error: &fjall::Error) -> bool {
    let mut cause: Option<&(dyn Error + 'static)> = Some(error);
    while let Some(error) = cause {
        let kind = error
            .downcast_ref::<std::io::Error>()
            .map(std::io::Error::kind);
        // Too many open files has no kind of its own.
        let code = error
            .downcast_ref::<std::io::Error>()
            .and_then(std::io::Error::raw_os_error);
        let few_files = [rustix::io::Errno::MFILE, rustix::io::Errno::NFILE]
            .iter()
            .any(|errno| code == Some(errno.raw_os_error()));
        let no_room = matches!(
            kind,
            Some(ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::OutOfMemory)
        );
        if few_files || no_room {
            return true;
        }
        cause = error.source();
    }
    matches!(error, fjall::Error::Locked)
}

fn discard(path: &Path) -> Result<(), StoreError> {
    match std::fs::remove_dir_all(path) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        Err(error) => Err(StoreError::new(
            StoreErrorKind::Unavailable,
            "cannot clear the key index",
        )
        .caused_by(error)),
    }
}

fn index_error(error: fjall::Error) -> StoreError {
    StoreError::new(StoreErrorKind::Unavailable, "the key index failed").caused_by(error)
}

#[cfg(test)]
mod tests {
    use hapax_ledger::key::KeyKind;

    use super::*;

    /// An effect's row number may be an event's: what is forgotten of the one says nothing about the other.
    #[test]
    fn a_forgotten_effect_takes_no_deliveries_along() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let index = KeyIndex::open(&folder.path().join("keys")).expect("the index opens");
        let (key, row) = (KeyHash::of(KeyKind::Effect, "e", "1"), 1 << 16);
        let latest = Latest {
            row: 1,
            n: 1,
            conflicts: 1,
        };
        let added = Additions {
            keys: vec![(key, row)],
            latest: vec![(row, latest)],
        };
        index.put(&added, Watermark::default()).expect("it is kept");
        let mut gone = Removals {
            keys: vec![(key, row)],
            events: Vec::new(),
        };
        index.forget(&gone).expect("it is forgotten");
        assert_eq!(index.get(key).expect("it is read"), None);
        assert_eq!(index.latest(row).expect("it is read"), Some(latest));
        gone.events.push(row);
        index.forget(&gone).expect("it is forgotten");
        assert_eq!(index.latest(row).expect("it is read"), None);
    }
}

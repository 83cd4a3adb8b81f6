//! The embedded store: one SQLite file in WAL mode, one writer thread, and a key index beside it.
//!
//! - `open`: connections, settings, and the index brought level with the database
//! - `writer`: the thread that owns the writing connection; many requests share one commit. `queue`: what waits for it;
//!   `bell`: how its callers are told
//! - `group`: what the writer knows of the open transaction; `underway`: what it remembers of claims
//! - `accept`: what one arrival writes
//! - `effect`: effects as rows; `plan`: how they get there; `attempt`: what is kept of attempts
//! - `claim`: claims and rescues; `advance`: moves, by the ledger's machine
//! - `chain`: what is known of an entity that order is about; `gate`: what others keep from being claimed
//! - `facts`: what a verdict depends on; `command`: what operators decide; `run`: the passes they ask for; `conflict`: deliveries with
//!   another body; `erase`: bytes that go at once
//! - `own`: claims by the user's own code
//! - `keys`: what the guard asks: `key_look` for what is only read, `key_claim` and `key_settle` for what is written, `key` for its rows,
//!   `key_read` for lists, `key_sweep` for runs that were lost
//! - `catalog`: what is kept beside the ledger; `audit`, `token`, `replay`, `secret`: its rows
//! - `outbox`: what the outbox asks; `app`, `entry_row`: its catalogue; `publish`, `message`, `number`: what is published; `fan_out`: deliveries that follow;
//!   `census`: where a message's deliveries stand; `tally`: what attempts came to; `post`: its lists
//! - `read`, `list`, `effect_read`: details and lists, on connections of their own
//! - `reap`: deleting what has expired, in small steps; then guarded keys in `key_reap`
//! - `index`: the derived key index
//! - `checkpoint`: moving the log into the database, off the writer's path; `log_file`: room for the log before it needs it
//! - `disk`: the watermark and the ballast that let a full disk recover
//! - `migrate`: the shape of the file; `backup`: a copy of it, and what follows when one is opened
//!
//! **Invariant**: a row is committed and synced before anybody hears of it; the index hears of it after that.

mod accept;
mod addressed;
mod advance;
mod app;
mod attempt;
mod audit;
mod backup;
mod bell;
mod catalog;
mod census;
mod chain;
mod checkpoint;
mod claim;
mod command;
mod conflict;
mod delivery_key;
mod disk;
mod effect;
mod effect_read;
mod entry_row;
mod erase;
mod facts;
mod fan_out;
mod gate;
mod group;
mod index;
mod key;
mod key_claim;
mod key_look;
mod key_read;
mod key_reap;
mod key_settle;
mod key_sweep;
mod keys;
mod list;
mod log_file;
mod mark;
mod message;
mod migrate;
mod number;
mod open;
mod outbox;
mod own;
mod plan;
#[cfg(all(test, feature = "conformance"))]
mod plans;
mod poll;
mod poll_consumer;
mod poll_turn;
mod post;
mod publish;
mod queue;
mod read;
mod reap;
mod replay;
mod run;
mod secret;
mod tally;
mod tiding;
mod token;
mod underway;
mod writer;

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use hapax_ledger::id::{EffectId, EventId};
use hapax_ledger::lease::Fence;
use hapax_ledger::time::Time;
use hapax_ledger::transition::{Resolution, Resolver};

use crate::deeds;
use crate::error::{StoreError, StoreErrorKind};
use crate::nouns::{
    Advanced, Arrival, Beat, Beaten, ClaimAsk, Claims, Command, Commanded, DiskState, Effect,
    EffectCounts, EffectDetail, EffectFilter, Event, EventDetail, EventFacts, EventFilter, LaneDue,
    Listed, Migrated, Move, OwnClaim, OwnClaimed, Page, Parcel, PayloadAnswer, Reaped, Receipt,
    Rescued, StoreStats,
};
use crate::store::{Clock, Store};
pub use disk::DiskLimits;
use queue::Whose;
use writer::Space;

/// How to open an embedded store.
#[derive(Clone)]
pub struct Options {
    /// By what leases end; passed in, since the store reads no clock.
    pub clock: Clock,
    /// Random, and fresh at every opening: the id of a new file, and the mark by which file and index know that they were last
    /// opened together. Passed in, since the store draws no lots.
    pub nonce: [u8; 16],
    /// When to stop taking work because the disk is filling up.
    pub disk: DiskLimits,
}

/// The embedded store.
pub struct SqliteStore {
    writer: writer::Writer,
    readers: read::Readers,
    /// For requests that carry a key: a long list must not hold them up.
    key_readers: read::Readers,
    clock: Clock,
    index: index::KeyIndex,
    checkpointer: checkpoint::Checkpointer,
    gauge: disk::Gauge,
    paths: open::Paths,
    // Held so that no other process opens the same file: the index knows only what this writer wrote.
    _lock: File,
}

impl SqliteStore {
    /// Opens the file at `path`, making it if it is not there. Blocks while the key index is brought level.
    pub fn open(path: &Path, options: Options) -> Result<SqliteStore, StoreError> {
        let paths = open::Paths::beside(path);
        let lock = take_lock(&paths)?;
        let opened = open::open(&paths, options.nonce, &options.clock)?;
        let index = opened.index.clone();
        let readers = read::Readers::open(&paths)?;
        let key_readers = read::Readers::open(&paths)?;
        let disk = disk::Disk::new(&paths, options.disk);
        let writer = writer::Writer::start(paths.clone(), opened, disk, options.clock.clone())?;
        let checkpointer = checkpoint::Checkpointer::start(&paths, writer.restarter())?;
        Ok(SqliteStore {
            writer,
            readers,
            key_readers,
            clock: options.clock,
            index,
            checkpointer,
            gauge: disk::Gauge::new(&paths, options.disk),
            paths,
            _lock: lock,
        })
    }

    /// Brings a file that nobody has open to the shape that this version needs.
    pub fn migrate(path: &Path) -> Result<Migrated, StoreError> {
        let paths = open::Paths::beside(path);
        let _lock = take_lock(&paths)?;
        migrate::migrate(&mut open::writer(&paths)?)
    }

    /// Copies a file that nobody has open into another, which must not be there.
    pub fn copy(path: &Path, into: &Path) -> Result<(), StoreError> {
        let paths = open::Paths::beside(path);
        let _lock = take_lock(&paths)?;
        backup::copy(&paths, into)
    }

    fn shut(&self) {
        self.checkpointer.stop();
        self.writer.stop();
    }
}

impl Drop for SqliteStore {
    fn drop(&mut self) {
        self.shut();
    }
}

#[async_trait]
impl Store for SqliteStore {
    async fn accept(&self, arrival: Arrival) -> Result<Vec<Receipt>, StoreError> {
        let bytes = arrival.events.iter().map(|event| event.body.len()).sum();
        self.writer
            .write(Whose::Caller, Space::Takes, bytes, move |tx| {
                accept::accept(tx, &arrival)
            })
            .await
    }

    async fn sighted(
        &self,
        source: &str,
        key: &str,
        now: Time,
    ) -> Result<Option<EventId>, StoreError> {
        let (source, key) = (source.to_owned(), key.to_owned());
        self.writer
            .write(Whose::Caller, Space::Frees, 0, move |tx| {
                accept::sighted(tx, &source, &key, now)
            })
            .await
    }

    async fn event(&self, id: EventId) -> Result<Option<EventDetail>, StoreError> {
        let index = self.index.clone();
        self.readers
            .run(move |db| read::event(db, &index, id))
            .await
    }

    async fn payload(&self, id: EventId) -> Result<PayloadAnswer, StoreError> {
        self.readers.run(move |db| read::payload(db, id)).await
    }

    async fn events(&self, filter: EventFilter, page: Page) -> Result<Listed<Event>, StoreError> {
        let index = self.index.clone();
        self.readers
            .run(move |db| list::events(db, &index, &filter, page))
            .await
    }

    fn shards(&self) -> u16 {
        1
    }

    async fn beat(&self, _beat: Beat) -> Result<Beaten, StoreError> {
        // One process holds the file, so it is alone.
        Ok(Beaten {
            now: (self.clock)(),
            nodes: 1,
            held: vec![0],
        })
    }

    async fn leave(&self, _node: &str) -> Result<(), StoreError> {
        Ok(())
    }

    async fn due(&self, _shard: u16, after: Option<&str>) -> Result<Vec<LaneDue>, StoreError> {
        let after = after.map(str::to_owned);
        self.readers
            .run(move |db| effect_read::due(db, after.as_deref()))
            .await
    }

    async fn wake(&self, _lanes: Vec<Arc<str>>) {}

    async fn woken(&self) -> Vec<u16> {
        std::future::pending().await
    }

    async fn claim(&self, ask: ClaimAsk) -> Result<Claims, StoreError> {
        self.writer
            .write(Whose::Ours, Space::Takes, 0, move |tx| {
                claim::claim(tx, &ask)
            })
            .await
    }

    async fn advance(
        &self,
        effect: EffectId,
        fence: Fence,
        what: Move,
    ) -> Result<Advanced, StoreError> {
        // Evidence about work that is under way is written even when the disk is nearly full.
        self.writer
            .write(Whose::Ours, Space::Frees, 0, move |tx| {
                advance::advance(tx, effect, fence, what)
            })
            .await
    }

    async fn resolve(
        &self,
        effect: EffectId,
        resolution: Resolution,
        by: Resolver,
    ) -> Result<Advanced, StoreError> {
        self.writer
            .write(Whose::Ours, Space::Frees, 0, move |tx| {
                advance::resolve(tx, effect, resolution, by)
            })
            .await
    }

    async fn rescue(&self, _shards: Vec<u16>) -> Result<Rescued, StoreError> {
        let now = (self.clock)();
        // Mostly there is nothing, and the writer has better things to do than to find that out.
        if !self
            .readers
            .run(move |db| effect_read::any_overdue(db, now))
            .await?
        {
            return Ok(Rescued::default());
        }
        self.writer
            .write(Whose::Ours, Space::Frees, 0, claim::rescue)
            .await
    }

    async fn parcels(&self, events: Vec<EventId>) -> Result<Vec<Option<Parcel>>, StoreError> {
        self.readers
            .run(move |db| effect_read::parcels(db, &events))
            .await
    }

    async fn effect(&self, id: EffectId) -> Result<Option<EffectDetail>, StoreError> {
        self.readers
            .run(move |db| effect_read::detail(db, id))
            .await
    }

    async fn effects(
        &self,
        filter: EffectFilter,
        page: Page<EffectId>,
    ) -> Result<Listed<Effect, EffectId>, StoreError> {
        self.readers
            .run(move |db| effect_read::effects(db, &filter, page))
            .await
    }

    async fn effect_counts(&self) -> Result<EffectCounts, StoreError> {
        self.readers.run(effect_read::counts).await
    }

    async fn facts(&self, id: EventId) -> Result<Option<EventFacts>, StoreError> {
        let (index, now) = (self.index.clone(), (self.clock)());
        self.readers
            .run(move |db| facts::read(db, &index, id, now))
            .await
    }

    async fn command(&self, command: Command) -> Result<Commanded, StoreError> {
        // It writes little, and a full disk must not keep an operator from deciding.
        deeds::sound(&command)?;
        let bytes = command.bytes();
        self.writer
            .write(Whose::Caller, Space::Frees, bytes, move |tx| {
                command::command(tx, &command)
            })
            .await
    }

    async fn conflict_body(&self, id: EventId, delivery: u32) -> Result<Option<Bytes>, StoreError> {
        let index = self.index.clone();
        self.readers
            .run(move |db| read::conflict_body(db, &index, id, delivery))
            .await
    }

    async fn claim_own(&self, claim: OwnClaim) -> Result<OwnClaimed, StoreError> {
        self.writer
            .write(Whose::Caller, Space::Takes, 0, move |tx| {
                own::claim_own(tx, &claim)
            })
            .await
    }

    async fn scrub(&self) -> Result<(), StoreError> {
        self.writer.truncate_log().await
    }

    async fn reap(&self, now: Time) -> Result<Reaped, StoreError> {
        self.writer
            .write(Whose::Ours, Space::Frees, 0, move |tx| {
                key_reap::step(tx, now)
            })
            .await
    }

    async fn reapable(&self, now: Time) -> Result<Reaped, StoreError> {
        let keys_now = now.min((self.clock)());
        self.readers
            .run(move |db| {
                Ok(Reaped {
                    keys: key_reap::due(db, keys_now)?,
                    ..reap::due(db, now)?
                })
            })
            .await
    }

    async fn backup(&self, suffix: &str) -> Result<Option<PathBuf>, StoreError> {
        let (paths, into) = (self.paths.clone(), backup::beside(&self.paths, suffix));
        let copied = into.clone();
        let work = tokio::task::spawn_blocking(move || backup::copy(&paths, &copied));
        let ended = work.await.unwrap_or_else(|error| {
            let gave_up = StoreError::new(StoreErrorKind::Unavailable, "the copy was given up");
            Err(gave_up.caused_by(error))
        });
        ended.map(|()| Some(into))
    }

    async fn ready(&self) -> Result<(), StoreError> {
        self.writer
            .write(Whose::Caller, Space::Takes, 0, |tx| accept::touch(tx))
            .await
    }

    async fn keep_admin_token(&self, hash: [u8; 32]) -> Result<[u8; 32], StoreError> {
        self.writer
            .write(Whose::Caller, Space::Frees, 0, move |tx| {
                accept::keep_admin_token(tx, hash)
            })
            .await
    }

    async fn close(&self) {
        // Joining threads blocks; it is the last thing a process does with its store, and they end after one group.
        self.shut();
    }

    fn disk(&self) -> Option<DiskState> {
        self.gauge.read()
    }

    async fn stats(&self) -> Result<StoreStats, StoreError> {
        let (events, keys_twice, payloads) = self.readers.run(read::count).await?;
        let (keys, guarded_twice) = self.readers.run(key_read::count).await?;
        Ok(StoreStats {
            events,
            payloads,
            keys,
            keys_twice: keys_twice + guarded_twice,
            bytes: self.writer.bytes(),
        })
    }
}

fn take_lock(paths: &open::Paths) -> Result<File, StoreError> {
    let open = || {
        File::options()
            .create(true)
            .truncate(false)
            .write(true)
            .open(&paths.lock)
    };
    let lock = open().map_err(|error| {
        StoreError::new(
            StoreErrorKind::Unavailable,
            format!("cannot open {}", paths.lock.display()),
        )
        .caused_by(error)
    })?;
    lock.try_lock().map_err(|_| {
        StoreError::new(
            StoreErrorKind::Incompatible,
            format!(
                "{} is in use by another process; talk to that one through its HTTP API",
                paths.database.display()
            ),
        )
    })?;
    Ok(lock)
}

/// A failure before COMMIT: nothing was written.
fn sql_error(error: rusqlite::Error) -> StoreError {
    let kind = match error.sqlite_error_code() {
        Some(rusqlite::ErrorCode::DiskFull) => StoreErrorKind::Full,
        Some(rusqlite::ErrorCode::DatabaseCorrupt | rusqlite::ErrorCode::NotADatabase) => {
            StoreErrorKind::Corrupt
        }
        _ => StoreErrorKind::Unavailable,
    };
    StoreError::new(kind, "the database failed").caused_by(error)
}

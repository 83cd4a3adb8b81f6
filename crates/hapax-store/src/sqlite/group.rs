//! What the writer knows of the group of jobs that shares the open transaction.

use std::collections::HashMap;

use hapax_ledger::key::KeyHash;
use rusqlite::Connection;

use super::census::Census;
use super::effect::PLACE_BITS;
use super::index::{Additions, KeyIndex, Latest, Removals, Watermark};
use super::tally::Tallies;
use super::underway::UnderWay;
use super::{app, key_reap, sql_error};
use crate::error::{StoreError, StoreErrorKind};

/// The size of a page, and so of a frame of the log.
const PAGE_BYTES: usize = 4_096;
/// Guarded keys that are remembered beside the index: about a second's.
const LATELY_MAX: usize = 16_384;

/// The open group: row numbers given out, and keys that are in the transaction but not yet in the index.
pub(super) struct Group {
    epoch: u32,
    next_row: i64,
    next_delivery: i64,
    next_joined: i64,
    next_key: i64,
    keys: HashMap<KeyHash, i64>,
    /// Guarded keys of this transaction.
    guarded: Vec<(KeyHash, i64)>,
    lately: Lately,
    latest: HashMap<i64, Latest>,
    forgotten: Removals,
    rows: i64,
    bytes: usize,
    reaper_at: i64,
    key_reaper_at: Option<i64>,
    stale: bool,
    /// The catalogue's revision, once somebody has asked for it.
    catalogue: Option<u64>,
    /// Claims under way.
    pub(super) under_way: UnderWay,
    /// Where the deliveries of messages stand.
    pub(super) census: Census,
    /// What the attempts of this transaction came to.
    pub(super) tallies: Tallies,
}

impl Group {
    pub(super) fn new(db: &Connection, index: &KeyIndex, epoch: u32) -> Result<Group, StoreError> {
        let last: Option<i64> = db
            .query_row("SELECT max(seq) FROM event", [], |row| row.get(0))
            .map_err(sql_error)?;
        let last_effect: Option<i64> = db
            .query_row("SELECT max(seq) FROM effect", [], |row| row.get(0))
            .map_err(sql_error)?;
        let last = last.max(last_effect.map(|row| row >> PLACE_BITS));
        // A row number is not used again while the index remembers it, even if its row has been reaped.
        let watermark = index.watermark()?;
        let next_row = last.unwrap_or(0).max(watermark.event) + 1;
        let last: Option<i64> = db
            .query_row("SELECT max(seq) FROM delivery", [], |row| row.get(0))
            .map_err(sql_error)?;
        let next_delivery = last.unwrap_or(0).max(watermark.delivery) + 1;
        let last: Option<i64> = db
            .query_row(
                "SELECT max(joined) FROM effect WHERE joined IS NOT NULL",
                [],
                |row| row.get(0),
            )
            .map_err(sql_error)?;
        let next_joined = last.unwrap_or(0).max(watermark.joined) + 1;
        Ok(Group {
            epoch,
            next_row,
            next_delivery,
            next_joined,
            next_key: key_reap::last_row(db)?.max(watermark.key) + 1,
            keys: HashMap::new(),
            guarded: Vec::new(),
            lately: Lately::from_now_on(index),
            latest: HashMap::new(),
            forgotten: Removals::default(),
            rows: 0,
            bytes: 0,
            reaper_at: 0,
            key_reaper_at: None,
            stale: false,
            catalogue: None,
            under_way: UnderWay::default(),
            census: Census::default(),
            tallies: Tallies::default(),
        })
    }

    /// The epoch of this process, for fences.
    pub(super) fn epoch(&self) -> u32 {
        self.epoch
    }

    /// The database could not be reopened: refuse to decide anything on what is known here.
    pub(super) fn must_reopen(&mut self) {
        self.stale = true;
        self.catalogue = None;
        self.keys.clear();
        self.guarded.clear();
        self.latest.clear();
        self.forgotten = Removals::default();
        self.under_way.clear();
        self.census = Census::default();
        self.tallies = Tallies::default();
    }

    /// May anything be decided on what is known here? If not, not even a repeat: settling it would tell the index that it
    /// has read rows which it has not.
    pub(super) fn usable(&self) -> Result<(), StoreError> {
        match self.stale {
            true => Err(StoreError::new(
                StoreErrorKind::Unavailable,
                "the database has to be reopened first",
            )),
            false => Ok(()),
        }
    }

    /// The catalogue's revision. Nobody else writes, so it is read once until it changes.
    pub(super) fn catalogue(&mut self, db: &Connection) -> Result<u64, StoreError> {
        match self.catalogue {
            Some(revision) => Ok(revision),
            None => Ok(*self.catalogue.insert(app::revision(db)?)),
        }
    }

    /// The catalogue is about to change.
    pub(super) fn catalogue_changes(&mut self) {
        self.catalogue = None;
    }

    /// A row number that was never given before.
    pub(super) fn give_row(&mut self) -> Result<i64, StoreError> {
        self.usable()?;
        let row = self.next_row;
        self.next_row += 1;
        Ok(row)
    }

    /// The same for a delivery.
    pub(super) fn give_delivery_row(&mut self) -> i64 {
        let row = self.next_delivery;
        self.next_delivery += 1;
        row
    }

    /// The same for an effect that joins an event which is there already.
    pub(super) fn give_joined(&mut self) -> i64 {
        let number = self.next_joined;
        self.next_joined += 1;
        number
    }

    /// The same for a guarded key.
    pub(super) fn give_key_row(&mut self) -> Result<i64, StoreError> {
        self.usable()?;
        let row = self.next_key;
        self.next_key += 1;
        Ok(row)
    }

    /// The latest delivery of an event: of this transaction, or as the index has it.
    pub(super) fn latest(&self, index: &KeyIndex, event: i64) -> Result<Latest, StoreError> {
        match self.latest.get(&event) {
            Some(latest) => Ok(*latest),
            None => Ok(index.latest(event)?.unwrap_or_default()),
        }
    }

    /// The event has a later delivery.
    pub(super) fn delivered(&mut self, event: i64, latest: Latest) {
        self.latest.insert(event, latest);
    }

    /// Did an event of this transaction come again?
    pub(super) fn has_deliveries(&self) -> bool {
        !self.latest.is_empty()
    }

    /// The row of this transaction that holds a key.
    pub(super) fn taken(&self, key: KeyHash) -> Option<i64> {
        self.keys.get(&key).copied()
    }

    /// The row that holds a key: of this transaction, or as the index has it. To be confirmed by reading the row.
    pub(super) fn find(&self, index: &KeyIndex, key: KeyHash) -> Result<Option<i64>, StoreError> {
        match self.taken(key) {
            Some(row) => Ok(Some(row)),
            None => index.get(key),
        }
    }

    /// The same for a guarded key that the index did not have after so many puts: then only what was put since is looked through.
    pub(super) fn find_guarded(
        &self,
        index: &KeyIndex,
        key: KeyHash,
        absent_after: Option<u64>,
    ) -> Result<Option<i64>, StoreError> {
        match absent_after {
            Some(puts) if puts >= self.lately.since => {
                let row = self.keys.get(&key).or_else(|| self.lately.keys.get(&key));
                Ok(row.copied())
            }
            Some(_) | None => self.find(index, key),
        }
    }

    /// A row of this transaction now holds the guarded key.
    pub(super) fn take_guarded(&mut self, key: KeyHash, row: i64) {
        self.take(key, row);
        self.guarded.push((key, row));
    }

    /// A row of this transaction now holds the key.
    pub(super) fn take(&mut self, key: KeyHash, row: i64) {
        self.keys.insert(key, row);
        self.wrote_row();
    }

    /// A row of this transaction holds no key that the index would have to know.
    pub(super) fn wrote_row(&mut self) {
        self.rows += 1;
    }

    /// The row that held the key is deleted in this transaction.
    pub(super) fn forget(&mut self, key: KeyHash, row: i64) {
        self.forgotten.keys.push((key, row));
    }

    /// The same for an event, whose deliveries go with it.
    pub(super) fn forget_event(&mut self, key: KeyHash, row: i64) {
        self.forget(key, row);
        self.forgotten.events.push(row);
    }

    /// The reaper goes on after this row.
    pub(super) fn reaper_goes_on_after(&self) -> i64 {
        self.reaper_at
    }

    /// The reaper has looked at all rows up to this one; zero sends it round again.
    pub(super) fn reaper_stopped_at(&mut self, row: i64) {
        self.reaper_at = row;
    }

    /// The reaper goes on after this guarded key; `None`: events come first.
    pub(super) fn key_reaper_goes_on_after(&self) -> Option<i64> {
        self.key_reaper_at
    }

    /// The reaper has looked at all guarded keys up to this one; `None` sends it round again.
    pub(super) fn key_reaper_stopped_at(&mut self, row: Option<i64>) {
        self.key_reaper_at = row;
    }

    /// So many bytes of bodies are about to be written.
    pub(super) fn will_write(&mut self, bytes: usize) {
        self.bytes = bytes;
    }

    /// About how many pages the group added to the log: those of the bodies, and some for rows and indexes.
    pub(super) fn frames(&self) -> i64 {
        let pages = self.bytes / PAGE_BYTES;
        pages as i64 + self.rows / 4 + 4
    }

    /// The transaction is committed: tell the index, and begin anew.
    pub(super) fn settle(&mut self, index: &KeyIndex) -> Result<(), StoreError> {
        self.rows = 0;
        if !self.keys.is_empty() || !self.latest.is_empty() {
            let added = Additions {
                keys: self.keys.drain().collect(),
                latest: self.latest.drain().collect(),
            };
            index.put(
                &added,
                Watermark {
                    event: self.next_row - 1,
                    delivery: self.next_delivery - 1,
                    joined: self.next_joined - 1,
                    key: self.next_key - 1,
                },
            )?;
        }
        if !self.guarded.is_empty() {
            self.lately.learn(self.guarded.drain(..), index);
        }
        if !self.forgotten.keys.is_empty() {
            index.forget(&self.forgotten)?;
            self.forgotten = Removals::default();
        }
        Ok(())
    }
}

/// Guarded keys that the index has learned lately. Whoever brings one has asked the index shortly before, and need not do it again.
struct Lately {
    keys: HashMap<KeyHash, i64>,
    /// After so many puts: all that were put later are here.
    since: u64,
}

impl Lately {
    fn from_now_on(index: &KeyIndex) -> Lately {
        Lately {
            keys: HashMap::new(),
            since: index.puts(),
        }
    }

    /// These are in the index now.
    fn learn(&mut self, keys: impl Iterator<Item = (KeyHash, i64)>, index: &KeyIndex) {
        if self.keys.len() >= LATELY_MAX {
            self.keys.clear();
            self.since = index.puts();
        }
        self.keys.extend(keys);
    }
}

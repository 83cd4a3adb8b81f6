//! Following the ledger: every event that is accepted from a moment on, once.
//!
//! A look asks for what is newer than the newest that was seen. Where several nodes write, that alone would miss some: an id carries
//! the time at which its request came, and commits end in another order. So a look back goes over a window of what was seen, and
//! gives what has become visible within it.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use hapax_ledger::id::EventId;
use hapax_store::nouns::{Event, EventFilter, PAGE_MAX, Page, PageFrom};
use hapax_store::{Store, StoreError};

/// How far a look goes back. Above the longest wait for a commit, after which nobody counts on the event.
const WINDOW: Duration = Duration::from_secs(15);
/// Events that the window holds at most: where more come in that time, looks go back less far.
const WINDOW_EVENTS_MAX: usize = 5_000;
/// Events that one look gives before it goes on with the next.
const LOOK_EVENTS_MAX: usize = 1_000;
/// Before every event.
const BEGINNING: EventId = EventId::from_bytes([0; 16]);

/// Somebody who follows the ledger.
pub struct Follower {
    store: Arc<dyn Store>,
    /// One writer, whose order is the list's: nothing becomes visible before what was seen.
    one_writer: bool,
    newest: EventId,
    /// The window, and the one before it.
    seen: BTreeSet<EventId>,
}

impl Follower {
    /// Follows from now on.
    ///
    /// # Errors
    /// If the store cannot answer.
    pub async fn from_now(store: Arc<dyn Store>) -> Result<Follower, StoreError> {
        let page = Page {
            limit: PAGE_MAX,
            from: PageFrom::Newest,
        };
        let rows = store.events(EventFilter::default(), page).await?.rows;
        let newest = rows.first().map_or(BEGINNING, |event| event.id);
        let mut follower = Follower::after(store, newest);
        follower.seen.extend(rows.iter().map(|event| event.id));
        follower.forget();
        Ok(follower)
    }

    /// Follows from an event on. Where several nodes write, what was told before a late one comes again after it: better twice than not.
    pub fn after(store: Arc<dyn Store>, event: EventId) -> Follower {
        Follower {
            one_writer: store.shards() == 1,
            store,
            newest: event,
            seen: BTreeSet::from([event]),
        }
    }

    /// What is newer, oldest first.
    ///
    /// # Errors
    /// If the store cannot answer.
    pub async fn look(&mut self) -> Result<Vec<Event>, StoreError> {
        self.read(self.newest).await
    }

    /// The same, and what has become visible before it.
    ///
    /// # Errors
    /// If the store cannot answer.
    pub async fn look_back(&mut self) -> Result<Vec<Event>, StoreError> {
        let first = self.seen.first().copied().filter(|_| !self.one_writer);
        self.read(first.unwrap_or(self.newest)).await
    }

    async fn read(&mut self, mut from: EventId) -> Result<Vec<Event>, StoreError> {
        let mut found = Vec::new();
        loop {
            let page = Page {
                limit: PAGE_MAX,
                from: PageFrom::NewerThan(from),
            };
            let rows = self.store.events(EventFilter::default(), page).await?.rows;
            let is_last = rows.len() < PAGE_MAX as usize;
            for event in rows.into_iter().rev() {
                from = event.id;
                if self.is_new(event.id) {
                    found.push(event);
                }
            }
            if is_last || found.len() >= LOOK_EVENTS_MAX {
                self.forget();
                return Ok(found);
            }
        }
    }

    fn is_new(&mut self, event: EventId) -> bool {
        if self.one_writer {
            self.newest = event;
            return true;
        }
        self.newest = self.newest.max(event);
        self.seen.insert(event)
    }

    /// Forgets what is before the window, but for the last of it: what becomes visible at the window's edge is newer than that.
    fn forget(&mut self) {
        let edge = self
            .newest
            .0
            .millis()
            .saturating_sub(WINDOW.as_millis() as u64);
        while let Some(second) = self.seen.iter().nth(1)
            && (self.seen.len() > WINDOW_EVENTS_MAX || second.0.millis() < edge)
        {
            self.seen.pop_first();
        }
    }
}

//! Lists of events: which, and which part.

use hapax_ledger::event::EventStatus;
use hapax_ledger::id::EventId;
use hapax_ledger::time::Time;

use super::event::Event;

/// A list answers with at most this many rows.
pub const PAGE_MAX: u32 = 250;

/// Which events to list; what is `None` does not narrow.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EventFilter {
    /// Of this source.
    pub source: Option<String>,
    /// Of this type.
    pub event_type: Option<String>,
    /// Standing there.
    pub status: Option<EventStatus>,
    /// With exactly this key.
    pub key: Option<String>,
    /// With this text somewhere in the key, letter by letter.
    pub key_contains: Option<String>,
    /// About this object.
    pub entity: Option<String>,
    /// Received at or after.
    pub since: Option<Time>,
    /// Received before.
    pub until: Option<Time>,
}

impl EventFilter {
    /// Does the event fit?
    pub fn fits(&self, event: &Event) -> bool {
        fn is<T: PartialEq + ?Sized>(wanted: Option<&T>, actual: Option<&T>) -> bool {
            wanted.is_none() || wanted == actual
        }
        is(self.source.as_deref(), Some(&*event.source))
            && is(self.event_type.as_deref(), event.event_type.as_deref())
            && is(self.status.as_ref(), Some(&event.status))
            && is(self.key.as_deref(), Some(&*event.key))
            && is(self.entity.as_deref(), event.entity.as_deref())
            && self.finds(&event.key)
            && self.since.is_none_or(|since| event.received_at >= since)
            && self.until.is_none_or(|until| event.received_at < until)
    }

    /// Is the wanted text in the key?
    fn finds(&self, key: &str) -> bool {
        let wanted = self.key_contains.as_deref();
        wanted.is_none_or(|text| key.contains(text))
    }

    /// The status that is wanted, if few events stand there, whatever has been done: stores find those by an index.
    pub(crate) fn few(&self) -> Option<EventStatus> {
        self.status.filter(|status| match status {
            EventStatus::Dead | EventStatus::NeedsReview => true,
            EventStatus::Completed
            | EventStatus::Stale
            | EventStatus::Pending
            | EventStatus::InProgress => false,
        })
    }
}

/// Which part of a list, newest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Page<I = EventId> {
    /// At most so many rows; see [`PAGE_MAX`].
    pub limit: u32,
    /// Where to go on.
    pub from: PageFrom<I>,
}

/// Where a page begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageFrom<I = EventId> {
    /// At the newest.
    Newest,
    /// At the next older than this one.
    OlderThan(I),
    /// At the next newer than this one (the page is still given newest first).
    NewerThan(I),
}

/// A page of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed<T, I = EventId> {
    /// The rows, newest first.
    pub rows: Vec<T>,
    /// Where the next older page begins, if the list goes on.
    pub next: Option<I>,
    /// Where the next newer page begins, if that is not at the first row: this one went towards newer rows, and ended early because it
    /// had looked at as many as it may.
    pub newer: Option<I>,
}

impl<T, I> Default for Listed<T, I> {
    fn default() -> Listed<T, I> {
        Listed {
            rows: Vec::new(),
            next: None,
            newer: None,
        }
    }
}

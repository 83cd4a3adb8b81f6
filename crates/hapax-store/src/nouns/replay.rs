//! Replays of many events: durable, at a pace, and one can stop them.

use std::sync::Arc;

use hapax_ledger::id::{EventId, ReplayId};
use hapax_ledger::time::Time;

use super::list::EventFilter;

/// Where a replay stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplayState {
    /// Events are gone through.
    Running,
    /// All of them were.
    Completed,
    /// Somebody stopped it.
    Cancelled,
}

impl ReplayState {
    /// Every state.
    pub const ALL: [ReplayState; 3] = [
        ReplayState::Running,
        ReplayState::Completed,
        ReplayState::Cancelled,
    ];

    /// The word users see.
    pub const fn word(self) -> &'static str {
        match self {
            ReplayState::Running => "running",
            ReplayState::Completed => "completed",
            ReplayState::Cancelled => "cancelled",
        }
    }

    /// The number stores keep.
    pub const fn code(self) -> u8 {
        match self {
            ReplayState::Running => 0,
            ReplayState::Completed => 1,
            ReplayState::Cancelled => 2,
        }
    }

    /// The state with this number.
    pub fn from_code(code: u8) -> Option<ReplayState> {
        let mut all = ReplayState::ALL.into_iter();
        all.find(|state| state.code() == code)
    }
}

/// A replay of all events that fit a filter, newest first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replay {
    /// Its id.
    pub id: ReplayId,
    /// Which events. Its `until` is at most the time when the replay was made: what comes later is not part of it.
    pub filter: EventFilter,
    /// Who asked.
    pub actor: Arc<str>,
    /// Why.
    pub reason: String,
    /// When.
    pub created_at: Time,
    /// Only count what would happen.
    pub dry_run: bool,
    /// At most so many events a second; `None`: as many as it takes.
    pub rate: Option<u32>,
    /// What it does, as JSON, if it is not a replay of events: something about deliveries of an application's messages. Whoever
    /// carries it on knows the form.
    pub task: Option<String>,
    /// Where it stands.
    pub state: ReplayState,
    /// How far it has come.
    pub progress: ReplayProgress,
}

/// How far a replay has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReplayProgress {
    /// The last event that was looked at. Replays go from the newest on, jobs about messages from the oldest.
    pub after: Option<EventId>,
    /// Events that were looked at.
    pub total: u64,
    /// Of them, something was sent, or would be.
    pub done: u64,
    /// There was nothing to do.
    pub skipped: u64,
    /// A person has to decide first.
    pub blocked: u64,
    /// The command failed.
    pub failed: u64,
}

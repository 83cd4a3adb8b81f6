//! What operators are to hear about endpoints and deliveries.

use hapax_ledger::id::{AppId, AttemptId, EndpointId, EventId};
use hapax_ledger::outcome::Outcome;
use hapax_ledger::time::Time;

use super::outbox::Standing;

/// So many are read at once.
pub const TIDINGS_PER_PAGE: usize = 100;
/// A delivery that is still tried is told of when so many attempts in a row have failed: as other systems of the kind do it.
pub const FAILING_AFTER_ATTEMPTS: u32 = 4;

/// Something that happened to an endpoint. Kept in the transaction of what it tells of, until an event of Hapax's own tells it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tiding {
    /// When.
    pub at: Time,
    /// Whose the endpoint is, where that was known.
    pub app: Option<AppId>,
    /// Which endpoint.
    pub endpoint: EndpointId,
    /// What.
    pub news: News,
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum News {
    /// It was made.
    Created,
    /// Its owner changed it.
    Updated,
    /// Its owner deleted it.
    Deleted,
    /// Nothing more is sent to it.
    Disabled {
        /// Because of this.
        standing: Standing,
        /// Since when it only failed.
        failing_since: Option<Time>,
    },
    /// It will be disabled if it goes on failing.
    Disabling {
        /// Since when.
        failing_since: Time,
        /// Not before.
        disabled_from: Time,
    },
    /// A delivery has failed some times, and is tried again.
    Failing(Attempted),
    /// A delivery was given up.
    Exhausted(Attempted),
    /// A delivery that had been given up got through.
    Recovered(Attempted),
    /// A delivery that has failed some times, as was told, got through after all.
    GotThrough(Attempted),
}

impl News {
    /// The attempt that it is about.
    pub fn attempted(&self) -> Option<&Attempted> {
        match self {
            News::Failing(of)
            | News::Exhausted(of)
            | News::Recovered(of)
            | News::GotThrough(of) => Some(of),
            News::Created
            | News::Updated
            | News::Deleted
            | News::Disabled { .. }
            | News::Disabling { .. } => None,
        }
    }
}

/// The latest attempt at a delivery.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attempted {
    /// Of this message.
    pub message: EventId,
    /// Its id, as lists of attempts say it.
    pub attempt: AttemptId,
    /// What came back.
    pub outcome: Outcome,
    /// The delivery's generation.
    pub generation: u32,
    /// Attempts so far.
    pub attempts: u32,
}

/// A tiding that was not told yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Untold {
    /// By which it is forgotten. No other ever has the same.
    pub number: i64,
    /// `None`: a newer version wrote it, and tells it.
    pub tiding: Option<Tiding>,
}

/// What was seen of an endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    /// Which.
    pub endpoint: EndpointId,
    /// The revision at which it was looked at.
    pub was: u64,
    /// Is it sent to?
    pub standing: Standing,
    /// Since when it only fails.
    pub failing_since: Option<Time>,
    /// From when on it is disabled, as its owner is told.
    pub disabled_from: Option<Time>,
}

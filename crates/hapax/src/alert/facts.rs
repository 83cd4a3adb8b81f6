//! What the rules judge by.

use std::sync::Arc;

use hapax_ledger::event::EventStatus;
use hapax_ledger::id::EventId;
use hapax_ledger::time::Span;
use hapax_store::nouns::{DiskState, Endpoint};

use crate::metrics::Lag;

/// Everything that was measured. What is `None` could not be, or is another node's to tell: then nothing is said about it, neither
/// that it is well nor that it is not.
#[derive(Clone, Debug, Default)]
pub struct Facts {
    /// How long the latest window is.
    pub window: Span,
    /// What came in, by source.
    pub traffic: Vec<Traffic>,
    /// Events that came again lately, with what the ledger says of them.
    pub repeated: Option<Vec<Bounced>>,
    /// How late attempts began in the latest window, by lane.
    pub lags: Vec<(String, Lag)>,
    /// The disk of the store.
    pub disk: Option<DiskState>,
    /// Effects that were given up.
    pub dead: Option<DeadLetters>,
    /// Events that wait for a person.
    pub reviews: Option<Reviews>,
    /// Endpoints that nothing is sent to any more although their owners did not ask for that.
    pub closed: Option<Vec<Arc<Endpoint>>>,
}

/// Deliveries of a source, counted.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Counts {
    /// All that were believed.
    pub believed: f64,
    /// Those of them that were not the first of their event.
    pub duplicates: f64,
    /// Those that were not believed.
    pub refused: f64,
}

/// What came in by one source.
#[derive(Clone, Debug)]
pub struct Traffic {
    /// The source.
    pub source: Arc<str>,
    /// In the latest window.
    pub recent: Counts,
    /// Before it, the further back the less it counts.
    pub usual: Counts,
    /// The types that were repeated most in the window, with how often.
    pub types: Vec<(String, u64)>,
    /// The keys that were repeated most.
    pub keys: Vec<(String, u64)>,
    /// Why the latest of the refused were refused.
    pub causes: Vec<(String, u64)>,
}

/// An event that came again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bounced {
    /// Its source.
    pub source: Arc<str>,
    /// Its id.
    pub event: EventId,
    /// How often it was delivered.
    pub deliveries: u32,
    /// Where it stands.
    pub status: EventStatus,
}

/// Effects that were given up.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeadLetters {
    /// How many there are, but for those of alerts.
    pub effects: u64,
    /// The lanes of the newest, with how many of these.
    pub lanes: Vec<(String, u64)>,
    /// How many alerts could not be delivered.
    pub alerts: u64,
}

/// Events that wait for a person.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reviews {
    /// How many there are, as far as one page of the list shows.
    pub waiting: u64,
    /// How many there were when the window began.
    pub before: u64,
}

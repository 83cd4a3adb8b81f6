//! A claim that this node holds, with all that is needed to carry it out.

use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use hapax_store::nouns::{Effect, Parcel};

/// One effect to carry out.
pub struct Job {
    /// The effect as claimed: its fence is shown with every move.
    pub effect: Effect,
    /// What its request is made of; effects of one event share it.
    pub parcel: Arc<Parcel>,
    /// The snapshot that was frozen at an earlier attempt.
    pub snapshot: Option<Bytes>,
    /// When our claim ends, by our own clock and on the safe side: counted from before it was asked for.
    pub held_until: Instant,
    /// When it was due, for the lag.
    pub due: Instant,
}

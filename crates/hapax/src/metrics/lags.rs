//! How late attempts begin, lane by lane, since somebody last looked.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// An attempt that begins so long after it was due is late: nothing on the way to it takes seconds unless something waits.
pub const LATE_FROM: Duration = Duration::from_secs(30);

/// How late the attempts of one lane began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lag {
    /// All of them.
    pub attempts: u64,
    /// Those that were late; see [`LATE_FROM`].
    pub late: u64,
    /// The latest.
    pub worst: Duration,
}

impl Lag {
    /// Adds what another look has counted.
    pub fn add(&mut self, other: Lag) {
        self.attempts += other.attempts;
        self.late += other.late;
        self.worst = self.worst.max(other.worst);
    }
}

/// The lags of all lanes. As many as there are labels of lanes.
#[derive(Default)]
pub(super) struct Lags(Mutex<HashMap<String, Lag>>);

impl Lags {
    fn lock(&self) -> MutexGuard<'_, HashMap<String, Lag>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// An attempt began so late.
    pub(super) fn attempt(&self, lane: &str, lag: Duration) {
        let one = Lag {
            attempts: 1,
            late: u64::from(lag >= LATE_FROM),
            worst: lag,
        };
        let mut lanes = self.lock();
        match lanes.get_mut(lane) {
            Some(known) => known.add(one),
            None => {
                lanes.insert(lane.to_owned(), one);
            }
        }
    }

    /// What was counted since the last time.
    pub(super) fn take(&self) -> HashMap<String, Lag> {
        std::mem::take(&mut self.lock())
    }
}

//! The store's clock as seen from here. Its times say when something is due; whether it really is, the store decides.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use hapax_ledger::time::{Span, Time};

use super::dispatcher::lock;

/// One moment by both clocks.
pub(super) struct Drift {
    moment: Mutex<(Time, Instant)>,
}

impl Drift {
    /// The two clocks show this at the same moment.
    pub(super) fn new(theirs: Time, ours: Instant) -> Drift {
        Drift {
            moment: Mutex::new((theirs, ours)),
        }
    }

    /// They did so at a later moment too: whatever drifted apart is corrected.
    pub(super) fn correct(&self, theirs: Time, ours: Instant) {
        *lock(&self.moment) = (theirs, ours);
    }

    /// A time of the store's by our clock; what is long past counts as the moment of the latest correction.
    pub(super) fn local(&self, time: Time) -> Instant {
        let (theirs, ours) = *lock(&self.moment);
        let ahead = time.micros().saturating_sub(theirs.micros());
        match u64::try_from(ahead) {
            Ok(micros) => ours + Duration::from_micros(micros),
            Err(_) => ours
                .checked_sub(Duration::from_micros(ahead.unsigned_abs()))
                .unwrap_or(ours),
        }
    }

    /// A moment of ours by the store's clock.
    pub(super) fn theirs(&self, moment: Instant) -> Time {
        let (theirs, ours) = *lock(&self.moment);
        let ahead = moment.saturating_duration_since(ours).as_micros();
        theirs + Span::from_micros(i64::try_from(ahead).unwrap_or(i64::MAX))
    }
}

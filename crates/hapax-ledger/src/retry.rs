//! Retry schedules: when to try again, and when to give up. Randomness comes in as an argument.

use crate::time::Span;

/// The most tries one schedule may hold. Beyond this a list is a mistake, not a plan.
pub const TRIES_MAX: usize = 64;
/// The longest wait in a schedule. A provider's own longest retry span is weeks, not months.
pub const WAIT_MAX: Span = Span::from_days(30);
/// The longest `Retry-After` that is honoured: a receiver may slow us down for a day, not switch us off by a typo.
pub const RETRY_AFTER_MAX: Span = Span::from_hours(24);
/// How far a wait is spread, so that everything that failed together does not return together.
pub const JITTER_SHARE: f64 = 0.2;

/// The waits before each attempt, the first one included.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schedule(Vec<Span>);

/// The list is no schedule.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadSchedule {
    /// Not a single attempt.
    #[error("a retry schedule needs at least one entry, for the first attempt")]
    Empty,
    /// More than [`TRIES_MAX`] entries.
    #[error("a retry schedule has at most {TRIES_MAX} entries, this one has {0}")]
    Long(usize),
    /// An entry above [`WAIT_MAX`].
    #[error("a retry schedule waits at most {WAIT_MAX} at a time, this one waits {0}")]
    Wait(Span),
}

/// What comes after an attempt that did not apply the effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Another, after this wait.
    At(Span),
    /// None: the schedule is used up.
    Exhausted,
}

impl Schedule {
    /// Checks a list of waits.
    pub fn new(waits: Vec<Span>) -> Result<Schedule, BadSchedule> {
        if waits.is_empty() {
            return Err(BadSchedule::Empty);
        }
        if waits.len() > TRIES_MAX {
            return Err(BadSchedule::Long(waits.len()));
        }
        match waits.iter().find(|wait| **wait > WAIT_MAX) {
            Some(wait) => Err(BadSchedule::Wait(*wait)),
            None => Ok(Schedule(waits)),
        }
    }

    /// How many attempts it allows.
    pub fn attempts_max(&self) -> u32 {
        // At most TRIES_MAX, by construction.
        self.0.len() as u32
    }

    /// When the next attempt is due, after `attempts_done` of this schedule.
    ///
    /// `jitter` in [-1, 1] spreads the wait by ±20 %. A `Retry-After` can lengthen a wait, up to its cap, but neither
    /// shortens one nor adds attempts.
    pub fn next(&self, attempts_done: u32, retry_after: Option<Span>, jitter: f64) -> Next {
        let Some(wait) = self.0.get(attempts_done as usize) else {
            return Next::Exhausted;
        };
        let asked = retry_after.unwrap_or(Span::ZERO).min(RETRY_AFTER_MAX);
        Next::At(spread(*wait, jitter).max(asked))
    }
}

impl Default for Schedule {
    /// At once, 1 m, 5 m, 30 m, 2 h, 10 h, 24 h: an outage of a day and a half is survived.
    fn default() -> Schedule {
        let seconds = [0, 60, 300, 1_800, 7_200, 36_000, 86_400];
        Schedule(seconds.map(Span::from_secs).to_vec())
    }
}

fn spread(wait: Span, jitter: f64) -> Span {
    let jitter = if jitter.is_nan() {
        0.0
    } else {
        jitter.clamp(-1.0, 1.0)
    };
    // A wait is at most 30 days, 2.6e12 µs: exact in a float.
    Span::from_micros((wait.micros() as f64 * (1.0 + JITTER_SHARE * jitter)) as i64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_default_gives_seven_attempts() {
        let schedule = Schedule::default();
        let waits: Vec<Next> = (0..8).map(|done| schedule.next(done, None, 0.0)).collect();
        assert_eq!(waits[0], Next::At(Span::ZERO));
        assert_eq!(waits[1], Next::At(Span::from_secs(60)));
        assert_eq!(waits[6], Next::At(Span::from_hours(24)));
        assert_eq!(waits[7], Next::Exhausted);
    }

    #[test]
    fn retry_after_lengthens_up_to_its_cap() {
        let schedule = Schedule::default();
        let next = |seconds| schedule.next(1, Some(Span::from_secs(seconds)), 0.0);
        assert_eq!(next(10), Next::At(Span::from_secs(60)));
        assert_eq!(next(90), Next::At(Span::from_secs(90)));
        assert_eq!(next(10_000_000), Next::At(RETRY_AFTER_MAX));
        assert_eq!(
            schedule.next(7, Some(Span::from_secs(1)), 0.0),
            Next::Exhausted
        );
    }

    #[test]
    fn senseless_schedules_are_refused() {
        assert_eq!(Schedule::new(vec![]), Err(BadSchedule::Empty));
        assert_eq!(
            Schedule::new(vec![Span::ZERO; 65]),
            Err(BadSchedule::Long(65))
        );
        let long = Span::from_days(31);
        assert_eq!(Schedule::new(vec![long]), Err(BadSchedule::Wait(long)));
    }

    proptest! {
        #[test]
        fn waits_stay_within_a_fifth_and_grow_with_jitter(wait in 0i64..2_592_000_000_000, a in any::<f64>(), b in any::<f64>()) {
            let schedule = Schedule::new(vec![Span::from_micros(wait)]).expect("at most 30 days");
            let at = |jitter| match schedule.next(0, None, jitter) {
                Next::At(span) => span.micros(),
                Next::Exhausted => -1,
            };
            prop_assert!(at(a) >= wait * 8 / 10 - 1 && at(a) <= wait * 12 / 10 + 1);
            prop_assert!(a.is_nan() || b.is_nan() || a > b || at(a) <= at(b));
        }
    }
}

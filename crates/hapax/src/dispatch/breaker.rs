//! A breaker: a target that only fails is left alone for a while, then tried with one request at a time.
//!
//! What opens it is silence and breakdown, never a refusal: a target that answers 4xx is well, and says so.

use std::time::{Duration, Instant};

use hapax_ledger::outcome::{Evidence, Lost, Outcome, classify};

/// Failures in a row that open it. More than a target's restart costs at ordinary concurrency.
const FAILURES_MAX: u32 = 10;
/// The same for a target of which nothing good has been heard yet.
const FAILURES_AT_FIRST_MAX: u32 = 5;
/// How long it stays open at first.
const PAUSE_MIN: Duration = Duration::from_secs(1);
/// The longest pause: a target that is back is noticed at most so much later.
const PAUSE_MAX: Duration = Duration::from_secs(60);

/// What may be sent to a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Allowed {
    /// As much as it takes.
    All,
    /// One request, to see whether it is back.
    One,
    /// Nothing before this.
    NothingUntil(Instant),
}

/// The state of one target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Breaker {
    failures: u32,
    pause: Duration,
    open_until: Option<Instant>,
    /// Has it answered since we know of it?
    known: bool,
}

impl Default for Breaker {
    fn default() -> Breaker {
        Breaker {
            failures: 0,
            pause: PAUSE_MIN,
            open_until: None,
            known: false,
        }
    }
}

impl Breaker {
    /// What may be sent now.
    pub fn allowed(&self, now: Instant) -> Allowed {
        match self.open_until {
            None => Allowed::All,
            Some(until) if now < until => Allowed::NothingUntil(until),
            Some(_) => Allowed::One,
        }
    }

    /// Is it closed, so that the ordinary way is open?
    pub fn is_closed(&self) -> bool {
        self.open_until.is_none()
    }

    /// An attempt came back with this. `spread`, of 0 to 1, says where in the second half of a pause the next trial falls: targets
    /// that went down together would otherwise be tried together for ever.
    pub fn note(&mut self, outcome: Outcome, now: Instant, spread: f64) {
        let ours = Outcome::Lost {
            why: Lost::LostLease,
        };
        if outcome == ours {
            // We ended it, since the store did not hear us in time. That says nothing about the target.
            return;
        }
        match classify(outcome) {
            Evidence::Applied | Evidence::Refused { .. } => {
                *self = Breaker {
                    known: true,
                    ..Breaker::default()
                };
            }
            Evidence::NotApplied | Evidence::Ambiguous => self.fail(now, spread),
        }
    }

    /// Failures in a row so far.
    pub fn failures(&self) -> u32 {
        self.failures
    }

    fn fail(&mut self, now: Instant, spread: f64) {
        self.failures = self.failures.saturating_add(1);
        let most = match self.known {
            true => FAILURES_MAX,
            false => FAILURES_AT_FIRST_MAX,
        };
        match self.open_until {
            None if self.failures >= most => {}
            // The trial failed: wait longer. What was under way when it opened changes nothing.
            Some(until) if now >= until => self.pause = (self.pause * 2).min(PAUSE_MAX),
            None | Some(_) => return,
        }
        let half = self.pause / 2;
        self.open_until = Some(now + half + half.mul_f64(spread.clamp(0.0, 1.0)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SILENT: Outcome = Outcome::Lost { why: Lost::Timeout };

    fn answered(status: u16) -> Outcome {
        Outcome::Answered {
            status,
            retry_after: None,
        }
    }

    #[test]
    fn it_opens_after_failures_in_a_row_and_closes_with_the_first_answer() {
        let start = crate::clock::tick();
        let mut breaker = Breaker::default();
        breaker.note(answered(200), start, 1.0);
        for _ in 0..FAILURES_MAX - 1 {
            breaker.note(SILENT, start, 1.0);
        }
        assert_eq!(breaker.allowed(start), Allowed::All);
        breaker.note(answered(500), start, 1.0);
        let until = start + PAUSE_MIN;
        assert_eq!(breaker.allowed(start), Allowed::NothingUntil(until));
        assert_eq!(breaker.allowed(until), Allowed::One);
        breaker.note(SILENT, until, 1.0);
        let later = until + PAUSE_MIN * 2;
        assert_eq!(breaker.allowed(until), Allowed::NothingUntil(later));
        breaker.note(answered(404), later, 1.0);
        assert_eq!(breaker.allowed(later), Allowed::All);
    }

    #[test]
    fn it_opens_sooner_for_a_target_that_never_answered() {
        let start = crate::clock::tick();
        let mut breaker = Breaker::default();
        for _ in 0..FAILURES_AT_FIRST_MAX - 1 {
            breaker.note(SILENT, start, 1.0);
        }
        assert!(breaker.is_closed());
        breaker.note(SILENT, start, 1.0);
        assert!(!breaker.is_closed());
    }

    #[test]
    fn refusals_never_open_it() {
        let start = crate::clock::tick();
        let mut breaker = Breaker::default();
        for _ in 0..100 {
            breaker.note(answered(422), start, 1.0);
        }
        assert!(breaker.is_closed());
    }

    #[test]
    fn a_lease_that_we_lost_says_nothing_about_the_target() {
        let start = crate::clock::tick();
        let lost = Outcome::Lost {
            why: Lost::LostLease,
        };
        let mut breaker = Breaker::default();
        for _ in 0..100 {
            breaker.note(lost, start, 1.0);
        }
        assert_eq!((breaker.failures(), breaker.is_closed()), (0, true));
    }

    #[test]
    fn its_pauses_end_growing() {
        let mut now = crate::clock::tick();
        let mut breaker = Breaker::default();
        for _ in 0..100 {
            breaker.note(SILENT, now, 0.5);
            if let Allowed::NothingUntil(until) = breaker.allowed(now) {
                assert!(until - now <= PAUSE_MAX);
                now = until;
            }
        }
    }
}

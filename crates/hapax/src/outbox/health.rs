//! When an endpoint is not sent to any more. Pure: what is known, what came back, and the time decide.

use hapax_ledger::outcome::{Evidence, Lost, NotSent, Outcome, Refusal, classify};
use hapax_ledger::time::{Span, Time};
use hapax_store::nouns::{Endpoint, Standing};

/// An endpoint from which nothing but failures came back for so long is disabled, unless the config says otherwise.
pub const DISABLED_AFTER: Span = Span::from_days(5);
/// The shortest time that a config may say.
pub const DISABLED_AFTER_MIN: Span = Span::from_secs(1);
/// The longest.
pub const DISABLED_AFTER_MAX: Span = Span::from_days(365);
/// A fifth of that time before its end, its owner is warned: after four days of five.
const FIFTHS: i64 = 5;
/// A warning comes so long before the end at least, whatever happened: also where an endpoint is so rarely sent to that it comes late. A
/// fifth of the whole, if that is less.
const WARNED_BEFORE: Span = Span::from_hours(1);
/// An endpoint that has failed for so long is said to be failing. One that fails and succeeds by turns would otherwise change the
/// catalogue with every attempt, and everybody publishes by the catalogue. A fifth of the whole, if that is less.
const FAILING_AFTER: Span = Span::from_secs(60);

/// How long failures are put up with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patience {
    /// An endpoint from which nothing but failures came back for so long is disabled.
    pub disabled_after: Span,
    /// After so long its owner is warned.
    pub warned_after: Span,
    /// At least so long before it is disabled.
    pub warned_before: Span,
    /// After so long it is said to be failing.
    pub failing_after: Span,
    /// A first failure counts for so long without a second. Whoever fails again after that is not on its way to a warning already.
    pub remembered_for: Span,
}

impl Patience {
    /// All of it, from the time after which an endpoint is disabled.
    pub fn new(disabled_after: Span) -> Patience {
        let fifth = Span::from_micros(disabled_after.micros() / FIFTHS);
        Patience {
            disabled_after,
            warned_after: Span::from_micros(disabled_after.micros() - fifth.micros()),
            warned_before: WARNED_BEFORE.min(fifth),
            failing_after: FAILING_AFTER.min(fifth),
            remembered_for: Span::from_micros(disabled_after.micros() - fifth.micros()),
        }
    }
}

impl Default for Patience {
    fn default() -> Patience {
        Patience::new(DISABLED_AFTER)
    }
}

/// What follows from an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Nothing that is not known already.
    AsBefore,
    /// The first failure after a success, or after a long time: to be remembered.
    Failed,
    /// A success after failures that are only remembered: to be forgotten.
    WellAgain,
    /// It has failed for a while, or succeeded after that: to be written down.
    Turned {
        /// Since when it fails now.
        failing_since: Option<Time>,
    },
    /// Somebody should know that it will be disabled.
    Warn {
        /// Not before.
        disabled_from: Time,
    },
    /// Nothing more is sent to it.
    Disable(Standing),
}

/// Judges an endpoint by one attempt. `failed_at`: when the first failure after a success was, if that is only remembered, and not
/// written down yet.
pub fn judge(
    endpoint: &Endpoint,
    outcome: Outcome,
    failed_at: Option<Time>,
    patience: Patience,
    now: Time,
) -> Verdict {
    if endpoint.standing != Standing::Enabled || is_ours(outcome) {
        return Verdict::AsBefore;
    }
    match (classify(outcome), endpoint.failing_since, failed_at) {
        (Evidence::Applied, Some(_), _) => Verdict::Turned {
            failing_since: None,
        },
        (Evidence::Applied, None, Some(_)) => Verdict::WellAgain,
        (Evidence::Applied, None, None) => Verdict::AsBefore,
        (
            Evidence::Refused {
                kind: Refusal::Gone,
                ..
            },
            ..,
        ) => Verdict::Disable(Standing::Gone),
        (Evidence::Refused { .. } | Evidence::NotApplied | Evidence::Ambiguous, Some(since), _) => {
            fails_on(since, endpoint.disabled_from, patience, now)
        }
        (Evidence::Refused { .. } | Evidence::NotApplied | Evidence::Ambiguous, None, None) => {
            Verdict::Failed
        }
        (Evidence::Refused { .. } | Evidence::NotApplied | Evidence::Ambiguous, None, Some(at)) => {
            fails_again(at, patience, now)
        }
    }
}

fn fails_again(at: Time, patience: Patience, now: Time) -> Verdict {
    match (
        now >= at + patience.failing_after,
        now > at + patience.remembered_for,
    ) {
        (_, true) => Verdict::Failed,
        (true, false) => Verdict::Turned {
            failing_since: Some(at),
        },
        (false, false) => Verdict::AsBefore,
    }
}

/// What was told is kept to, whatever the config says by now; and one that says later is, too.
fn fails_on(since: Time, told: Option<Time>, patience: Patience, now: Time) -> Verdict {
    let end = since + patience.disabled_after;
    match told {
        Some(told) if now >= end.max(told) => Verdict::Disable(Standing::Failed),
        None if now >= since + patience.warned_after => Verdict::Warn {
            disabled_from: end.max(now + patience.warned_before),
        },
        Some(_) | None => Verdict::AsBefore,
    }
}

/// Says nothing about the endpoint: it was not asked, or it was us who went away.
fn is_ours(outcome: Outcome) -> bool {
    matches!(
        outcome,
        Outcome::NotSent {
            why: NotSent::Breaker | NotSent::Snapshot
        } | Outcome::Lost {
            why: Lost::Crash | Lost::LostLease
        }
    )
}

#[cfg(test)]
mod tests;

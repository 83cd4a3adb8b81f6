//! When an endpoint is not sent to any more. Pure: what is known, what came back, and the time decide.

use hapax_ledger::outcome::{Evidence, Lost, NotSent, Outcome, Refusal, classify};
use hapax_ledger::time::{Span, Time};
use hapax_store::nouns::{Endpoint, Standing};

/// An endpoint from which nothing but failures came back for so long is disabled.
pub const DISABLED_AFTER: Span = Span::from_days(5);
/// After so long its owner is warned.
pub const WARNED_AFTER: Span = Span::from_days(4);
/// At least so long before it is disabled, whatever happened: also where it is so rarely sent to that the warning comes late.
pub const WARNED_BEFORE: Span = Span::from_hours(1);

/// An endpoint that has failed for so long is said to be failing. One that fails and succeeds by turns would otherwise change the
/// catalogue with every attempt, and everybody publishes by the catalogue.
pub const FAILING_AFTER: Span = Span::from_secs(60);

/// What a node remembers of an endpoint, beside what is written down.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Remembered {
    /// When the first failure after a success was, if that is not written down yet.
    pub failed_at: Option<Time>,
    /// When its owner was warned of the failures that are written down.
    pub warned_at: Option<Time>,
}

/// What follows from an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Nothing that is not known already.
    AsBefore,
    /// The first failure after a success: to be remembered.
    Failed,
    /// A success after failures that are only remembered: to be forgotten.
    WellAgain,
    /// It has failed for a while, or succeeded after that: to be written down.
    Turned {
        /// Since when it fails now.
        failing_since: Option<Time>,
    },
    /// Somebody should know that it will be disabled.
    Warn,
    /// Nothing more is sent to it.
    Disable(Standing),
}

/// Judges an endpoint by one attempt.
pub fn judge(endpoint: &Endpoint, outcome: Outcome, known: Remembered, now: Time) -> Verdict {
    if endpoint.standing != Standing::Enabled || is_ours(outcome) {
        return Verdict::AsBefore;
    }
    match (classify(outcome), endpoint.failing_since, known.failed_at) {
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
            fails_on(since, known.warned_at, now)
        }
        (Evidence::Refused { .. } | Evidence::NotApplied | Evidence::Ambiguous, None, None) => {
            Verdict::Failed
        }
        (Evidence::Refused { .. } | Evidence::NotApplied | Evidence::Ambiguous, None, Some(at)) => {
            match now >= at + FAILING_AFTER {
                true => Verdict::Turned {
                    failing_since: Some(at),
                },
                false => Verdict::AsBefore,
            }
        }
    }
}

fn fails_on(since: Time, warned_at: Option<Time>, now: Time) -> Verdict {
    match warned_at {
        Some(warned) if now >= since + DISABLED_AFTER && now >= warned + WARNED_BEFORE => {
            Verdict::Disable(Standing::Failed)
        }
        None if now >= since + WARNED_AFTER => Verdict::Warn,
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

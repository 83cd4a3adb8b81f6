//! The lines of the table.

/// What to expect where APIs differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rules {
    /// The IETF draft.
    Ietf,
    /// Stripe's API.
    Stripe,
    /// Whatever is sensible.
    Any,
}

/// How a check ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    Passed,
    Failed,
    /// It could not be made, and nobody chose to leave it out: this does not count as conforming.
    Unproven,
    /// Left out: by choice, or since it is optional.
    Skipped,
}

impl Outcome {
    pub(super) const fn word(self) -> &'static str {
        match self {
            Outcome::Passed => "pass",
            Outcome::Failed => "FAIL",
            Outcome::Unproven => "UNPROVEN",
            Outcome::Skipped => "skipped",
        }
    }
}

/// A line of the table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Check {
    pub(super) name: &'static str,
    pub(super) outcome: Outcome,
    pub(super) why: String,
}

impl Check {
    pub(super) fn passed(name: &'static str, why: impl Into<String>) -> Check {
        Check::new(name, Outcome::Passed, why)
    }

    pub(super) fn failed(name: &'static str, why: impl Into<String>) -> Check {
        Check::new(name, Outcome::Failed, why)
    }

    pub(super) fn unproven(name: &'static str, why: impl Into<String>) -> Check {
        Check::new(name, Outcome::Unproven, why)
    }

    pub(super) fn skipped(name: &'static str, why: impl Into<String>) -> Check {
        Check::new(name, Outcome::Skipped, why)
    }

    fn new(name: &'static str, outcome: Outcome, why: impl Into<String>) -> Check {
        let why = why.into();
        Check { name, outcome, why }
    }

    pub(super) fn is_passed(&self) -> bool {
        self.outcome == Outcome::Passed
    }
}

//! What became of each request, for those who count.

/// What became of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Verdict {
    /// It ran.
    Run,
    /// It got the stored answer.
    Replay,
    /// Its key belongs to another request.
    Mismatch,
    /// The first one is still running.
    InProgress,
    /// What became of the first one is not known.
    OutcomeUnknown,
    /// The first one was answered, and the body was not kept.
    NotKept,
    /// The key has expired, not long ago.
    Expired,
    /// It has no key, though it should.
    Missing,
    /// Its key cannot be read.
    Malformed,
    /// Its caller was refused.
    Refused,
    /// Its body is larger than the guard takes.
    TooLarge,
    /// Its body did not arrive whole.
    Incomplete,
    /// The store could not be asked.
    StoreDown,
    /// It is none of the guard's business.
    Passed,
}

impl Verdict {
    /// All of them.
    pub const ALL: [Verdict; 14] = [
        Verdict::Run,
        Verdict::Replay,
        Verdict::Mismatch,
        Verdict::InProgress,
        Verdict::OutcomeUnknown,
        Verdict::NotKept,
        Verdict::Expired,
        Verdict::Missing,
        Verdict::Malformed,
        Verdict::Refused,
        Verdict::TooLarge,
        Verdict::Incomplete,
        Verdict::StoreDown,
        Verdict::Passed,
    ];

    /// Its name, as a metric's label has it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Verdict::Run => "run",
            Verdict::Replay => "replay",
            Verdict::Mismatch => "mismatch",
            Verdict::InProgress => "in_progress",
            Verdict::OutcomeUnknown => "outcome_unknown",
            Verdict::NotKept => "not_kept",
            Verdict::Expired => "expired",
            Verdict::Missing => "missing",
            Verdict::Malformed => "malformed",
            Verdict::Refused => "refused",
            Verdict::TooLarge => "too_large",
            Verdict::Incomplete => "incomplete",
            Verdict::StoreDown => "store_down",
            Verdict::Passed => "passed",
        }
    }
}

/// Hears the verdict on each request: once, and never with anything that the caller sent.
pub trait Observer: Send + Sync + 'static {
    /// A request to this guard was decided. Called on the request's way: it should only count.
    fn verdict(&self, guard: &str, verdict: Verdict);
}

impl<F: Fn(&str, Verdict) + Send + Sync + 'static> Observer for F {
    fn verdict(&self, guard: &str, verdict: Verdict) {
        self(guard, verdict);
    }
}

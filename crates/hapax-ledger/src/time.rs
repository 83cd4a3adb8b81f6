//! Points and lengths of time, as the ledger counts them: whole microseconds.
//!
//! The ledger never reads a clock. Every rule that needs *now* takes it as an argument.

use std::ops::{Add, Sub};

/// A point in time: microseconds since 1970-01-01T00:00:00Z.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Time(i64);

impl Time {
    /// The time `micros` microseconds after the epoch.
    pub const fn from_micros(micros: i64) -> Time {
        Time(micros)
    }

    /// The time `seconds` seconds after the epoch.
    pub const fn from_secs(seconds: i64) -> Time {
        Time(seconds.saturating_mul(1_000_000))
    }

    /// Microseconds since the epoch.
    pub const fn micros(self) -> i64 {
        self.0
    }

    /// Whole milliseconds since the epoch, never negative: what goes into an id.
    pub const fn millis(self) -> u64 {
        if self.0 < 0 {
            0
        } else {
            (self.0 / 1_000) as u64
        }
    }

    /// Time from `earlier` to here; zero if `earlier` is later (a clock that jumped back).
    pub fn since(self, earlier: Time) -> Span {
        Span(self.0.saturating_sub(earlier.0).max(0))
    }
}

/// A length of time in microseconds, never negative.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Span(i64);

impl Span {
    /// No time at all.
    pub const ZERO: Span = Span(0);

    /// `micros` microseconds; a negative number counts as zero.
    pub const fn from_micros(micros: i64) -> Span {
        Span(if micros < 0 { 0 } else { micros })
    }

    /// `millis` milliseconds.
    pub const fn from_millis(millis: i64) -> Span {
        Span::from_micros(millis.saturating_mul(1_000))
    }

    /// `seconds` seconds.
    pub const fn from_secs(seconds: i64) -> Span {
        Span::from_micros(seconds.saturating_mul(1_000_000))
    }

    /// `hours` hours.
    pub const fn from_hours(hours: i64) -> Span {
        Span::from_secs(hours.saturating_mul(3_600))
    }

    /// `days` days of 24 hours.
    pub const fn from_days(days: i64) -> Span {
        Span::from_hours(days.saturating_mul(24))
    }

    /// Its length in microseconds.
    pub const fn micros(self) -> i64 {
        self.0
    }

    /// Its length in whole seconds, rounded up: what a `Retry-After` header says.
    pub const fn secs_ceil(self) -> i64 {
        (self.0 + 999_999) / 1_000_000
    }
}

impl Add<Span> for Time {
    type Output = Time;
    fn add(self, span: Span) -> Time {
        Time(self.0.saturating_add(span.0))
    }
}

impl Sub<Span> for Time {
    type Output = Time;
    fn sub(self, span: Span) -> Time {
        Time(self.0.saturating_sub(span.0))
    }
}

impl Add for Span {
    type Output = Span;
    fn add(self, other: Span) -> Span {
        Span(self.0.saturating_add(other.0))
    }
}

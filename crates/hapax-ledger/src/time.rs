//! Points and lengths of time, as the ledger counts them: whole microseconds.
//!
//! The ledger never reads a clock. Every rule that needs *now* takes it as an argument.

use std::fmt;
use std::ops::{Add, Sub};
use std::str::FromStr;

/// A point in time: microseconds since 1970-01-01T00:00:00Z.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Time(i64);

impl Time {
    /// Later than any other time: never.
    pub const MAX: Time = Time(i64::MAX);
    /// Before everything.
    pub const MIN: Time = Time(i64::MIN);

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

/// The units of a length in text, largest first, in microseconds.
const UNITS: [(&str, i64); 5] = [
    ("d", 86_400_000_000),
    ("h", 3_600_000_000),
    ("m", 60_000_000),
    ("s", 1_000_000),
    ("ms", 1_000),
];

/// The text is not a length of time.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is not a length of time: write a whole number and a unit, such as 200ms, 10s, 5m, 72h or 30d"
)]
pub struct BadSpan(String);

impl FromStr for Span {
    type Err = BadSpan;

    /// Reads a length as a config writes it: `200ms`, `10s`, `5m`, `72h`, `30d`.
    fn from_str(text: &str) -> Result<Span, BadSpan> {
        let digits = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
        let unit = &text[digits.len()..];
        let micros = UNITS
            .iter()
            .find(|(name, _)| *name == unit)
            .map(|(_, micros)| micros);
        let count = digits
            .bytes()
            .all(|byte| byte.is_ascii_digit())
            .then(|| digits.parse::<i64>());
        match (micros, count) {
            (Some(micros), Some(Ok(count))) => count.checked_mul(*micros).map(Span),
            _ => None,
        }
        .ok_or_else(|| BadSpan(text.to_owned()))
    }
}

impl fmt::Display for Span {
    /// Writes a length in the largest unit that divides it; what no unit divides is rounded up to milliseconds.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match UNITS.iter().find(|(_, micros)| self.0 % micros == 0) {
            _ if self.0 == 0 => f.write_str("0s"),
            Some((name, micros)) => write!(f, "{}{name}", self.0 / micros),
            None => write!(f, "{}ms", self.0 / 1_000 + 1),
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_read_and_written_as_a_config_has_them() {
        let table = [
            ("200ms", Span::from_millis(200)),
            ("10s", Span::from_secs(10)),
            ("5m", Span::from_secs(300)),
            ("5h", Span::from_hours(5)),
            ("30d", Span::from_days(30)),
            ("0s", Span::ZERO),
        ];
        for (text, span) in table {
            assert_eq!(text.parse(), Ok(span), "{text}");
            assert_eq!(span.to_string(), text);
        }
        for text in [
            "",
            "s",
            "5",
            "-5s",
            "1.5h",
            "5 s",
            "5S",
            "9999999999999d",
            "٣s",
        ] {
            assert!(text.parse::<Span>().is_err(), "{text}");
        }
        assert_eq!(Span::from_micros(1).to_string(), "1ms");
    }
}

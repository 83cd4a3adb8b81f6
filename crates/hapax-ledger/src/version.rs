//! Versions: which of two states of an entity is the newer one?
//!
//! Providers count versions as numbers or as times, and write both in several ways. Two numbers compare as numbers, two
//! RFC 3339 times as times, two other texts letter by letter. Where the kinds differ the order is still total
//! (numbers, then times, then texts), because "the highest so far" has to mean something.

use crate::number::Decimal;

/// A version that can be compared: equal where neither is newer, however they are written.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version(Kind);

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Number(Decimal),
    /// Seconds since the epoch, and the digits behind the point without trailing zeros.
    Time(i64, String),
    Text(String),
}

impl Version {
    /// Reads a version. Every text is one.
    pub fn parse(text: &str) -> Version {
        let number = Decimal::parse(without_leading_zeros(text)).map(Kind::Number);
        let time = || rfc3339(text).map(|(seconds, fraction)| Kind::Time(seconds, fraction));
        Version(
            number
                .or_else(time)
                .unwrap_or_else(|| Kind::Text(text.to_owned())),
        )
    }
}

/// Is `version` older than the highest one started? An equal version is not.
pub fn is_stale(version: &str, highest_started: &str) -> bool {
    Version::parse(version) < Version::parse(highest_started)
}

/// Counters are often padded with zeros, which JSON numbers are not.
fn without_leading_zeros(text: &str) -> &str {
    let trimmed = text.trim_start_matches('0');
    let cut = text.len() - trimmed.len();
    match trimmed.as_bytes().first() {
        Some(b'0'..=b'9') => trimmed,
        // The last zero is the number itself: `000`, `00.5`.
        _ => &text[cut.saturating_sub(1)..],
    }
}

/// Seconds since the epoch and the fraction's digits.
fn rfc3339(text: &str) -> Option<(i64, String)> {
    let bytes = text.as_bytes();
    let number = |from: usize, to: usize| -> Option<i64> {
        let part = bytes.get(from..to)?;
        let digits = part.iter().all(u8::is_ascii_digit).then_some(part)?;
        Some(
            digits
                .iter()
                .fold(0, |sum, digit| sum * 10 + i64::from(digit - b'0')),
        )
    };
    let sign =
        |place: usize, allowed: &[u8]| bytes.get(place).is_some_and(|byte| allowed.contains(byte));
    let shaped =
        sign(4, b"-") && sign(7, b"-") && sign(10, b"Tt ") && sign(13, b":") && sign(16, b":");
    if !shaped {
        return None;
    }
    let day = day_number(number(0, 4)?, number(5, 7)?, number(8, 10)?)?;
    let (hour, minute, second) = (number(11, 13)?, number(14, 16)?, number(17, 19)?);
    if hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    let rest = text.get(19..)?;
    let (fraction, zone) = match rest.strip_prefix('.') {
        None => ("", rest),
        Some(rest) => {
            let end = rest
                .find(|letter: char| !letter.is_ascii_digit())
                .filter(|end| *end > 0)?;
            rest.split_at(end)
        }
    };
    let seconds = day * 86_400 + hour * 3_600 + minute * 60 + second - zone_seconds(zone)?;
    Some((seconds, fraction.trim_end_matches('0').to_owned()))
}

fn zone_seconds(zone: &str) -> Option<i64> {
    if matches!(zone, "Z" | "z") {
        return Some(0);
    }
    let (sign, rest) = match zone.split_at_checked(1)? {
        ("+", rest) => (1, rest),
        ("-", rest) => (-1, rest),
        _ => return None,
    };
    let (hours, minutes) = rest.split_once(':')?;
    let number = |part: &str, max: i64| -> Option<i64> {
        let two_digits = part.len() == 2 && part.bytes().all(|byte| byte.is_ascii_digit());
        two_digits
            .then(|| part.parse().ok())
            .flatten()
            .filter(|value| *value <= max)
    };
    Some(sign * (number(hours, 23)? * 3_600 + number(minutes, 59)? * 60))
}

/// Days since 1970-01-01 in the Gregorian calendar; `None` for a day that no month has.
fn day_number(year: i64, month: i64, day: i64) -> Option<i64> {
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let length = match month {
        2 => 28 + i64::from(leap),
        4 | 6 | 9 | 11 => 30,
        1 | 3 | 5 | 7 | 8 | 10 | 12 => 31,
        _ => return None,
    };
    if day < 1 || day > length {
        return None;
    }
    // Years that begin in March put the leap day last, so that days can be counted without a table.
    let (year, month) = if month > 2 {
        (year, month - 3)
    } else {
        (year - 1, month + 9)
    };
    let days_before_month = (153 * month + 2) / 5;
    let leap_days = year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    Some(365 * year + leap_days + days_before_month + day - 1 - 719_468)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn older_versions_are_stale_and_equal_ones_are_not() {
        let table = [
            ("9", "10", true),
            ("10", "9", false),
            ("10", "10", false),
            ("1.5", "1.50", false),
            ("007", "10", true),
            ("0", "000", false),
            ("00.5", "0.50", false),
            ("-1", "0", true),
            ("9007199254740992", "9007199254740993", true),
            ("2024-01-01T00:00:00Z", "2024-01-01T00:00:01Z", true),
            ("2024-01-01T00:00:00Z", "2024-01-01T01:00:00+01:00", false),
            ("2024-01-01T00:00:00.9Z", "2024-01-01T00:00:00.10Z", false),
            ("2024-01-01T00:00:00Z", "2024-01-01T00:00:00.000001Z", true),
            ("2024-02-29T00:00:00Z", "2024-03-01T00:00:00Z", true),
            ("1999-12-31T23:59:60Z", "2000-01-01T00:00:00Z", false),
            ("v1", "v2", true),
            ("5", "v1", true),
        ];
        for (version, highest, stale) in table {
            assert_eq!(
                is_stale(version, highest),
                stale,
                "{version} against {highest}"
            );
        }
    }

    #[test]
    fn days_are_counted_from_1970() {
        assert_eq!(rfc3339("1970-01-01T00:00:00Z"), Some((0, String::new())));
        assert_eq!(
            rfc3339("2000-03-01T00:00:00Z"),
            Some((951_868_800, String::new()))
        );
        assert_eq!(
            rfc3339("2024-12-31T23:59:59.50-00:30"),
            Some((1_735_691_399, "5".into()))
        );
        for text in [
            "2023-02-29T00:00:00Z",
            "2024-13-01T00:00:00Z",
            "2024-01-01T24:00:00Z",
            "2024-01-01T00:00:00",
            "2024-01-01T00:00:00.Z",
            "2024-01-01T00:00:00+1:00",
            "2024-01-01",
            "2024-01-01T00:00:0éZ",
        ] {
            assert_eq!(rfc3339(text), None, "{text}");
        }
    }

    fn version() -> impl Strategy<Value = String> {
        prop_oneof![
            "-?[0-9]{1,4}(\\.[0-9]{1,2})?",
            "20[0-9]{2}-0[1-9]-[0-2][0-9]T0[0-9]:00:00(\\.[0-9]{1,3})?(Z|[+-]0[0-9]:00)",
            "[0-9a-z]{0,4}",
        ]
    }

    proptest! {
        #[test]
        fn versions_are_totally_ordered(a in version(), b in version(), c in version()) {
            let [x, y, z] = [&a, &b, &c].map(|text| Version::parse(text));
            prop_assert_eq!(x.cmp(&y), y.cmp(&x).reverse());
            prop_assert!(!(x <= y && y <= z) || x <= z);
        }

        #[test]
        fn any_text_is_a_version(text in ".{0,30}") {
            prop_assert!(!is_stale(&text, &text));
        }
    }
}

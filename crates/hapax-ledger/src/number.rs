//! Numbers as JSON writes them, exactly: no rounding, however many digits.
//!
//! Providers send ids and amounts as numbers. Read as floats, two ids above 2^53 can become one; so numbers stay
//! decimal here, are compared as decimals, and have one canonical text (`1`, `1.0` and `10e-1` are all `1`).

use std::cmp::Ordering;
use std::fmt;

/// Canonical text has no exponent as long as it needs at most this many zeros beyond the digits given; beyond that
/// (`1e400`) it does, so that a short number never becomes a long text.
const PLAIN_ZEROS_MAX: i64 = 40;
/// Exponents beyond this have no canonical form. They name no quantity that anybody sends.
const EXPONENT_MAX: i64 = 1_000_000_000;

/// An exact decimal number: ± 0.DIGITS × 10^point, its digits without outer zeros.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Decimal {
    negative: bool,
    digits: String,
    point: i64,
}

impl Decimal {
    /// Reads a JSON number (`-0.5e3`). Nothing else is a number here: no `+1`, `.5`, `01`, `inf` or blanks.
    pub fn parse(text: &str) -> Option<Decimal> {
        let (negative, rest) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let (mantissa, exponent) = match rest.split_once(['e', 'E']) {
            Some((mantissa, exponent)) => (mantissa, parse_exponent(exponent)?),
            None => (rest, Some(0)),
        };
        let (whole, fraction) = match mantissa.split_once('.') {
            Some((_, "")) => return None,
            Some(parts) => parts,
            None => (mantissa, ""),
        };
        let is_number = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
        if whole.is_empty() || !is_number(whole) || !is_number(fraction) {
            return None;
        }
        if whole.len() > 1 && whole.starts_with('0') {
            return None;
        }
        let all = format!("{whole}{fraction}");
        let significant = all.trim_start_matches('0');
        if significant.is_empty() {
            return Some(Decimal {
                negative: false,
                digits: String::new(),
                point: 0,
            });
        }
        let leading_zeros = (all.len() - significant.len()) as i64;
        let point = (whole.len() as i64 - leading_zeros).checked_add(exponent?)?;
        Some(Decimal {
            negative,
            digits: significant.trim_end_matches('0').to_owned(),
            point,
        })
    }

    fn compare_size(&self, other: &Decimal) -> Ordering {
        match (self.digits.is_empty(), other.digits.is_empty()) {
            (true, true) => Ordering::Equal,
            (true, false) => Ordering::Less,
            (false, true) => Ordering::Greater,
            // Without outer zeros and with the point in front, digit texts compare as the fractions they are.
            (false, false) => {
                (self.point, self.digits.as_str()).cmp(&(other.point, other.digits.as_str()))
            }
        }
    }
}

/// `Some(None)`: an exponent, but too large to count with.
fn parse_exponent(text: &str) -> Option<Option<i64>> {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let size = digits
        .parse::<i64>()
        .ok()
        .filter(|size| *size <= EXPONENT_MAX);
    Some(size.map(|size| if text.starts_with('-') { -size } else { size }))
}

impl Ord for Decimal {
    fn cmp(&self, other: &Decimal) -> Ordering {
        match (self.negative, other.negative) {
            (false, true) => Ordering::Greater,
            (true, false) => Ordering::Less,
            (false, false) => self.compare_size(other),
            (true, true) => other.compare_size(self),
        }
    }
}

impl PartialOrd for Decimal {
    fn partial_cmp(&self, other: &Decimal) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.negative { "-" } else { "" };
        let digits = self.digits.as_str();
        let length = digits.len() as i64;
        if digits.is_empty() {
            f.write_str("0")
        } else if self.point > length + PLAIN_ZEROS_MAX || self.point < -PLAIN_ZEROS_MAX {
            write!(f, "{sign}0.{digits}e{}", self.point)
        } else if self.point >= length {
            write!(
                f,
                "{sign}{digits}{}",
                "0".repeat((self.point - length) as usize)
            )
        } else if self.point > 0 {
            let (whole, fraction) = digits.split_at(self.point as usize);
            write!(f, "{sign}{whole}.{fraction}")
        } else {
            write!(f, "{sign}0.{}{digits}", "0".repeat(-self.point as usize))
        }
    }
}

/// Is this the canonical text of a number already? True for nearly all numbers that are sent: whole, no exponent.
pub(crate) fn is_plain_integer(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text);
    match digits.as_bytes() {
        [b'0'] => digits.len() == text.len(),
        [b'1'..=b'9', rest @ ..] => {
            rest.len() < PLAIN_ZEROS_MAX as usize && rest.iter().all(u8::is_ascii_digit)
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn equal_numbers_have_one_text() {
        let table = [
            ("1", "1"),
            ("1.0", "1"),
            ("10e-1", "1"),
            ("0.1E1", "1"),
            ("-0", "0"),
            ("0e99999999999999999999", "0"),
            ("-12.50", "-12.5"),
            ("1e3", "1000"),
            ("0.00120", "0.0012"),
            ("1e400", "0.1e401"),
            ("9007199254740993", "9007199254740993"),
            (
                "123456789012345678901234567890.5",
                "123456789012345678901234567890.5",
            ),
        ];
        for (text, canonical) in table {
            let number = Decimal::parse(text).expect(text);
            assert_eq!(number.to_string(), canonical, "{text}");
        }
    }

    #[test]
    fn what_json_does_not_call_a_number_is_none() {
        for text in [
            "", "-", "+1", ".5", "1.", "01", "1e", "1e+", "0x1", " 1", "1 ", "NaN", "1_0", "--1",
        ] {
            assert_eq!(Decimal::parse(text), None, "{text}");
        }
    }

    #[test]
    fn an_exponent_beyond_counting_is_not_canonical() {
        assert_eq!(Decimal::parse("1e99999999999999999999"), None);
    }

    proptest! {
        #[test]
        fn order_agrees_with_integers(a in any::<i64>(), b in any::<i64>()) {
            let (x, y) = (Decimal::parse(&a.to_string()), Decimal::parse(&b.to_string()));
            prop_assert_eq!(x.cmp(&y), a.cmp(&b));
        }

        #[test]
        fn the_canonical_text_reads_as_the_same_number(text in "-?(0|[1-9][0-9]{0,50})(\\.[0-9]{1,20})?([eE][+-]?[0-9]{1,3})?") {
            let number = Decimal::parse(&text).expect("the pattern is JSON's");
            let canonical = number.to_string();
            prop_assert_eq!(Decimal::parse(&canonical), Some(number));
            prop_assert!(!is_plain_integer(&text) || canonical == text);
        }
    }
}

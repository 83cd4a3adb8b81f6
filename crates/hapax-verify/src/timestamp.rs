//! Signed times: read strictly, compared in both directions.

use crate::civil;
use crate::refusal::Refusal;
use crate::scheme::{TimeUnit, Timestamp};

const SECOND_US: i64 = 1_000_000;
const MS_US: i64 = 1_000;

impl TimeUnit {
    /// Unix microseconds of a timestamp. Only the canonical spelling counts: `+1`, `01`, ` 1` and `1.5` are refused,
    /// because a lenient reader accepts texts that the provider never signs.
    pub(crate) fn parse(self, text: &[u8]) -> Option<i64> {
        match self {
            TimeUnit::Seconds => canonical(text)?.checked_mul(SECOND_US),
            TimeUnit::Milliseconds => canonical(text)?.checked_mul(MS_US),
            TimeUnit::Rfc3339 => civil::parse_rfc3339(text),
            TimeUnit::HttpDate => civil::parse_http_date(text),
        }
    }

    pub(crate) fn format(self, us: i64) -> String {
        match self {
            TimeUnit::Seconds => us.div_euclid(SECOND_US).to_string(),
            TimeUnit::Milliseconds => us.div_euclid(MS_US).to_string(),
            TimeUnit::Rfc3339 => civil::format_rfc3339(us),
            TimeUnit::HttpDate => civil::format_http_date(us),
        }
    }
}

fn canonical(text: &[u8]) -> Option<i64> {
    let plain = match text {
        [b'0'] => true,
        [b'1'..=b'9', rest @ ..] => rest.iter().all(u8::is_ascii_digit),
        _ => false,
    };
    if !plain {
        return None;
    }
    std::str::from_utf8(text).ok()?.parse().ok()
}

impl Timestamp {
    /// Whether a signature made at `signed_at` still counts at `now`.
    pub(crate) fn check(&self, signed_at: i64, now: i64) -> Result<(), Refusal> {
        let age_us = now.saturating_sub(signed_at);
        if let Some(tolerance_us) = self.past_us.filter(|past| age_us > *past) {
            return Err(Refusal::TooOld {
                age_us,
                tolerance_us,
            });
        }
        let ahead_us = signed_at.saturating_sub(now);
        if let Some(tolerance_us) = self.future_us.filter(|future| ahead_us > *future) {
            return Err(Refusal::TooNew {
                ahead_us,
                tolerance_us,
            });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scheme::TimePlace;

    #[test]
    fn only_canonical_integers_count() {
        for (text, want) in [
            ("1614265330", Some(1_614_265_330_000_000)),
            ("0", Some(0)),
            ("01", None),
            ("+1", None),
            ("-1", None),
            (" 1", None),
            ("1 ", None),
            ("1.5", None),
            ("1_0", None),
            ("1abc", None),
            ("", None),
            ("99999999999999999999", None),
            ("9223372036854775807", None),
        ] {
            assert_eq!(TimeUnit::Seconds.parse(text.as_bytes()), want, "{text:?}");
        }
    }

    #[test]
    fn tolerance_holds_in_both_directions() {
        let timestamp = Timestamp {
            place: TimePlace::First,
            unit: TimeUnit::Seconds,
            past_us: Some(10),
            future_us: Some(5),
        };
        assert_eq!(timestamp.check(100, 110), Ok(()));
        assert_eq!(timestamp.check(100, 95), Ok(()));
        let old = timestamp.check(100, 111);
        assert!(matches!(old, Err(Refusal::TooOld { age_us: 11, .. })));
        let new = timestamp.check(100, 94);
        assert!(matches!(new, Err(Refusal::TooNew { ahead_us: 6, .. })));
        assert!(timestamp.check(i64::MAX, i64::MIN).is_err());
        assert!(timestamp.check(i64::MIN, i64::MAX).is_err());
    }
}

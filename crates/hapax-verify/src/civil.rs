//! Calendar arithmetic for signed timestamps: RFC 3339 and HTTP dates, to and from unix microseconds.
//!
//! Forty lines instead of a time library, because this crate is meant to be light and never asks what time it is.

const SECOND_US: i64 = 1_000_000;
const DAY_S: i64 = 86_400;
const MONTHS: [&str; 12] = [
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
];
const WEEKDAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];

/// Days since 1970-01-01 of a date in the proleptic Gregorian calendar.
fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    // The year starts in March, so that the leap day is its last.
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}

fn civil_from_days(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 {
        shifted + 3
    } else {
        shifted - 9
    };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (year, month, day)
}

fn number(text: &[u8]) -> Option<i64> {
    if text.is_empty() || !text.iter().all(u8::is_ascii_digit) {
        return None;
    }
    std::str::from_utf8(text).ok()?.parse().ok()
}

fn instant_us(date: (i64, i64, i64), time: (i64, i64, i64), offset_s: i64) -> Option<i64> {
    let (year, month, day) = date;
    let (hour, minute, second) = time;
    let valid = (1..=12).contains(&month)
        && (1..=31).contains(&day)
        && (0..24).contains(&hour)
        && (0..60).contains(&minute)
        && (0..=60).contains(&second);
    if !valid {
        return None;
    }
    let seconds = days_from_civil(year, month, day) * DAY_S + hour * 3_600 + minute * 60 + second;
    (seconds - offset_s).checked_mul(SECOND_US)
}

/// `HH:MM:SS` at the start of `text`.
fn clock(text: &[u8]) -> Option<(i64, i64, i64)> {
    let part = |at: usize| number(text.get(at..at + 2)?);
    if text.get(2) != Some(&b':') || text.get(5) != Some(&b':') {
        return None;
    }
    Some((part(0)?, part(3)?, part(6)?))
}

/// Unix microseconds of an RFC 3339 time; digits beyond microseconds are cut off.
pub(crate) fn parse_rfc3339(text: &[u8]) -> Option<i64> {
    let separators = (text.get(4)?, text.get(7)?, text.get(10)?);
    if !matches!(separators, (b'-', b'-', b'T' | b't' | b' ')) {
        return None;
    }
    let date = (
        number(&text[..4])?,
        number(&text[5..7])?,
        number(&text[8..10])?,
    );
    let time = clock(text.get(11..19)?)?;
    let mut rest = text.get(19..)?;
    let mut fraction_us = 0;
    if let Some(fraction) = rest.strip_prefix(b".") {
        let digits = fraction.iter().take_while(|b| b.is_ascii_digit()).count();
        if digits == 0 {
            return None;
        }
        let mut scale = SECOND_US;
        for digit in fraction[..digits].iter().take(6) {
            scale /= 10;
            fraction_us += i64::from(digit - b'0') * scale;
        }
        rest = &fraction[digits..];
    }
    let offset_s = match rest {
        b"Z" | b"z" => 0,
        [sign @ (b'+' | b'-'), zone @ ..] => {
            let minutes = match zone {
                [_, _, b':', _, _] => number(&zone[..2])? * 60 + number(&zone[3..])?,
                [_, _, _, _] => number(&zone[..2])? * 60 + number(&zone[2..])?,
                _ => return None,
            };
            if *sign == b'+' {
                minutes * 60
            } else {
                -minutes * 60
            }
        }
        _ => return None,
    };
    instant_us(date, time, offset_s)?.checked_add(fraction_us)
}

/// Unix microseconds of an HTTP date, `Sun, 06 Nov 1994 08:49:37 GMT`.
pub(crate) fn parse_http_date(text: &[u8]) -> Option<i64> {
    let text = std::str::from_utf8(text).ok()?;
    let mut words = text.split_once(", ")?.1.split(' ');
    let day = number(words.next()?.as_bytes())?;
    let month = words.next()?;
    let month = MONTHS.iter().position(|name| *name == month)?;
    let year = number(words.next()?.as_bytes())?;
    let time = words.next()?.as_bytes();
    if time.len() != 8 || words.next() != Some("GMT") || words.next().is_some() {
        return None;
    }
    let month = i64::try_from(month).ok()? + 1;
    instant_us((year, month, day), clock(time)?, 0)
}

/// An instant as RFC 3339 in UTC with milliseconds.
pub(crate) fn format_rfc3339(us: i64) -> String {
    let (date, second) = split(us);
    let (year, month, day) = date;
    let ms = us.rem_euclid(SECOND_US) / 1_000;
    format!(
        "{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}.{ms:03}Z",
        second / 3_600,
        second / 60 % 60,
        second % 60
    )
}

/// An instant as an HTTP date.
pub(crate) fn format_http_date(us: i64) -> String {
    let ((year, month, day), second) = split(us);
    let days = us.div_euclid(SECOND_US).div_euclid(DAY_S);
    // Both indices are remainders within their tables: rem_euclid(7) < 7, and a month is 1 to 12.
    let weekday = WEEKDAYS[usize::try_from(days.rem_euclid(7)).unwrap_or(0)];
    let month = MONTHS[usize::try_from(month - 1).unwrap_or(0)];
    format!(
        "{weekday}, {day:02} {month} {year:04} {:02}:{:02}:{:02} GMT",
        second / 3_600,
        second / 60 % 60,
        second % 60
    )
}

fn split(us: i64) -> ((i64, i64, i64), i64) {
    let seconds = us.div_euclid(SECOND_US);
    (
        civil_from_days(seconds.div_euclid(DAY_S)),
        seconds.rem_euclid(DAY_S),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_rfc3339() {
        for (text, want) in [
            ("1970-01-01T00:00:00Z", Some(0)),
            (
                "2019-11-16T10:11:12.634234626Z",
                Some(1_573_899_072_634_234),
            ),
            ("2019-05-06T17:15:34.121+02:00", Some(1_557_155_734_121_000)),
            ("2000-02-29T23:59:60-0030", Some(951_870_600_000_000)),
            ("2019-11-16T10:11:12", None),
            ("2019-13-16T10:11:12Z", None),
            ("2019-11-16T10:11:12.Z", None),
            ("20191116T101112Z", None),
            ("", None),
        ] {
            assert_eq!(parse_rfc3339(text.as_bytes()), want, "{text}");
        }
    }

    #[test]
    fn writes_what_it_reads() {
        for us in [
            0,
            951_870_600_000_000,
            1_573_899_072_634_000,
            1_709_164_800_000_000,
            4_102_444_799_999_000,
        ] {
            assert_eq!(parse_rfc3339(format_rfc3339(us).as_bytes()), Some(us));
            let whole = us - us % SECOND_US;
            assert_eq!(
                parse_http_date(format_http_date(whole).as_bytes()),
                Some(whole)
            );
        }
        assert_eq!(
            format_http_date(784_111_777_000_000),
            "Sun, 06 Nov 1994 08:49:37 GMT"
        );
    }
}

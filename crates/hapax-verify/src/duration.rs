//! Durations as configuration writes them: `200ms`, `10s`, `5m`, `72h`, `30d`.

const MS_US: i64 = 1_000;
const SECOND_US: i64 = 1_000_000;

/// Microseconds of a duration text, or nothing if it is not one.
pub(crate) fn parse_us(text: &str) -> Option<i64> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    let unit_us = match unit {
        "ms" => MS_US,
        "s" => SECOND_US,
        "m" => 60 * SECOND_US,
        "h" => 3_600 * SECOND_US,
        "d" => 86_400 * SECOND_US,
        _ => return None,
    };
    number.parse::<i64>().ok()?.checked_mul(unit_us)
}

#[cfg(test)]
mod tests {
    use super::parse_us;

    #[test]
    fn reads_the_units_of_the_configuration() {
        for (text, want) in [
            ("200ms", Some(200_000)),
            ("10s", Some(10_000_000)),
            ("5m", Some(300_000_000)),
            ("72h", Some(259_200_000_000)),
            ("30d", Some(2_592_000_000_000)),
            ("", None),
            ("5", None),
            ("m", None),
            ("-5m", None),
            ("5 m", None),
            ("99999999999999d", None),
        ] {
            assert_eq!(parse_us(text), want, "{text:?}");
        }
    }
}

//! Sizes as a config writes them: `64KiB`, `1MiB`.

/// The units of a size, in bytes. Powers of two only: whoever writes `1MB` may mean either.
const UNITS: [(&str, usize); 4] = [
    ("B", 1),
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
];

/// The bytes of a size, or nothing if the text is none.
pub(super) fn parse(text: &str) -> Option<usize> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    let (_, bytes) = UNITS.iter().find(|(name, _)| *name == unit)?;
    number.parse::<usize>().ok()?.checked_mul(*bytes)
}

/// A size in the largest unit that divides it.
pub(super) fn show(bytes: usize) -> String {
    let unit = UNITS
        .iter()
        .rev()
        .find(|(_, unit)| bytes != 0 && bytes.is_multiple_of(*unit));
    let (name, unit) = unit.unwrap_or(&UNITS[0]);
    format!("{}{name}", bytes / unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_and_written_as_a_config_has_them() {
        for (text, bytes) in [
            ("0B", 0),
            ("512B", 512),
            ("64KiB", 65_536),
            ("1MiB", 1_048_576),
            ("2GiB", 2_147_483_648),
        ] {
            assert_eq!(parse(text), Some(bytes), "{text}");
            assert_eq!(show(bytes), text);
        }
        for text in [
            "",
            "1",
            "1MB",
            "1 MiB",
            "-1MiB",
            "1.5MiB",
            "MiB",
            "99999999999999GiB",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}

//! The `Idempotency-Key` header.

use std::fmt;

/// The longest key.
pub const KEY_BYTES_MAX: usize = 255;

/// A key as the caller meant it, without the quotes that may stand around it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GuardKey(String);

impl GuardKey {
    /// Its text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for GuardKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// How a key is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyForm {
    /// As it is; quoted where it would be read as another key.
    Bare,
    /// As a string of structured fields, which is how the IETF draft has it.
    Quoted,
}

/// Writes a key down, always in the same way: whoever compares what they read byte by byte finds the same key.
pub fn write_key(key: &str, form: KeyForm) -> String {
    // Spaces around a bare key are no part of it, and a quote before it means another form.
    let reads_as_it_is = key.trim_ascii() == key && !key.starts_with('"');
    match form {
        KeyForm::Bare if reads_as_it_is => key.to_owned(),
        KeyForm::Bare | KeyForm::Quoted => {
            let escaped = key.replace('\\', "\\\\").replace('"', "\\\"");
            format!("\"{escaped}\"")
        }
    }
}

/// Why a request's key cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyProblem {
    /// More than one header: nobody can tell which one is meant.
    #[error("send one Idempotency-Key header, not several")]
    Several,
    /// Nothing in it.
    #[error("the Idempotency-Key is empty")]
    Empty,
    /// More than [`KEY_BYTES_MAX`].
    #[error("the Idempotency-Key is longer than {KEY_BYTES_MAX} bytes")]
    Long,
    /// Something other than printable ASCII.
    #[error("the Idempotency-Key may contain printable ASCII only")]
    Letters,
    /// It begins with a quote and is no quoted string.
    #[error("the Idempotency-Key begins with a quote but is not a quoted string")]
    Quotes,
}

/// Reads the key of a request from all its `Idempotency-Key` headers; `None` if there are none. The bare form and the
/// quoted form of structured fields are the same key.
pub fn parse_key<'a>(
    headers: impl IntoIterator<Item = &'a [u8]>,
) -> Result<Option<GuardKey>, KeyProblem> {
    let mut headers = headers.into_iter();
    let value = match (headers.next(), headers.next()) {
        (None, _) => return Ok(None),
        (Some(value), None) => value.trim_ascii(),
        (Some(_), Some(_)) => return Err(KeyProblem::Several),
    };
    if !value.iter().all(|byte| matches!(byte, b' '..=b'~')) {
        return Err(KeyProblem::Letters);
    }
    let key = match value {
        [b'"', rest @ ..] => unquote(rest)?,
        // Printable ASCII, so every byte is a character.
        bare => bare.iter().map(|byte| char::from(*byte)).collect(),
    };
    match key.len() {
        0 => Err(KeyProblem::Empty),
        1..=KEY_BYTES_MAX => Ok(Some(GuardKey(key))),
        _ => Err(KeyProblem::Long),
    }
}

/// A string of RFC 9651 behind its opening quote: `\"` and `\\` are the only escapes, and nothing may follow.
fn unquote(rest: &[u8]) -> Result<String, KeyProblem> {
    let mut text = String::new();
    let mut bytes = rest.iter();
    while let Some(byte) = bytes.next() {
        match byte {
            b'"' if bytes.as_slice().is_empty() => return Ok(text),
            b'"' => return Err(KeyProblem::Quotes),
            b'\\' => match bytes.next() {
                Some(escaped @ (b'"' | b'\\')) => text.push(char::from(*escaped)),
                _ => return Err(KeyProblem::Quotes),
            },
            plain => text.push(char::from(*plain)),
        }
    }
    Err(KeyProblem::Quotes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parse(value: &str) -> Result<String, KeyProblem> {
        let key = parse_key([value.as_bytes()]).map(|key| key.expect("one header"));
        key.map(|key| key.to_string())
    }

    #[test]
    fn the_bare_and_the_quoted_form_are_the_same_key() {
        let table = [
            ("abc", "abc"),
            ("\"abc\"", "abc"),
            ("  abc\t", "abc"),
            (r#""a\"b\\c""#, r#"a"b\c"#),
            (r#"a"b\c"#, r#"a"b\c"#),
            ("a b,c", "a b,c"),
        ];
        for (value, key) in table {
            assert_eq!(parse(value).as_deref(), Ok(key), "{value}");
        }
    }

    #[test]
    fn a_key_is_written_so_that_it_is_read_as_itself() {
        let table = [
            ("abc", "abc", r#""abc""#),
            (r#"a"b\c"#, r#"a"b\c"#, r#""a\"b\\c""#),
            // Bare, these would be other keys.
            (" abc", r#"" abc""#, r#"" abc""#),
            (r#""abc""#, r#""\"abc\"""#, r#""\"abc\"""#),
        ];
        for (key, bare, quoted) in table {
            for (form, want) in [(KeyForm::Bare, bare), (KeyForm::Quoted, quoted)] {
                let written = write_key(key, form);
                assert_eq!(written, want, "{key}");
                assert_eq!(parse(&written).as_deref(), Ok(key), "{key}");
            }
        }
    }

    #[test]
    fn malformed_keys_are_refused() {
        let long = "x".repeat(256);
        let table = [
            ("", KeyProblem::Empty),
            ("\"\"", KeyProblem::Empty),
            ("   ", KeyProblem::Empty),
            (long.as_str(), KeyProblem::Long),
            ("ü", KeyProblem::Letters),
            ("a\u{7f}", KeyProblem::Letters),
            ("\"abc", KeyProblem::Quotes),
            ("\"", KeyProblem::Quotes),
            ("\"a\" x", KeyProblem::Quotes),
            ("\"a\", \"b\"", KeyProblem::Quotes),
            (r#""a\n""#, KeyProblem::Quotes),
        ];
        for (value, problem) in table {
            assert_eq!(parse(value), Err(problem), "{value:.20}");
        }
        assert_eq!(parse_key([]), Ok(None));
        assert_eq!(parse_key([b"a".as_slice(), b"a"]), Err(KeyProblem::Several));
        assert_eq!(parse(&"x".repeat(255)).map(|key| key.len()), Ok(255));
    }

    proptest! {
        #[test]
        fn quoting_any_key_gives_the_same_key(key in "[!-~]([ -~]{0,40}[!-~])?") {
            let quoted = format!("\"{}\"", key.replace('\\', "\\\\").replace('"', "\\\""));
            prop_assert_eq!(parse(&quoted), Ok(key.clone()));
            prop_assert!(key.starts_with('"') || parse(&key) == Ok(key));
        }
    }
}

//! How values travel to PostgreSQL and back, where the driver's own ways do not fit.

use std::borrow::Cow;
use std::error::Error;
use std::fmt;

use bytes::{BufMut, BytesMut};
use tokio_postgres::types::{FromSql, IsNull, ToSql, Type, accepts, to_sql_checked};

/// Sixteen bytes as a `uuid`: ids and key hashes. Fixed size and compared as bytes, which `bytea` is not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Uuid(pub(super) [u8; 16]);

impl ToSql for Uuid {
    fn to_sql(&self, _: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        out.put_slice(&self.0);
        Ok(IsNull::No)
    }

    accepts!(UUID);
    to_sql_checked!();
}

impl<'a> FromSql<'a> for Uuid {
    fn from_sql(_: &Type, raw: &'a [u8]) -> Result<Uuid, Box<dyn Error + Sync + Send>> {
        Ok(Uuid(raw.try_into()?))
    }

    accepts!(UUID);
}

/// A SHA-256 as `bytea`, without a vector for each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Hash(pub(super) [u8; 32]);

impl ToSql for Hash {
    fn to_sql(&self, _: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        out.put_slice(&self.0);
        Ok(IsNull::No)
    }

    accepts!(BYTEA);
    to_sql_checked!();
}

impl<'a> FromSql<'a> for Hash {
    fn from_sql(_: &Type, raw: &'a [u8]) -> Result<Hash, Box<dyn Error + Sync + Send>> {
        Ok(Hash(raw.try_into()?))
    }

    accepts!(BYTEA);
}

/// A value that stays out of the log: with a kept statement the driver logs its values when asked for details (J2).
pub(super) struct Quiet<'a>(pub(super) &'a (dyn ToSql + Sync));

impl fmt::Debug for Quiet<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("_")
    }
}

impl ToSql for Quiet<'_> {
    fn to_sql(
        &self,
        of: &Type,
        out: &mut BytesMut,
    ) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        self.0.to_sql_checked(of, out)
    }

    // Which types the value can be is checked by the value.
    fn accepts(_: &Type) -> bool {
        true
    }

    to_sql_checked!();
}

/// Stands before what stands for a character that cannot be sent.
const ESCAPE: char = '\u{1a}';

/// Text as PostgreSQL can hold it. It refuses NUL, which JSON strings may contain, and one refused field would fail the whole
/// batch it is in (A6). Injective, so that equal means equal in the database too.
pub(super) fn sendable(text: &str) -> Cow<'_, str> {
    if !text.bytes().any(|byte| byte == 0 || byte == ESCAPE as u8) {
        return Cow::Borrowed(text);
    }
    let mut safe = String::with_capacity(text.len() + 2);
    for letter in text.chars() {
        match letter {
            '\0' => safe.extend([ESCAPE, '0']),
            ESCAPE => safe.extend([ESCAPE, '1']),
            other => safe.push(other),
        }
    }
    Cow::Owned(safe)
}

/// The text that was made sendable.
pub(super) fn received(text: String) -> String {
    if !text.contains(ESCAPE) {
        return text;
    }
    let mut plain = String::with_capacity(text.len());
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        match letter {
            ESCAPE => plain.push(if letters.next() == Some('0') {
                '\0'
            } else {
                ESCAPE
            }),
            other => plain.push(other),
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_comes_back_as_it_went_and_never_holds_a_nul() {
        for text in [
            "",
            "plain",
            "ü",
            "\0",
            "a\0b\u{1a}0",
            "\u{1a}",
            "\u{1a}1",
            "\0\0",
        ] {
            let safe = sendable(text);
            assert!(!safe.contains('\0'));
            assert_eq!(received(safe.into_owned()), text);
        }
        assert_ne!(sendable("\0"), sendable("\u{1a}0"));
    }
}

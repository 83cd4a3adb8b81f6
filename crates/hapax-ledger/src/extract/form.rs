//! Fields of a urlencoded form.

use std::borrow::Cow;

use super::{ExtractError, Scalar};
use crate::field::{Field, Place};

/// The values of the wanted fields. Of repeated names the last one counts, as in JSON.
pub(super) fn read<'a>(
    text: &'a str,
    fields: &[Field],
) -> Result<Vec<Option<Scalar<'a>>>, ExtractError> {
    let mut values = vec![None; fields.len()];
    for pair in text.split('&') {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let name = decode(name)?;
        for (field, slot) in fields.iter().zip(&mut values) {
            match field.place() {
                Place::Body { form_name, .. } if *form_name == *name => {
                    *slot = Some(Scalar::text(decode(value)?));
                }
                _ => {}
            }
        }
    }
    Ok(values)
}

/// Percent-decoding. A stray `%` stands for itself, as browsers read it; bytes that are not UTF-8 are an error,
/// since guessing a character could make two keys one.
fn decode(text: &str) -> Result<Cow<'_, str>, ExtractError> {
    if !text.contains(['%', '+']) {
        return Ok(Cow::Borrowed(text));
    }
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, tail)) = rest.split_first() {
        rest = tail;
        match (first, tail) {
            (b'+', _) => bytes.push(b' '),
            (b'%', [high, low, after @ ..]) => match (hex_digit(*high), hex_digit(*low)) {
                (Some(high), Some(low)) => {
                    bytes.push(high << 4 | low);
                    rest = after;
                }
                _ => bytes.push(b'%'),
            },
            (other, _) => bytes.push(*other),
        }
    }
    String::from_utf8(bytes)
        .map(Cow::Owned)
        .map_err(|_| ExtractError::NotText)
}

fn hex_digit(letter: u8) -> Option<u8> {
    (letter as char).to_digit(16).map(|digit| digit as u8)
}

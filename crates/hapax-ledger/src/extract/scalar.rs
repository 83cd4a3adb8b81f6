//! Single values: what may become part of a key, a condition or a version.

use std::borrow::Cow;

use crate::number::{Decimal, is_plain_integer};

/// What kind of JSON value a scalar was: `"1"` and `1` have one text, but a condition tells them apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScalarKind {
    /// A string, a form field or a header.
    Text,
    /// A number; its text is canonical.
    Number,
    /// `true` or `false`.
    Bool,
}

/// One value that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scalar<'a> {
    kind: ScalarKind,
    text: Cow<'a, str>,
}

impl<'a> Scalar<'a> {
    pub(super) fn text(text: Cow<'a, str>) -> Scalar<'a> {
        Scalar {
            kind: ScalarKind::Text,
            text,
        }
    }

    /// What it was.
    pub fn kind(&self) -> ScalarKind {
        self.kind
    }

    /// Its text: strings without quotes and escapes, numbers in canonical form.
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

/// The scalar in these bytes; null, objects and arrays are none.
pub(super) fn scalar(raw: &str) -> Option<Scalar<'_>> {
    match raw.as_bytes().first()? {
        b'"' => string(raw).map(Scalar::text),
        b't' | b'f' => Some(Scalar {
            kind: ScalarKind::Bool,
            text: Cow::Borrowed(raw),
        }),
        b'-' | b'0'..=b'9' => Some(Scalar {
            kind: ScalarKind::Number,
            text: canonical(raw),
        }),
        _ => None,
    }
}

fn string(raw: &str) -> Option<Cow<'_, str>> {
    let inner = raw.strip_prefix('"')?.strip_suffix('"')?;
    if inner.contains('\\') {
        // A lone surrogate is valid to skip but has no text: it counts as missing.
        serde_json::from_str::<String>(raw).ok().map(Cow::Owned)
    } else {
        Some(Cow::Borrowed(inner))
    }
}

fn canonical(raw: &str) -> Cow<'_, str> {
    match Decimal::parse(raw) {
        _ if is_plain_integer(raw) => Cow::Borrowed(raw),
        Some(number) => Cow::Owned(number.to_string()),
        None => Cow::Borrowed(raw),
    }
}

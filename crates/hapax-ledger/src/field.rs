//! Fields: the names by which a config points into a request.

use std::fmt;
use std::str::FromStr;

/// The deepest path. Payloads of real providers stay below ten; the bound keeps the extractor's recursion small.
pub const SEGMENTS_MAX: usize = 32;
/// What a field that reads a header starts with.
const HEADER_PREFIX: &str = "header.";

/// One place in a request: a path into its JSON body (`data.object.id`, `items.0.sku`), the name of a field if the body
/// is a urlencoded form, or a header (`header.x-shopify-topic`).
///
/// A backslash takes the next character as it is: `a\.b` is the member `a.b`, and `\header.x` is the member `x` of a
/// member `header`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Field {
    text: String,
    place: Place,
}

/// Where a field is looked for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Place {
    /// In the body. `form_name` is the path without escapes, as a form would name it.
    Body {
        segments: Vec<String>,
        form_name: String,
    },
    /// In a header, named in lower case.
    Header(String),
}

/// The text names no field.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadField {
    /// Nothing, or nothing between two dots.
    #[error("`{0}` has an empty part")]
    Empty(String),
    /// A path deeper than [`SEGMENTS_MAX`].
    #[error("`{0}` has more than {SEGMENTS_MAX} parts")]
    Deep(String),
    /// Not a header name.
    #[error("`{0}` does not name a header")]
    Header(String),
}

impl Field {
    /// The member with exactly these parts, dots and all.
    pub(crate) fn of_segments(segments: Vec<String>) -> Result<Field, BadField> {
        let escaped: Vec<String> = segments.iter().map(|part| escape(part)).collect();
        let mut text = escaped.join(".");
        if text.starts_with(HEADER_PREFIX) {
            text.insert(0, '\\');
        }
        let form_name = segments.join(".");
        if segments.iter().any(String::is_empty) || segments.is_empty() {
            return Err(BadField::Empty(text));
        }
        if segments.len() > SEGMENTS_MAX {
            return Err(BadField::Deep(text));
        }
        let place = Place::Body {
            segments,
            form_name,
        };
        Ok(Field { text, place })
    }

    /// The header with this name.
    pub fn header(name: &str) -> Result<Field, BadField> {
        let is_token =
            |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
        if name.is_empty() || !name.bytes().all(is_token) {
            return Err(BadField::Header(name.to_owned()));
        }
        let name = name.to_ascii_lowercase();
        Ok(Field {
            text: format!("{HEADER_PREFIX}{name}"),
            place: Place::Header(name),
        })
    }

    /// The field in one canonical text, which parses to the same field.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Does it read a header? What a header says is only as good as the signature that covers it (B4).
    pub fn is_header(&self) -> bool {
        matches!(self.place, Place::Header(_))
    }

    pub(crate) fn place(&self) -> &Place {
        &self.place
    }
}

fn escape(part: &str) -> String {
    part.replace('\\', "\\\\").replace('.', "\\.")
}

impl FromStr for Field {
    type Err = BadField;

    fn from_str(text: &str) -> Result<Field, BadField> {
        if let Some(name) = text.strip_prefix(HEADER_PREFIX) {
            return Field::header(name);
        }
        let mut segments = vec![String::new()];
        let mut letters = text.chars();
        while let Some(letter) = letters.next() {
            let Some(last) = segments.last_mut() else {
                break;
            };
            match letter {
                '.' => segments.push(String::new()),
                '\\' => last.push(
                    letters
                        .next()
                        .ok_or_else(|| BadField::Empty(text.to_owned()))?,
                ),
                plain => last.push(plain),
            }
        }
        Field::of_segments(segments)
    }
}

impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn segments(text: &str) -> Vec<String> {
        match text.parse::<Field>().expect(text).place() {
            Place::Body { segments, .. } => segments.clone(),
            Place::Header(name) => vec![format!("header: {name}")],
        }
    }

    #[test]
    fn paths_split_at_dots_that_are_not_escaped() {
        assert_eq!(segments("data.object.id"), ["data", "object", "id"]);
        assert_eq!(segments("items.0.sku"), ["items", "0", "sku"]);
        assert_eq!(segments(r"a\.b.c"), ["a.b", "c"]);
        assert_eq!(segments(r"\header.x"), ["header", "x"]);
        assert_eq!(segments("header"), ["header"]);
        assert_eq!(
            segments("header.X-Shopify-Topic"),
            ["header: x-shopify-topic"]
        );
    }

    #[test]
    fn empty_parts_deep_paths_and_bad_headers_are_refused() {
        for text in ["", ".", "a.", ".a", "a..b", "header.", "header.a b", r"a\"] {
            assert!(text.parse::<Field>().is_err(), "{text}");
        }
        let deep = vec!["a"; SEGMENTS_MAX + 1].join(".");
        assert_eq!(deep.parse::<Field>(), Err(BadField::Deep(deep)));
    }

    proptest! {
        #[test]
        fn the_text_parses_to_the_same_field(parts in prop::collection::vec("[a\\\\.hed r]{1,8}|header", 1..5)) {
            let field = Field::of_segments(parts).expect("no empty part");
            prop_assert_eq!(field.text().parse::<Field>(), Ok(field.clone()));
        }
    }
}

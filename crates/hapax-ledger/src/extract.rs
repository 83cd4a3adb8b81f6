//! The extractor: all wanted fields out of a body in one pass, everything else skipped.
//!
//! A parsed tree of a 2 kB event costs more than the rest of its intake together. So the wanted paths are a trie; the
//! parser walks both at once, keeps the bytes of the leaves, and builds nothing else.

use serde_json::value::RawValue;

use crate::field::{Field, Place};

mod form;
mod scalar;
mod trie;

use scalar::scalar;
pub use scalar::{Scalar, ScalarKind};
use trie::Trie;

/// How a body is to be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyFormat {
    /// JSON.
    Json,
    /// `application/x-www-form-urlencoded`.
    Form,
    /// Anything else: no field can be found in it, headers apart.
    Opaque,
}

impl BodyFormat {
    /// The format that a `Content-Type` announces. Without one, a webhook is taken for JSON.
    pub fn of_content_type(content_type: Option<&str>) -> BodyFormat {
        let essence = content_type.and_then(|text| text.split(';').next());
        match essence
            .map(|text| text.trim().to_ascii_lowercase())
            .as_deref()
        {
            None | Some("" | "application/json" | "text/json" | "text/plain") => BodyFormat::Json,
            Some("application/x-www-form-urlencoded") => BodyFormat::Form,
            Some(other) if other.ends_with("+json") => BodyFormat::Json,
            Some(_) => BodyFormat::Opaque,
        }
    }
}

/// Where header fields are looked up; the names asked for are in lower case.
pub trait HeaderLookup {
    /// The value of the header, if it is there once and is text.
    fn header(&self, name: &str) -> Option<&str>;
}

/// No headers at all.
#[derive(Clone, Copy, Debug)]
pub struct NoHeaders;

impl HeaderLookup for NoHeaders {
    fn header(&self, _name: &str) -> Option<&str> {
        None
    }
}

impl HeaderLookup for [(&str, &str)] {
    fn header(&self, name: &str) -> Option<&str> {
        let mut found = self
            .iter()
            .filter(|(other, _)| other.eq_ignore_ascii_case(name));
        match (found.next(), found.next()) {
            (Some((_, value)), None) => Some(value),
            _ => None,
        }
    }
}

/// Why nothing could be read from a body.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ExtractError {
    /// The bytes are not UTF-8.
    #[error("the body is not UTF-8")]
    NotText,
    /// The bytes are not what their format says.
    #[error("the body is malformed: {0}")]
    Malformed(String),
    /// A batch was expected at this place.
    #[error("no array at `{0}`")]
    NoArray(String),
}

/// The place of a field in its [`Fields`] and in what they extract.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Slot(u16);

impl Slot {
    /// Its position.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// A set of fields, compiled so that one pass over a body finds them all.
#[derive(Clone, Debug, Default)]
pub struct Fields {
    fields: Vec<Field>,
    trie: Trie,
}

impl Fields {
    /// An empty set.
    pub fn new() -> Fields {
        Fields::default()
    }

    /// A set of these fields, in this order.
    pub fn of<'f>(fields: impl IntoIterator<Item = &'f Field>) -> Fields {
        let mut set = Fields::new();
        for field in fields {
            set.add(field);
        }
        set
    }

    /// Adds a field, and says where its value will be. A field that is known keeps its slot.
    pub fn add(&mut self, field: &Field) -> Slot {
        let known = self.fields.iter().position(|other| other == field);
        let index = known.unwrap_or_else(|| {
            if let Place::Body { segments, .. } = field.place() {
                self.trie.insert(segments, self.fields.len());
            }
            self.fields.push(field.clone());
            self.fields.len() - 1
        });
        // A config with 65,536 different fields does not exist; were there one, its last fields would share a slot
        // that stays missing, and nothing would be identified by it.
        Slot(u16::try_from(index).unwrap_or(u16::MAX))
    }

    /// The field of a slot.
    pub fn field(&self, slot: Slot) -> Option<&Field> {
        self.fields.get(slot.index())
    }

    /// How many fields there are.
    pub fn len(&self) -> usize {
        self.fields.len()
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = &Field> {
        self.fields.iter()
    }

    /// Are there none?
    pub fn is_empty(&self) -> bool {
        self.fields.is_empty()
    }

    /// Reads all fields of a request in one pass. Missing fields are no error; a malformed body is one.
    pub fn extract<'a>(
        &self,
        format: BodyFormat,
        body: &'a [u8],
        headers: &'a (impl HeaderLookup + ?Sized),
    ) -> Result<Extracted<'a>, ExtractError> {
        let mut values = match format {
            // Where only headers are asked for, the body need not be what it says.
            _ if self.trie.is_empty() => vec![None; self.fields.len()],
            BodyFormat::Json => {
                let raw = self.raw(text_of(body)?)?;
                raw.into_iter().map(|raw| raw.and_then(scalar)).collect()
            }
            BodyFormat::Form => form::read(text_of(body)?, &self.fields)?,
            BodyFormat::Opaque => vec![None; self.fields.len()],
        };
        for (field, value) in self.fields.iter().zip(&mut values) {
            if let Place::Header(name) = field.place() {
                *value = headers.header(name).map(|text| Scalar::text(text.into()));
            }
        }
        Ok(Extracted { values })
    }

    /// The bytes of every body field, whatever stands there.
    pub(crate) fn raw<'a>(&self, text: &'a str) -> Result<Vec<Option<&'a str>>, ExtractError> {
        self.trie.walk(text, self.fields.len())
    }
}

fn text_of(body: &[u8]) -> Result<&str, ExtractError> {
    std::str::from_utf8(body).map_err(|_| ExtractError::NotText)
}

pub(crate) fn malformed(error: &serde_json::Error) -> ExtractError {
    ExtractError::Malformed(error.to_string())
}

/// The values of a set of fields in one request.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Extracted<'a> {
    values: Vec<Option<Scalar<'a>>>,
}

impl Extracted<'_> {
    /// The text of a field, if it is there.
    pub fn get(&self, slot: Slot) -> Option<&str> {
        self.scalar(slot).map(Scalar::as_str)
    }

    /// The text of a field, if it is there and says something: what may become part of a key.
    pub fn filled(&self, slot: Slot) -> Option<&str> {
        self.get(slot).filter(|text| !text.is_empty())
    }

    /// A field with its kind, if it is there.
    pub fn scalar(&self, slot: Slot) -> Option<&Scalar<'_>> {
        self.values.get(slot.index())?.as_ref()
    }
}

/// The elements of a batch: the bytes of each, as they came. Without a path the body itself is the array.
pub fn split_batch<'a>(
    body: &'a [u8],
    path: Option<&Field>,
) -> Result<Vec<&'a [u8]>, ExtractError> {
    let text = text_of(body)?;
    let no_array = || ExtractError::NoArray(path.map_or("the root", Field::text).to_owned());
    let array = match path {
        None => {
            serde_json::from_str::<&RawValue>(text).map_err(|error| malformed(&error))?;
            text
        }
        Some(field) => {
            let found = Fields::of([field]).raw(text)?;
            found.into_iter().next().flatten().ok_or_else(no_array)?
        }
    };
    let elements = serde_json::from_str::<Vec<&RawValue>>(array).map_err(|_| no_array())?;
    Ok(elements
        .into_iter()
        .map(|element| element.get().as_bytes())
        .collect())
}

#[cfg(test)]
mod tests;

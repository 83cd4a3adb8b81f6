//! JSON bodies whose fields are signed: parsed strictly, because two readers that disagree about a doubled field are a
//! forgery waiting to happen.

use std::borrow::Cow;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

/// A place in a JSON document: `a.b.0.c`. `*` stands for every element.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Path(Vec<String>);

/// An array whose elements do not all have what the path names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ragged;

impl Path {
    /// The empty text is the document itself.
    pub(crate) fn new(text: &str) -> Path {
        if text.is_empty() {
            return Path(Vec::new());
        }
        Path(text.split('.').map(str::to_owned).collect())
    }

    pub(crate) fn first<'v>(&self, value: &'v Value) -> Option<&'v Value> {
        self.0.iter().try_fold(value, |at, name| child(at, name))
    }

    /// Every value the path leads to, in order; none if it leads nowhere.
    ///
    /// # Errors
    /// [`Ragged`] if some elements of an array have the value and others do not: an element that is passed over in
    /// silence is one that nobody vouches for.
    pub(crate) fn every<'v>(&self, value: &'v Value) -> Result<Vec<&'v Value>, Ragged> {
        let mut at = vec![value];
        let mut in_array = false;
        for name in &self.0 {
            let mut next = Vec::with_capacity(at.len());
            for value in at {
                match (name.as_str(), value) {
                    ("*", Value::Array(items)) => next.extend(items),
                    ("*", _) => return Err(Ragged),
                    (name, value) => match child(value, name) {
                        Some(value) => next.push(value),
                        None if in_array => return Err(Ragged),
                        None => return Ok(Vec::new()),
                    },
                }
            }
            in_array |= name == "*";
            at = next;
        }
        Ok(at)
    }

    /// As [`Path::every`], to change the values.
    pub(crate) fn every_mut<'v>(&self, value: &'v mut Value) -> Vec<&'v mut Value> {
        let mut at = vec![value];
        for name in &self.0 {
            at = at
                .into_iter()
                .flat_map(|value| match (name.as_str(), value) {
                    ("*", Value::Array(items)) => items.iter_mut().collect(),
                    (name, Value::Object(map)) => map.get_mut(name).into_iter().collect(),
                    (name, Value::Array(items)) => index(name)
                        .and_then(|i| items.get_mut(i))
                        .into_iter()
                        .collect::<Vec<_>>(),
                    _ => Vec::new(),
                })
                .collect();
        }
        at
    }

    /// Puts a value at this place, making objects on the way; false if something else is in the way.
    pub(crate) fn set(&self, root: &mut Value, value: Value) -> bool {
        let mut at = root;
        for name in &self.0 {
            let Value::Object(map) = at else { return false };
            at = map
                .entry(name.clone())
                .or_insert_with(|| Value::Object(Map::new()));
        }
        *at = value;
        true
    }
}

fn index(name: &str) -> Option<usize> {
    name.parse().ok()
}

fn child<'v>(value: &'v Value, name: &str) -> Option<&'v Value> {
    match value {
        Value::Object(map) => map.get(name),
        Value::Array(items) => items.get(index(name)?),
        _ => None,
    }
}

/// A scalar as text: strings without quotes, numbers and booleans as JSON writes them.
pub(crate) fn scalar(value: &Value) -> Option<Cow<'_, str>> {
    match value {
        Value::String(text) => Some(Cow::Borrowed(text)),
        Value::Number(number) => Some(Cow::Owned(number.to_string())),
        Value::Bool(true) => Some(Cow::Borrowed("true")),
        Value::Bool(false) => Some(Cow::Borrowed("false")),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

/// Parses a document in which no object names a field twice.
pub(crate) fn parse_strict(body: &[u8]) -> Option<Value> {
    let mut deserializer = serde_json::Deserializer::from_slice(body);
    let value = Strict.deserialize(&mut deserializer).ok()?;
    deserializer.end().ok()?;
    Some(value)
}

struct Strict;

impl<'de> DeserializeSeed<'de> for Strict {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(Strict)
    }
}

impl<'de> Visitor<'de> for Strict {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value without doubled fields")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Number::from_f64(value).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Value, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = seq.next_element_seed(Strict)? {
            items.push(item);
        }
        Ok(Value::Array(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let mut object = Map::new();
        while let Some(name) = map.next_key::<String>()? {
            let value = map.next_value_seed(Strict)?;
            if object.insert(name, value).is_some() {
                return Err(A::Error::custom("a field is doubled"));
            }
        }
        Ok(Value::Object(object))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_doubled_field_is_refused_at_every_depth() {
        assert!(parse_strict(br#"{"a":1,"b":{"a":1}}"#).is_some());
        assert!(parse_strict(br#"{"a":1,"a":1}"#).is_none());
        assert!(parse_strict(br#"[{"b":{"a":1,"\u0061":2}}]"#).is_none());
        assert!(parse_strict(br"{} {}").is_none());
        assert!(parse_strict(b"").is_none());
    }

    #[test]
    fn paths_lead_where_they_say() {
        let value: Value = parse_strict(br#"{"a":[{"b":1},{"b":2}]}"#).unwrap_or_default();
        assert_eq!(Path::new("a.1.b").first(&value), Some(&Value::from(2)));
        assert_eq!(Path::new("a.*.b").every(&value).map(|all| all.len()), Ok(2));
        assert_eq!(Path::new("x.*.b").every(&value), Ok(vec![]));
        assert_eq!(Path::new("a.*.c").every(&value), Err(Ragged));
        assert_eq!(Path::new("a.0.*").every(&value), Err(Ragged));
        assert_eq!(Path::new("a.b").first(&value), None);
        assert_eq!(Path::new("").first(&value), Some(&value));
    }
}

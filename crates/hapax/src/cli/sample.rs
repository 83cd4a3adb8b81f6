//! The event that `hapax send` sends: the provider's sample, a file, or one made from the fields of a custom source.

use hapax_ledger::field::Field;
use hapax_verify::provider::{SampleInput, SampleRequest};
use serde_json::{Map, Value};

use super::exit::{Exit, Failure};
use crate::config::SourceConfig;

/// What to send.
pub(super) struct Wanted<'a> {
    /// The event's id.
    pub(super) id: &'a str,
    /// The id of the object that it is about.
    pub(super) object: &'a str,
    /// Its type, if the caller chose one.
    pub(super) event_type: Option<&'a str>,
    /// The body, if the caller has one.
    pub(super) body: Option<&'a [u8]>,
    /// The time of the event, in unix microseconds.
    pub(super) at: i64,
}

/// The type of an event that nobody named.
const TYPE_DEFAULT: &str = "sample";

/// The request, not signed yet.
pub(super) fn build(source: &SourceConfig, wanted: &Wanted<'_>) -> Result<SampleRequest, Failure> {
    if let Some(body) = wanted.body {
        let mut request = SampleRequest {
            body: body.to_vec(),
            headers: vec![("content-type".to_owned(), content_type(body).to_owned())],
        };
        header_fields(source, wanted, &mut request);
        return Ok(request);
    }
    let Some(preset) = source.preset else {
        return Ok(made(source, wanted));
    };
    let input = SampleInput {
        id: wanted.id,
        event_type: wanted.event_type,
        object: wanted.object,
        now: wanted.at,
    };
    preset.sample_request(&input).ok_or_else(|| {
        let text = format!("there is no sample event of {}", preset.title);
        Failure::new(Exit::Usage, "H0404", text, "give a body with --data FILE")
    })
}

fn content_type(body: &[u8]) -> &'static str {
    match serde_json::from_slice::<serde::de::IgnoredAny>(body) {
        Ok(_) => "application/json",
        Err(_) => "application/x-www-form-urlencoded",
    }
}

/// Type and id where the source looks for them in headers.
fn header_fields(source: &SourceConfig, wanted: &Wanted<'_>, request: &mut SampleRequest) {
    let id = source.provider_id.as_ref().map(|id| &id.field);
    let fields = [
        (source.event_type.as_ref(), wanted.event_type),
        (id, Some(wanted.id)),
    ];
    for (field, value) in fields {
        let name = field.and_then(|field| field.text().strip_prefix("header."));
        if let (Some(name), Some(value)) = (name, value) {
            request.headers.push((name.to_owned(), value.to_owned()));
        }
    }
}

/// A JSON body with every field that the source asks for.
fn made(source: &SourceConfig, wanted: &Wanted<'_>) -> SampleRequest {
    let event_type = wanted.event_type.unwrap_or(TYPE_DEFAULT);
    let mut body = Map::new();
    let mut request = SampleRequest {
        body: Vec::new(),
        headers: vec![("content-type".to_owned(), "application/json".to_owned())],
    };
    let id = source.provider_id.as_ref().map(|id| &id.field);
    let objects = source
        .key
        .iter()
        .chain(&source.entity)
        .map(|field| (field, wanted.object));
    // Type and id come last: where the key names the same field, they are what it holds.
    let fields = objects
        .chain(id.map(|field| (field, wanted.id)))
        .chain(source.event_type.as_ref().map(|field| (field, event_type)));
    for (field, value) in fields {
        match field.text().strip_prefix("header.") {
            Some(name) => {
                request.headers.retain(|(have, _)| have != name);
                request.headers.push((name.to_owned(), value.to_owned()));
            }
            None => set(&mut body, &parts(field), value),
        }
    }
    if body.is_empty() {
        body.insert("id".to_owned(), wanted.id.into());
    }
    request.body = Value::Object(body).to_string().into_bytes();
    request
}

/// The members on the way to a field.
fn parts(field: &Field) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut letters = field.text().chars();
    while let Some(letter) = letters.next() {
        let last = parts.len() - 1;
        match letter {
            '.' => parts.push(String::new()),
            '\\' => parts[last].extend(letters.next()),
            plain => parts[last].push(plain),
        }
    }
    parts
}

fn set(object: &mut Map<String, Value>, parts: &[String], value: &str) {
    match parts {
        [] => {}
        [last] => {
            object.insert(last.clone(), value.into());
        }
        [first, rest @ ..] => {
            let inner = object
                .entry(first.clone())
                .or_insert_with(|| Map::new().into());
            if !inner.is_object() {
                *inner = Map::new().into();
            }
            if let Some(inner) = inner.as_object_mut() {
                set(inner, rest, value);
            }
        }
    }
}

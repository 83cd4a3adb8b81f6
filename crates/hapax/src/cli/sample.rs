//! The event that `hapax send` sends: the provider's sample, a file, or one made from the fields of a custom source.

use hapax_ledger::field::Field;
use hapax_verify::provider::{SampleInput, SampleRequest};
use serde_json::{Map, Value};

use super::exit::{Exit, Failure};
use super::output;
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
        id_header(source, wanted, &mut request);
        if let Some(event_type) = wanted.event_type {
            set_type(source, event_type, &mut request)?;
        }
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

/// The id, if the source looks for it in a header.
fn id_header(source: &SourceConfig, wanted: &Wanted<'_>, request: &mut SampleRequest) {
    let id = source.provider_id.as_ref();
    if let Some(name) = id.and_then(|id| id.field.text().strip_prefix("header.")) {
        let header = (name.to_owned(), wanted.id.to_owned());
        request.headers.push(header);
    }
}

/// Puts the type where the source looks for it. A body that has it already stays as it is, byte for byte.
fn set_type(
    source: &SourceConfig,
    event_type: &str,
    request: &mut SampleRequest,
) -> Result<(), Failure> {
    let Some(field) = &source.event_type else {
        return Err(no_type(source, "nothing says where the type stands"));
    };
    if let Some(name) = field.text().strip_prefix("header.") {
        let header = (name.to_owned(), event_type.to_owned());
        request.headers.push(header);
        return Ok(());
    }
    if source.batch.is_some() {
        let why = "a body holds several events, each with a type of its own";
        return Err(no_type(source, why));
    }
    let Ok(Value::Object(mut body)) = serde_json::from_slice(&request.body) else {
        let why = format!("it stands in `{field}` of a JSON object, and the data is none");
        return Err(no_type(source, &why));
    };
    let before = body.clone();
    if !set(&mut body, &parts(field), event_type) {
        let why = format!("something else than an object is on the way to `{field}`");
        return Err(no_type(source, &why));
    }
    if body != before {
        output::talk(&format!(
            "--type sets `{field}` in the data; the rest of it is the same, written again"
        ));
        request.body = Value::Object(body).to_string().into_bytes();
    }
    Ok(())
}

fn no_type(source: &SourceConfig, why: &str) -> Failure {
    let text = format!("--type cannot be set for `{}`: {why}", source.name);
    let help = "leave --type out, and write the type into the data yourself";
    Failure::new(Exit::Usage, "H0404", text, help)
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
    // What order compares rises from event to event, as a time does.
    let version = (wanted.at / 1_000_000).to_string();
    let objects = source
        .fields
        .iter()
        .chain(&source.key)
        .chain(&source.entity)
        .map(|field| (field, wanted.object))
        .chain(source.version.as_ref().map(|field| (field, &*version)));
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
            None => {
                let parts = parts(field);
                if !set(&mut body, &parts, value) {
                    // Another field holds a text where this one needs an object; type and id are what counts.
                    body.remove(&parts[0]);
                    set(&mut body, &parts, value);
                }
            }
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

/// Sets a field; false if something that is not an object is on the way.
fn set(object: &mut Map<String, Value>, parts: &[String], value: &str) -> bool {
    match parts {
        [] => false,
        [last] => {
            object.insert(last.clone(), value.into());
            true
        }
        [first, rest @ ..] => {
            let inner = object
                .entry(first.clone())
                .or_insert_with(|| Map::new().into());
            inner
                .as_object_mut()
                .is_some_and(|inner| set(inner, rest, value))
        }
    }
}

//! Sample events: what `hapax send` puts on the wire.

use serde::Deserialize;

use super::Provider;
use crate::civil;
use crate::form;

/// A body with places to fill in.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sample {
    /// The event type, unless the caller has another.
    #[serde(rename = "type")]
    pub event_type: String,
    /// The body. `{id}`, `{type}` and `{object}` are texts, `{now}` is unix seconds, `{now_ms}` milliseconds,
    /// `{now_rfc3339}` a text.
    pub body: String,
    /// Its content type.
    #[serde(default = "json")]
    pub content_type: String,
}

fn json() -> String {
    "application/json".to_owned()
}

/// What goes into a sample.
#[derive(Debug, Clone, Copy)]
pub struct SampleInput<'a> {
    /// The event id.
    pub id: &'a str,
    /// The event type; the sample's own if there is none.
    pub event_type: Option<&'a str>,
    /// The id of the object that the event is about.
    pub object: &'a str,
    /// The time of the event in unix microseconds.
    pub now: i64,
}

/// A sample request, not signed yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SampleRequest {
    /// The body.
    pub body: Vec<u8>,
    /// Content type, and the headers in which this provider sends type and id.
    pub headers: Vec<(String, String)>,
}

impl Provider {
    /// A sample event of this provider, if there is a template for one.
    #[must_use]
    pub fn sample_request(&self, input: &SampleInput<'_>) -> Option<SampleRequest> {
        let sample = self.sample.as_ref()?;
        let event_type = input.event_type.unwrap_or(&sample.event_type);
        let escape = |text: &str| match sample.content_type.as_str() {
            "application/x-www-form-urlencoded" => form::encode(text),
            _ => json_text(text),
        };
        let body = sample
            .body
            .replace("{id}", &escape(input.id))
            .replace("{type}", &escape(event_type))
            .replace("{object}", &escape(input.object))
            .replace("{now}", &(input.now / 1_000_000).to_string())
            .replace("{now_ms}", &(input.now / 1_000).to_string())
            .replace("{now_rfc3339}", &civil::format_rfc3339(input.now));
        let mut headers = vec![("content-type".to_owned(), sample.content_type.clone())];
        let event_id = self.event_id.as_ref().map(|fact| &fact.field);
        for (field, value) in [(self.event_type.as_ref(), event_type), (event_id, input.id)] {
            if let Some(name) = field.and_then(|field| field.header()) {
                headers.push((name.to_owned(), value.to_owned()));
            }
        }
        Some(SampleRequest {
            body: body.into_bytes(),
            headers,
        })
    }
}

/// Text as it stands between the quotes of a JSON string.
fn json_text(text: &str) -> String {
    let quoted = serde_json::Value::from(text).to_string();
    quoted[1..quoted.len() - 1].to_owned()
}

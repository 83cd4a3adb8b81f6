//! The signed content of one request, rendered piece by piece into a hash: nothing is copied.

use std::borrow::Cow;

use serde_json::Value;

use crate::form::Form;
use crate::json;
use crate::mac::Sink;
use crate::refusal::Refusal;
use crate::request::{HeaderValue, Request};
use crate::template::{Part, Template};
use crate::url::{self, UrlForm};

/// The most headers a request may list as signed.
const SIGNED_HEADERS_MAX: usize = 64;

/// Everything a template may name.
pub(crate) struct Content<'a> {
    pub(crate) template: &'a Template,
    pub(crate) request: &'a Request<'a>,
    pub(crate) timestamp: Option<&'a [u8]>,
    /// The header that carries the timestamp, which a list of signed headers must not leave out.
    pub(crate) timestamp_header: Option<&'a str>,
    pub(crate) id: Option<&'a [u8]>,
    pub(crate) url: UrlForm,
    pub(crate) json: Option<&'a Value>,
    pub(crate) form: Option<&'a Form>,
    /// The body is vouched for by a hash in the URL, so that it is no form.
    pub(crate) body_by_digest: bool,
}

impl Content<'_> {
    /// Writes the content; a part that the request does not have is a refusal.
    pub(crate) fn render(&self, sink: &mut dyn Sink) -> Result<(), Refusal> {
        self.template
            .parts
            .iter()
            .try_for_each(|part| self.put(part, sink))
    }

    fn put(&self, part: &Part, sink: &mut dyn Sink) -> Result<(), Refusal> {
        match part {
            Part::Literal(bytes) => sink.put(bytes),
            Part::Body => sink.put(self.request.body),
            Part::Timestamp => sink.put(self.timestamp.ok_or(Refusal::MissingTimestamp)?),
            Part::Id => sink.put(self.id.ok_or(Refusal::MissingPart)?),
            Part::Url => sink.put(self.url.apply(self.url()?).as_bytes()),
            Part::Path => sink.put(url::path_and_query(self.url()?).as_bytes()),
            Part::Method => sink.put(self.request.method.as_bytes()),
            Part::MethodLower => sink.put(self.request.method.to_ascii_lowercase().as_bytes()),
            Part::Header(name) => sink.put(one(self.request, name, Refusal::MissingPart)?),
            Part::BodyField { path, optional } => {
                let text = self
                    .json
                    .and_then(|json| path.first(json))
                    .and_then(json::scalar);
                match (text, optional) {
                    (Some(text), _) => sink.put(text.as_bytes()),
                    (None, true) => {}
                    (None, false) => return Err(Refusal::MissingPart),
                }
            }
            Part::FormField(name) => {
                let value = self.form.and_then(|form| form.one(name));
                sink.put(value.ok_or(Refusal::MissingPart)?);
            }
            Part::Query(name) => {
                let query = Form::parse(url::query(self.url()?).as_bytes());
                sink.put(query.one(name).ok_or(Refusal::MissingPart)?);
            }
            Part::SortedForm { unique } => self.put_form(*unique, sink),
            Part::SignedHeaders(name) => self.put_signed_headers(name, sink)?,
            Part::Secret => sink.put_secret(),
        }
        Ok(())
    }

    fn url(&self) -> Result<&str, Refusal> {
        self.request.url.ok_or(Refusal::MissingPart)
    }

    fn put_form(&self, unique: bool, sink: &mut dyn Sink) {
        let Some(form) = self.form.filter(|_| !self.body_by_digest) else {
            return;
        };
        let pairs = if unique {
            form.sorted_unique()
        } else {
            form.sorted()
        };
        for (name, value) in pairs {
            sink.put(name);
            sink.put(value);
        }
    }

    fn put_signed_headers(&self, list: &str, sink: &mut dyn Sink) -> Result<(), Refusal> {
        let list = one(self.request, list, Refusal::MissingPart)?;
        let list = std::str::from_utf8(list).map_err(|_| Refusal::MalformedSignature)?;
        let mut names: Vec<String> = list
            .split(',')
            .map(|name| name.trim().to_ascii_lowercase())
            .collect();
        names.sort_unstable();
        if names.len() > SIGNED_HEADERS_MAX {
            return Err(Refusal::MalformedSignature);
        }
        let has_time = |header| names.iter().any(|name| name == header);
        if !self.timestamp_header.is_none_or(has_time) {
            return Err(Refusal::MissingTimestamp);
        }
        for (index, name) in names.iter().enumerate() {
            if index > 0 {
                sink.put(b";");
            }
            sink.put(name.as_bytes());
            sink.put(b":");
            sink.put(one(self.request, name, Refusal::MissingPart)?.trim_ascii());
        }
        Ok(())
    }
}

/// The value of a header that must be there once.
pub(crate) fn one<'a>(
    request: &Request<'a>,
    name: &str,
    missing: Refusal,
) -> Result<&'a [u8], Refusal> {
    match request.headers.get(name) {
        HeaderValue::One(value) => Ok(value),
        HeaderValue::Missing => Err(missing),
        HeaderValue::Many => Err(Refusal::RepeatedHeader),
    }
}

/// A scalar of the JSON body as bytes.
pub(crate) fn scalar_bytes<'v>(value: &'v Value) -> Option<Cow<'v, [u8]>> {
    json::scalar(value).map(|text| match text {
        Cow::Borrowed(text) => Cow::Borrowed(text.as_bytes()),
        Cow::Owned(text) => Cow::Owned(text.into_bytes()),
    })
}

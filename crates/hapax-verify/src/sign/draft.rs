//! A request in the making: whatever the signed content names is filled in before it is signed.

use std::borrow::Cow;

use serde_json::Value;

use super::{SignError, SignInput, Signed};
use crate::form::{self, Form};
use crate::json::{self, Path};
use crate::mac;
use crate::refusal::Refusal;
use crate::request::{Headers, Request};
use crate::scheme::{Digest, DigestPlace, Layout, Place, TimePlace, TimeUnit};
use crate::template::Part;
use crate::url::{self, UrlForm};
use crate::verify::Content;

pub(super) struct Draft<'a> {
    pub(super) input: &'a SignInput<'a>,
    headers: Vec<(String, String)>,
    body: Cow<'a, [u8]>,
    url: Option<Cow<'a, str>>,
}

impl<'a> Draft<'a> {
    pub(super) fn new(input: &'a SignInput<'a>) -> Draft<'a> {
        Draft {
            input,
            headers: Vec::new(),
            body: Cow::Borrowed(input.body),
            url: input.url.map(Cow::Borrowed),
        }
    }

    pub(super) fn finish(self) -> Signed {
        Signed {
            headers: self.headers,
            body: match self.body {
                Cow::Owned(body) => Some(body),
                Cow::Borrowed(_) => None,
            },
            url: match self.url {
                Some(Cow::Owned(url)) => Some(url),
                _ => None,
            },
        }
    }

    pub(super) fn body(&self) -> &[u8] {
        &self.body
    }

    pub(super) fn url(&self) -> Option<&str> {
        self.url.as_deref()
    }

    pub(super) fn json(&self) -> Option<Value> {
        json::parse_strict(&self.body)
    }

    pub(super) fn set_json(&mut self, json: &Value) {
        self.body = Cow::Owned(json.to_string().into_bytes());
    }

    pub(super) fn set_header(&mut self, name: &str, value: String) {
        self.headers.retain(|(have, _)| have != name);
        self.headers.push((name.to_owned(), value));
    }

    /// Puts the finished signature or token where the scheme looks for it.
    pub(super) fn place(&mut self, place: &Place, text: String) -> Result<(), SignError> {
        match place {
            Place::Headers(names) => {
                let name = names.first().map_or("", String::as_str);
                self.set_header(name, text);
                Ok(())
            }
            Place::Body(path) => self.set_field(path, text.into()),
            Place::Form(name) => {
                let mut body = self.body.clone().into_owned();
                append(&mut body, name, &text);
                self.body = Cow::Owned(body);
                Ok(())
            }
            Place::Query(name) => {
                self.add_query(name, &text);
                Ok(())
            }
            Place::WholeBody => {
                self.body = Cow::Owned(text.into_bytes());
                Ok(())
            }
        }
    }

    fn set_field(&mut self, path: &Path, value: Value) -> Result<(), SignError> {
        let mut json = self.json().ok_or(SignError::BodyNotJson)?;
        let places = path.every_mut(&mut json);
        if places.is_empty() {
            if !path.set(&mut json, value) {
                return Err(SignError::BodyNotJson);
            }
        } else {
            for place in places {
                *place = value.clone();
            }
        }
        self.set_json(&json);
        Ok(())
    }

    fn add_query(&mut self, name: &str, value: &str) {
        if let Some(url) = &self.url {
            let mark = if url.contains('?') { '&' } else { '?' };
            let value = form::encode(value);
            self.url = Some(Cow::Owned(format!("{url}{mark}{name}={value}")));
        }
    }

    /// Fills in what the signed content names and the request lacks; an id serves where any text does.
    pub(super) fn prepare(&mut self, layout: &Layout) -> Result<(), SignError> {
        if let Some(name) = &layout.id {
            self.set_header(name, self.input.id.to_owned());
        }
        self.prepare_time(layout)?;
        if let Some(digest) = &layout.digest {
            self.prepare_digest(digest);
        }
        for part in &layout.template.parts {
            match part {
                Part::Header(name) if self.lacks(name) => {
                    self.set_header(name, self.input.id.to_owned());
                }
                Part::SignedHeaders(name) => {
                    let time = match layout.timestamp.as_ref().map(|t| &t.place) {
                        Some(TimePlace::Header(time)) => format!(",{time}"),
                        _ => String::new(),
                    };
                    self.set_header(name, format!("{name}{time}"));
                }
                // Items of a batch are complete or they are not; only a lone body is filled in.
                Part::BodyField {
                    path,
                    optional: false,
                } if layout.each.is_none() => {
                    let json = self.json().ok_or(SignError::BodyNotJson)?;
                    if path.first(&json).is_none() {
                        self.set_field(path, self.input.id.into())?;
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn lacks(&self, name: &str) -> bool {
        let given = Headers::get(&self.input.headers, name).one();
        given.or(self.headers.get(name).one()).is_none()
    }

    fn prepare_time(&mut self, layout: &Layout) -> Result<(), SignError> {
        let Some(timestamp) = &layout.timestamp else {
            return Ok(());
        };
        let text = timestamp.unit.format(self.input.now);
        match &timestamp.place {
            TimePlace::Header(name) => self.set_header(name, text),
            TimePlace::Body(path) => {
                let json = self.json().ok_or(SignError::BodyNotJson)?;
                if path.first(&json).is_none() {
                    let value = match (timestamp.unit, text.parse::<i64>()) {
                        (TimeUnit::Seconds | TimeUnit::Milliseconds, Ok(number)) => number.into(),
                        _ => text.into(),
                    };
                    self.set_field(path, value)?;
                }
            }
            TimePlace::Pair(_) | TimePlace::First => {}
        }
        Ok(())
    }

    fn prepare_digest(&mut self, digest: &Digest) {
        let hash = digest.encoding.encode(&mac::sha256(&self.body));
        let text = format!("{}{hash}", digest.prefix);
        match &digest.place {
            DigestPlace::Header(name) => self.set_header(name, text),
            // Forms are signed field by field; only other bodies travel as a hash.
            DigestPlace::Query(name) if self.json().is_some() => self.add_query(name, &text),
            DigestPlace::Query(_) => {}
        }
    }

    /// The timestamp as the request will carry it.
    pub(super) fn time_text(&self, layout: &Layout) -> Option<String> {
        let timestamp = layout.timestamp.as_ref()?;
        match &timestamp.place {
            TimePlace::Body(path) => {
                let json = self.json()?;
                json::scalar(path.first(&json)?).map(Cow::into_owned)
            }
            TimePlace::Header(_) | TimePlace::Pair(_) | TimePlace::First => {
                Some(timestamp.unit.format(self.input.now))
            }
        }
    }

    /// The signed content as the receiver will see it.
    pub(super) fn with_content(
        &self,
        layout: &Layout,
        time: Option<&str>,
        json: Option<&Value>,
        use_it: impl FnOnce(&Content<'_>) -> Result<(), Refusal>,
    ) -> Result<(), Refusal> {
        let mut headers = self.headers.clone();
        headers.extend(
            self.input
                .headers
                .iter()
                .filter(|(name, _)| self.headers.get(name).one().is_none())
                .cloned(),
        );
        let request = Request {
            method: self.input.method,
            url: self.url(),
            headers: &headers,
            body: &self.body,
            now: self.input.now,
        };
        let form = layout
            .template
            .needs_form()
            .then(|| Form::parse(&self.body));
        let query = url::query(self.url().unwrap_or_default());
        let body_by_digest = match layout.digest.as_ref().map(|digest| &digest.place) {
            Some(DigestPlace::Query(name)) => Form::parse(query.as_bytes()).one(name).is_some(),
            _ => false,
        };
        use_it(&Content {
            template: &layout.template,
            request: &request,
            timestamp: time.map(str::as_bytes),
            timestamp_header: None,
            id: layout.id.as_ref().map(|_| self.input.id.as_bytes()),
            url: UrlForm::AsIs,
            json,
            form: form.as_ref(),
            body_by_digest,
        })
    }
}

fn append(body: &mut Vec<u8>, name: &str, value: &str) {
    if !body.is_empty() {
        body.push(b'&');
    }
    let pair = format!("{}={}", form::encode(name), form::encode(value));
    body.extend_from_slice(pair.as_bytes());
}

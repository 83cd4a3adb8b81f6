//! One pass over a request: find the signatures, read the time, render the content, compare, then ask how old it is.
//!
//! The time comes last on purpose. A stale but authentic request is a clock or a retry; a stale forgery is a forgery,
//! and the operator should not be told otherwise.

use std::borrow::Cow;

use serde_json::Value;
use subtle::ConstantTimeEq;

use super::content::{Content, one, scalar_bytes};
use crate::decode::Encoding;
use crate::form::Form;
use crate::json::{self, Ragged};
use crate::mac;
use crate::refusal::Refusal;
use crate::request::{HeaderValue, Request};
use crate::scheme::{Digest, DigestPlace, Layout, Place, TimePlace};
use crate::signature::{Candidates, Group};
use crate::url::{self, UrlForm};

/// Decides whether any candidate is a signature of the content; says which key made it.
pub(crate) trait Check {
    fn check(
        &self,
        candidates: &Candidates<'_>,
        encoding: Encoding,
        content: &Content<'_>,
    ) -> Result<u8, Refusal>;
}

/// A signature that holds.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Checked {
    pub(crate) secret_index: u8,
    pub(crate) signed_at: Option<i64>,
}

/// The parts of a request that have to be parsed for this layout; most layouts need none.
pub(crate) struct Parsed {
    json: Option<Value>,
    form: Option<Form>,
    query: Option<Form>,
}

impl Parsed {
    pub(crate) fn of(
        place: &Place,
        layout: Option<&Layout>,
        request: &Request<'_>,
    ) -> Result<Parsed, Refusal> {
        let time_in_body = layout
            .and_then(|layout| layout.timestamp.as_ref())
            .is_some_and(|timestamp| matches!(timestamp.place, TimePlace::Body(_)));
        let needs_json = matches!(place, Place::Body(_))
            || time_in_body
            || layout.is_some_and(|l| l.each.is_some() || l.template.needs_json());
        let json = match needs_json {
            true => Some(json::parse_strict(request.body).ok_or(Refusal::MalformedBody)?),
            false => None,
        };
        let needs_form =
            matches!(place, Place::Form(_)) || layout.is_some_and(|l| l.template.needs_form());
        let digest_in_query = layout
            .and_then(|layout| layout.digest.as_ref())
            .is_some_and(|digest| matches!(digest.place, DigestPlace::Query(_)));
        let needs_query = matches!(place, Place::Query(_)) || digest_in_query;
        Ok(Parsed {
            json,
            form: needs_form.then(|| Form::parse(request.body)),
            query: needs_query
                .then(|| Form::parse(url::query(request.url.unwrap_or_default()).as_bytes())),
        })
    }

    pub(crate) fn json(&self) -> Option<&Value> {
        self.json.as_ref()
    }

    /// The values at a place; a repeated header is refused, a missing one is not there.
    pub(crate) fn values<'v>(
        &'v self,
        place: &Place,
        request: &Request<'v>,
        json: Option<&'v Value>,
    ) -> Result<Candidates<'v>, Refusal> {
        let mut values = Candidates::new();
        match place {
            Place::Headers(names) => {
                for name in names {
                    match request.headers.get(name) {
                        HeaderValue::Missing => {}
                        HeaderValue::One(value) => values.push(value)?,
                        HeaderValue::Many => return Err(Refusal::RepeatedHeader),
                    }
                }
            }
            Place::Body(path) => {
                let found = json.map_or(Ok(Vec::new()), |json| path.every(json));
                for value in found.map_err(|Ragged| Refusal::MalformedBody)? {
                    let text = value.as_str().ok_or(Refusal::MalformedSignature)?;
                    values.push(text.as_bytes())?;
                }
            }
            Place::Form(name) => {
                if let Some(value) = self.form.as_ref().and_then(|form| form.one(name)) {
                    values.push(value)?;
                }
            }
            Place::Query(name) => {
                if let Some(value) = self.query.as_ref().and_then(|query| query.one(name)) {
                    values.push(value)?;
                }
            }
            Place::WholeBody => values.push(request.body)?,
        }
        if values.iter().next().is_none() {
            return Err(Refusal::MissingSignature);
        }
        Ok(values)
    }
}

/// Verifies a request, or every separately signed item in it.
pub(crate) fn verify(
    layout: &Layout,
    request: &Request<'_>,
    check: &dyn Check,
) -> Result<Checked, Refusal> {
    let parsed = Parsed::of(&layout.place, Some(layout), request)?;
    let pass = Pass {
        layout,
        request,
        parsed: &parsed,
        check,
    };
    let (Some(path), Some(json)) = (&layout.each, parsed.json()) else {
        return pass.verify(parsed.json());
    };
    let mut items = path.every(json).map_err(|Ragged| Refusal::MalformedBody)?;
    // A lone item that is not wrapped in a batch is signed the same way.
    if items.is_empty() && json.is_object() {
        items.push(json);
    }
    let mut last = Err(Refusal::MissingSignature);
    for item in items {
        last = Ok(pass.verify(Some(item))?);
    }
    last
}

struct Pass<'a> {
    layout: &'a Layout,
    request: &'a Request<'a>,
    parsed: &'a Parsed,
    check: &'a dyn Check,
}

impl Pass<'_> {
    fn verify(&self, json: Option<&Value>) -> Result<Checked, Refusal> {
        let layout = self.layout;
        let values = self.parsed.values(&layout.place, self.request, json)?;
        let time = layout.timestamp.as_ref();
        let beside = time.is_some_and(|t| matches!(t.place, TimePlace::Pair(_) | TimePlace::First));
        if !beside {
            // All signatures are over the same content, so that they share one hash.
            let mut candidates = Candidates::new();
            for value in values.iter() {
                for text in layout.form.group(value, time)?.candidates.iter() {
                    candidates.push(text)?;
                }
            }
            let group = Group {
                candidates,
                timestamp: None,
            };
            return self.verify_group(&group, json);
        }
        let mut groups = Vec::with_capacity(1);
        for value in values.iter() {
            layout.form.read(value, time, &mut groups)?;
        }
        let mut refusal = Refusal::MalformedSignature;
        for group in &groups {
            match self.verify_group(group, json) {
                Ok(checked) => return Ok(checked),
                Err(_) if refusal.is_clock() => {}
                Err(other) => refusal = other,
            }
        }
        Err(refusal)
    }

    fn verify_group(&self, group: &Group<'_>, json: Option<&Value>) -> Result<Checked, Refusal> {
        let layout = self.layout;
        if group.candidates.iter().next().is_none() {
            return Err(Refusal::MalformedSignature);
        }
        let time_text = self.time_text(group, json)?;
        let signed_at = match (&layout.timestamp, &time_text) {
            (Some(timestamp), Some(text)) => {
                let at = timestamp.unit.parse(text);
                Some(at.ok_or(Refusal::MalformedTimestamp)?)
            }
            _ => None,
        };
        let id = match &layout.id {
            Some(name) => Some(one(self.request, name, Refusal::MissingPart)?),
            None => None,
        };
        let mut content = Content {
            template: &layout.template,
            request: self.request,
            timestamp: time_text.as_deref(),
            timestamp_header: match layout.timestamp.as_ref().map(|t| &t.place) {
                Some(TimePlace::Header(name)) => Some(name),
                _ => None,
            },
            id,
            url: UrlForm::AsIs,
            json,
            form: self.parsed.form.as_ref(),
            body_by_digest: self.query_digest().is_some(),
        };
        let secret_index = self.check_urls(group, &mut content)?;
        self.check_digest()?;
        if let (Some(timestamp), Some(at)) = (&layout.timestamp, signed_at) {
            timestamp.check(at, self.request.now)?;
        }
        Ok(Checked {
            secret_index,
            signed_at,
        })
    }

    fn check_urls(&self, group: &Group<'_>, content: &mut Content<'_>) -> Result<u8, Refusal> {
        let forms: &[UrlForm] = match self.layout.url_ports {
            true => &[UrlForm::AsIs, UrlForm::WithPort, UrlForm::WithoutPort],
            false => &[UrlForm::AsIs],
        };
        for form in forms {
            content.url = *form;
            let result = self
                .check
                .check(&group.candidates, self.layout.encoding, content);
            if result != Err(Refusal::Mismatch) {
                return result;
            }
        }
        Err(Refusal::Mismatch)
    }

    fn time_text<'g>(
        &'g self,
        group: &Group<'g>,
        json: Option<&'g Value>,
    ) -> Result<Option<Cow<'g, [u8]>>, Refusal> {
        let Some(timestamp) = &self.layout.timestamp else {
            return Ok(None);
        };
        let text = match &timestamp.place {
            TimePlace::Header(name) => {
                Cow::Borrowed(one(self.request, name, Refusal::MissingTimestamp)?)
            }
            TimePlace::Pair(_) | TimePlace::First => {
                Cow::Borrowed(group.timestamp.ok_or(Refusal::MissingTimestamp)?)
            }
            TimePlace::Body(path) => json
                .and_then(|json| path.first(json))
                .and_then(scalar_bytes)
                .ok_or(Refusal::MissingTimestamp)?,
        };
        Ok(Some(text))
    }

    /// The body's hash in the URL, if the URL has one.
    fn query_digest(&self) -> Option<&[u8]> {
        match &self.layout.digest.as_ref()?.place {
            DigestPlace::Query(name) => self.parsed.query.as_ref()?.one(name),
            DigestPlace::Header(_) => None,
        }
    }

    fn check_digest(&self) -> Result<(), Refusal> {
        let Some(digest) = &self.layout.digest else {
            return Ok(());
        };
        let text = match &digest.place {
            DigestPlace::Header(name) => Some(one(self.request, name, Refusal::MissingPart)?),
            DigestPlace::Query(_) => self.query_digest(),
        };
        match text {
            Some(text) if !digest.holds(text, self.request.body) => Err(Refusal::BodyDigest),
            Some(_) | None => Ok(()),
        }
    }
}

impl Digest {
    fn holds(&self, text: &[u8], body: &[u8]) -> bool {
        let mut signed = [0; 32];
        text.strip_prefix(self.prefix.as_bytes())
            .and_then(|text| self.encoding.decode_exact(text, &mut signed))
            .is_some_and(|()| bool::from(signed.ct_eq(&mac::sha256(body))))
    }
}

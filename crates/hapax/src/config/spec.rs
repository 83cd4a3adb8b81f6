//! `[source.verify]`: read by the verifier's own types, with every problem found instead of the first.

use std::collections::BTreeMap;
use std::ops::Range;

use hapax_verify::{Scheme, SchemeSpec};
use serde::Deserialize;
use toml::Spanned;
use toml::de::{DeValue, ValueDeserializer};

use super::scan::{At, Scan, Text};
use super::suggest;

type Value<'i> = Spanned<DeValue<'i>>;

/// The table as it is written.
#[derive(Debug)]
pub(super) struct RawVerify {
    pub(super) at: At,
    /// Nothing if it cannot be read; the problem is reported.
    spec: Option<SchemeSpec>,
    spans: BTreeMap<String, Range<usize>>,
    /// Values that came by `env:` or `file:`, to be kept out of messages.
    indirect: Vec<Text>,
}

/// Reads the table.
pub(super) fn read(scan: &Scan<'_>, mut value: Value<'_>) -> RawVerify {
    let mut indirect = Vec::new();
    let complete = follow(scan, &mut value, &mut indirect);
    let spans = match value.get_ref() {
        DeValue::Table(table) => table
            .iter()
            .map(|(key, value)| (key.get_ref().to_string(), value.span()))
            .collect(),
        _ => BTreeMap::new(),
    };
    let at = At::Span(value.span());
    let spec = deserialize(scan, value, &indirect).filter(|_| complete);
    RawVerify {
        at,
        spec,
        spans,
        indirect,
    }
}

impl RawVerify {
    /// The scheme, with the table that it comes from.
    pub(super) fn resolve(&self, scan: &Scan<'_>) -> Option<(Scheme, &SchemeSpec)> {
        let spec = self.spec.as_ref()?;
        match spec.resolve() {
            Ok(scheme) => Some((scheme, spec)),
            Err(error) => {
                let span = self.spans.get(error.field.split('.').next()?);
                let at = span.map_or_else(|| self.at.clone(), |span| At::Span(span.clone()));
                let text = format!("`{}` in [source.verify]: {}", error.field, error.message);
                scan.error("H0117", &at, without(text, &self.indirect), REMEDY);
                None
            }
        }
    }
}

/// A message without the values that came from elsewhere.
fn without(message: String, indirect: &[Text]) -> String {
    let values = indirect.iter().filter(|text| !text.value.is_empty());
    values.fold(message, |message, text| {
        message.replace(&text.value, &text.shown())
    })
}

const REMEDY: &str =
    "the provider's documentation says what is signed; `hapax explain H0117` lists the fields";

/// Follows `env:` and `file:` in every text of the table; false if one of them leads nowhere.
fn follow(scan: &Scan<'_>, value: &mut Value<'_>, indirect: &mut Vec<Text>) -> bool {
    let at = At::Span(value.span());
    match value.get_mut() {
        DeValue::String(text) => {
            let Some(followed) = scan.follow(text.to_string(), at) else {
                return false;
            };
            *text = followed.value.clone().into();
            if !followed.is_literal() {
                indirect.push(followed);
            }
            true
        }
        // Every one is followed, so that every problem is found.
        DeValue::Array(items) => {
            let lost = items
                .iter_mut()
                .filter_map(|item| (!follow(scan, item, indirect)).then_some(()));
            lost.count() == 0
        }
        DeValue::Table(table) => {
            let items = table.iter_mut().map(|(_, item)| item);
            let lost = items.filter_map(|item| (!follow(scan, item, indirect)).then_some(()));
            lost.count() == 0
        }
        _ => true,
    }
}

/// Takes out what cannot be read, entry by entry, until the rest can.
fn deserialize(scan: &Scan<'_>, mut value: Value<'_>, indirect: &[Text]) -> Option<SchemeSpec> {
    let mut clean = true;
    loop {
        let error = match SchemeSpec::deserialize(ValueDeserializer::from(value.clone())) {
            Ok(spec) => return clean.then_some(spec),
            Err(error) => error,
        };
        let span = error.span().unwrap_or_else(|| value.span());
        let removed = remove(&mut value, &span);
        let missing = error.message().starts_with("missing field");
        // What is missing after something was taken out may be what was taken out.
        if clean || !missing {
            let message = without(error.message().to_owned(), indirect);
            report(scan, &message, &span, removed.as_ref());
        }
        clean = false;
        removed?;
    }
}

fn report(scan: &Scan<'_>, message: &str, span: &Range<usize>, removed: Option<&Range<usize>>) {
    let at = At::Span(span.clone());
    let Some(rest) = message.strip_prefix("unknown field `") else {
        return scan.error("H0117", &at, format!("[source.verify]: {message}"), REMEDY);
    };
    // The value of a misspelt field may be a secret.
    if let Some(value) = removed {
        scan.hide(value.clone());
    }
    // serde: "unknown field `x`, expected one of `a`, `b`".
    let mut names = rest.split('`').step_by(2);
    let name = names.next().unwrap_or_default();
    let known: Vec<&str> = rest.split('`').skip(2).step_by(2).collect();
    let text = format!("unknown field `{name}` in [source.verify]");
    let remedy = match suggest::nearest(name, known.iter().copied()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("the fields here are: {}", known.join(", ")),
    };
    scan.error("H0102", &at, text, remedy);
}

/// Takes out the innermost entry that the span points at, by its key or its value; gives the span of its value.
fn remove(value: &mut Value<'_>, span: &Range<usize>) -> Option<Range<usize>> {
    let DeValue::Table(table) = value.get_mut() else {
        return None;
    };
    let holds = |outer: &Range<usize>| outer.start <= span.start && span.end <= outer.end;
    let name = table
        .iter()
        .find(|(key, value)| holds(&key.span()) || holds(&value.span()))
        .map(|(key, _)| key.get_ref().to_string())?;
    if let Some(inner) = table
        .get_mut(name.as_str())
        .and_then(|value| remove(value, span))
    {
        return Some(inner);
    }
    table.remove(name.as_str()).map(|value| value.span())
}

//! `[source.verify]`: read by the verifier's own types, with every problem found instead of the first.

use std::collections::BTreeMap;
use std::ops::Range;

use hapax_verify::{Scheme, SchemeSpec};
use serde::Deserialize;
use toml::Spanned;
use toml::de::{DeValue, ValueDeserializer};

use super::scan::{At, Scan, Text};
use super::suggest;
use super::table::hide_secrets;

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
            report(scan, error.message(), &span, removed.as_ref(), indirect);
        }
        clean = false;
        removed?;
    }
}

/// Says in our words what serde says in its own.
fn report(
    scan: &Scan<'_>,
    message: &str,
    span: &Range<usize>,
    removed: Option<&(String, Value<'_>)>,
    indirect: &[Text],
) {
    let at = At::Span(span.clone());
    let field = removed.map_or("", |(name, _)| name);
    // "unknown field `x`, expected one of `a`, `b`": every second part is a name.
    let names: Vec<&str> = message.split('`').skip(1).step_by(2).collect();
    let (name, known) = names.split_first().map_or(("", &[][..]), |(n, k)| (*n, k));
    // A source that verifies nothing says so by its provider.
    let known: Vec<&str> = known
        .iter()
        .copied()
        .filter(|n| *n != "unverified")
        .collect();
    let remedy = match suggest::nearest(name, known.iter().copied()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("write one of: {}", known.join(", ")),
    };
    if message.starts_with("unknown field") {
        // The value of a misspelt field may be a secret.
        if let Some((name, value)) = removed {
            hide_secrets(scan, name, value);
        }
        let text = format!("unknown field `{name}` in [source.verify]");
        scan.error("H0102", &at, text, remedy);
    } else if message.starts_with("unknown variant") {
        let given = indirect.iter().find(|text| text.value == name);
        let given = given.map_or_else(|| format!("`{name}`"), Text::shown);
        let text = format!("{given} is not a `{field}` for [source.verify]");
        scan.error("H0117", &at, text, remedy);
    } else if message.starts_with("missing field") {
        let text = format!("[source.verify] has no `{name}`");
        scan.error("H0117", &at, text, REMEDY);
    } else {
        let text = format!("`{field}` in [source.verify]: {message}");
        scan.error("H0117", &at, without(text, indirect), REMEDY);
    }
}

/// Takes out the innermost entry that the span points at, by its key or its value.
fn remove<'i>(value: &mut Value<'i>, span: &Range<usize>) -> Option<(String, Value<'i>)> {
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
    let value = table.remove(name.as_str())?;
    Some((name, value))
}

//! The JSON body of a request, read strictly: every field is asked for by name, and one that nobody asked for is an error.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::str::FromStr;

use hapax_ledger::time::Time;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::list::{Invalid, refuse_all};
use crate::http::answer::Answer;

/// The longest text of a field, in characters as JSON Schema counts them: a reason is a few sentences, a name a few words.
pub(super) const TEXT_CHARS_MAX: usize = 4 * 1024;

/// The largest number up to which all whole numbers can be told apart in JSON as most programs read it.
const EXACT_MAX: f64 = 9_007_199_254_740_991.0;

const MISSING: &str = "missing";
const TYPE: &str = "type_error";
const VALUE: &str = "value_error";
const EXTRA: &str = "extra_forbidden";

/// The fields that have not been asked for yet, and what is wrong so far.
#[derive(Debug)]
pub(super) struct Fields {
    fields: Map<String, Value>,
    wrong: Vec<Invalid>,
}

impl Fields {
    /// The fields of a body. An empty one has none, nor has `null`; one that is no JSON object has none either, and says so in the end.
    pub(super) fn of(body: &[u8]) -> Fields {
        let body: &[u8] = if body.is_empty() { b"{}" } else { body };
        let (fields, wrong) = match serde_json::from_slice(body) {
            Ok(Value::Object(fields)) => (fields, Vec::new()),
            Ok(Value::Null) => (Map::new(), Vec::new()),
            Ok(_) => (Map::new(), vec![not_an_object("a JSON object is expected")]),
            Err(error) => (Map::new(), vec![not_an_object(&error.to_string())]),
        };
        Fields { fields, wrong }
    }

    /// The fields of an object, and what was taken out of it before it was read: `aside` as it is written.
    pub(super) fn of_all_but<'a>(body: &'a [u8], aside: &str) -> (Fields, Option<&'a RawValue>) {
        let read: Result<BTreeMap<String, &RawValue>, _> = serde_json::from_slice(body);
        let mut parts = match read {
            Ok(parts) => parts,
            // Says what is wrong.
            Err(_) => return (Fields::of(body), None),
        };
        let taken = parts.remove(aside).filter(|raw| raw.get() != "null");
        let read = |(name, raw): (String, &RawValue)| {
            let value = serde_json::from_str(raw.get()).unwrap_or_default();
            (name, value)
        };
        let fields = Fields {
            fields: parts.into_iter().map(read).collect(),
            wrong: Vec::new(),
        };
        (fields, taken)
    }

    /// Was it given, be it as `null`?
    pub(super) fn has(&self, name: &str) -> bool {
        self.fields.contains_key(name)
    }

    /// Does the field say something? `null` says nothing.
    pub(super) fn is_given(&self, name: &str) -> bool {
        self.fields.get(name).is_some_and(|value| !value.is_null())
    }

    /// Puts what a field says in its place: `null` clears it, and what is missing leaves it as it is.
    pub(super) fn set<T: Default>(
        &mut self,
        name: &str,
        place: &mut T,
        read: impl FnOnce(&mut Fields, &str) -> Option<T>,
    ) {
        match self.fields.get(name) {
            None => {}
            Some(Value::Null) => {
                self.fields.remove(name);
                *place = T::default();
            }
            Some(_) => {
                if let Some(value) = read(self, name) {
                    *place = value;
                }
            }
        }
    }

    /// A text that may be empty, of at most so many characters.
    pub(super) fn any_text(&mut self, name: &str, chars_max: usize) -> Option<String> {
        match self.take(name)? {
            Value::String(text) if text.chars().count() <= chars_max => return Some(text),
            Value::String(_) => {
                let msg = format!("at most {chars_max} characters are expected");
                self.complain(name, &msg, VALUE);
            }
            _ => self.complain(name, "a text is expected", TYPE),
        }
        None
    }

    /// A long text that may be missing, of at most so many bytes.
    pub(super) fn optional_text_up_to(&mut self, name: &str, bytes_max: usize) -> Option<String> {
        match self.take(name)? {
            Value::String(text) if text.len() <= bytes_max => return Some(text),
            Value::String(_) => self.complain(name, "it is too long", VALUE),
            _ => self.complain(name, "a text is expected", TYPE),
        }
        None
    }

    /// Has something been said about this field already?
    pub(super) fn is_wrong(&self, name: &str) -> bool {
        self.wrong.iter().any(|invalid| invalid.is_about(name))
    }

    /// A flag that may be missing.
    pub(super) fn optional_flag(&mut self, name: &str) -> Option<bool> {
        self.has(name).then(|| self.flag(name))
    }

    /// A list of texts that may be missing; not more than so many, and each as `fits` wants it.
    pub(super) fn words(
        &mut self,
        name: &str,
        count_max: usize,
        expected: &str,
        fits: impl Fn(&str) -> bool,
    ) -> Option<Vec<String>> {
        if self.fields.get(name).is_none_or(Value::is_null) {
            self.fields.remove(name);
            return None;
        }
        let found = self.texts(name);
        if found.len() > count_max {
            let msg = format!("at most {count_max} are expected");
            self.complain(name, &msg, VALUE);
        } else if !found.iter().all(|text| fits(text)) {
            self.complain(name, expected, VALUE);
        }
        Some(found)
    }

    /// A list of whole numbers that may be missing.
    pub(super) fn numbers(&mut self, name: &str, count_max: usize, max: u32) -> Option<Vec<u32>> {
        let value = self.take(name)?;
        let read = |value: &Value| {
            let number = whole(value).and_then(|number| u32::try_from(number).ok());
            number.filter(|number| *number <= max)
        };
        let found: Option<Vec<u32>> = value
            .as_array()
            .filter(|all| !all.is_empty() && all.len() <= count_max)
            .and_then(|all| all.iter().map(read).collect());
        if found.is_none() {
            let msg = format!("1 to {count_max} whole numbers from 0 to {max} are expected");
            self.complain(name, &msg, VALUE);
        }
        found
    }

    /// Texts by name, that may be missing.
    pub(super) fn map(&mut self, name: &str) -> Option<BTreeMap<String, String>> {
        let value = self.take(name)?;
        let found: Option<BTreeMap<String, String>> = match value {
            Value::Object(map) => {
                let texts = map.into_iter().map(|(name, value)| match value {
                    Value::String(text) => Some((name, text)),
                    _ => None,
                });
                texts.collect()
            }
            _ => None,
        };
        if found.is_none() {
            self.complain(name, "an object of texts is expected", TYPE);
        }
        found
    }

    fn complain(&mut self, name: &str, msg: &str, kind: &'static str) {
        self.wrong.push(Invalid::field(name, msg, kind));
    }

    /// A field that need not be there; `null` is as good as nothing.
    fn take(&mut self, name: &str) -> Option<Value> {
        self.fields.remove(name).filter(|value| !value.is_null())
    }

    /// A text that may be missing, but not empty.
    pub(super) fn optional_text(&mut self, name: &str) -> Option<String> {
        match self.take(name)? {
            Value::String(text) if text.trim().is_empty() => {
                self.complain(name, "it must not be empty", VALUE);
            }
            Value::String(text) if text.chars().count() > TEXT_CHARS_MAX => {
                self.complain(name, "at most 4096 characters are expected", VALUE);
            }
            Value::String(text) => return Some(text),
            _ => self.complain(name, "a text is expected", TYPE),
        }
        None
    }

    /// A text. Empty if it is missing, which [`Fields::finish`] says.
    pub(super) fn text(&mut self, name: &str) -> String {
        if self.fields.get(name).is_none_or(Value::is_null) {
            self.fields.remove(name);
            self.complain(name, "it is required", MISSING);
            return String::new();
        }
        self.optional_text(name).unwrap_or_default()
    }

    /// One of some words, as what they mean. `None` if it is missing or another, which [`Fields::finish`] says.
    pub(super) fn word<T>(
        &mut self,
        name: &str,
        expected: &str,
        meaning: impl Fn(&str) -> Option<T>,
    ) -> Option<T> {
        let before = self.wrong.len();
        let text = self.text(name);
        let found = meaning(&text);
        if found.is_none() && self.wrong.len() == before {
            self.complain(name, &format!("one of {expected} is expected"), VALUE);
        }
        found
    }

    /// A flag that is off unless it is set.
    pub(super) fn flag(&mut self, name: &str) -> bool {
        match self.take(name) {
            None => false,
            Some(Value::Bool(flag)) => flag,
            Some(_) => {
                self.complain(name, "true or false is expected", TYPE);
                false
            }
        }
    }

    /// A whole number that may be missing.
    pub(super) fn optional_number(
        &mut self,
        name: &str,
        allowed: RangeInclusive<u64>,
    ) -> Option<u64> {
        let value = self.take(name)?;
        let number = whole(&value).filter(|number| allowed.contains(number));
        if number.is_none() {
            let (from, to) = (allowed.start(), allowed.end());
            let msg = format!("a whole number from {from} to {to} is expected");
            self.complain(name, &msg, VALUE);
        }
        number
    }

    /// A whole number. Zero if it is missing, which [`Fields::finish`] says.
    pub(super) fn number(&mut self, name: &str, allowed: RangeInclusive<u64>) -> u64 {
        if self.fields.get(name).is_none_or(Value::is_null) {
            self.fields.remove(name);
            self.complain(name, "it is required", MISSING);
            return 0;
        }
        self.optional_number(name, allowed).unwrap_or_default()
    }

    /// A list of texts; none if it is missing.
    pub(super) fn texts(&mut self, name: &str) -> Vec<String> {
        let texts = match self.take(name) {
            None => return Vec::new(),
            Some(Value::Array(items)) => items.into_iter().map(|item| match item {
                Value::String(text) => Some(text),
                _ => None,
            }),
            Some(_) => {
                self.complain(name, "a list of texts is expected", TYPE);
                return Vec::new();
            }
        };
        let texts: Option<Vec<String>> = texts.collect();
        texts.unwrap_or_else(|| {
            self.complain(name, "a list of texts is expected", TYPE);
            Vec::new()
        })
    }

    /// A time that may be missing.
    pub(super) fn optional_time(&mut self, name: &str) -> Option<Time> {
        let text = self.optional_text(name)?;
        match jiff::Timestamp::from_str(&text) {
            Ok(time) => Some(Time::from_micros(time.as_microsecond())),
            Err(_) => {
                let msg = "a time such as 2026-01-31T12:00:00Z is expected";
                self.complain(name, msg, VALUE);
                None
            }
        }
    }

    /// An object that may be missing, as fields of its own.
    pub(super) fn part(&mut self, name: &str) -> Fields {
        let fields = match self.take(name) {
            None => Map::new(),
            Some(Value::Object(fields)) => fields,
            Some(_) => {
                self.complain(name, "an object is expected", TYPE);
                Map::new()
            }
        };
        Fields {
            fields,
            wrong: Vec::new(),
        }
    }

    /// Takes over what is wrong with a part.
    pub(super) fn join(&mut self, mut part: Fields) {
        part.leftovers();
        self.wrong.append(&mut part.wrong);
    }

    /// Any JSON; `None` if it is missing.
    pub(super) fn json(&mut self, name: &str) -> Option<Value> {
        self.take(name)
    }

    /// Something that only the caller knows is wrong.
    pub(super) fn refuse(&mut self, name: &str, msg: &str) {
        self.complain(name, msg, VALUE);
    }

    fn leftovers(&mut self) {
        let unknown: Vec<String> = std::mem::take(&mut self.fields)
            .into_iter()
            .map(|(name, _)| name)
            .collect();
        for name in unknown {
            self.complain(&name, "there is no such field", EXTRA);
        }
    }

    /// Is all well? What was asked for counts only then.
    pub(super) fn finish(mut self) -> Result<(), Refused> {
        self.leftovers();
        match self.wrong.is_empty() {
            true => Ok(()),
            false => Err(Refused(self.wrong)),
        }
    }
}

/// A body that is not understood.
#[derive(Debug, Default)]
pub(super) struct Refused(Vec<Invalid>);

impl Refused {
    /// Says all that is wrong with it.
    pub(super) fn answer(self) -> Answer {
        refuse_all(self.0)
    }
}

/// A whole number, also if it is written as `60.0`: JSON knows only one kind of number.
fn whole(value: &Value) -> Option<u64> {
    let written = || value.as_f64().filter(|number| number.fract() == 0.0);
    // Up to 2^53 every whole number is exact, and no field allows more.
    let exact = |number: f64| (0.0..=EXACT_MAX).contains(&number).then_some(number as u64);
    value.as_u64().or_else(|| written().and_then(exact))
}

fn not_an_object(why: &str) -> Invalid {
    Invalid::field("", why, "json_invalid")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is wrong with a body, as `field: type`.
    fn wrong(body: &str) -> Vec<String> {
        let mut fields = Fields::of(body.as_bytes());
        fields.text("reason");
        fields.flag("dryRun");
        fields.optional_number("ifRevision", 0..=9);
        fields.texts("force");
        fields.word("outcome", "a, b", |word| (word == "a").then_some(()));
        fields.leftovers();
        let line = |invalid: &Invalid| {
            let invalid = serde_json::to_value(invalid).expect("JSON");
            let word = |value: &Value| value.as_str().expect("a text").to_owned();
            format!("{}: {}", word(&invalid["loc"][1]), word(&invalid["type"]))
        };
        fields.wrong.iter().map(line).collect()
    }

    #[test]
    fn a_body_is_read_strictly() {
        let table: [(&str, &[&str]); 12] = [
            (r#"{"reason":"x","outcome":"a"}"#, &[]),
            (
                r#"{"reason":"x","outcome":"a","dryRun":true,"ifRevision":9,"force":["m"]}"#,
                &[],
            ),
            (r#"{"reason":"x","outcome":"a","ifRevision":null}"#, &[]),
            (r#"{"reason":"x","outcome":"a","ifRevision":9.0}"#, &[]),
            (
                r#"{"reason":"x","outcome":"a","ifRevision":8.5}"#,
                &["ifRevision: value_error"],
            ),
            ("null", &["reason: missing", "outcome: missing"]),
            (
                r#"{"outcome":"c"}"#,
                &["reason: missing", "outcome: value_error"],
            ),
            (
                r#"{"reason":" ","outcome":"a","more":1}"#,
                &["reason: value_error", "more: extra_forbidden"],
            ),
            (
                r#"{"reason":1,"outcome":"a","dryRun":"yes"}"#,
                &["reason: type_error", "dryRun: type_error"],
            ),
            (
                r#"{"reason":"x","outcome":"a","ifRevision":10,"force":[1]}"#,
                &["ifRevision: value_error", "force: type_error"],
            ),
            (
                "[]",
                &[": json_invalid", "reason: missing", "outcome: missing"],
            ),
            (
                "{",
                &[": json_invalid", "reason: missing", "outcome: missing"],
            ),
        ];
        for (body, want) in table {
            assert_eq!(wrong(body), want, "{body}");
        }
    }
}

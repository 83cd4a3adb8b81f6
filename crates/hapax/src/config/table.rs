//! One table of the file, asked field by field. What nobody asked for is an unknown field.
//!
//! Reading by hand instead of by `serde`, because a derived reader stops at the first problem, and the operator wants
//! all of them at once.

use std::collections::BTreeMap;
use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::scan::{At, Scan, Text};
use super::suggest;

type Value<'i> = Spanned<DeValue<'i>>;

/// A table of the file.
pub(super) struct Table<'s, 'i> {
    scan: &'s Scan<'s>,
    /// Its header in the file, e.g. `[[source]]`; the root table has none.
    header: &'static str,
    at: At,
    entries: BTreeMap<String, (Range<usize>, Value<'i>)>,
    asked: Vec<&'static str>,
}

/// A number with its place.
#[derive(Clone, Debug)]
pub(super) struct Number {
    pub(super) value: i64,
    pub(super) at: At,
}

/// A list of texts.
#[derive(Clone, Debug)]
pub(super) struct Texts {
    /// Those that could be read.
    pub(super) found: Vec<Text>,
    /// Where each of them stands in the list, from 0.
    pub(super) indexes: Vec<usize>,
    /// Could all be read?
    pub(super) complete: bool,
    pub(super) at: At,
}

/// A list of numbers.
#[derive(Clone, Debug)]
pub(super) struct Numbers {
    /// Those that could be read.
    pub(super) found: Vec<Number>,
    /// Could all be read?
    pub(super) complete: bool,
}

/// Texts under names that the operator chose, such as headers.
#[derive(Debug)]
pub(super) struct Named {
    /// Those that could be read: the name, where it stands, and the text.
    pub(super) found: Vec<(String, At, Text)>,
    /// Could all be read?
    pub(super) complete: bool,
}

/// A field that is a word or a table.
pub(super) enum WordOrTable<'s, 'i> {
    Word(Text),
    Table(Table<'s, 'i>),
}

impl<'s, 'i> Table<'s, 'i> {
    pub(super) fn new(
        scan: &'s Scan<'s>,
        header: &'static str,
        span: Range<usize>,
        table: DeTable<'i>,
    ) -> Table<'s, 'i> {
        let entries = table.into_iter().map(|(key, value)| {
            let span = key.span();
            (key.into_inner().into_owned(), (span, value))
        });
        Table {
            scan,
            header,
            at: At::Span(span),
            entries: entries.collect(),
            asked: Vec::new(),
        }
    }

    /// Where the table stands.
    pub(super) fn at(&self) -> At {
        self.at.clone()
    }

    /// A text as it is written, for a look ahead.
    pub(super) fn peek(&self, name: &str) -> Option<&str> {
        self.entries.get(name)?.1.get_ref().as_str()
    }

    /// Is the field there, right or wrong?
    pub(super) fn has(&self, name: &str) -> bool {
        self.entries.contains_key(name)
    }

    /// The value of a field, unread.
    pub(super) fn value(&mut self, name: &'static str) -> Option<Value<'i>> {
        self.asked.push(name);
        self.entries.remove(name).map(|(_, value)| value)
    }

    pub(super) fn text(&mut self, name: &'static str) -> Option<Text> {
        let value = self.value(name)?;
        self.as_text(name, value)
    }

    /// A text that is never shown.
    pub(super) fn secret(&mut self, name: &'static str) -> Option<Text> {
        let value = self.value(name)?;
        hide_all(self.scan, &value);
        self.as_text(name, value)
    }

    /// A secret that has a default: a variable that is not set is worth a warning and no more.
    pub(super) fn secret_or_unset(&mut self, name: &'static str) -> Option<Text> {
        let unset = self.peek(name).and_then(|text| self.scan.unset(text));
        let Some(variable) = unset else {
            return self.secret(name);
        };
        let at = At::Span(self.value(name)?.span());
        let text =
            format!("the environment variable `{variable}` is not set, so `{name}` is not set");
        let remedy = format!("set `{variable}`, or remove the field if this is meant");
        self.scan.warn("H0106", &at, text, remedy);
        None
    }

    /// A list of texts; a single text is a list of one. `None` if the field is not there.
    pub(super) fn texts(&mut self, name: &'static str) -> Option<Texts> {
        let value = self.value(name)?;
        Some(self.as_texts(name, value))
    }

    /// A list of texts that are never shown.
    pub(super) fn secrets(&mut self, name: &'static str) -> Option<Texts> {
        let value = self.value(name)?;
        hide_all(self.scan, &value);
        Some(self.as_texts(name, value))
    }

    /// A text that is never shown if it can hold a password, as a URL can.
    pub(super) fn url(&mut self, name: &'static str) -> Option<Text> {
        match self.peek(name) {
            // A placeholder is no secret, whatever it is called.
            Some(url) if !has_userinfo(&url.replace("{key}", "")) => self.text(name),
            _ => self.secret(name),
        }
    }

    /// All fields of the table as texts under their names; none of the texts is ever shown.
    pub(super) fn named_secrets(mut self) -> Named {
        let entries = std::mem::take(&mut self.entries);
        let written = entries.len();
        let found = entries.into_iter().filter_map(|(name, (span, value))| {
            hide_all(self.scan, &value);
            let text = self.as_text(&name, value)?;
            Some((name, At::Span(span), text))
        });
        let found: Vec<_> = found.collect();
        Named {
            complete: found.len() == written,
            found,
        }
    }

    /// A field that is a word or a table.
    pub(super) fn word_or_table(
        &mut self,
        name: &'static str,
        remedy: &str,
    ) -> Option<WordOrTable<'s, 'i>> {
        let value = self.value(name)?;
        match value.get_ref() {
            DeValue::String(_) => self.as_text(name, value).map(WordOrTable::Word),
            _ => self
                .as_table(name, name, value, "a word or a table", remedy)
                .map(WordOrTable::Table),
        }
    }

    pub(super) fn flag(&mut self, name: &'static str) -> Option<bool> {
        let value = self.value(name)?;
        match value.get_ref() {
            DeValue::Boolean(flag) => Some(*flag),
            _ => self.wrong_type(name, &value, "true or false", "write it without quotes"),
        }
    }

    pub(super) fn number(&mut self, name: &'static str) -> Option<Number> {
        let value = self.value(name)?;
        self.as_number(name, value)
    }

    /// A list of numbers; a single one is a list of one. `None` if the field is not there.
    pub(super) fn numbers(&mut self, name: &'static str) -> Option<Numbers> {
        let value = self.value(name)?;
        let span = value.span();
        let items = match value.into_inner() {
            DeValue::Array(items) => items.into_iter().collect(),
            one => vec![Spanned::new(span, one)],
        };
        let written = items.len();
        let numbers = items.into_iter().map(|item| self.as_number(name, item));
        let found: Vec<Number> = numbers.flatten().collect();
        Some(Numbers {
            complete: found.len() == written,
            found,
        })
    }

    fn as_number(&self, name: &str, value: Value<'i>) -> Option<Number> {
        let at = At::Span(value.span());
        let number = match value.get_ref() {
            DeValue::Integer(number) => i64::from_str_radix(number.as_str(), number.radix()).ok(),
            _ => None,
        };
        match number {
            Some(value) => Some(Number { value, at }),
            None => self.wrong_type(name, &value, "a whole number", "write it without quotes"),
        }
    }

    /// A table within the table.
    pub(super) fn table(
        &mut self,
        name: &'static str,
        header: &'static str,
    ) -> Option<Table<'s, 'i>> {
        let value = self.value(name)?;
        let remedy = match header.starts_with('[') {
            true => format!("write {header} on a line of its own, and its fields below"),
            false => format!("write {header} = {{ FIELD = VALUE, ... }}"),
        };
        self.as_table(name, header, value, "a table", &remedy)
    }

    /// The tables of an array, e.g. all `[[source]]`.
    pub(super) fn tables(
        &mut self,
        name: &'static str,
        header: &'static str,
    ) -> Vec<Table<'s, 'i>> {
        let Some(value) = self.value(name) else {
            return Vec::new();
        };
        let span = value.span();
        let remedy = format!("write {header} with two brackets for each one");
        let items = match value.into_inner() {
            DeValue::Array(items) => items.into_iter().collect(),
            one => {
                let one = Spanned::new(span, one);
                hide_all(self.scan, &one);
                let _: Option<()> = self.wrong_type(name, &one, "a list of tables", &remedy);
                Vec::new()
            }
        };
        let table = |item| self.as_table(name, header, item, "a list of tables", &remedy);
        items.into_iter().filter_map(table).collect()
    }

    fn as_table(
        &self,
        name: &str,
        header: &'static str,
        value: Value<'i>,
        want: &str,
        remedy: &str,
    ) -> Option<Table<'s, 'i>> {
        let span = value.span();
        match value.into_inner() {
            DeValue::Table(table) => Some(Table::new(self.scan, header, span, table)),
            other => {
                // `admin = "the token"`: what should be a table may be a secret.
                let other = Spanned::new(span, other);
                hide_all(self.scan, &other);
                self.wrong_type(name, &other, want, remedy)
            }
        }
    }

    /// Reports what is left. `later` are names that other versions know, with their form in the file. Gives the fields
    /// that were probably meant, so that nobody is told that they are missing.
    pub(super) fn finish(self, later: &[(&str, &str)]) -> Vec<&'static str> {
        let mut meant = Vec::new();
        for (name, (span, value)) in self.entries {
            let near = suggest::nearest(&name, self.asked.iter().copied());
            meant.extend(near);
            // A secret in a misspelt field is a secret.
            match near.is_some_and(looks_secret) {
                true => hide_all(self.scan, &value),
                false => hide_secrets(self.scan, &name, &value),
            }
            let at = At::Span(span);
            if let Some((_, form)) = later.iter().find(|(later, _)| *later == name) {
                let text = format!("`{form}` is not supported by this version");
                self.scan.error(
                    "H0121",
                    &at,
                    text,
                    "remove it, or use a version that has it",
                );
                continue;
            }
            let place = match self.header {
                "" => "at the top level".to_owned(),
                header => format!("in {header}"),
            };
            let text = format!("unknown field `{name}` {place}");
            let remedy = match near {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("the fields here are: {}", self.asked.join(", ")),
            };
            self.scan.error("H0102", &at, text, remedy);
        }
        meant
    }

    fn as_text(&self, name: &str, value: Value<'i>) -> Option<Text> {
        let at = At::Span(value.span());
        match value.into_inner() {
            DeValue::String(text) => self.scan.follow(text.into_owned(), at),
            other => {
                let At::Span(span) = at else { return None };
                let other = Spanned::new(span, other);
                self.wrong_type(name, &other, "a string", "write it in quotes")
            }
        }
    }

    fn as_texts(&self, name: &str, value: Value<'i>) -> Texts {
        let span = value.span();
        let at = At::Span(span.clone());
        let items = match value.into_inner() {
            DeValue::Array(items) => items.into_iter().collect(),
            one => vec![Spanned::new(span, one)],
        };
        let written = items.len();
        let texts = items.into_iter().map(|item| self.as_text(name, item));
        let (indexes, found): (Vec<usize>, Vec<Text>) = texts
            .enumerate()
            .filter_map(|(index, text)| Some((index, text?)))
            .unzip();
        Texts {
            complete: found.len() == written,
            indexes,
            found,
            at,
        }
    }

    fn wrong_type<T>(&self, name: &str, value: &Value<'i>, want: &str, remedy: &str) -> Option<T> {
        let have = match value.get_ref().type_str() {
            "integer" => "an integer",
            "array" => "a list",
            "boolean" => "true or false",
            "string" => "a string",
            "table" => "a table",
            "float" => "a number with a point",
            _ => "a date or time",
        };
        let text = format!("`{name}` is {have}; it has to be {want}");
        self.scan
            .error("H0103", &At::Span(value.span()), text, remedy);
        None
    }
}

/// Does a field of this name hold a secret?
pub(super) fn looks_secret(name: &str) -> bool {
    let name = name.to_lowercase();
    let words = ["secret", "token", "key", "password", "authorization"];
    words.iter().any(|word| name.contains(word))
}

/// Can a text hold a password, as the URL of a database does?
pub(super) fn has_userinfo(text: &str) -> bool {
    text.contains('@') || looks_secret(text)
}

/// Never shows what looks like a secret in a field that nobody knows: by its name, or as a URL with a password.
pub(super) fn hide_secrets(scan: &Scan<'_>, name: &str, value: &Value<'_>) {
    match value.get_ref() {
        _ if looks_secret(name) => hide_all(scan, value),
        DeValue::String(text) if has_userinfo(text) => hide_all(scan, value),
        DeValue::Array(items) => {
            let items = items.iter();
            items.for_each(|item| hide_secrets(scan, name, item));
        }
        DeValue::Table(table) => {
            let items = table.iter();
            items.for_each(|(key, item)| hide_secrets(scan, key.get_ref(), item));
        }
        _ => {}
    }
}

/// Never shows the value, or what is in it.
pub(super) fn hide_all(scan: &Scan<'_>, value: &Value<'_>) {
    match value.get_ref() {
        // These only say where the secret is; seeing them helps.
        DeValue::String(text) if text.starts_with("env:") || text.starts_with("file:") => {}
        DeValue::Array(items) => items.iter().for_each(|item| hide_all(scan, item)),
        DeValue::Table(table) => table.iter().for_each(|(_, item)| hide_all(scan, item)),
        _ => scan.hide(value.span()),
    }
}

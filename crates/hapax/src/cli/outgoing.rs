//! What `apps`, `endpoints` and `messages` have in common.

use form_urlencoded::Serializer;
use http::Method;
use serde_json::Value;

use super::answer::expect_json;
use super::client::{Client, block_on};
use super::exit::Failure;
use super::list::Noun;
use super::output;
use super::rows::{self, Column, members, table_of};
use super::table::Step;

/// Which part of a list is wanted, and in which form.
#[derive(Debug, clap::Args)]
pub(super) struct PageArgs {
    /// Go on where another list ended: the `iterator` that it gave with --json
    #[arg(long)]
    pub(super) iterator: Option<String>,
    /// At most so many
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=250))]
    pub(super) limit: u32,
    /// Write JSON
    #[arg(long)]
    pub(super) json: bool,
}

/// A part of a path, whatever letters it has.
pub(super) fn part(text: &str) -> String {
    // In a path a space is no plus.
    form_urlencoded::byte_serialize(text.as_bytes())
        .collect::<String>()
        .replace('+', "%20")
}

/// The path of an application, and of something below it.
pub(super) fn of_app(app: &str, rest: &str) -> String {
    format!("/api/v1/app/{}{rest}", part(app))
}

/// Asks for one thing.
pub(super) fn get(client: &Client, noun: Noun, path: &str, what: &str) -> Result<Value, Failure> {
    let answer = block_on(client.get(path))?;
    expect_json(client, &answer, noun, what)
}

/// Asks for a change.
pub(super) fn change(
    client: &Client,
    noun: Noun,
    (method, path): (Method, &str),
    body: &Value,
    what: &str,
) -> Result<Value, Failure> {
    let answer = block_on(client.change(method, path, body))?;
    // Nothing to say is said as nothing.
    match answer.is_good() && answer.body.is_empty() {
        true => Ok(Value::Null),
        false => expect_json(client, &answer, noun, what),
    }
}

/// Asks for a list, and writes it.
pub(super) fn list(
    client: &Client,
    noun: Noun,
    path: &str,
    (filter, page): (&[(&str, Option<&str>)], &PageArgs),
    (columns, steps): (&[Column], &[Step]),
) -> Result<(), Failure> {
    let mut query = Serializer::new(String::new());
    let given = filter
        .iter()
        .filter_map(|(name, value)| Some((*name, (*value)?)));
    query
        .extend_pairs(given)
        .append_pair("limit", &page.limit.to_string());
    if let Some(iterator) = &page.iterator {
        query.append_pair("iterator", iterator);
    }
    let path = format!("{path}?{}", query.finish());
    let listed = get(client, noun, &path, &format!("list of {}", noun.many))?;
    match page.json {
        true => output::json(&listed),
        false => {
            let table = table_of(columns, members(&listed["data"]));
            rows::list(&listed, noun.many, table, steps)
        }
    }
}

/// Writes one thing: as JSON, or its facts line by line.
pub(super) fn show(
    value: &Value,
    json: bool,
    facts: &'static [(&'static str, &'static str)],
) -> Result<(), Failure> {
    match json {
        true => output::json(value),
        false => rows::facts(facts.iter().map(|(name, head)| {
            let told = match &value[name] {
                Value::Array(all) => {
                    let texts = all.iter().map(super::answer::text);
                    texts.collect::<Vec<_>>().join(", ")
                }
                Value::Object(all) if all.is_empty() => String::new(),
                other => rows::cell(name, other),
            };
            (*head, told)
        })),
    }
}

//! What `events` and `effects` have in common: how one asks for a list or for one thing, through the HTTP API.

use form_urlencoded::Serializer;
use hapax_ledger::time::{Span, Time};
use serde_json::{Value, json};

use super::answer::expect_json;
use super::client::Client;
use super::exit::{Exit, Failure};

/// The server gives at most this many rows at a time.
const PAGE_ROWS_MAX: usize = 250;

/// A noun of the API.
#[derive(Clone, Copy, Debug)]
pub(super) struct Noun {
    /// Its path below `/api/v1/`, which is also its word.
    pub(super) one: &'static str,
    /// The command, and the word for many.
    pub(super) many: &'static str,
}

/// Which part of a list is wanted, and in which form.
#[derive(Debug, clap::Args)]
pub(super) struct PageArgs {
    /// Only of events received at or after: a time (2026-01-31T12:00:00Z) or a length back from now (2h)
    #[arg(long, value_name = "TIME")]
    since: Option<String>,
    /// Only of events received before: a time or a length back from now
    #[arg(long, value_name = "TIME")]
    until: Option<String>,
    #[command(flatten)]
    pub(super) part: PartArgs,
}

/// How much of a list is wanted, and in which form.
#[derive(Debug, clap::Args)]
pub(super) struct PartArgs {
    /// Go on where another list ended: the `iterator` that it gave with --json
    #[arg(long)]
    iterator: Option<String>,
    /// At most so many
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..))]
    limit: u32,
    /// Write JSON
    #[arg(long)]
    pub(super) json: bool,
}

/// The parameters of a query.
pub(super) type Filter = Vec<(&'static str, String)>;

/// What a list is narrowed by: words as they are, and times.
pub(super) fn filter<const N: usize>(
    words: [(&'static str, &Option<String>); N],
    page: &PageArgs,
    now: Time,
) -> Result<Filter, Failure> {
    let mut filter = self::words(words);
    let at = |name, value: &Option<String>| {
        let value = value.as_deref();
        value.map(|value| time(name, value, now)).transpose()
    };
    let (since, until) = (at("since", &page.since)?, at("until", &page.until)?);
    if let (Some(since), Some(until)) = (since, until)
        && since > until
    {
        let text = format!("--since ({since}) is later than --until ({until})");
        let help = "exchange them; a length counts back from now, so that 2h is before 1h";
        return Err(Failure::new(Exit::Usage, "H0408", text, help));
    }
    for (name, time) in [("since", since), ("until", until)] {
        filter.extend(time.map(|time| (name, time.to_string())));
    }
    Ok(filter)
}

/// What a list is narrowed by, as it is.
pub(super) fn words<const N: usize>(words: [(&'static str, &Option<String>); N]) -> Filter {
    words
        .into_iter()
        .filter_map(|(name, value)| Some((name, value.clone()?)))
        .collect()
}

/// A time: given as one, or as a length back from now.
pub(super) fn time(option: &str, value: &str, now: Time) -> Result<jiff::Timestamp, Failure> {
    let instant = match value.parse::<Span>() {
        Ok(back) => jiff::Timestamp::from_microsecond((now - back).micros()).ok(),
        Err(_) => value.parse().ok(),
    };
    instant.ok_or_else(|| {
        let text = format!("--{option} `{value}` is neither a time nor a length of time");
        Failure::new(
            Exit::Usage,
            "H0408",
            text,
            "write 2026-01-31T12:00:00Z, or 2h for two hours ago",
        )
    })
}

/// How many fit, if they are on so many pages; `each` hears how many it were so far.
pub(super) async fn count(
    client: &Client,
    noun: Noun,
    filter: &Filter,
    pages_max: usize,
    each: impl Fn(u64),
) -> Result<Option<u64>, Failure> {
    let mut part = PartArgs {
        iterator: None,
        limit: PAGE_ROWS_MAX as u32,
        json: true,
    };
    let mut counted = 0;
    for _ in 0..pages_max {
        let page = list(client, noun, filter, &part).await?;
        counted += page["data"].as_array().map_or(0, Vec::len) as u64;
        each(counted);
        part.iterator = page["iterator"].as_str().map(str::to_owned);
        if page["done"].as_bool().unwrap_or(true) || part.iterator.is_none() {
            return Ok(Some(counted));
        }
    }
    Ok(None)
}

/// Page after page until there are enough.
pub(super) async fn list(
    client: &Client,
    noun: Noun,
    filter: &Filter,
    page: &PartArgs,
) -> Result<Value, Failure> {
    let limit = usize::try_from(page.limit).unwrap_or(usize::MAX);
    let mut iterator = page.iterator.clone();
    let mut rows: Vec<Value> = Vec::new();
    let mut first = Value::Null;
    loop {
        let page_rows = (limit - rows.len()).min(PAGE_ROWS_MAX);
        let mut query = Serializer::new(String::new());
        query
            .extend_pairs(filter)
            .append_pair("limit", &page_rows.to_string());
        if let Some(iterator) = &iterator {
            query.append_pair("iterator", iterator);
        }
        let path = format!("/api/v1/{}?{}", noun.one, query.finish());
        let answer = client.get(&path).await?;
        let mut page = expect_json(client, &answer, noun, &format!("list of {}", noun.many))?;
        let data = page["data"]
            .as_array_mut()
            .map(std::mem::take)
            .unwrap_or_default();
        let next = page["iterator"].as_str().map(str::to_owned);
        // A page may have no rows and go on all the same: the server looks at so many at a time. Only a list that does not
        // move must not be asked again.
        let done = page["done"].as_bool().unwrap_or(true) || next == iterator;
        rows.extend(data);
        if first.is_null() {
            first = page["prevIterator"].take();
        }
        iterator = next;
        if done || iterator.is_none() || rows.len() >= limit {
            return Ok(
                json!({"data": rows, "iterator": iterator, "prevIterator": first, "done": done}),
            );
        }
    }
}

/// The path of one thing.
pub(super) fn one(noun: Noun, id: &str) -> String {
    let id: String = form_urlencoded::byte_serialize(id.as_bytes()).collect();
    format!("/api/v1/{}/{id}", noun.one)
}

/// One thing with all that hangs on it.
pub(super) async fn show(client: &Client, noun: Noun, id: &str) -> Result<Value, Failure> {
    part(client, noun, id, "").await
}

/// A part of one thing: what stands behind its path.
pub(super) async fn part(
    client: &Client,
    noun: Noun,
    id: &str,
    rest: &str,
) -> Result<Value, Failure> {
    let answer = client.get(&format!("{}{rest}", one(noun, id))).await?;
    expect_json(client, &answer, noun, &format!("{} {id}", noun.one))
}

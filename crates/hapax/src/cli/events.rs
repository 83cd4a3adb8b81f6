//! `hapax events`: list and show, through the HTTP API.

use form_urlencoded::Serializer;
use hapax_ledger::time::{Span, Time};
use serde_json::{Value, json};

use super::answer::expect_json;
use super::client::{Client, block_on};
use super::exit::{Exit, Failure};
use super::{events_table, output};
use crate::clock;

/// The server gives at most this many rows at a time.
const PAGE_ROWS_MAX: usize = 250;

/// List and show events
#[derive(Debug, clap::Subcommand)]
pub(super) enum Command {
    /// List events, newest first
    List(ListArgs),
    /// Show one event with its deliveries, effects and runs
    Show(ShowArgs),
}

/// List events, newest first
#[derive(Debug, clap::Args)]
pub(super) struct ListArgs {
    /// Only of this source
    #[arg(long)]
    source: Option<String>,
    /// Only of this type
    #[arg(long = "type", value_name = "TYPE")]
    event_type: Option<String>,
    /// Only with this status: pending, in_progress, completed, needs_review, dead or stale
    #[arg(long)]
    status: Option<String>,
    /// Only with exactly this key
    #[arg(long)]
    key: Option<String>,
    /// Only about this object
    #[arg(long)]
    entity: Option<String>,
    /// Only received at or after: a time (2026-01-31T12:00:00Z) or a length back from now (2h)
    #[arg(long, value_name = "TIME")]
    since: Option<String>,
    /// Only received before: a time or a length back from now
    #[arg(long, value_name = "TIME")]
    until: Option<String>,
    /// Go on where another list ended: the `iterator` that it gave with --json
    #[arg(long)]
    iterator: Option<String>,
    /// At most so many
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..))]
    limit: u32,
    /// Write JSON
    #[arg(long)]
    json: bool,
}

/// Show one event with its deliveries, effects and runs
#[derive(Debug, clap::Args)]
pub(super) struct ShowArgs {
    /// The event's id, e.g. evt_...
    id: String,
    /// Write JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn run(command: &Command) -> Result<Exit, Failure> {
    let client = Client::from_env()?;
    match command {
        Command::List(args) => {
            let filter = filter(args, clock::now())?;
            let limit = usize::try_from(args.limit).unwrap_or(usize::MAX);
            let page = block_on(list(&client, &filter, args.iterator.clone(), limit))?;
            match args.json {
                true => output::json(&page)?,
                false => events_table::list(&page)?,
            }
        }
        Command::Show(args) => {
            let event = block_on(show(&client, &args.id))?;
            match args.json {
                true => output::json(&event)?,
                false => events_table::event(&event)?,
            }
        }
    }
    Ok(Exit::Ok)
}

fn filter(args: &ListArgs, now: Time) -> Result<Vec<(&'static str, String)>, Failure> {
    let plain = [
        ("source", &args.source),
        ("type", &args.event_type),
        ("status", &args.status),
        ("key", &args.key),
        ("entity", &args.entity),
    ];
    let mut filter: Vec<_> = plain
        .into_iter()
        .filter_map(|(name, value)| Some((name, value.clone()?)))
        .collect();
    let at = |name, value: &Option<String>| {
        let value = value.as_deref();
        value.map(|value| time(name, value, now)).transpose()
    };
    let (since, until) = (at("since", &args.since)?, at("until", &args.until)?);
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

/// Page after page until there are enough.
async fn list(
    client: &Client,
    filter: &[(&str, String)],
    mut iterator: Option<String>,
    limit: usize,
) -> Result<Value, Failure> {
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
        let answer = client
            .get(&format!("/api/v1/event?{}", query.finish()))
            .await?;
        let mut page = expect_json(client, &answer, "list of events")?;
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

async fn show(client: &Client, id: &str) -> Result<Value, Failure> {
    let id: String = form_urlencoded::byte_serialize(id.as_bytes()).collect();
    let answer = client.get(&format!("/api/v1/event/{id}")).await?;
    expect_json(client, &answer, &format!("event {id}"))
}

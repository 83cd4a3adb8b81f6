//! `hapax replay`: start, watch and cancel replays of many events, through the HTTP API.

use serde_json::{Map, Value, json};

use super::answer::{expect_json, text};
use super::client::{Client, block_on};
use super::exit::{Exit, Failure};
use super::list::{self, Noun, one};
use super::output;
use super::replay_watch::Seen;
use super::rows::{self, cell};
use crate::clock;

pub(super) const REPLAY: Noun = Noun {
    one: "replay",
    many: "replay",
};

/// Replay many events by filter: what is not done is carried out, page by page
#[derive(Debug, clap::Subcommand)]
pub(super) enum Command {
    /// Start a replay of all events that fit
    Start(StartArgs),
    /// Show how far a replay has come; on a terminal, watch it
    Show(ShowArgs),
    /// Stop a replay; what was sent stays sent
    Cancel(CancelArgs),
}

/// Start a replay of all events that fit
#[derive(Debug, clap::Args)]
pub(super) struct StartArgs {
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
    /// Why, for the audit log
    #[arg(long)]
    reason: String,
    /// Only count what would happen
    #[arg(long)]
    dry_run: bool,
    /// At most so many events a second
    #[arg(long)]
    rate: Option<u32>,
    /// Write JSON, and do not watch
    #[arg(long)]
    json: bool,
}

/// Show how far a replay has come; on a terminal, watch it
#[derive(Debug, clap::Args)]
pub(super) struct ShowArgs {
    /// The replay's id, e.g. rpl_...
    id: String,
    /// Write JSON, and do not watch
    #[arg(long)]
    json: bool,
}

/// Stop a replay; what was sent stays sent
#[derive(Debug, clap::Args)]
pub(super) struct CancelArgs {
    /// The replay's id, e.g. rpl_...
    id: String,
    /// Why, for the audit log
    #[arg(long)]
    reason: Option<String>,
}

pub(super) fn run(command: &Command) -> Result<Exit, Failure> {
    let client = Client::from_env()?;
    match command {
        Command::Start(args) => {
            let filter = filter(args)?;
            let seen = Seen::new(!args.json);
            let total = block_on(seen.count(&client, &filter))?;
            let answer = block_on(client.post("/api/v1/replay", &body(args, filter)))?;
            let started = expect_json(&client, &answer, REPLAY, "place for replays")?;
            if args.json {
                output::json(&started)?;
                return Ok(Exit::Ok);
            }
            let id = text(&started["id"]);
            output::data(&id)?;
            show(&block_on(seen.watch(&client, &id, total))?)
        }
        Command::Show(args) if args.json => {
            output::json(&block_on(list::show(&client, REPLAY, &args.id))?)?;
            Ok(Exit::Ok)
        }
        Command::Show(args) => show(&block_on(Seen::new(true).watch(&client, &args.id, None))?),
        Command::Cancel(args) => {
            let path = format!("{}/cancel", one(REPLAY, &args.id));
            let answer = block_on(client.post(&path, &json!({ "reason": args.reason })))?;
            expect_json(&client, &answer, REPLAY, &format!("replay {}", args.id))?;
            output::talk(&format!("{} is cancelled", args.id));
            Ok(Exit::Ok)
        }
    }
}

/// Which events are meant, by the names of the API.
fn filter(args: &StartArgs) -> Result<list::Filter, Failure> {
    let now = clock::now();
    let time = |name, value: &Option<String>| {
        let value = value.as_deref();
        let time = value.map(|value| list::time(name, value, now)).transpose();
        time.map(|time| time.map(|time| time.to_string()))
    };
    let filter = [
        ("source", args.source.clone()),
        ("type", args.event_type.clone()),
        ("status", args.status.clone()),
        ("key", args.key.clone()),
        ("entity", args.entity.clone()),
        ("since", time("since", &args.since)?),
        ("until", time("until", &args.until)?),
    ];
    let filter = filter.into_iter();
    Ok(filter
        .filter_map(|(name, value)| Some((name, value?)))
        .collect())
}

fn body(args: &StartArgs, filter: list::Filter) -> Value {
    let filter = filter.into_iter();
    let filter: Map<String, Value> = filter
        .map(|(name, value)| (name.to_owned(), value.into()))
        .collect();
    json!({
        "filter": filter, "reason": args.reason, "dryRun": args.dry_run, "rate": args.rate,
    })
}

fn show(replay: &Value) -> Result<Exit, Failure> {
    rows::facts(facts(replay))?;
    Ok(Exit::Ok)
}

fn facts(replay: &Value) -> [(&'static str, String); 11] {
    let plain = |name: &str| text(&replay[name]);
    [
        ("id", plain("id")),
        ("state", plain("state")),
        ("by", plain("actor")),
        ("reason", plain("reason")),
        ("started", cell("createdAt", &replay["createdAt"])),
        ("dry run", cell("dryRun", &replay["dryRun"])),
        ("looked at", plain("total")),
        ("sent", plain("done")),
        ("nothing to do", plain("skipped")),
        ("blocked", plain("blocked")),
        ("failed", plain("failed")),
    ]
}

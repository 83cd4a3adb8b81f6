//! `hapax events`: look at events and decide about them, through the HTTP API.

use form_urlencoded::Serializer;
use serde_json::{Value, json};

use super::act::{self, Decision, Terms};
use super::client::{Client, block_on};
use super::exit::{Exit, Failure};
use super::list::{self, Noun, PageArgs};
use super::review::{self, ConflictArgs, ReviewArgs};
use super::{erase, events_table, output, verdict_table};
use crate::clock;

pub(super) const EVENT: Noun = Noun {
    one: "event",
    many: "events",
};

/// Look at events and decide about them
#[derive(Debug, clap::Subcommand)]
pub(super) enum Command {
    /// List events, newest first
    List(ListArgs),
    /// Show one event with its deliveries, effects and runs
    Show(ShowArgs),
    /// Show what happened to one event, in order
    Timeline(ShowArgs),
    /// Show what would happen to one event if somebody acted now
    Verdict(VerdictArgs),
    /// Carry out what is not done
    Retry(RetryArgs),
    /// Start a new run: what is done is skipped, unless it is forced
    Replay(ReplayArgs),
    /// Ask the source of truth, and send converging effects again with what it says
    Reconcile(RetryArgs),
    /// Decide about an event that waits for a person
    Review(ReviewArgs),
    /// Decide about a delivery that came under an event's key with another body
    Conflict(ConflictArgs),
    /// Delete the payload of one event, or of all about an object, at once; its identity stays
    Erase(EraseArgs),
}

/// Show what would happen to one event if somebody acted now
#[derive(Debug, clap::Args)]
pub(super) struct VerdictArgs {
    /// The event's id, e.g. evt_...
    id: String,
    /// If they did this
    #[arg(long, default_value = "retry", value_parser = ["retry", "replay", "reconcile"])]
    action: String,
    /// With a replay: as if this effect were sent again (may be given several times)
    #[arg(long, value_name = "NAME")]
    force: Vec<String>,
    /// Write JSON
    #[arg(long)]
    json: bool,
}

/// Carry out what is not done
#[derive(Debug, clap::Args)]
pub(super) struct RetryArgs {
    /// The event's id, e.g. evt_...
    id: String,
    #[command(flatten)]
    terms: Terms,
}

/// Start a new run: what is done is skipped, unless it is forced
#[derive(Debug, clap::Args)]
pub(super) struct ReplayArgs {
    /// The event's id, e.g. evt_...
    id: String,
    /// Send this effect again although it is done, as a new generation (may be given several times)
    #[arg(long, value_name = "NAME")]
    force: Vec<String>,
    #[command(flatten)]
    terms: Terms,
}

/// Delete the payload of one event, or of all about an object, at once; its identity stays
#[derive(Debug, clap::Args)]
pub(super) struct EraseArgs {
    /// The event's id, e.g. evt_...
    #[arg(required_unless_present = "entity", conflicts_with_all = ["source", "entity"])]
    id: Option<String>,
    /// All events of this source ...
    #[arg(long, requires = "entity")]
    source: Option<String>,
    /// ... that are about this object
    #[arg(long, requires = "source")]
    entity: Option<String>,
    #[command(flatten)]
    terms: Terms,
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
    /// Only with this text in the key
    #[arg(long, value_name = "TEXT")]
    key_contains: Option<String>,
    /// Only about this object
    #[arg(long)]
    entity: Option<String>,
    #[command(flatten)]
    page: PageArgs,
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
            let words = [
                ("source", &args.source),
                ("type", &args.event_type),
                ("status", &args.status),
                ("key", &args.key),
                ("keyContains", &args.key_contains),
                ("entity", &args.entity),
            ];
            let filter = list::filter(words, &args.page, clock::now())?;
            let listed = block_on(list::list(&client, EVENT, &filter, &args.page.part))?;
            match args.page.part.json {
                true => output::json(&listed)?,
                false => events_table::list(&listed)?,
            }
        }
        Command::Show(args) => {
            let event = block_on(list::show(&client, EVENT, &args.id))?;
            match args.json {
                true => output::json(&event)?,
                false => events_table::event(&event)?,
            }
        }
        Command::Timeline(args) => {
            let told = block_on(list::part(&client, EVENT, &args.id, "/timeline"))?;
            match args.json {
                true => output::json(&told)?,
                false => events_table::timeline(&told)?,
            }
        }
        Command::Verdict(args) => verdict(&client, args)?,
        Command::Retry(args) => return act(&client, "retry", &args.id, None, &args.terms),
        Command::Reconcile(args) => return act(&client, "reconcile", &args.id, None, &args.terms),
        Command::Review(args) => return review::of_event(&client, args),
        Command::Conflict(args) => return review::of_conflict(&client, args),
        Command::Erase(args) => return erase(&client, args),
        Command::Replay(args) => {
            let force = Some(json!(args.force));
            return act(&client, "replay", &args.id, force, &args.terms);
        }
    }
    Ok(Exit::Ok)
}

fn verdict(client: &Client, args: &VerdictArgs) -> Result<(), Failure> {
    let mut query = Serializer::new(String::new());
    query.append_pair("action", &args.action);
    query.extend_pairs(args.force.iter().map(|name| ("force", name)));
    let rest = format!("/verdict?{}", query.finish());
    let verdict = block_on(list::part(client, EVENT, &args.id, &rest))?;
    match args.json {
        true => output::json(&verdict),
        false => output::data(&verdict_table::text(&verdict)),
    }
}

fn erase(client: &Client, args: &EraseArgs) -> Result<Exit, Failure> {
    match (&args.id, &args.source, &args.entity) {
        (Some(id), ..) => act(client, "erase", id, None, &args.terms),
        (None, source, entity) => {
            let of = |text: &Option<String>| text.clone().unwrap_or_default();
            erase::entity(client, &of(source), &of(entity), &args.terms)
        }
    }
}

fn act(
    client: &Client,
    action: &str,
    id: &str,
    force: Option<Value>,
    terms: &Terms,
) -> Result<Exit, Failure> {
    let decision = Decision {
        noun: EVENT,
        id,
        action,
        word: action,
        means: None,
        more: force.map(|force| ("force", force)).into_iter().collect(),
    };
    act::decide(client, &decision, terms)
}

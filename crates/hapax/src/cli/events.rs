//! `hapax events`: list and show, through the HTTP API.

use super::client::{Client, block_on};
use super::exit::{Exit, Failure};
use super::list::{self, Noun, PageArgs};
use super::{events_table, output};
use crate::clock;

const EVENT: Noun = Noun {
    one: "event",
    many: "events",
};

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
                ("entity", &args.entity),
            ];
            let filter = list::filter(words, &args.page, clock::now())?;
            let listed = block_on(list::list(&client, EVENT, &filter, &args.page))?;
            match args.page.json {
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
    }
    Ok(Exit::Ok)
}

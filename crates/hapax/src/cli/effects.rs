//! `hapax effects`: look at effects and settle them by hand, through the HTTP API.

use super::act::{self, Decision, Terms};
use super::client::{Client, block_on};
use super::exit::{Exit, Failure};
use super::list::{self, Noun, PageArgs};
use super::{effects_table, output};
use crate::clock;

const EFFECT: Noun = Noun {
    one: "effect",
    many: "effects",
};

/// Look at effects and settle them by hand
#[derive(Debug, clap::Subcommand)]
pub(super) enum Command {
    /// List effects, newest first
    List(ListArgs),
    /// Show one effect with its attempts and the events that call for it
    Show(ShowArgs),
    /// Settle an uncertain effect by hand, or skip one that is pending or dead
    Resolve(ResolveArgs),
}

/// Settle an uncertain effect by hand, or skip one that is pending or dead
#[derive(Debug, clap::Args)]
pub(super) struct ResolveArgs {
    /// The effect's id, e.g. eff_...
    id: String,
    /// What became of it: it was applied, it was not (and is sent), or it does not matter any more
    #[arg(long, value_parser = ["applied", "not_applied", "skip"])]
    outcome: String,
    #[command(flatten)]
    terms: Terms,
}

/// List effects, newest first
#[derive(Debug, clap::Args)]
pub(super) struct ListArgs {
    /// Only in this state: pending, claimed, done, uncertain, dead or skipped
    #[arg(long)]
    state: Option<String>,
    /// Only of this name
    #[arg(long)]
    name: Option<String>,
    /// Only those first called for by an event of this source
    #[arg(long)]
    source: Option<String>,
    /// Only of this lane, which is named as its effect
    #[arg(long)]
    lane: Option<String>,
    #[command(flatten)]
    page: PageArgs,
}

/// Show one effect with its attempts and the events that call for it
#[derive(Debug, clap::Args)]
pub(super) struct ShowArgs {
    /// The effect's id, e.g. eff_...
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
                ("state", &args.state),
                ("name", &args.name),
                ("source", &args.source),
                ("lane", &args.lane),
            ];
            let filter = list::filter(words, &args.page, clock::now())?;
            let listed = block_on(list::list(&client, EFFECT, &filter, &args.page.part))?;
            match args.page.part.json {
                true => output::json(&listed)?,
                false => effects_table::list(&listed)?,
            }
        }
        Command::Show(args) => {
            let effect = block_on(list::show(&client, EFFECT, &args.id))?;
            match args.json {
                true => output::json(&effect)?,
                false => effects_table::effect(&effect)?,
            }
        }
        Command::Resolve(args) => {
            let decision = Decision {
                noun: EFFECT,
                id: &args.id,
                action: "resolve",
                word: "resolve",
                means: None,
                more: vec![("outcome", args.outcome.as_str().into())],
            };
            return act::decide(&client, &decision, &args.terms);
        }
    }
    Ok(Exit::Ok)
}

//! What only a person can decide about an event: one that waits for it, and a delivery that contradicts an earlier one.

use super::act::{self, Decision, Terms};
use super::client::Client;
use super::events::EVENT;
use super::exit::{Exit, Failure};

/// Decide about an event that waits for a person
#[derive(Debug, clap::Args)]
pub(super) struct ReviewArgs {
    /// The event's id, e.g. evt_...
    id: String,
    /// Let it go on, by the current config, or let nothing come of it
    #[arg(long, value_parser = ["release", "dismiss"])]
    outcome: String,
    #[command(flatten)]
    terms: Terms,
}

/// Decide about a delivery that came under an event's key with another body
#[derive(Debug, clap::Args)]
pub(super) struct ConflictArgs {
    /// The event's id, e.g. evt_...
    id: String,
    /// Which delivery: its place among those that `hapax events show` lists, where the first is 0
    number: u32,
    /// It is known and nothing comes of it, or it becomes an event of its own
    #[arg(long, value_parser = ["acknowledge", "promote"])]
    outcome: String,
    #[command(flatten)]
    terms: Terms,
}

/// Releases or dismisses an event.
pub(super) fn of_event(client: &Client, args: &ReviewArgs) -> Result<Exit, Failure> {
    decide(client, &args.id, "review", &args.outcome, &args.terms)
}

/// Acknowledges a conflict, or makes an event of it.
pub(super) fn of_conflict(client: &Client, args: &ConflictArgs) -> Result<Exit, Failure> {
    let action = format!("conflict/{}", args.number);
    decide(client, &args.id, &action, &args.outcome, &args.terms)
}

fn decide(
    client: &Client,
    id: &str,
    action: &str,
    outcome: &str,
    terms: &Terms,
) -> Result<Exit, Failure> {
    let decision = Decision {
        noun: EVENT,
        id,
        action,
        word: outcome,
        means: Some(meaning(outcome)),
        more: vec![("outcome", outcome.into())],
    };
    act::decide(client, &decision, terms)
}

/// What an outcome comes to: the verdict says where the effects stand, not what the decision changes about them.
fn meaning(outcome: &str) -> &'static str {
    match outcome {
        "release" => {
            "release: the event is planned by the current config, and what that calls for is sent"
        }
        "dismiss" => "dismiss: what the event waits with is skipped, and never sent",
        "acknowledge" => "acknowledge: the other body is known; nothing is sent because of it",
        _ => "promote: the other body becomes an event of its own, and what it calls for is sent",
    }
}

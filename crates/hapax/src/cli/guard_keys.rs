//! `hapax keys list|show|resolve`: keys of guarded requests, through the HTTP API.

use serde_json::{Value, json};

use super::answer::{expect_json, text};
use super::client::{Client, block_on};
use super::exit::{Exit, Failure};
use super::list::{self, Noun, PartArgs, one};
use super::output;
use super::rows::{self, Column, cell, members, table_of};
use super::table::Step;

const KEY: Noun = Noun {
    one: "guard/key",
    many: "keys",
};

const COLUMNS: [Column; 9] = [
    ("id", "ID"),
    ("guard", "GUARD"),
    ("key", "KEY"),
    ("principal", "PRINCIPAL"),
    ("state", "STATE"),
    ("status", "STATUS"),
    ("method", "METHOD"),
    ("path", "PATH"),
    ("startedAt", "STARTED"),
];

/// How keys give way on a narrow terminal. The id stays whole: it is what is copied.
const STEPS: [Step; 7] = [
    Step::Drop("METHOD"),
    Step::Shrink("PATH", 16),
    Step::Shrink("PRINCIPAL", 12),
    Step::Drop("STARTED"),
    Step::Drop("PATH"),
    Step::Shrink("KEY", 12),
    Step::Drop("PRINCIPAL"),
];

/// What is said of one key, in this order.
const FACTS: [(&str, &str); 16] = [
    ("id", "id"),
    ("guard", "guard"),
    ("key", "key"),
    ("principal", "principal"),
    ("method", "method"),
    ("path", "path"),
    ("state", "state"),
    ("status", "status"),
    ("error", "error"),
    ("runs", "runs"),
    ("fence", "fence"),
    ("node", "node"),
    ("firstAt", "first seen"),
    ("startedAt", "started"),
    ("endedAt", "ended"),
    ("expiresAt", "expires"),
];

/// List keys of guarded requests, newest first
#[derive(Debug, clap::Args)]
pub(super) struct ListArgs {
    /// Only in this state: running, completed, not_kept, unknown or released
    #[arg(long)]
    state: Option<String>,
    /// Only of this guard
    #[arg(long)]
    guard: Option<String>,
    /// Only with exactly this key
    #[arg(long)]
    key: Option<String>,
    /// Only of this caller
    #[arg(long)]
    principal: Option<String>,
    #[command(flatten)]
    part: PartArgs,
}

/// Show one key of a guarded request
#[derive(Debug, clap::Args)]
pub(super) struct ShowArgs {
    /// The key's id, e.g. key_...
    id: String,
    /// Write JSON
    #[arg(long)]
    json: bool,
}

/// Say what became of a guarded request whose outcome is unknown
#[derive(Debug, clap::Args)]
pub(super) struct ResolveArgs {
    /// The key's id, e.g. key_...
    id: String,
    /// What became of it: it was carried out (and never runs again), or it was not (and the key is free)
    #[arg(long, value_parser = ["executed", "not_executed"])]
    outcome: String,
    /// Why, for the audit log
    #[arg(long)]
    reason: String,
    /// Only if its latest run is still this one: the fence that `hapax keys show` says
    #[arg(long, value_name = "FENCE")]
    if_fence: Option<u64>,
    /// Write JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn list(args: &ListArgs) -> Result<Exit, Failure> {
    let client = Client::from_env()?;
    let words = [
        ("state", &args.state),
        ("guard", &args.guard),
        ("key", &args.key),
        ("principal", &args.principal),
    ];
    let filter = list::words(words);
    let listed = block_on(list::list(&client, KEY, &filter, &args.part))?;
    match args.part.json {
        true => output::json(&listed)?,
        false => {
            let table = table_of(&COLUMNS, members(&listed["data"]));
            rows::list(&listed, "keys", table, &STEPS)?;
        }
    }
    Ok(Exit::Ok)
}

pub(super) fn show(args: &ShowArgs) -> Result<Exit, Failure> {
    let client = Client::from_env()?;
    let answer = block_on(client.get(&one(KEY, &args.id)))?;
    let key = expect_json(&client, &answer, KEY, &format!("guarded key {}", args.id))?;
    match args.json {
        true => output::json(&key)?,
        false => {
            let fact =
                |(field, name): (&'static str, &'static str)| (name, cell(field, &key[field]));
            rows::facts(FACTS.map(fact))?;
            if key["state"] == "unknown" {
                output::talk(&format!(
                    "find out whether it was carried out, then: hapax keys resolve {} --if-fence {} --outcome executed|not_executed --reason ...",
                    args.id, key["fence"]
                ));
            }
        }
    }
    Ok(Exit::Ok)
}

pub(super) fn resolve(args: &ResolveArgs) -> Result<Exit, Failure> {
    let client = Client::from_env()?;
    let path = format!("{}/resolve", one(KEY, &args.id));
    let body = json!({ "outcome": args.outcome, "reason": args.reason, "ifFence": args.if_fence });
    let answer = block_on(client.post(&path, &body))?;
    let resolved: Value = expect_json(&client, &answer, KEY, &format!("guarded key {}", args.id))?;
    match args.json {
        true => output::json(&resolved)?,
        false => output::talk(&format!("{} is {} now", args.id, text(&resolved["state"]))),
    }
    Ok(Exit::Ok)
}

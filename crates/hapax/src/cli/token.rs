//! `hapax token`: create, list and revoke API tokens, through the HTTP API.

use hapax_ledger::time::Span;
use serde_json::{Value, json};

use super::answer::{expect_json, text};
use super::client::{Client, block_on};
use super::exit::{Exit, Failure};
use super::list::{Noun, one};
use super::output;
use super::rows::{self, Column, members, table_of};
use super::table::Step;
use crate::clock;

const TOKEN: Noun = Noun {
    one: "token",
    many: "token",
};

const COLUMNS: [Column; 8] = [
    ("id", "ID"),
    ("name", "NAME"),
    ("role", "ROLE"),
    ("app", "APP"),
    ("createdAt", "CREATED"),
    ("expiresAt", "EXPIRES"),
    ("lastUsedAt", "LAST USED"),
    ("revokedAt", "REVOKED"),
];

const STEPS: [Step; 4] = [
    Step::Drop("CREATED"),
    Step::Drop("APP"),
    Step::Drop("EXPIRES"),
    Step::Drop("LAST USED"),
];

/// Create, list and revoke API tokens
#[derive(Debug, clap::Subcommand)]
pub(super) enum Command {
    /// Make a token; its secret is shown once
    Create(CreateArgs),
    /// List tokens, newest first
    List(ListArgs),
    /// Revoke a token: it does not count any more
    Revoke(RevokeArgs),
}

/// Make a token; its secret is shown once
#[derive(Debug, clap::Args)]
pub(super) struct CreateArgs {
    /// What people call it; the actor in all that is decided with it
    name: String,
    /// What it may do
    #[arg(long, value_parser = ["viewer", "operator", "admin"])]
    role: String,
    /// The one app that it is for
    #[arg(long)]
    app: Option<String>,
    /// How long it counts, e.g. 30d [default: until it is revoked]
    #[arg(long, value_name = "LENGTH")]
    expires: Option<String>,
    /// Why, for the audit log
    #[arg(long)]
    reason: Option<String>,
    /// Write JSON
    #[arg(long)]
    json: bool,
}

/// List tokens, newest first
#[derive(Debug, clap::Args)]
pub(super) struct ListArgs {
    /// Write JSON
    #[arg(long)]
    json: bool,
}

/// Revoke a token: it does not count any more
#[derive(Debug, clap::Args)]
pub(super) struct RevokeArgs {
    /// The token's id, e.g. tok_...
    id: String,
    /// Why, for the audit log
    #[arg(long)]
    reason: Option<String>,
    /// Write JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn run(command: &Command) -> Result<Exit, Failure> {
    let client = Client::from_env()?;
    match command {
        Command::Create(args) => create(&client, args)?,
        Command::List(args) => {
            let answer = block_on(client.get("/api/v1/token"))?;
            let listed = expect_json(&client, &answer, TOKEN, "list of tokens")?;
            match args.json {
                true => output::json(&listed)?,
                false => {
                    let table = table_of(&COLUMNS, members(&listed["data"]));
                    rows::list(&listed, "tokens", table, &STEPS)?;
                }
            }
        }
        Command::Revoke(args) => {
            let path = format!("{}/revoke", one(TOKEN, &args.id));
            let answer = block_on(client.post(&path, &json!({ "reason": args.reason })))?;
            let revoked = expect_json(&client, &answer, TOKEN, &format!("token {}", args.id))?;
            match args.json {
                true => output::json(&revoked)?,
                false => output::talk(&format!("{} does not count any more", args.id)),
            }
        }
    }
    Ok(Exit::Ok)
}

fn create(client: &Client, args: &CreateArgs) -> Result<(), Failure> {
    let expires = args.expires.as_deref().map(until).transpose()?;
    let body = json!({
        "name": args.name, "role": args.role, "app": args.app, "expiresAt": expires, "reason": args.reason,
    });
    let answer = block_on(client.post("/api/v1/token", &body))?;
    let made = expect_json(client, &answer, TOKEN, "place for tokens")?;
    if args.json {
        return output::json(&made);
    }
    output::talk(&format!(
        "{} ({}, {}) is made. Its secret, shown only this once:",
        text(&made["id"]),
        text(&made["name"]),
        text(&made["role"])
    ));
    output::data(&text(&made["token"]))
}

/// A length from now as a time.
fn until(length: &str) -> Result<Value, Failure> {
    let span: Result<Span, _> = length.parse();
    match span {
        Ok(span) if span > Span::ZERO => Ok(clock::text(clock::now() + span).into()),
        _ => {
            let text = format!("--expires `{length}` is not a length of time");
            Err(Failure::new(
                Exit::Usage,
                "H0408",
                text,
                "write 30d, 12h or 90m",
            ))
        }
    }
}

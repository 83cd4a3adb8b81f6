//! `hapax secrets`: secrets that a provider chooses and offers in its handshake, through the HTTP API.

use hapax_ledger::time::Span;
use serde_json::json;

use super::answer::{expect_json, text};
use super::client::{Client, block_on};
use super::exit::{Exit, Failure};
use super::list::{Noun, one};
use super::output;
use super::rows::{self, Column, members, table_of};

const SOURCE: Noun = Noun {
    one: "source",
    many: "source",
};

const COLUMNS: [Column; 3] = [
    ("id", "ID"),
    ("keptAt", "KEPT"),
    ("currentKey", "CURRENT KEY"),
];

/// Secrets that providers choose: expect, list and drop them
#[derive(Debug, clap::Subcommand)]
pub(super) enum Command {
    /// Expect a secret: the next one that the source's provider offers is taken
    Expect(ExpectArgs),
    /// List the secrets that were taken for a source
    List(ListArgs),
    /// Drop a secret: what it signs is not believed any more
    Drop(DropArgs),
}

/// Expect a secret: the next one that the source's provider offers is taken
#[derive(Debug, clap::Args)]
pub(super) struct ExpectArgs {
    /// The source
    source: String,
    /// Why, for the audit log
    #[arg(long)]
    reason: String,
    /// For how long, at most 1h
    #[arg(long = "for", value_name = "LENGTH", default_value = "10m")]
    length: String,
    /// Write JSON
    #[arg(long)]
    json: bool,
}

/// List the secrets that were taken for a source
#[derive(Debug, clap::Args)]
pub(super) struct ListArgs {
    /// The source
    source: String,
    /// Write JSON
    #[arg(long)]
    json: bool,
}

/// Drop a secret: what it signs is not believed any more
#[derive(Debug, clap::Args)]
pub(super) struct DropArgs {
    /// The source
    source: String,
    /// The secret's id, as in the list
    id: String,
    /// Why, for the audit log
    #[arg(long)]
    reason: String,
    /// Write JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn run(command: &Command) -> Result<Exit, Failure> {
    let client = Client::from_env()?;
    match command {
        Command::Expect(args) => expect(&client, args)?,
        Command::List(args) => list(&client, args)?,
        Command::Drop(args) => {
            let id: String = form_urlencoded::byte_serialize(args.id.as_bytes()).collect();
            let path = format!("{}/{id}/drop", path(&args.source));
            let answer = block_on(client.post(&path, &json!({ "reason": args.reason })))?;
            let what = format!("secret {} of source {}", args.id, args.source);
            let dropped = expect_json(&client, &answer, SOURCE, &what)?;
            match args.json {
                true => output::json(&dropped)?,
                false => output::talk(&format!("{} does not count any more", args.id)),
            }
        }
    }
    Ok(Exit::Ok)
}

fn path(source: &str) -> String {
    format!("{}/secret", one(SOURCE, source))
}

fn expect(client: &Client, args: &ExpectArgs) -> Result<(), Failure> {
    let span: Result<Span, _> = args.length.parse();
    let seconds = span.map(Span::secs_ceil).map_err(|_| {
        let text = format!("--for `{}` is not a length of time", args.length);
        Failure::new(Exit::Usage, "H0408", text, "write 10m or 90s")
    })?;
    let body = json!({ "reason": args.reason, "seconds": seconds });
    let answer = block_on(client.post(&format!("{}/expect", path(&args.source)), &body))?;
    let what = format!("source {}", args.source);
    let expected = expect_json(client, &answer, SOURCE, &what)?;
    if args.json {
        return output::json(&expected);
    }
    output::talk(&format!(
        "the first secret that is offered to {} until {} is taken: make the webhook at the provider now",
        args.source,
        text(&expected["until"])
    ));
    Ok(())
}

fn list(client: &Client, args: &ListArgs) -> Result<(), Failure> {
    let answer = block_on(client.get(&path(&args.source)))?;
    let what = format!("source {}", args.source);
    let listed = expect_json(client, &answer, SOURCE, &what)?;
    if args.json {
        return output::json(&listed);
    }
    if listed["expectedUntil"].is_string() {
        output::talk(&format!(
            "one is expected until {}",
            text(&listed["expectedUntil"])
        ));
    }
    let table = table_of(&COLUMNS, members(&listed["data"]));
    rows::list(&listed, "secrets", table, &[])
}

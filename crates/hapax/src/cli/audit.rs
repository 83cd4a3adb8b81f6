//! `hapax audit`: who decided what, and whether the log is whole, through the HTTP API.

use form_urlencoded::Serializer;
use serde_json::{Value, json};

use super::answer::{expect_json, text};
use super::audit_chain::Check;
use super::client::{Client, block_on};
use super::exit::{Exit, Failure};
use super::list::Noun;
use super::output;
use super::rows::{self, Column, members, table_of};
use super::table::Step;

const AUDIT: Noun = Noun {
    one: "audit",
    many: "audit",
};

const COLUMNS: [Column; 6] = [
    ("seq", "N"),
    ("at", "AT"),
    ("actor", "WHO"),
    ("action", "DID"),
    ("subject", "ABOUT"),
    ("reason", "REASON"),
];

const STEPS: [Step; 2] = [Step::Shrink("REASON", 20), Step::Drop("AT")];
/// Records that are asked for at a time.
const PAGE_ROWS: usize = 250;

/// Read and verify the audit log
#[derive(Debug, clap::Subcommand)]
pub(super) enum Command {
    /// List decisions, newest first
    List(ListArgs),
    /// Read the whole log and check that nothing before its newest record was changed, removed or inserted
    Verify(VerifyArgs),
}

/// List decisions, newest first
#[derive(Debug, clap::Args)]
pub(super) struct ListArgs {
    /// Only by this actor
    #[arg(long)]
    actor: Option<String>,
    /// Only about this event
    #[arg(long)]
    event: Option<String>,
    /// At most so many
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=250))]
    limit: u32,
    /// Write JSON
    #[arg(long)]
    json: bool,
}

/// Read the whole log and check that nothing before its newest record was changed, removed or inserted
#[derive(Debug, clap::Args)]
pub(super) struct VerifyArgs {
    /// Write JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn run(command: &Command) -> Result<Exit, Failure> {
    let client = Client::from_env()?;
    match command {
        Command::List(args) => {
            let mut query = Serializer::new(String::new());
            query.append_pair("limit", &args.limit.to_string());
            for (name, value) in [("actor", &args.actor), ("event", &args.event)] {
                query.extend_pairs(value.iter().map(|value| (name, value)));
            }
            let listed = block_on(page(&client, &query.finish()))?;
            match args.json {
                true => output::json(&listed)?,
                false => {
                    let table = table_of(&COLUMNS, members(&listed["data"]));
                    rows::list(&listed, "decisions", table, &STEPS)?;
                }
            }
            Ok(Exit::Ok)
        }
        Command::Verify(args) => verify(&client, args),
    }
}

async fn page(client: &Client, query: &str) -> Result<Value, Failure> {
    let answer = client.get(&format!("/api/v1/audit?{query}")).await?;
    expect_json(client, &answer, AUDIT, "audit log")
}

fn verify(client: &Client, args: &VerifyArgs) -> Result<Exit, Failure> {
    match block_on(walk(client))?.finish() {
        Ok(records) => {
            match args.json {
                true => output::json(&json!({ "whole": true, "records": records }))?,
                false => output::data(&format!("{records} records, all whole"))?,
            }
            Ok(Exit::Ok)
        }
        Err(bad) => {
            if args.json {
                let said = json!({ "whole": false, "firstBad": bad.seq, "why": bad.why });
                output::json(&said)?;
            }
            let text = format!("record {} of the audit log is bad: {}", bad.seq, bad.why);
            let help = "keep the store as it is, and compare it with a backup";
            Err(Failure::new(Exit::Failed, "H0412", text, help))
        }
    }
}

/// All records, from the newest down.
async fn walk(client: &Client) -> Result<Check, Failure> {
    let mut check = Check::default();
    let mut query = format!("limit={PAGE_ROWS}");
    loop {
        let page = page(client, &query).await?;
        members(&page["data"])
            .iter()
            .for_each(|record| check.take(record));
        if page["done"].as_bool().unwrap_or(true) {
            return Ok(check);
        }
        query = format!("limit={PAGE_ROWS}&iterator={}", text(&page["iterator"]));
    }
}

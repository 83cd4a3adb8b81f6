//! `hapax keys`: duplicate forensics, and keys of guarded requests, through the HTTP API.

use std::fmt::Write;

use serde_json::Value;

use super::answer::expect_json;
use super::client::{Client, block_on};
use super::exit::{Exit, Failure};
use super::guard_keys;
use super::list::{self, Noun};
use super::output;
use crate::clock;

const SOURCE: Noun = Noun {
    one: "source",
    many: "sources",
};

/// Keys of sources and of guarded requests
#[derive(Debug, clap::Subcommand)]
pub(super) enum Command {
    /// Say what the ledger tells about the keys of a source, or of all
    Audit(AuditArgs),
    /// List keys of guarded requests, newest first
    List(guard_keys::ListArgs),
    /// Show one key of a guarded request
    Show(guard_keys::ShowArgs),
    /// Say what became of a guarded request whose outcome is unknown
    Resolve(guard_keys::ResolveArgs),
}

/// Say what the ledger tells about the keys of a source, or of all
///
/// Looks at the latest 10,000 events of each source for keys that are not stable, not unique, fell down the ladder or are forgotten
/// too early, and for effects that are shared by accident.
#[derive(Debug, clap::Args)]
pub(super) struct AuditArgs {
    /// Only this source
    #[arg(long)]
    source: Option<String>,
    /// Only events received since: a time, or a duration such as 2h
    #[arg(long)]
    since: Option<String>,
    /// Write JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn run(command: &Command) -> Result<Exit, Failure> {
    match command {
        Command::Audit(args) => audit(args),
        Command::List(args) => guard_keys::list(args),
        Command::Show(args) => guard_keys::show(args),
        Command::Resolve(args) => guard_keys::resolve(args),
    }
}

fn audit(args: &AuditArgs) -> Result<Exit, Failure> {
    let client = Client::from_env()?;
    let since = args.since.as_deref();
    let since = since.map(|since| list::time("since", since, clock::now()));
    let since = since.transpose()?.map(|since| since.to_string());
    let reports = block_on(reports(&client, args.source.as_deref(), since))?;
    match args.json {
        true => output::json(&Value::from(reports))?,
        false => output::data(&shown(&reports))?,
    }
    Ok(Exit::Ok)
}

async fn reports(
    client: &Client,
    source: Option<&str>,
    since: Option<String>,
) -> Result<Vec<Value>, Failure> {
    let names = match source {
        Some(name) => vec![name.to_owned()],
        None => {
            let sources = ask(client, "/api/v1/source", "the sources").await?;
            let all = sources["data"].as_array().cloned().unwrap_or_default();
            let names = all.iter().filter_map(|source| source["name"].as_str());
            names.map(str::to_owned).collect()
        }
    };
    let mut reports = Vec::with_capacity(names.len());
    for name in names {
        let query = since.as_deref().map(|since| {
            let query = form_urlencoded::Serializer::new(String::new())
                .append_pair("since", since)
                .finish();
            format!("?{query}")
        });
        let encoded: String = form_urlencoded::byte_serialize(name.as_bytes()).collect();
        let path = format!(
            "/api/v1/source/{encoded}/audit{}",
            query.unwrap_or_default()
        );
        reports.push(ask(client, &path, &format!("source {name}")).await?);
    }
    Ok(reports)
}

async fn ask(client: &Client, path: &str, what: &str) -> Result<Value, Failure> {
    let answer = client.get(path).await?;
    expect_json(client, &answer, SOURCE, what)
}

fn shown(reports: &[Value]) -> String {
    let mut text = String::new();
    for report in reports {
        let words = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let findings = report["findings"].as_array().cloned().unwrap_or_default();
        let more = match report["more"] == true {
            true => "the latest ",
            false => "",
        };
        let verdict = match findings.is_empty() {
            true => "nothing to report",
            false => "look at this",
        };
        let _ = writeln!(
            text,
            "{}: {more}{} events looked at; {verdict}",
            words(&report["source"]),
            report["lookedAt"]
        );
        for finding in findings {
            let _ = writeln!(
                text,
                "\n  {} x {}: {}\n    {}",
                finding["count"],
                words(&finding["kind"]),
                words(&finding["what"]),
                words(&finding["advice"])
            );
            for example in finding["examples"].as_array().into_iter().flatten() {
                let ids = example["eventIds"].as_array().into_iter().flatten();
                let ids: Vec<String> = ids.map(words).collect();
                let _ = writeln!(
                    text,
                    "    - {}: {}",
                    ids.join(", "),
                    words(&example["detail"])
                );
            }
        }
    }
    text
}

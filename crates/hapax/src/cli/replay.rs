//! `hapax replay`: start, watch and cancel replays of many events, through the HTTP API.

use std::io::{IsTerminal, Write};
use std::time::Duration;

use serde_json::{Map, Value, json};

use super::answer::{expect_json, text};
use super::client::{Client, block_on};
use super::exit::{Exit, Failure};
use super::list::{self, Noun, one};
use super::output;
use super::rows::{self, cell};
use crate::clock;

const REPLAY: Noun = Noun {
    one: "replay",
    many: "replay",
};
/// How often a progress bar looks.
const LOOK_EVERY: Duration = Duration::from_millis(300);

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
            let answer = block_on(client.post("/api/v1/replay", &body(args)?))?;
            let started = expect_json(&client, &answer, REPLAY, "place for replays")?;
            if args.json {
                output::json(&started)?;
                return Ok(Exit::Ok);
            }
            let id = text(&started["id"]);
            output::data(&id)?;
            watch(&client, &id)
        }
        Command::Show(args) if args.json => {
            output::json(&block_on(list::show(&client, REPLAY, &args.id))?)?;
            Ok(Exit::Ok)
        }
        Command::Show(args) => watch(&client, &args.id),
        Command::Cancel(args) => {
            let path = format!("{}/cancel", one(REPLAY, &args.id));
            let answer = block_on(client.post(&path, &json!({ "reason": args.reason })))?;
            expect_json(&client, &answer, REPLAY, &format!("replay {}", args.id))?;
            output::talk(&format!("{} is cancelled", args.id));
            Ok(Exit::Ok)
        }
    }
}

fn body(args: &StartArgs) -> Result<Value, Failure> {
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
    let filter: Map<String, Value> = filter
        .filter_map(|(name, value)| Some((name.to_owned(), value?.into())))
        .collect();
    Ok(json!({
        "filter": filter, "reason": args.reason, "dryRun": args.dry_run, "rate": args.rate,
    }))
}

/// Shows a replay; on a terminal, until it has ended.
fn watch(client: &Client, id: &str) -> Result<Exit, Failure> {
    let bar = std::io::stderr().is_terminal();
    let replay = block_on(async {
        loop {
            let replay = list::show(client, REPLAY, id).await?;
            if !bar {
                return Ok(replay);
            }
            draw(&replay);
            if replay["state"] != "running" {
                let _ = writeln!(anstream::stderr().lock());
                return Ok(replay);
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    })?;
    rows::facts(facts(&replay))?;
    Ok(Exit::Ok)
}

/// One line that is drawn over itself.
fn draw(replay: &Value) {
    let mut stderr = anstream::stderr().lock();
    let _ = write!(stderr, "\r\x1b[2K{}", progress(replay));
    let _ = stderr.flush();
}

/// `running  120 looked at: 80 sent, 30 nothing to do, 10 blocked, 0 failed`. How many there are is known only in the end.
fn progress(replay: &Value) -> String {
    let sent = match replay["dryRun"] == json!(true) {
        true => "would be sent",
        false => "sent",
    };
    let count = |name: &str| text(&replay[name]);
    format!(
        "{}  {} looked at: {} {sent}, {} nothing to do, {} blocked, {} failed",
        count("state"),
        count("total"),
        count("done"),
        count("skipped"),
        count("blocked"),
        count("failed")
    )
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_in_one_line() {
        let replay = json!({
            "state": "running", "dryRun": true, "total": 6, "done": 3, "skipped": 2, "blocked": 1, "failed": 0,
        });
        assert_eq!(
            progress(&replay),
            "running  6 looked at: 3 would be sent, 2 nothing to do, 1 blocked, 0 failed"
        );
    }
}

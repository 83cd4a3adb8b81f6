//! Decisions at a prompt: what would happen is shown, and somebody says yes, before anything is sent.

use std::io::{BufRead, IsTerminal, Write};

use serde_json::{Value, json};

use super::answer::{expect_json, text};
use super::client::{Answer, Client, block_on};
use super::exit::{Exit, Failure};
use super::list::{Noun, one};
use super::output;
use super::verdict_table;

/// What every decision is given.
#[derive(Debug, clap::Args)]
pub(super) struct Terms {
    /// Why, for the audit log
    #[arg(long)]
    pub(super) reason: String,
    /// Only say what would happen
    #[arg(long)]
    pub(super) dry_run: bool,
    /// Do not ask
    #[arg(long)]
    pub(super) yes: bool,
    /// Write JSON
    #[arg(long)]
    pub(super) json: bool,
}

/// A decision about one thing.
pub(super) struct Decision<'a> {
    /// About what.
    pub(super) noun: Noun,
    /// Which one.
    pub(super) id: &'a str,
    /// What is behind its path.
    pub(super) action: &'a str,
    /// The word for it.
    pub(super) word: &'a str,
    /// What it comes to, if the verdict does not say that.
    pub(super) means: Option<&'static str>,
    /// Fields beside those of [`Terms`].
    pub(super) more: Vec<(&'static str, Value)>,
}

/// Shows what would happen, asks, and does it.
pub(super) fn decide(
    client: &Client,
    decision: &Decision<'_>,
    terms: &Terms,
) -> Result<Exit, Failure> {
    let mut revision = Value::Null;
    if terms.dry_run || !terms.yes {
        let preview = post(client, decision, terms, true, &Value::Null)?;
        let said: Value = serde_json::from_slice(&preview.body).unwrap_or_default();
        if let Some(means) = decision.means.filter(|_| preview.is_good()) {
            output::talk(means);
        }
        if terms.dry_run && preview.is_good() {
            show(&said, terms.json)?;
            return Ok(Exit::Ok);
        }
        if !preview.is_good() {
            return refused(client, &preview, decision, terms.json);
        }
        output::talk(&verdict_table::text(&said["verdict"]));
        confirm(decision.word, decision.id)?;
        // What was said yes to is what is done (E4).
        revision = said["verdict"]["revision"].clone();
    }
    let answer = post(client, decision, terms, false, &revision)?;
    if !answer.is_good() {
        return refused(client, &answer, decision, terms.json);
    }
    let said: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
    show(&said, terms.json)?;
    Ok(Exit::Ok)
}

fn post(
    client: &Client,
    decision: &Decision<'_>,
    terms: &Terms,
    dry_run: bool,
    revision: &Value,
) -> Result<Answer, Failure> {
    let path = format!("{}/{}", one(decision.noun, decision.id), decision.action);
    let mut body = json!({ "reason": terms.reason, "dryRun": dry_run, "ifRevision": revision });
    for (name, value) in &decision.more {
        body[name] = value.clone();
    }
    block_on(client.post(&path, &body))
}

/// A refusal, with where things stand.
fn refused(
    client: &Client,
    answer: &Answer,
    decision: &Decision<'_>,
    as_json: bool,
) -> Result<Exit, Failure> {
    let said: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
    match (as_json, said["verdict"].is_object()) {
        (true, true) => output::json(&said)?,
        (false, true) => output::talk(&verdict_table::text(&said["verdict"])),
        (_, false) => {}
    }
    let what = format!("{} {}", decision.noun.one, decision.id);
    expect_json(client, answer, decision.noun, &what).map(|_| Exit::Ok)
}

fn show(said: &Value, as_json: bool) -> Result<(), Failure> {
    if as_json {
        return output::json(said);
    }
    output::data(&verdict_table::text(&said["verdict"]))?;
    for (field, what) in [("runId", "run"), ("eventId", "event")] {
        if said[field].is_string() {
            output::data(&format!("{what}  {}", text(&said[field])))?;
        }
    }
    Ok(())
}

/// Somebody says yes, at a terminal.
pub(super) fn confirm(action: &str, id: &str) -> Result<(), Failure> {
    if std::io::stdin().is_terminal() && std::io::stderr().is_terminal() {
        let mut stderr = anstream::stderr().lock();
        let _ = write!(stderr, "{action} {id}? [y/N] ");
        let _ = stderr.flush();
        let mut line = String::new();
        let read = std::io::stdin().lock().read_line(&mut line);
        if read.is_ok() && matches!(line.trim(), "y" | "Y" | "yes") {
            return Ok(());
        }
    }
    let text = format!("{action} of {id} was not confirmed; nothing was done");
    let help = "add --yes where nobody can be asked, or --dry-run to see only what would happen";
    Err(Failure::new(Exit::Usage, "H0411", text, help))
}

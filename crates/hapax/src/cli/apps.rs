//! `hapax apps`: applications that messages are sent for, through the HTTP API.

use http::Method;
use serde_json::{Value, json};

use super::answer::text;
use super::client::Client;
use super::exit::{Exit, Failure};
use super::list::Noun;
use super::outgoing::{self, PageArgs, of_app};
use super::output;
use super::rows::Column;
use super::table::Step;

const APP: Noun = Noun {
    one: "app",
    many: "apps",
};

const COLUMNS: [Column; 4] = [
    ("id", "ID"),
    ("uid", "UID"),
    ("name", "NAME"),
    ("createdAt", "CREATED"),
];

const STEPS: [Step; 1] = [Step::Drop("CREATED")];

const FACTS: [(&str, &str); 7] = [
    ("id", "id"),
    ("uid", "uid"),
    ("name", "name"),
    ("throttleRate", "messages a second"),
    ("envelope", "envelope"),
    ("createdAt", "created"),
    ("updatedAt", "changed"),
];

/// Applications that messages are sent for
#[derive(Debug, clap::Subcommand)]
pub(super) enum Command {
    /// List applications, oldest first
    List(PageArgs),
    /// Show one application
    Show(ShowArgs),
    /// Make an application
    Create(CreateArgs),
    /// Delete an application with its endpoints
    Delete(DeleteArgs),
}

/// Show one application
#[derive(Debug, clap::Args)]
pub(super) struct ShowArgs {
    /// Its id or uid
    app: String,
    /// Write JSON
    #[arg(long)]
    json: bool,
}

/// Make an application
#[derive(Debug, clap::Args)]
pub(super) struct CreateArgs {
    /// What people call it
    name: String,
    /// What you call it
    #[arg(long)]
    uid: Option<String>,
    /// Send payloads in an envelope with id, type and time
    #[arg(long)]
    envelope: bool,
    /// Write JSON
    #[arg(long)]
    json: bool,
}

/// Delete an application with its endpoints
#[derive(Debug, clap::Args)]
pub(super) struct DeleteArgs {
    /// Its id or uid
    app: String,
}

pub(super) fn run(command: &Command) -> Result<Exit, Failure> {
    let client = Client::from_env()?;
    match command {
        Command::List(page) => {
            let how = (COLUMNS.as_slice(), STEPS.as_slice());
            outgoing::list(&client, APP, "/api/v1/app", (&[], page), how)?;
        }
        Command::Show(args) => {
            let what = format!("app {}", args.app);
            let app = outgoing::get(&client, APP, &of_app(&args.app, ""), &what)?;
            outgoing::show(&app, args.json, &FACTS)?;
        }
        Command::Create(args) => {
            let body = json!({"name": args.name, "uid": args.uid, "envelope": args.envelope});
            let door = (Method::POST, "/api/v1/app");
            let made = outgoing::change(&client, APP, door, &body, "place for apps")?;
            match args.json {
                true => output::json(&made)?,
                false => output::data(&text(&made["id"]))?,
            }
        }
        Command::Delete(args) => {
            let path = of_app(&args.app, "");
            let what = format!("app {}", args.app);
            outgoing::change(&client, APP, (Method::DELETE, &path), &Value::Null, &what)?;
            output::talk(&format!("{} is gone, with its endpoints", args.app));
        }
    }
    Ok(Exit::Ok)
}

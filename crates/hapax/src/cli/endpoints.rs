//! `hapax endpoints`: where messages of an application go, through the HTTP API.

use http::Method;
use serde_json::{Value, json};

use super::answer::text;
use super::client::Client;
use super::exit::{Exit, Failure};
use super::list::Noun;
use super::outgoing::{self, PageArgs, of_app, part};
use super::output;
use super::rows::Column;
use super::table::Step;

const ENDPOINT: Noun = Noun {
    one: "endpoint",
    many: "endpoints",
};

const COLUMNS: [Column; 6] = [
    ("id", "ID"),
    ("uid", "UID"),
    ("standing", "STANDING"),
    ("failingSince", "FAILING SINCE"),
    ("url", "URL"),
    ("createdAt", "CREATED"),
];

const STEPS: [Step; 2] = [Step::Drop("CREATED"), Step::Drop("FAILING SINCE")];

const FACTS: [(&str, &str); 14] = [
    ("id", "id"),
    ("uid", "uid"),
    ("url", "url"),
    ("description", "description"),
    ("standing", "standing"),
    ("failingSince", "failing since"),
    ("eventTypes", "types"),
    ("channels", "channels"),
    ("throttleRate", "messages a second"),
    ("concurrency", "in flight"),
    ("timeoutSeconds", "timeout, seconds"),
    ("signatureScheme", "signature"),
    ("createdAt", "created"),
    ("updatedAt", "changed"),
];

/// Where messages of an application go
#[derive(Debug, clap::Subcommand)]
pub(super) enum Command {
    /// List the endpoints of an application, oldest first
    List(ListArgs),
    /// Show one endpoint
    Show(OneArgs),
    /// Make an endpoint
    Create(CreateArgs),
    /// Send to an endpoint again
    Enable(OneArgs),
    /// Send nothing to an endpoint
    Disable(OneArgs),
    /// Delete an endpoint
    Delete(OneArgs),
    /// Show the key that the consumer verifies with
    Secret(OneArgs),
    /// Sign with another key from now on
    Rotate(RotateArgs),
}

/// List the endpoints of an application, oldest first
#[derive(Debug, clap::Args)]
pub(super) struct ListArgs {
    /// The application's id or uid
    app: String,
    #[command(flatten)]
    page: PageArgs,
}

/// One endpoint
#[derive(Debug, clap::Args)]
pub(super) struct OneArgs {
    /// The application's id or uid
    app: String,
    /// The endpoint's id or uid
    endpoint: String,
    /// Write JSON
    #[arg(long)]
    json: bool,
}

/// Make an endpoint
#[derive(Debug, clap::Args)]
pub(super) struct CreateArgs {
    /// The application's id or uid
    app: String,
    /// Where to
    url: String,
    /// What you call it
    #[arg(long)]
    uid: Option<String>,
    /// A type that it wants; may be given several times [default: all]
    #[arg(long = "type", value_name = "TYPE")]
    types: Vec<String>,
    /// A channel that it listens to; may be given several times [default: all]
    #[arg(long = "channel", value_name = "CHANNEL")]
    channels: Vec<String>,
    /// Deliveries a second, at most
    #[arg(long)]
    rate: Option<u32>,
    /// Write JSON
    #[arg(long)]
    json: bool,
}

/// Sign with another key from now on
#[derive(Debug, clap::Args)]
pub(super) struct RotateArgs {
    /// The application's id or uid
    app: String,
    /// The endpoint's id or uid
    endpoint: String,
    /// For how many seconds the key before signs as well
    #[arg(long, value_name = "SECONDS", default_value_t = 86_400)]
    grace: u32,
    /// Write JSON
    #[arg(long)]
    json: bool,
}

fn path(app: &str, endpoint: &str, rest: &str) -> String {
    of_app(app, &format!("/endpoint/{}{rest}", part(endpoint)))
}

pub(super) fn run(command: &Command) -> Result<Exit, Failure> {
    let client = Client::from_env()?;
    match command {
        Command::List(args) => {
            let how = (COLUMNS.as_slice(), STEPS.as_slice());
            let path = of_app(&args.app, "/endpoint");
            outgoing::list(&client, ENDPOINT, &path, (&[], &args.page), how)?;
        }
        Command::Show(args) => {
            let endpoint = one(&client, args, (Method::GET, ""), &Value::Null)?;
            outgoing::show(&endpoint, args.json, &FACTS)?;
        }
        Command::Create(args) => create(&client, args)?,
        Command::Enable(args) => stand(&client, args, false)?,
        Command::Disable(args) => stand(&client, args, true)?,
        Command::Delete(args) => {
            one(&client, args, (Method::DELETE, ""), &Value::Null)?;
            output::talk(&format!("{} is gone", args.endpoint));
        }
        Command::Secret(args) => {
            let told = one(&client, args, (Method::GET, "/secret"), &Value::Null)?;
            key(&told, args.json)?;
        }
        Command::Rotate(args) => {
            let path = path(&args.app, &args.endpoint, "/secret/rotate");
            let body = json!({ "gracePeriodSeconds": args.grace });
            let what = format!("endpoint {}", args.endpoint);
            let told = outgoing::change(&client, ENDPOINT, (Method::POST, &path), &body, &what)?;
            key(&told, args.json)?;
        }
    }
    Ok(Exit::Ok)
}

fn one(
    client: &Client,
    args: &OneArgs,
    (method, rest): (Method, &str),
    body: &Value,
) -> Result<Value, Failure> {
    let path = path(&args.app, &args.endpoint, rest);
    let what = format!("endpoint {}", args.endpoint);
    match method {
        Method::GET => outgoing::get(client, ENDPOINT, &path, &what),
        method => outgoing::change(client, ENDPOINT, (method, &path), body, &what),
    }
}

fn create(client: &Client, args: &CreateArgs) -> Result<(), Failure> {
    let some = |all: &Vec<String>| (!all.is_empty()).then(|| all.clone());
    let body = json!({
        "url": args.url, "uid": args.uid, "eventTypes": some(&args.types), "channels": some(&args.channels),
        "throttleRate": args.rate,
    });
    let path = of_app(&args.app, "/endpoint");
    let what = format!("app {}", args.app);
    let made = outgoing::change(client, ENDPOINT, (Method::POST, &path), &body, &what)?;
    match args.json {
        true => output::json(&made),
        false => output::data(&text(&made["id"])),
    }
}

fn stand(client: &Client, args: &OneArgs, disabled: bool) -> Result<(), Failure> {
    let body = json!({ "disabled": disabled });
    let told = one(client, args, (Method::PATCH, ""), &body)?;
    match args.json {
        true => output::json(&told)?,
        false => output::talk(&format!("{} is {}", args.endpoint, text(&told["standing"]))),
    }
    Ok(())
}

fn key(told: &Value, json: bool) -> Result<(), Failure> {
    match json {
        true => output::json(told),
        false => output::data(&text(&told["key"])),
    }
}

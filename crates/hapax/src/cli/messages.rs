//! `hapax messages`: what is published, and what became of it, through the HTTP API.

use std::io::Read;

use http::Method;
use serde_json::{Value, json};

use super::answer::text;
use super::client::Client;
use super::exit::{Exit, Failure};
use super::list::Noun;
use super::outgoing::{self, PageArgs, of_app, part};
use super::output;
use super::rows::{self, Column, members};
use super::table::Step;

const MESSAGE: Noun = Noun {
    one: "message",
    many: "messages",
};

const COLUMNS: [Column; 4] = [
    ("id", "ID"),
    ("eventType", "TYPE"),
    ("eventId", "EVENT ID"),
    ("timestamp", "PUBLISHED"),
];

const STEPS: [Step; 1] = [Step::Drop("EVENT ID")];

const DEAD: [Column; 6] = [
    ("id", "ID"),
    ("eventType", "TYPE"),
    ("endpointId", "ENDPOINT"),
    ("attemptCount", "ATTEMPTS"),
    ("lastOutcome", "LAST OUTCOME"),
    ("timestamp", "PUBLISHED"),
];

const DEAD_STEPS: [Step; 2] = [Step::Drop("PUBLISHED"), Step::Drop("ATTEMPTS")];

const FACTS: [(&str, &str); 9] = [
    ("id", "id"),
    ("eventType", "type"),
    ("eventId", "event id"),
    ("timestamp", "published"),
    ("deliverAt", "not before"),
    ("channels", "channels"),
    ("tags", "tags"),
    ("orderingKey", "ordering key"),
    ("sequence", "number"),
];

const DESTINATIONS: [Column; 4] = [
    ("id", "ENDPOINT"),
    ("statusText", "STATUS"),
    ("nextAttempt", "NEXT ATTEMPT"),
    ("url", "URL"),
];

/// What is published, and what became of it
#[derive(Debug, clap::Subcommand)]
pub(super) enum Command {
    /// List the messages of an application, newest first
    List(ListArgs),
    /// Show one message, and where its deliveries stand
    Show(OneArgs),
    /// Publish a message
    Send(SendArgs),
    /// Send a message to an endpoint again
    Resend(ResendArgs),
    /// List deliveries that were given up, newest first
    Dead(DeadArgs),
}

/// List the messages of an application, newest first
#[derive(Debug, clap::Args)]
pub(super) struct ListArgs {
    /// The application's id or uid
    app: String,
    /// Of this type
    #[arg(long = "type", value_name = "TYPE")]
    event_type: Option<String>,
    /// In this channel
    #[arg(long)]
    channel: Option<String>,
    /// With this tag
    #[arg(long)]
    tag: Option<String>,
    #[command(flatten)]
    page: PageArgs,
}

/// One message
#[derive(Debug, clap::Args)]
pub(super) struct OneArgs {
    /// The application's id or uid
    app: String,
    /// The message's id or eventId
    message: String,
    /// Write JSON
    #[arg(long)]
    json: bool,
}

/// Publish a message
#[derive(Debug, clap::Args)]
pub(super) struct SendArgs {
    /// The application's id or uid
    app: String,
    /// What happened
    #[arg(long = "type", value_name = "TYPE")]
    event_type: String,
    /// The payload, a JSON object; `-` reads it from stdin
    #[arg(long, default_value = "{}")]
    data: String,
    /// Your id for it: the same is sent once
    #[arg(long)]
    event_id: Option<String>,
    /// A channel that it belongs to; may be given several times
    #[arg(long = "channel", value_name = "CHANNEL")]
    channels: Vec<String>,
    /// Write JSON
    #[arg(long)]
    json: bool,
}

/// Send a message to an endpoint again
#[derive(Debug, clap::Args)]
pub(super) struct ResendArgs {
    /// The application's id or uid
    app: String,
    /// The message's id or eventId
    message: String,
    /// The endpoint's id or uid
    endpoint: String,
}

/// List deliveries that were given up, newest first
#[derive(Debug, clap::Args)]
pub(super) struct DeadArgs {
    /// The application's id or uid
    app: String,
    /// Only to this endpoint
    #[arg(long)]
    endpoint: Option<String>,
    #[command(flatten)]
    page: PageArgs,
}

pub(super) fn run(command: &Command) -> Result<Exit, Failure> {
    let client = Client::from_env()?;
    match command {
        Command::List(args) => {
            let filter = [
                ("event_types", args.event_type.as_deref()),
                ("channel", args.channel.as_deref()),
                ("tag", args.tag.as_deref()),
                (
                    "with_content",
                    Some(if args.page.json { "true" } else { "false" }),
                ),
            ];
            let how = (COLUMNS.as_slice(), STEPS.as_slice());
            let path = of_app(&args.app, "/msg");
            outgoing::list(&client, MESSAGE, &path, (&filter, &args.page), how)?;
        }
        Command::Show(args) => show(&client, args)?,
        Command::Send(args) => send(&client, args)?,
        Command::Resend(args) => {
            let (message, endpoint) = (part(&args.message), part(&args.endpoint));
            let rest = format!("/msg/{message}/endpoint/{endpoint}/resend");
            let path = of_app(&args.app, &rest);
            let what = format!("message {} or endpoint {}", args.message, args.endpoint);
            outgoing::change(&client, MESSAGE, (Method::POST, &path), &json!({}), &what)?;
            output::talk(&format!("{} goes to {} again", args.message, args.endpoint));
        }
        Command::Dead(args) => {
            let filter = [("endpoint_id", args.endpoint.as_deref())];
            let how = (DEAD.as_slice(), DEAD_STEPS.as_slice());
            let noun = Noun {
                one: "message",
                many: "dead letters",
            };
            let path = of_app(&args.app, "/dead-letter");
            outgoing::list(&client, noun, &path, (&filter, &args.page), how)?;
        }
    }
    Ok(Exit::Ok)
}

fn show(client: &Client, args: &OneArgs) -> Result<(), Failure> {
    let what = format!("message {}", args.message);
    let path = of_app(&args.app, &format!("/msg/{}", part(&args.message)));
    let mut message = outgoing::get(client, MESSAGE, &path, &what)?;
    let to = outgoing::get(client, MESSAGE, &format!("{path}/endpoint"), &what)?;
    if args.json {
        message["endpoints"] = to["data"].clone();
        return output::json(&message);
    }
    outgoing::show(&message, false, &FACTS)?;
    rows::part("deliveries", &DESTINATIONS, members(&to["data"]), &[])?;
    output::data(&format!("\npayload\n{}", message["payload"]))
}

fn send(client: &Client, args: &SendArgs) -> Result<(), Failure> {
    let payload = payload(&args.data)?;
    let body = json!({
        "eventType": args.event_type, "payload": payload, "eventId": args.event_id, "channels": args.channels,
    });
    let path = of_app(&args.app, "/msg");
    let what = format!("app {}", args.app);
    let made = outgoing::change(client, MESSAGE, (Method::POST, &path), &body, &what)?;
    match args.json {
        true => output::json(&made),
        false => output::data(&text(&made["id"])),
    }
}

fn payload(given: &str) -> Result<Value, Failure> {
    let mut text = given.to_owned();
    if given == "-" {
        text.clear();
        let read = std::io::stdin().read_to_string(&mut text);
        read.map_err(|error| unreadable(&format!("the payload cannot be read: {error}")))?;
    }
    serde_json::from_str(&text)
        .map_err(|error| unreadable(&format!("the payload is not JSON: {error}")))
}

fn unreadable(what: &str) -> Failure {
    let help = "write a JSON object, such as --data '{\"n\": 1}'";
    Failure::new(Exit::Usage, "H0408", what.to_owned(), help)
}

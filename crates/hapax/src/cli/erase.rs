//! Erasing what is kept about an object: page after page, through the HTTP API.

use serde_json::{Value, json};

use super::act::{Terms, confirm};
use super::answer::{expect_json, text};
use super::client::{Client, block_on};
use super::exit::{Exit, Failure};
use super::list::Noun;
use super::output;

const EVENT: Noun = Noun {
    one: "event",
    many: "events",
};

/// Counts, asks, and erases.
pub(super) fn entity(
    client: &Client,
    source: &str,
    entity: &str,
    terms: &Terms,
) -> Result<Exit, Failure> {
    let asked = json!({ "source": source, "entity": entity, "reason": terms.reason });
    if terms.dry_run || !terms.yes {
        let counted = all(client, asked.clone(), true)?;
        if terms.dry_run {
            show(&counted, terms.json)?;
            return Ok(Exit::Ok);
        }
        output::talk(&sentence(&counted));
        confirm("erase", &format!("what {source} sent about {entity}"))?;
    }
    show(&all(client, asked, false)?, terms.json)?;
    Ok(Exit::Ok)
}

fn all(client: &Client, mut asked: Value, dry_run: bool) -> Result<Value, Failure> {
    let (mut events, mut erased) = (0, 0);
    asked["dryRun"] = dry_run.into();
    loop {
        let answer = block_on(client.post("/api/v1/erase", &asked))?;
        let said = expect_json(client, &answer, EVENT, "list of events")?;
        events += said["events"].as_u64().unwrap_or(0);
        erased += said["erased"].as_u64().unwrap_or(0);
        match said["done"] == json!(true) {
            true => return Ok(json!({ "events": events, "erased": erased, "dryRun": dry_run })),
            false => asked["iterator"] = said["iterator"].clone(),
        }
    }
}

fn sentence(said: &Value) -> String {
    let (events, erased) = (text(&said["events"]), text(&said["erased"]));
    match said["dryRun"] == json!(true) {
        true => format!("{events} events would be erased"),
        false => format!("{erased} of {events} events are erased; the others were before"),
    }
}

fn show(said: &Value, as_json: bool) -> Result<(), Failure> {
    match as_json {
        true => output::json(said),
        false => output::data(&sentence(said)),
    }
}

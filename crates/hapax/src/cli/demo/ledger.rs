//! The ledger as its API tells it.

use std::collections::BTreeMap;

use serde_json::Value;

use super::super::client::Client;
use super::super::exit::Failure;
use super::company::{APP, ENDPOINT};

/// Rows of a page: the most that the API gives.
const PAGE: u32 = 250;
/// Pages that are read; far more than a demo fills while anybody waits for its end.
const PAGES_MAX: u32 = 10_000;

/// All that the judge asks for.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    /// Keys and status of events, by id.
    pub(super) events: BTreeMap<String, (String, String)>,
    /// Effects, by name and key: class and state.
    pub(super) effects: BTreeMap<(String, String), (String, String)>,
    /// Status of messages at the customer's endpoint, by id.
    pub(super) messages: BTreeMap<String, String>,
    /// State of guarded keys.
    pub(super) keys: BTreeMap<String, String>,
}

impl Ledger {
    pub(super) async fn read(client: &Client) -> Result<Ledger, Failure> {
        let mut ledger = Ledger::default();
        for event in all(client, "/api/v1/event?source=billing").await? {
            let is = (text(&event, "key"), text(&event, "status"));
            ledger.events.insert(text(&event, "id"), is);
        }
        for effect in all(client, "/api/v1/effect?source=billing").await? {
            let name = (text(&effect, "name"), text(&effect, "key"));
            let is = (text(&effect, "repeat"), text(&effect, "state"));
            ledger.effects.insert(name, is);
        }
        let path = format!("/api/v1/app/{APP}/endpoint/{ENDPOINT}/msg?with_content=false");
        for message in all(client, &path).await? {
            let status = text(&message, "statusText");
            ledger.messages.insert(text(&message, "id"), status);
        }
        for key in all(client, "/api/v1/guard/key?guard=charges").await? {
            ledger.keys.insert(text(&key, "key"), text(&key, "state"));
        }
        Ok(ledger)
    }

    /// Effects in this state.
    pub(super) fn in_state(&self, wanted: &str) -> usize {
        let states = self.effects.values();
        states.filter(|(_, state)| state == wanted).count()
    }
}

/// How many effects, messages to endpoints among them, have not come to rest, and how many of those only wait for an answer of a probe.
pub(super) async fn unsettled(client: &Client) -> Result<(usize, usize), Failure> {
    let mut moving = 0;
    for state in ["pending", "claimed"] {
        let path = format!("/api/v1/effect?state={state}");
        let rows = all(client, &path).await?;
        // What waits for a person waits longer than we do.
        moving += rows.iter().filter(|row| row["gate"] != "review").count();
    }
    let uncertain = all(client, "/api/v1/effect?state=uncertain").await?;
    Ok((moving, uncertain.len()))
}

/// All rows of a list.
pub(super) async fn all(client: &Client, path: &str) -> Result<Vec<Value>, Failure> {
    let mut rows = Vec::new();
    let mut iterator = String::new();
    let joint = if path.contains('?') { '&' } else { '?' };
    for _ in 0..PAGES_MAX {
        let answer = client
            .get(&format!("{path}{joint}limit={PAGE}{iterator}"))
            .await?;
        let mut page: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
        let Some(data) = page["data"].as_array_mut() else {
            return Err(super::not_a_list(path, answer.status));
        };
        rows.append(data);
        match (page["done"].as_bool(), page["iterator"].as_str()) {
            (Some(false), Some(next)) => iterator = format!("&iterator={next}"),
            _ => break,
        }
    }
    Ok(rows)
}

fn text(row: &Value, field: &str) -> String {
    row[field].as_str().unwrap_or_default().to_owned()
}

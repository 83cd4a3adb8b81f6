//! The company's own application: it publishes messages for its customer, and is a client of an API behind the guard.

use std::sync::Arc;
use std::time::Duration;

use http::Method;
use serde_json::{Value, json};

use super::super::client::Client;
use super::super::exit::{Exit, Failure};
use super::deed::{Deed, Log};
use super::provider::Purchase;
use super::tell::{Who, tell};

/// The customer's application and endpoint, by the names that the commands below the story use.
pub(super) const APP: &str = "acme";
pub(super) const ENDPOINT: &str = "portal";
/// How long the API's client waits for an answer at first: a little less than the API sometimes takes.
const IMPATIENT: Duration = Duration::from_millis(250);
/// How long it waits when it tries again.
const PATIENT: Duration = Duration::from_secs(10);
/// How often it tries.
const TRIES_MAX: u32 = 6;

/// The application.
pub(super) struct Company {
    pub(super) api: Arc<Client>,
    pub(super) guard: Client,
    pub(super) log: Log,
}

impl Company {
    /// Makes the customer's application and endpoint, or brings them up to date. Gives the endpoint's secret.
    pub(super) async fn set_up(&self, url: &str) -> Result<String, Failure> {
        let app = format!("/api/v1/app/{APP}");
        self.put(&app, &json!({ "name": "Acme" })).await?;
        let endpoint = format!("{app}/endpoint/{ENDPOINT}");
        self.put(&endpoint, &json!({ "url": url, "timeoutSeconds": 5 }))
            .await?;
        let answer = self.api.get(&format!("{endpoint}/secret")).await?;
        let told: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
        match told["key"].as_str() {
            Some(key) => Ok(key.to_owned()),
            None => Err(refused(&endpoint, answer.status)),
        }
    }

    async fn put(&self, path: &str, body: &Value) -> Result<(), Failure> {
        let answer = self.api.change(Method::PUT, path, body).await?;
        match answer.is_good() {
            true => Ok(()),
            false => Err(refused(path, answer.status)),
        }
    }

    /// Publishes that a customer is set up.
    pub(super) async fn publish(&self, purchase: Purchase) {
        let number = purchase.number;
        let body = json!({
            "eventType": "customer.provisioned",
            "eventId": format!("provisioned_{number}"),
            "payload": { "type": "customer.provisioned", "customer": purchase.customer() },
        });
        let path = format!("/api/v1/app/{APP}/msg");
        let Ok(answer) = self.api.post(&path, &body).await else {
            return;
        };
        let told: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
        if let (true, Some(id)) = (answer.is_good(), told["id"].as_str()) {
            self.log.note(Deed::Published {
                message: id.to_owned(),
            });
        }
    }

    /// Charges for an order, and does not take silence for an answer.
    pub(super) async fn charge(&self, purchase: Purchase) {
        let order = format!("order_{}", purchase.number);
        let mut tries = 0;
        let said = loop {
            tries += 1;
            match self.ask(&order, purchase, tries).await {
                Some((429 | 503, _)) | None if tries < TRIES_MAX => {}
                // The first time it is told that nobody knows; it tries once more, and nothing is carried out again.
                Some((502, _)) if tries < TRIES_MAX => {}
                Some((409, body)) if body.contains("in-progress") && tries < TRIES_MAX => {}
                said => break said,
            }
        };
        let times = match tries {
            1 => "asked once".to_owned(),
            tries => format!("asked {tries} times with one key"),
        };
        let text = match &said {
            Some((201, body)) => format!("{order} {times}: {body}"),
            Some((status, _)) => {
                format!("{order} {times}: outcome unknown ({status}), not sent again")
            }
            None => format!("{order} {times}: no answer"),
        };
        tell(Who::Client, &text);
    }

    /// One request; what came back, if anything did in time.
    async fn ask(&self, order: &str, purchase: Purchase, tries: u32) -> Option<(u16, String)> {
        let mut headers = vec![
            ("idempotency-key".to_owned(), order.to_owned()),
            ("x-customer".to_owned(), purchase.customer()),
        ];
        let mut patience = IMPATIENT;
        if tries > 1 {
            // If the first one still runs, its answer is waited for.
            headers.push(("prefer".to_owned(), "wait=5".to_owned()));
            patience = PATIENT;
        }
        let body = format!("order={order}");
        let asking = self.guard.deliver("/charges", &headers, body.as_bytes());
        let answer = tokio::time::timeout(patience, asking).await.ok()?.ok()?;
        let body = String::from_utf8_lossy(&answer.body).into_owned();
        self.log.note(Deed::Answered {
            order: order.to_owned(),
            status: answer.status,
            body: body.clone(),
        });
        Some((answer.status, body))
    }
}

fn refused(path: &str, status: u16) -> Failure {
    let text = format!("the demo's own server answered {status} to {path}");
    let help = "server.log in the demo's folder says why";
    Failure::new(Exit::Failed, "H0410", text, help)
}

//! `/portal/messages`: what was published, where it went, and sending it again.

use axum::extract::{Path, RawQuery};
use serde_json::{Value, json};

use super::endpoints::TYPES;
use super::guest::{self, Fault, Form, Portal, Shown};
use crate::dashboard::json::Json;
use crate::dashboard::portal::{attempt as attempt_page, messages as page};
use crate::http::pages::ask::piece;
use crate::http::pages::event_list::{iterator, wanted};

/// What the list can be narrowed by: the API's own words.
const FILTERS: [&str; 4] = ["event_types", "channel", "after", "before"];
/// Attempts and endpoints of one message that its page shows.
const ROWS: u32 = 100;

/// The list.
pub async fn list(portal: Portal, RawQuery(query): RawQuery) -> Shown {
    let query = query.unwrap_or_default();
    let wanted = wanted(&query, &FILTERS);
    let types = portal.types(TYPES).await?;
    let asked = format!(
        "/msg?with_content=false&{}{}",
        wanted.query,
        iterator(&query)
    );
    let (list, fault) = match portal.get(&asked).await {
        Ok(list) => (list, None),
        Err(fault) => (Value::Null, Some(fault)),
    };
    let told = fault.as_ref().map(|fault| &fault.told);
    let page = page::page(&portal.guest, &wanted, &types, &list, told);
    guest::told(&page, fault.as_ref())
}

/// One message.
pub async fn show(portal: Portal, Path(id): Path<String>) -> Shown {
    render(&portal, &id, None).await
}

async fn render(portal: &Portal, id: &str, fault: Option<&Fault>) -> Shown {
    let at = piece(id);
    let message = portal.message(id).await?;
    let endpoints = portal
        .get(&format!("/msg/{at}/endpoint?limit={ROWS}"))
        .await?;
    let attempts = portal
        .get(&format!("/attempt/msg/{at}?limit={ROWS}"))
        .await?;
    let told = fault.map(|fault| &fault.told);
    let page = page::message(&portal.guest, &message, &endpoints, &attempts, told);
    guest::told(&page, fault)
}

/// One attempt.
pub async fn attempt(portal: Portal, Path((id, attempt)): Path<(String, String)>) -> Shown {
    let at = piece(&id);
    let message = portal.message(&id).await?;
    let attempt = portal
        .get(&format!("/msg/{at}/attempt/{}", piece(&attempt)))
        .await?;
    let endpoint = piece(attempt.text("endpointId"));
    // One that is deleted was tried all the same.
    let endpoint = portal.get(&format!("/endpoint/{endpoint}")).await.ok();
    let page = attempt_page::page(&portal.guest, &message, endpoint.as_ref(), &attempt);
    guest::ok(&page)
}

/// Sends it to one endpoint again.
pub async fn resend(portal: Portal, Path(id): Path<String>, form: Form) -> Shown {
    let (at, endpoint) = (piece(&id), piece(form.0.text("endpoint")));
    let path = format!("/msg/{at}/endpoint/{endpoint}/resend");
    match portal.post(&path, &json!({}), &form).await {
        Ok(_) => guest::back_to(&format!("/portal/messages/{at}"), "resent"),
        Err(fault) => render(&portal, &id, Some(&fault)).await,
    }
}

//! `/portal/endpoints/{id}`: one endpoint, and what can be sent to it.

use axum::extract::{Path, RawQuery};
use hapax_ledger::time::{Span, Time};
use serde_json::{Value, json};

use super::endpoints::TYPES;
use super::guest::{self, Fault, Form, Portal, Shown};
use crate::clock;
use crate::dashboard::json::Json;
use crate::dashboard::portal::bars::Day;
use crate::dashboard::portal::endpoint as page;
use crate::http::pages::ask::piece;
use crate::http::pages::event_list::{iterator, wanted};

/// Days of the chart.
const DAYS: i64 = 14;
/// Attempts on a page.
const ROWS: u32 = 20;

/// The page.
pub async fn show(portal: Portal, Path(id): Path<String>, RawQuery(query): RawQuery) -> Shown {
    render(&portal, &id, &query.unwrap_or_default(), None).await
}

/// The page, with what went wrong on it.
async fn render(portal: &Portal, id: &str, query: &str, fault: Option<&Fault>) -> Shown {
    let (at, wanted) = (piece(id), wanted(query, &["status"]));
    let endpoint = portal.get(&format!("/endpoint/{at}")).await?;
    let deliveries = portal.get(&format!("/endpoint/{at}/stats")).await?;
    let attempts = portal.get(&format!("/endpoint/{at}/attempt-stats")).await?;
    let days = days(portal, &at).await?;
    let latest = format!(
        "/attempt/endpoint/{at}?limit={ROWS}&with_msg=true&with_content=false&{}{}",
        wanted.query,
        iterator(query)
    );
    let latest = portal.get(&latest).await?;
    let types = portal.types(TYPES).await?;
    let shown = page::Shown {
        endpoint: &endpoint,
        deliveries: &deliveries,
        attempts: &attempts,
        days: &days,
        latest: &latest,
        status: wanted.value("status"),
        paged: wanted.paged,
        types: &types,
    };
    let told = fault.map(|fault| &fault.told);
    guest::told(&page::page(&portal.guest, &shown, told), fault)
}

/// Attempts by day, the oldest first; today is the last.
async fn days(portal: &Portal, at: &str) -> Result<Vec<Day>, Fault> {
    let day = Span::from_days(1).micros();
    let midnight = portal.guest.looker.now.micros() / day * day;
    let mut days = Vec::new();
    for back in (0..DAYS).rev() {
        let since = Time::from_micros(midnight - back * day);
        let until = Time::from_micros(since.micros() + day - 1);
        let (from, to) = (clock::text(since), clock::text(until));
        let path = format!(
            "/endpoint/{at}/attempt-stats?since={}&until={}",
            piece(&from),
            piece(&to)
        );
        let told = portal.get(&path).await?;
        days.push(Day {
            name: from.get(5..10).unwrap_or_default().to_owned(),
            success: told.number("success"),
            fail: told.number("fail"),
        });
    }
    Ok(days)
}

/// Sends an example.
pub async fn example(portal: Portal, Path(id): Path<String>, form: Form) -> Shown {
    let mut body = json!({ "eventType": form.0.text("eventType") });
    if let Some(payload) = form.0.maybe("payload") {
        // What is no JSON goes on as a text: the API says what is wrong with it.
        body["payload"] = serde_json::from_str(payload).unwrap_or_else(|_| json!(payload));
    }
    act(&portal, &id, "send-example", &body, &form, "example").await
}

/// Sends again what was given up.
pub async fn recover(portal: Portal, Path(id): Path<String>, form: Form) -> Shown {
    let since = since(&portal, &form);
    act(&portal, &id, "recover", &since, &form, "recover").await
}

/// Sends what never went there.
pub async fn missing(portal: Portal, Path(id): Path<String>, form: Form) -> Shown {
    let since = since(&portal, &form);
    act(&portal, &id, "replay-missing", &since, &form, "missing").await
}

/// From when on: one of the spans that the page offers.
fn since(portal: &Portal, form: &Form) -> Value {
    let asked = form.0.text("since").parse().ok();
    let mut spans = page::SPANS.into_iter().map(|(seconds, _)| seconds);
    let seconds = spans.find(|seconds| Some(*seconds) == asked).unwrap_or(0);
    let back = Span::from_secs(i64::try_from(seconds).unwrap_or(0));
    json!({ "since": clock::text(portal.guest.looker.now - back) })
}

/// Does something, and says so on the endpoint's page; or what was in the way.
async fn act(
    portal: &Portal,
    id: &str,
    what: &str,
    body: &Value,
    form: &Form,
    word: &str,
) -> Shown {
    let at = piece(id);
    match portal
        .post(&format!("/endpoint/{at}/{what}"), body, form)
        .await
    {
        Ok(_) => guest::back_to(&format!("/portal/endpoints/{at}"), word),
        Err(fault) => render(portal, id, "", Some(&fault)).await,
    }
}

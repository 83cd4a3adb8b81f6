//! `/portal/endpoints`: the list, and making one.

use axum::extract::RawQuery;
use hapax_ledger::time::Span;
use serde_json::{Value, json};

use super::guest::{self, Form, Portal, Shown};
use crate::clock;
use crate::dashboard::json::Json;
use crate::dashboard::portal::endpoints as page;
use crate::dashboard::portal::secret::GRACES;
use crate::dashboard::portal::settings::{self, Written};
use crate::http::pages::ask::piece;
use crate::http::pages::event_list::iterator;
use crate::http::pages::submitted::Submitted;

/// Endpoints on a page: each has figures, which are asked for one by one.
const ROWS: u32 = 25;
/// Types that a form offers: what the API gives at once. More are written into the list by the API only.
pub const TYPES: &str = "?limit=250";
/// What the list's figures are about.
const BACK: Span = Span::from_days(7);

/// The list.
pub async fn show(portal: Portal, RawQuery(query): RawQuery) -> Shown {
    let iterator = iterator(&query.unwrap_or_default());
    let list = portal
        .get(&format!("/endpoint?limit={ROWS}&{iterator}"))
        .await?;
    let since = clock::text(portal.guest.looker.now - BACK);
    let mut figures = Vec::new();
    for endpoint in list.list("data") {
        let id = piece(endpoint.text("id"));
        let of_one = format!("/endpoint/{id}/stats?since={}", piece(&since));
        figures.push(portal.get(&of_one).await?);
    }
    guest::ok(&page::page(
        &portal.guest,
        &list,
        &figures,
        !iterator.is_empty(),
    ))
}

/// The form for a new one.
pub async fn blank(portal: Portal) -> Shown {
    let types = portal.types(TYPES).await?;
    let written = Written::default();
    guest::ok(&settings::new(&portal.guest, &written, &types, None))
}

/// A new one.
pub async fn add(portal: Portal, form: Form) -> Shown {
    let written = written(&form.0);
    match portal.post("/endpoint", &body(&written), &form).await {
        Ok(made) => guest::back_to(
            &format!("/portal/endpoints/{}", piece(made.text("id"))),
            "added",
        ),
        Err(fault) => {
            let types = portal.types(TYPES).await?;
            let page = settings::new(&portal.guest, &written, &types, Some(&fault.told));
            guest::told(&page, Some(&fault))
        }
    }
}

/// What somebody wrote.
pub fn written(form: &Submitted) -> Written {
    let boxes = form.all("types").into_iter().map(str::to_owned);
    Written {
        url: form.text("url").to_owned(),
        description: form.text("description").to_owned(),
        types: boxes.chain(words(form.text("more_types"))).collect(),
        channels: form.text("channels").to_owned(),
        rate: form.text("rate").to_owned(),
        concurrency: form.text("concurrency").to_owned(),
        timeout: form.text("timeout").to_owned(),
    }
}

/// The same for the API, which takes `null` for nothing.
pub fn body(written: &Written) -> Value {
    let some = |all: Vec<String>| match all.is_empty() {
        true => Value::Null,
        false => json!(all),
    };
    json!({
        "url": written.url,
        "description": written.description,
        "eventTypes": some(written.types.clone()),
        "channels": some(words(&written.channels)),
        "throttleRate": number(&written.rate),
    })
}

/// A number for the API: nothing is `null`, and what is no number is as it was written, so that the API says what is wrong with it.
pub fn number(written: &str) -> Value {
    match written.parse::<u64>() {
        Ok(number) => json!(number),
        Err(_) if written.is_empty() => Value::Null,
        Err(_) => json!(written),
    }
}

/// How long the secret before signs as well, as a form says it. What no form offers is no reason to end a secret at once.
pub fn grace(form: &Submitted) -> u64 {
    let asked = form.text("grace").parse().ok();
    let mut offered = GRACES.into_iter().map(|(seconds, _)| seconds);
    offered
        .find(|seconds| Some(*seconds) == asked)
        .unwrap_or(GRACES[0].0)
}

/// Words with commas or space between.
fn words(text: &str) -> Vec<String> {
    let words = text.split([',', ' ', '\n']).map(str::trim);
    words
        .filter(|word| !word.is_empty())
        .map(str::to_owned)
        .collect()
}

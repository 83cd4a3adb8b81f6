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
    let history = portal.get(&format!("/endpoint/{at}/history")).await?;
    let days = days(portal.guest.looker.now, &history);
    let latest = format!(
        "/attempt/endpoint/{at}?limit={ROWS}&with_msg=true&with_content=false&{}{}",
        wanted.query,
        iterator(query)
    );
    let latest = portal.get(&latest).await?;
    let types = portal.types(TYPES).await?;
    let shown = page::Shown {
        endpoint: &endpoint,
        deliveries: &history["deliveries"],
        attempts: &history["attempts"],
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
fn days(now: Time, history: &Value) -> Vec<Day> {
    let day = Span::from_days(1).micros();
    let midnight = now.micros() / day * day;
    let of_day = |back: i64| {
        let date = clock::text(Time::from_micros(midnight - back * day));
        let date = date.get(..10).unwrap_or_default();
        let hours = history.list("hours").iter();
        let hours = hours.filter(|hour| hour.text("hour").starts_with(date));
        let (success, fail) = hours.fold((0, 0), |(success, fail), hour| {
            (success + hour.number("success"), fail + hour.number("fail"))
        });
        Day {
            name: date.get(5..).unwrap_or_default().to_owned(),
            success,
            fail,
        }
    };
    (0..DAYS).rev().map(of_day).collect()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hours_add_up_to_days_and_today_is_the_last() {
        let now: Time = Time::from_secs(20 * 86_400 + 3_600);
        let hour = |text: &str, success: u64, fail: u64| json!({ "hour": text, "success": success, "fail": fail });
        let history = json!({ "hours": [
            hour("1970-01-01T05:00:00Z", 100, 100),
            hour("1970-01-20T22:00:00Z", 1, 2),
            hour("1970-01-20T23:00:00Z", 10, 20),
            hour("1970-01-21T00:00:00Z", 5, 0),
        ] });
        let days = days(now, &history);
        assert_eq!(days.len(), 14);
        let figures = |day: &Day| (day.name.clone(), day.success, day.fail);
        assert_eq!(figures(&days[13]), ("01-21".to_owned(), 5, 0));
        assert_eq!(figures(&days[12]), ("01-20".to_owned(), 11, 22));
        assert_eq!(figures(&days[0]), ("01-08".to_owned(), 0, 0));
    }
}

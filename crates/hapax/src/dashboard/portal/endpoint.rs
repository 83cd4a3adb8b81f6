//! One endpoint: how it is, what came back from it, and what can be sent to it.

use maud::{Markup, html};
use serde_json::Value;

use super::attempt::table;
use super::bars::{self, Day, share};
use super::endpoints::{standing, types};
use super::frame::{Guest, note, page as framed, tabs};
use crate::dashboard::json::Json;
use crate::dashboard::parts::{copyable, empty, figure, form, pager, time};
use crate::dashboard::trouble::Told;

/// How far back something is sent again: seconds, and what people call it.
pub const SPANS: [(u64, &str); 4] = [
    (60 * 60, "the last hour"),
    (24 * 60 * 60, "the last 24 hours"),
    (7 * 24 * 60 * 60, "the last 7 days"),
    (30 * 24 * 60 * 60, "the last 30 days"),
];

/// All that the page shows.
#[derive(Clone, Debug)]
pub struct Shown<'a> {
    /// The endpoint.
    pub endpoint: &'a Value,
    /// Deliveries by where they stand.
    pub deliveries: &'a Value,
    /// Attempts by how they ended.
    pub attempts: &'a Value,
    /// Attempts by day.
    pub days: &'a [Day],
    /// The latest attempts.
    pub latest: &'a Value,
    /// Which of them: a status of the API, or nothing.
    pub status: &'a str,
    /// Is this not the first page of them?
    pub paged: bool,
    /// Types of events.
    pub types: &'a Value,
}

/// What every page about an endpoint begins with.
pub fn head(endpoint: &Value, here: &str) -> Markup {
    let at = |rest: &str| format!("/portal/endpoints/{}{rest}", endpoint.text("id"));
    html! {
        p class="crumb" { a href="/portal/endpoints" { "Endpoints" } " /" }
        div class="head" { h1 class="title" { (endpoint.text("url")) } div class="chips" { (standing(endpoint)) } }
        (tabs("About this endpoint", here, &[
            (at(""), "Overview"), (at("/settings"), "Settings"), (at("/secret"), "Secret"), (at("/verify"), "Verify"),
        ]))
    }
}

/// The page.
pub fn page(guest: &Guest, shown: &Shown<'_>, told: Option<&Told>) -> Markup {
    let endpoint = shown.endpoint;
    let content = html! {
        (head(endpoint, "Overview"))
        @if let Some(told) = told { (note(told)) }
        (state(guest, endpoint))
        (figures(shown))
        section class="card" {
            h2 { "Attempts of the last 14 days" }
            (bars::days(shown.days))
        }
        @if guest.looker.acts() { (actions(guest, shown)) }
        (latest(guest, shown))
        section class="card" { h2 { "About it" } (facts(guest, endpoint)) }
    };
    framed(guest, endpoint.text("url"), &content)
}

/// What its standing means, where it is not well.
fn state(guest: &Guest, endpoint: &Value) -> Markup {
    let (kind, says) = match endpoint.text("standing") {
        "gone" => (
            "bad",
            "It answered 410 Gone, so nothing is sent to it any more. Enable it if it is back.",
        ),
        "failed" => (
            "bad",
            "It failed for five days, so nothing is sent to it any more. Mend it, enable it, and send again what it missed.",
        ),
        "disabled" => ("warn", "It is disabled: nothing is sent to it."),
        _ => {
            return html! {
                @if let Some(since) = endpoint.maybe("failingSince") {
                    div class="note warn" {
                        p { strong { "Nothing but failures since " (time(&guest.looker, since)) "." } }
                        p { "Deliveries are tried again by schedule. After five days of failures the endpoint is disabled." }
                    }
                }
            };
        }
    };
    let action = format!("/portal/endpoints/{}/enable", endpoint.text("id"));
    let button =
        html! { div class="buttons" { button class="main" type="submit" { "Enable it" } } };
    html! {
        div class={ "note " (kind) } {
            p { strong { (says) } }
            @if guest.looker.acts() { (form(&guest.looker, &action, &button)) }
        }
    }
}

fn figures(shown: &Shown<'_>) -> Markup {
    let (deliveries, attempts) = (shown.deliveries, shown.attempts);
    let (done, dead) = (deliveries.number("success"), deliveries.number("fail"));
    let waiting = deliveries.number("pending") + deliveries.number("sending");
    let tried = attempts.number("success") + attempts.number("fail");
    let dead_kind = if dead > 0 { "bad" } else { "" };
    html! {
        dl class="figures" {
            (figure("Delivered, 28 days", &done.to_string(), ""))
            (figure("Given up, 28 days", &dead.to_string(), dead_kind))
            (figure("Waiting now", &waiting.to_string(), ""))
            (figure("Attempts that got through", &share(attempts.number("success"), tried), ""))
        }
    }
}

fn actions(guest: &Guest, shown: &Shown<'_>) -> Markup {
    let id = shown.endpoint.text("id");
    let at = |what: &str| format!("/portal/endpoints/{id}/{what}");
    let span = |name: &str| {
        html! {
            label for=(name) { "Messages of" }
            select id=(name) name="since" {
                @for (seconds, words) in SPANS { option value=(seconds) selected[seconds == 86_400] { (words) } }
            }
        }
    };
    let failed = html! {
        (span("recover-since"))
        small { "What was given up goes out again. What got through does not." }
        div class="buttons" { button type="submit" { "Send failed again" } }
    };
    let missed = html! {
        (span("missing-since"))
        small { "What never went to this endpoint: from before it was there, or while it was disabled or not subscribed." }
        div class="buttons" { button type="submit" { "Send missed" } }
    };
    html! {
        div class="grid" {
            section class="card" { h2 { "Send an example" } (form(&guest.looker, &at("example"), &example(shown.types))) }
            section class="card" { h2 { "Replay failed" } (form(&guest.looker, &at("recover"), &failed)) }
            section class="card" { h2 { "Replay missed" } (form(&guest.looker, &at("missing"), &missed)) }
        }
    }
}

fn example(types: &Value) -> Markup {
    let rows = types.list("data");
    html! {
        label for="example-type" { "Event type" }
        @if rows.is_empty() {
            input id="example-type" name="eventType" required value="test.event" autocomplete="off" spellcheck="false";
        } @else {
            select id="example-type" name="eventType" {
                @for one in rows { option value=(one.text("name")) { (one.text("name")) } }
            }
        }
        details {
            summary { "A payload of your own" }
            label for="example-payload" { "JSON object" }
            textarea id="example-payload" name="payload" spellcheck="false" placeholder="{\"test\": true}" {}
        }
        small { "It is signed like all others, and goes to this endpoint only." }
        div class="buttons" { button class="main" type="submit" { "Send" } }
    }
}

fn latest(guest: &Guest, shown: &Shown<'_>) -> Markup {
    let path = format!("/portal/endpoints/{}", shown.endpoint.text("id"));
    let rows = shown.latest.list("data");
    let (here, query) = match shown.status {
        "0" => ("Got through", "status=0&"),
        "2" => ("Failed", "status=2&"),
        _ => ("All", ""),
    };
    html! {
        h2 id="attempts" { "Attempts" }
        (tabs("Which attempts", here, &[
            (format!("{path}#attempts"), "All"),
            (format!("{path}?status=2#attempts"), "Failed"),
            (format!("{path}?status=0#attempts"), "Got through"),
        ]))
        @if rows.is_empty() {
            (empty("No attempt here", &html! { "What is sent to this endpoint, and what it answers, is listed here. Send an example to see one." }))
        } @else {
            (table(guest, rows, false))
            (pager(&format!("{path}?{query}"), shown.latest, shown.paged))
        }
    }
}

fn facts(guest: &Guest, endpoint: &Value) -> Markup {
    let channels = endpoint.list("channels");
    html! {
        dl class="facts" {
            dt { "Id" } dd { (copyable(endpoint.text("id"))) }
            @if let Some(text) = endpoint.maybe("description").filter(|text| !text.is_empty()) { dt { "Description" } dd { (text) } }
            dt { "Event types" } dd class="chips" { (types(endpoint)) }
            @if !channels.is_empty() {
                dt { "Channels" } dd class="chips" { @for one in channels { span class="chip" { (one.as_str().unwrap_or_default()) } } }
            }
            dt { "Rate" }
            dd { @match endpoint.number("throttleRate") { 0 => { "as fast as messages come" } rate => { "at most " (rate) " messages a second" } } }
            dt { "Timeout" } dd { (endpoint.number("timeoutSeconds")) " s" }
            dt { "Added" } dd { (time(&guest.looker, endpoint.text("createdAt"))) }
            dt { "Changed" } dd { (time(&guest.looker, endpoint.text("updatedAt"))) }
        }
    }
}

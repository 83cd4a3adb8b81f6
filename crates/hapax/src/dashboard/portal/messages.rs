//! Messages: what was published, where it went, and what came back.

use maud::{Markup, html};
use serde_json::Value;

use super::attempt::{payload, table};
use super::frame::{Guest, note, page as framed};
use crate::dashboard::events::Wanted;
use crate::dashboard::json::Json;
use crate::dashboard::parts::{badge, copyable, empty, form, linked, maybe_time, pager, time};
use crate::dashboard::trouble::Told;

/// A message, and its payload as it was published.
#[derive(Clone, Debug)]
pub struct Published {
    /// What the API says of it.
    pub about: Value,
    /// Its payload, indented and otherwise untouched.
    pub payload: String,
}

/// The list.
pub fn page(
    guest: &Guest,
    wanted: &Wanted,
    types: &Value,
    list: &Value,
    told: Option<&Told>,
) -> Markup {
    let rows = list.list("data");
    let content = html! {
        div class="head" { h1 { "Messages" } }
        @if let Some(told) = told { (note(told)) }
        (filters(wanted, types))
        @if rows.is_empty() {
            @match wanted.filters.is_empty() {
                true => { (empty("No message yet", &html! {
                    "What is published for you is listed here. To see one, send an example from one of "
                    a href="/portal/endpoints" { "your endpoints" } "."
                })) }
                false => { (empty("No message fits these filters", &html! { a href="/portal/messages" { "Show all messages" } })) }
            }
        } @else {
            div class="scroll" {
                table {
                    thead { tr { th scope="col" { "When" } th scope="col" { "Event type" } th scope="col" { "Message" } th scope="col" { "Publisher's id" } } }
                    tbody { @for row in rows { (line(guest, row)) } }
                }
            }
        }
        (pager(&format!("/portal/messages?{}", wanted.query), list, wanted.paged))
    };
    framed(guest, "Messages", &content)
}

fn line(guest: &Guest, row: &Value) -> Markup {
    let id = row.text("id");
    html! {
        tr {
            td { (time(&guest.looker, row.text("timestamp"))) }
            td {
                (row.text("eventType"))
                @for channel in row.list("channels") { " " span class="chip" { (channel.as_str().unwrap_or_default()) } }
            }
            td { (linked(&format!("/portal/messages/{id}"), id)) }
            td { @if let Some(own) = row.maybe("eventId") { (copyable(own)) } }
        }
    }
}

fn filters(wanted: &Wanted, types: &Value) -> Markup {
    let known = types.list("data");
    html! {
        form class="filters" method="get" action="/portal/messages" role="search" {
            div {
                label for="f-type" { "Event type" }
                @if known.is_empty() {
                    input id="f-type" name="event_types" value=(wanted.value("event_types")) autocomplete="off" spellcheck="false";
                } @else {
                    select id="f-type" name="event_types" {
                        option value="" { "any" }
                        @for one in known {
                            @let name = one.text("name");
                            option value=(name) selected[wanted.value("event_types") == name] { (name) }
                        }
                    }
                }
            }
            div { label for="f-channel" { "Channel" } input id="f-channel" name="channel" value=(wanted.value("channel")) autocomplete="off" spellcheck="false"; }
            div { label for="f-after" { "After" } input id="f-after" name="after" value=(wanted.value("after")) placeholder="2026-01-31T12:00:00Z" autocomplete="off"; }
            div { label for="f-before" { "Before" } input id="f-before" name="before" value=(wanted.value("before")) placeholder="2026-01-31T12:00:00Z" autocomplete="off"; }
            div { button type="submit" { "Search" } }
        }
    }
}

/// One message.
pub fn message(
    guest: &Guest,
    published: &Published,
    endpoints: &Value,
    attempts: &Value,
    told: Option<&Told>,
) -> Markup {
    let message = &published.about;
    let id = message.text("id");
    let tried = attempts.list("data");
    let content = html! {
        p class="crumb" { a href="/portal/messages" { "Messages" } " /" }
        div class="head" { h1 { (message.text("eventType")) } }
        @if let Some(told) = told { (note(told)) }
        div class="sides" {
            section class="card" { h2 { "About it" } (facts(guest, message)) }
            section class="card" { h2 { "Payload" } (payload(published)) }
        }
        h2 { "Where it goes" }
        (destinations(guest, id, endpoints.list("data")))
        h2 { "Attempts" }
        @match tried.is_empty() {
            true => { (empty("No attempt yet", &html! { "Attempts and what came back are listed here." })) }
            false => { (table(guest, tried, true)) }
        }
    };
    framed(guest, message.text("eventType"), &content)
}

fn facts(guest: &Guest, message: &Value) -> Markup {
    html! {
        dl class="facts" {
            dt { "Id" } dd { (copyable(message.text("id"))) }
            @if let Some(own) = message.maybe("eventId") { dt { "Publisher's id" } dd { (copyable(own)) } }
            dt { "Published" } dd { (time(&guest.looker, message.text("timestamp"))) " " span class="dim" { (message.text("timestamp")) } }
            dt { "Event type" } dd { a href={ "/portal/events/" (message.text("eventType")) } { (message.text("eventType")) } }
            @if let Some(at) = message.maybe("deliverAt") { dt { "Goes out" } dd { (time(&guest.looker, at)) } }
            @if !message.list("channels").is_empty() {
                dt { "Channels" } dd class="chips" { @for one in message.list("channels") { span class="chip" { (one.as_str().unwrap_or_default()) } } }
            }
            @if let Some(key) = message.maybe("orderingKey") { dt { "In order with" } dd { (key) } }
        }
    }
}

/// When it is tried next. What is due and has not gone waits for the endpoint: for its rate, or until it is well again.
fn next(guest: &Guest, at: Option<&str>) -> Markup {
    let parsed = at.and_then(|text| text.parse::<jiff::Timestamp>().ok());
    match parsed.is_some_and(|at| at.as_microsecond() <= guest.looker.now.micros()) {
        true => html! { "due, as soon as the endpoint takes it" },
        false => maybe_time(&guest.looker, at),
    }
}

fn destinations(guest: &Guest, message: &str, rows: &[Value]) -> Markup {
    let action = format!("/portal/messages/{message}/resend");
    let again = |endpoint: &Value| {
        let fields = html! {
            input type="hidden" name="endpoint" value=(endpoint.text("id"));
            button class="quiet" type="submit" aria-label={ "Send again to " (endpoint.text("url")) } { "Send again" }
        };
        form(&guest.looker, &action, &fields)
    };
    html! {
        @if rows.is_empty() {
            (empty("To no endpoint", &html! { "No endpoint of yours was subscribed to this type of events when it was published. " a href="/portal/endpoints" { "Your endpoints" } }))
        } @else {
            div class="scroll" {
                table {
                    thead { tr { th scope="col" { "Endpoint" } th scope="col" { "Stands" } th scope="col" { "Next attempt" } th scope="col" { "Again" } } }
                    tbody {
                        @for row in rows {
                            tr {
                                td { a href={ "/portal/endpoints/" (row.text("id")) } { (row.text("url")) } @if let Some(text) = row.maybe("description") { span class="sub" { (text) } } }
                                td { (badge(row.text("statusText"))) }
                                td { (next(guest, row.maybe("nextAttempt"))) }
                                td { @if guest.looker.acts() { (again(row)) } }
                            }
                        }
                    }
                }
            }
        }
    }
}

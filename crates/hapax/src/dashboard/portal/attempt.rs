//! Attempts: what was sent, and what came back. All of it is text, whatever it looks like.

use maud::{Markup, html};
use serde_json::Value;

use super::frame::{Guest, block, page as framed};
use super::messages::Published;
use crate::dashboard::json::Json;
use crate::dashboard::parts::{badge, copyable, form, linked, time};

/// Attempts as rows; with the endpoint of each, where there are several.
pub fn table(guest: &Guest, rows: &[Value], endpoints: bool) -> Markup {
    html! {
        div class="scroll" {
            table {
                thead { tr {
                    th scope="col" { "When" } th scope="col" { "Outcome" } th scope="col" { "Answer" } th scope="col" class="num" { "Took" }
                    @if endpoints { th scope="col" { "Endpoint" } } @else { th scope="col" { "Event type" } th scope="col" { "Message" } }
                } }
                tbody { @for row in rows { (line(guest, row, endpoints)) } }
            }
        }
    }
}

fn line(guest: &Guest, row: &Value, endpoints: bool) -> Markup {
    let message = row.text("msgId");
    let event_type = row.get("msg").map_or("", |msg| msg.text("eventType"));
    html! {
        tr {
            td { a href={ "/portal/messages/" (message) "/attempts/" (row.text("id")) } { (time(&guest.looker, row.text("timestamp"))) } @if row.number("triggerType") == 1 { span class="sub" { "sent again" } } }
            td { (badge(row.text("statusText"))) }
            td { (answer(row)) }
            td class="num" { (took(row)) }
            @if endpoints {
                td { a href={ "/portal/endpoints/" (row.text("endpointId")) } { (row.text("url")) } }
            } @else {
                td { (event_type) }
                td { (linked(&format!("/portal/messages/{message}"), message)) }
            }
        }
    }
}

/// What came back, in a word.
fn answer(row: &Value) -> Markup {
    html! { @match row.number("responseStatusCode") { 0 => { span class="dim" { "no answer" } } code => { "HTTP " (code) } } }
}

fn took(row: &Value) -> String {
    let ms = row.get("responseDurationMs").and_then(Value::as_i64);
    match ms.unwrap_or_default().max(0) {
        ms @ 0..=9_999 => format!("{ms} ms"),
        ms => format!("{} s", ms / 1_000),
    }
}

/// The page of one attempt.
pub fn page(
    guest: &Guest,
    published: &Published,
    endpoint: Option<&Value>,
    attempt: &Value,
) -> Markup {
    let id = published.about.text("id");
    let content = html! {
        p class="crumb" { a href="/portal/messages" { "Messages" } " / " a href={ "/portal/messages/" (id) } { (id) } " /" }
        div class="head" { h1 { "Attempt" } div class="chips" { (badge(attempt.text("statusText"))) } }
        section class="card" {
            dl class="facts" {
                dt { "When" } dd { (time(&guest.looker, attempt.text("timestamp"))) " " span class="dim" { (attempt.text("timestamp")) } }
                dt { "Outcome" } dd { (attempt.text("outcome")) }
                dt { "Took" } dd { (took(attempt)) }
                dt { "Why" } dd { @match attempt.number("triggerType") { 1 => { "somebody asked for it" } _ => { "it was due" } } }
                dt { "Attempt" } dd { (copyable(attempt.text("id"))) }
            }
            @if guest.looker.acts() && endpoint.is_some() { (again(guest, id, attempt.text("endpointId"))) }
        }
        div class="sides" {
            section class="card" { h2 { "Request" } (request(published, endpoint, attempt)) }
            section class="card" { h2 { "Response" } (response(attempt)) }
        }
    };
    framed(guest, "Attempt", &content)
}

fn again(guest: &Guest, message: &str, endpoint: &str) -> Markup {
    let action = format!("/portal/messages/{message}/resend");
    let fields = html! {
        input type="hidden" name="endpoint" value=(endpoint);
        div class="buttons" { button type="submit" { "Send it again" } }
    };
    form(&guest.looker, &action, &fields)
}

/// What of the request can be told after it: its signature was made for its moment, and is not kept.
fn request(published: &Published, endpoint: Option<&Value>, attempt: &Value) -> Markup {
    let prefix = match endpoint.map_or("", |endpoint| endpoint.text("signatureNames")) {
        "svix" => "svix",
        _ => "webhook",
    };
    let url = attempt.maybe("url").filter(|url| !url.is_empty());
    html! {
        dl class="facts" {
            dt { "POST" } dd { (url.unwrap_or("an endpoint that is deleted")) }
            dt { code { (prefix) "-id" } } dd { (published.about.text("id")) }
            dt { code { (prefix) "-signature" } } dd class="dim" { "made for each attempt, not kept" }
        }
        h3 { "Body" }
        (payload(published))
    }
}

fn response(attempt: &Value) -> Markup {
    let text = attempt.text("response");
    html! {
        dl class="facts" { dt { "Status" } dd { (answer(attempt)) } }
        h3 { @if attempt.number("responseStatusCode") == 0 { "What went wrong" } @else { "Body" } }
        @match text.is_empty() {
            true => { p class="dim" { "Nothing was in it." } }
            false => { (block(text, "", "response")) p class="dim small" { "The beginning of it is kept." } }
        }
    }
}

/// The payload of a message, or why there is none.
pub fn payload(published: &Published) -> Markup {
    let fields = published.about.get("payload").and_then(Value::as_object);
    let only = fields.filter(|fields| fields.len() == 1);
    let only = |name: &str| only.and_then(|fields| fields.get(name));
    if only("expired").and_then(Value::as_bool) == Some(true) {
        return html! { p class="dim" { "It is not kept any more." } };
    }
    // What is no JSON object, the API shows as a text in one.
    let raw = only("rawPayload").and_then(Value::as_str);
    block(raw.unwrap_or(&published.payload), "", "payload")
}

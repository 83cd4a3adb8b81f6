//! Keys of guarded requests, and the form that settles one of which nobody knows whether it ran.

use maud::{Markup, html};
use serde_json::Value;

use super::events::Wanted;
use super::frame::{Looker, page as framed};
use super::json::Json;
use super::parts::{badge, copyable, empty, form, heads, looked, maybe_time, pager, reason, time};
use super::trouble::{Told, note};

/// The list.
pub fn list(looker: &Looker, wanted: &Wanted, list: &Value) -> Markup {
    let rows = list.list("data");
    let content = html! {
        h1 { "Guard keys" }
        form class="filters" method="get" action="/guard" role="search" {
            div { label for="f-state" { "State" } select id="f-state" name="state" {
                option value="" { "any" }
                @for state in ["running", "completed", "not_kept", "unknown", "released"] {
                    option value=(state) selected[wanted.value("state") == state] { (state.replace('_', " ")) }
                }
            } }
            @for (name, label) in [("guard", "Guard"), ("key", "Key"), ("principal", "Caller")] {
                div {
                    label for={ "f-" (name) } { (label) }
                    input id={ "f-" (name) } name=(name) value=(wanted.value(name)) autocomplete="off";
                }
            }
            div { button class="main" type="submit" { "Search" } }
        }
        @if rows.is_empty() {
            (empty("No guarded request yet", &html! { "Put a " code { "[[guard]]" } " in front of an API, and send requests with an " code { "Idempotency-Key" } "." }))
        }
        @else { div class="scroll" tabindex="0" { table {
            (heads(&["First", "State", "Key", "Request", "Caller", "#Status"]))
            tbody { @for key in rows { tr {
                td { (time(looker, key.text("firstAt"))) } td { (badge(key.text("state"))) }
                td {
                    a href={ "/guard/" (key.text("id")) } { code { (key.text("key")) } } span class="sub" { (key.text("guard")) }
                }
                td { (key.text("method")) " " (key.text("path")) }
                td { (key.text("principal")) }
                td class="num" { @if key["status"].is_u64() { (key.number("status")) } @else { "–" } }
            } } }
        } } }
        (looked(looker, &format!("/guard?{}", wanted.query), list))
        (pager(&format!("/guard?{}", wanted.query), list, wanted.paged))
    };
    framed(looker, "Guard keys", &content)
}

/// One of them.
pub fn page(looker: &Looker, key: &Value, told: Option<&Told>) -> Markup {
    let content = html! {
        p class="crumb" { a href="/guard" { "Guard keys" } " / " (key.text("guard")) }
        div class="head" { h1 { (key.text("method")) " " (key.text("path")) } (badge(key.text("state"))) }
        @if let Some(told) = told { (note(told)) }
        section class="card" { dl class="facts" {
            dt { "Key" } dd { (copyable(key.text("key"))) }
            dt { "Id" } dd { (copyable(key.text("id"))) }
            dt { "Caller" } dd { (key.text("principal")) }
            dt { "Ran" } dd { (times(key.number("runs"))) ", on " (key.text("node")) }
            dt { "First" }
            dd { (time(looker, key.text("firstAt"))) }
            dt { "Started" }
            dd { (time(looker, key.text("startedAt"))) }
            dt { "Ended" }
            dd { (maybe_time(looker, key.maybe("endedAt"))) }
            dt { "Answer" }
            dd { @if key["status"].is_u64() { (key.number("status")) } @else { (key.maybe("error").unwrap_or("–")) } }
            dt { "Forgotten" } dd { (time(looker, key.text("expiresAt"))) }
        } }
        @if key.text("state") == "unknown" && looker.acts() {
            section class="card" { h2 { "Nobody knows whether it ran. What did you find out?" }
                (form(looker, &format!("/guard/{}/resolve", key.text("id")), &html! {
                    input type="hidden" name="fence" value=(key.number("fence"));
                    (reason("key-reason", ""))
                    div class="buttons" {
                        button class="main" type="submit" name="outcome" value="executed" { "It ran: refuse repeats" }
                        button type="submit" name="outcome" value="not_executed" { "It did not: the key is free" }
                    }
                })) }
        }
    };
    framed(looker, "Guard key", &content)
}

fn times(number: u64) -> String {
    match number {
        1 => "once".to_owned(),
        number => format!("{number} times"),
    }
}

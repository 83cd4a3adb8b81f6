//! Replays of many events: the list, and one with how far it is.

use maud::{Markup, html};
use serde_json::Value;

use super::frame::{Looker, page as framed};
use super::json::Json;
use super::parts::{badge, copyable, empty, figure, form, heads, reason, time, who};
use super::trouble::{Told, note};

/// The list.
pub fn list(looker: &Looker, list: &Value) -> Markup {
    let rows = list.list("data");
    let content = html! {
        h1 { "Replays" }
        @if rows.is_empty() {
            (empty("No replay yet", &html! { "Replays of many events start at " a href="/dead" { "Dead letters" } " or with " code { "hapax replay start" } }))
        }
        @else { div class="scroll" tabindex="0" { table {
            (heads(&["Started", "State", "By", "Why", "#Looked at", "#Sent", "#Blocked"]))
            tbody { @for one in rows { tr {
                td { a href={ "/replays/" (one.text("id")) } { (time(looker, one.text("createdAt"))) } }
                td { (badge(one.text("state"))) @if one.is("dryRun") { span class="sub" { "preview" } } }
                td { (who(one.text("actor"))) } td { (one.text("reason")) }
                td class="num" { (one.number("total")) }
                td class="num" { (one.number("done")) }
                td class="num" { (one.number("blocked") + one.number("failed")) }
            } } }
        } } }
    };
    framed(looker, "Replays", &content)
}

/// One of them.
pub fn page(looker: &Looker, one: &Value, told: Option<&Told>) -> Markup {
    let id = one.text("id");
    let content = html! {
        p class="crumb" { a href="/replays" { "Replays" } }
        div class="head" { h1 { @if one.is("dryRun") { "Preview of a replay" } @else { "Replay" } } }
        @if let Some(told) = told { (note(told)) }
        (progress(one))
        section class="card" {
            h2 { "What it is about" }
            dl class="facts" {
                dt { "Id" } dd { (copyable(id)) }
                dt { "By" } dd { (one.text("actor")) " · " (time(looker, one.text("createdAt"))) }
                dt { "Why" } dd { (one.text("reason")) }
                @for name in ["source", "type", "status", "key", "entity", "since", "until"] {
                    @if let Some(value) = one["filter"].maybe(name) { dt { (name) } dd { (value) } }
                }
                @if one["rate"].is_u64() { dt { "At most" } dd { (one.number("rate")) " events a second" } }
            }
        }
        @if looker.acts() && one.text("state") == "running" {
            section class="card" { h2 { "Stop it" } (form(looker, &format!("/replays/{id}/cancel"), &html! {
                (reason("cancel-reason", "")) div class="buttons" { button class="danger" type="submit" { "Cancel the replay" } }
            })) }
        }
        @if looker.acts() && one.is("dryRun") && one.text("state") == "completed" { (start(looker, one)) }
    };
    framed(looker, "Replay", &content)
}

/// After a preview: the same, in earnest.
fn start(looker: &Looker, one: &Value) -> Markup {
    let fields = html! {
        @for name in ["source", "type", "since", "until"] {
            @if let Some(value) = one["filter"].maybe(name) { input type="hidden" name=(name) value=(value); }
        }
        @if one["rate"].is_u64() { input type="hidden" name="rate" value=(one.number("rate")); }
        (reason("start-reason", one.text("reason")))
        div class="buttons" { button class="main" type="submit" name="do" value="act" { "Replay them now" } }
    };
    html! { section class="card" { h2 { "Do it" } (form(looker, "/dead/replay", &fields)) } }
}

/// How far it is; the script asks for this again until it is through.
pub fn progress(one: &Value) -> Markup {
    let running = one.text("state") == "running";
    let through = (!running).then_some("");
    let again = running.then(|| format!("/replays/{}", one.text("id")));
    let sent = if one.is("dryRun") {
        "Would be sent"
    } else {
        "Sent"
    };
    html! {
        section class="card" data-progress=[again] data-through=[through] aria-live="polite" {
            div class="head" { h2 { "How far it is" } (badge(one.text("state"))) }
            @if running { progress aria-label="In progress" {} } @else { progress value="1" max="1" aria-label="Through" {} }
            dl class="figures" {
                (figure("Looked at", &one.number("total").to_string(), ""))
                (figure(sent, &one.number("done").to_string(), "good"))
                (figure("Nothing to do", &one.number("skipped").to_string(), ""))
                (figure("Need a decision", &one.number("blocked").to_string(), if one.number("blocked") > 0 { "warn" } else { "" }))
                (figure("Failed", &one.number("failed").to_string(), if one.number("failed") > 0 { "bad" } else { "" }))
            }
        }
    }
}

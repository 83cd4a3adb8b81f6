//! One event: what it is, what would happen, what happened, and its bytes.

use maud::{Markup, html};
use serde_json::Value;

use super::diff::diff;
use super::effect;
use super::events::origin;
use super::frame::{Looker, page as framed};
use super::json::{Json, SHOWN_BYTES_MAX, cut, pretty};
use super::parts::{badge, copyable, form, heads, linked, maybe_time, reason, time};
use super::trouble::{Told, note};
use super::verdict::{self, Chosen};

/// All that the page shows.
#[derive(Debug, Default)]
pub struct Shown {
    /// The event with what hangs on it.
    pub event: Value,
    /// Its effects with their attempts.
    pub effects: Vec<Value>,
    /// What happened.
    pub timeline: Value,
    /// The verdict on what is chosen.
    pub verdict: Value,
    /// What is chosen.
    pub chosen: Chosen,
    /// Its bytes, or why there are none.
    pub body: Option<Vec<u8>>,
    /// Other bodies that came under its key, by number.
    pub others: Vec<(u64, Vec<u8>)>,
    /// What went wrong with the last form.
    pub told: Option<Told>,
}

/// The page.
pub fn page(looker: &Looker, shown: &Shown) -> Markup {
    let event = &shown.event;
    let id = event.text("id");
    let title = event.maybe("type").unwrap_or("Event").to_owned();
    let content = html! {
        p class="crumb" { a href="/events" { "Events" } " / " (origin(event.text("source"))) }
        div class="head" { h1 { (title) } (badge(event.text("status"))) }
        @if let Some(told) = &shown.told { (note(told)) }
        @if let Some(message) = event.maybe("lastErrorMessage").or(event.maybe("lastErrorCode")) {
            p class="note warn" {
                strong { (message) }
                @if let Some(code) = event.maybe("lastErrorCode").filter(|code| *code != message) { " " code { (code) } }
            }
        }
        @if event.text("status") == "needs_review" { (review(looker, id)) }
        div class="grid" {
            (facts(looker, event))
            (runs(looker, event))
        }
        (verdict::panel(looker, id, &shown.chosen, &shown.verdict))
        (effect::list(looker, &shown.effects))
        (conflicts(looker, shown))
        div class="grid" {
            (timeline(looker, &shown.timeline))
            (payload(id, shown.body.as_deref()))
        }
        (deliveries(looker, event))
    };
    framed(looker, &title, &content)
}

fn facts(looker: &Looker, event: &Value) -> Markup {
    html! {
        section class="card" {
            h2 { "The event" }
            dl class="facts" {
                dt { "Id" } dd { (copyable(event.text("id"))) }
                dt { "Key" } dd { (copyable(event.text("key"))) " " span class="dim" { "(" (event.text("keyOrigin")) ")" } }
                @for (name, field) in [("Provider's id", "providerEventId"), ("Object", "objectId"), ("Entity", "entity"), ("Version", "version")] {
                    @if let Some(value) = event.maybe(field) { dt { (name) } dd { (copyable(value)) } }
                }
                dt { "Received" } dd { (time(looker, event.text("receivedAt"))) }
                dt { "First attempt" } dd { (maybe_time(looker, event.maybe("firstProcessedAt"))) }
                dt { "Completed" } dd { (maybe_time(looker, event.maybe("completedAt"))) }
                dt { "Deliveries" } dd {
                    (event.number("deliveryCount")) ", of these " (event.number("duplicateCount")) " duplicates and "
                    (event.number("conflictCount")) " with another body"
                }
            }
        }
    }
}

fn runs(looker: &Looker, event: &Value) -> Markup {
    html! {
        section class="card" {
            h2 { "Runs" }
            ol class="timeline" {
                @for run in event.list("runs") {
                    li class=(if run.text("kind") == "initial" { "" } else { "person" }) {
                        strong { (run.text("kind")) } " by " (run.text("actor")) " · " (time(looker, run.text("at")))
                        @if !run.text("reason").is_empty() { br; span class="dim" { "“" (run.text("reason")) "”" } }
                        @if let Some(snapshot) = run.maybe("snapshot") {
                            details {
                                summary { "What the source of truth said" } pre tabindex="0" { (pretty(snapshot.as_bytes())) }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn review(looker: &Looker, id: &str) -> Markup {
    let fields = html! {
        (reason("review-reason", ""))
        div class="buttons" {
            button class="main" type="submit" name="outcome" value="release" { "Release" }
            button class="danger" type="submit" name="outcome" value="dismiss" { "Dismiss" }
        }
    };
    html! {
        section class="card" {
            h2 { "This event waits for a person" }
            p {
                "Release plans it with the current config and lets it go on. Dismiss lets it come to nothing; its identity is kept."
            }
            @if looker.acts() { (form(looker, &format!("/events/{id}/review"), &fields)) }
        }
    }
}

fn timeline(looker: &Looker, timeline: &Value) -> Markup {
    html! {
        section class="card" {
            h2 { "What happened" }
            ol class="timeline" {
                @for entry in timeline.list("data") {
                    li class=(mood(entry)) {
                        (time(looker, entry.text("at"))) " " span class="dim small" { (entry.text("kind")) }
                        @if let Some(actor) = entry.maybe("actor") { span class="dim small" { " by " (actor) } }
                        br; (entry.text("text"))
                        (difference(&entry["detail"]["difference"]))
                    }
                }
            }
        }
    }
}

/// How the source of truth differed from the event, path by path.
fn difference(found: &Value) -> Markup {
    let Some(rows) = found.as_array().filter(|rows| !rows.is_empty()) else {
        return html! {};
    };
    html! {
        div class="scroll" tabindex="0" { table class="difference" {
            (heads(&["Where", "The event said", "The source of truth says"]))
            tbody { @for row in rows { tr {
                td { code { @if row.text("path").is_empty() { "the object" } @else { (row.text("path")) } } }
                td { @match row.maybe("event") { Some(value) => del { (value) }, None => span class="dim" { "nothing" } } }
                td { @match row.maybe("snapshot") { Some(value) => ins { (value) }, None => span class="dim" { "nothing" } } }
            } } }
        } }
    }
}

fn mood(entry: &Value) -> &'static str {
    let text = entry.text("text");
    match entry.text("kind") {
        "decision" | "run" => "person",
        "conflict" | "late" => "bad",
        "attempt"
            if text.contains("failed") || text.contains("refused") || text.contains("unknown") =>
        {
            "bad"
        }
        "status" if text.contains("complete") => "good",
        _ => "",
    }
}

fn payload(id: &str, body: Option<&[u8]>) -> Markup {
    let Some(body) = body else {
        return html! {
            section class="card" {
                h2 { "Payload" } p class="dim" { "The bytes have been deleted; the event's identity is kept." }
            }
        };
    };
    html! {
        section class="card" {
            div class="head" {
                h2 { "Payload " span class="dim small" { (body.len()) " bytes" } }
                a class="button" href={ "/events/" (id) "/body" } download={ (id) } { "Download" }
            }
            @if body.len() > SHOWN_BYTES_MAX { p class="dim" { "This is how it begins. The download has all of it." } }
            pre tabindex="0" { (pretty(body)) }
            details { summary { "Raw, as it came" } pre tabindex="0" { (cut(&String::from_utf8_lossy(body))) } }
        }
    }
}

fn conflicts(looker: &Looker, shown: &Shown) -> Markup {
    let id = shown.event.text("id");
    let first = shown.body.as_deref().map(pretty);
    html! {
        @for (number, body) in &shown.others {
            @let other = pretty(body);
            @let decided = decided(&shown.event, *number);
            section class="card" {
                h2 { "Delivery " (number) " brought another body " (badge("conflict")) }
                @match first.as_deref().and_then(|first| diff(first, &other)) {
                    Some(difference) => (difference),
                    None => div class="sides" {
                        div { h3 { "First" } pre tabindex="0" { (first.as_deref().unwrap_or("deleted")) } }
                        div { h3 { "Delivery " (number) } pre tabindex="0" { (other) } }
                    },
                }
                @if let Some(delivery) = decided {
                    p { "Somebody decided: " strong { (delivery.text("decided")) }
                        @if let Some(to) = delivery.maybe("promotedTo") { ", as " (linked(&format!("/events/{to}"), to)) } }
                } @else if looker.acts() {
                    (form(looker, &format!("/events/{id}/conflict/{number}"), &html! {
                        (reason(&format!("conflict-{number}"), ""))
                        div class="buttons" {
                            button type="submit" name="outcome" value="acknowledge" { "It means nothing" }
                            button type="submit" name="outcome" value="promote" { "It is an event of its own" }
                        }
                    }))
                }
            }
        }
    }
}

fn decided(event: &Value, number: u64) -> Option<&Value> {
    let mut deliveries = event.list("deliveries").iter();
    deliveries
        .find(|delivery| delivery.number("number") == number && delivery.maybe("decided").is_some())
}

fn deliveries(looker: &Looker, event: &Value) -> Markup {
    html! {
        h2 { "Deliveries" }
        div class="scroll" tabindex="0" { table {
            (heads(&["#No.", "At", "Outcome", "Proof", "From", "Body"]))
            tbody { @for delivery in event.list("deliveries") { tr {
                td class="num" { (delivery.number("number")) }
                td { (time(looker, delivery.text("at"))) }
                td { (badge(delivery.text("outcome"))) @if delivery.is("conflict") { " " (badge("conflict")) } }
                td { (delivery.text("scheme"))
                    @if delivery["secretIndex"].is_u64() { span class="sub" { "secret " (delivery.number("secretIndex")) } } }
                td { (delivery.maybe("remote").unwrap_or("–")) }
                td { (copyable(delivery.text("bodyHash"))) }
            } } }
        } }
    }
}

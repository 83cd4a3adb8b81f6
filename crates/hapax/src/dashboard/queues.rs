//! What waits for a person: events in review, dead letters with their bulk replay, effects by state.

use maud::{Markup, html};
use serde_json::Value;

use super::events::{Wanted, table};
use super::frame::{Looker, page as framed};
use super::json::Json;
use super::parts::{badge, copyable, empty, form, heads, looked, maybe_time, pager, reason};
use super::trouble::{Told, note};

/// Events that wait for a person.
pub fn review(looker: &Looker, wanted: &Wanted, list: &Value) -> Markup {
    let rows = list.list("data");
    let content = html! {
        h1 { "Review" }
        p class="dim" {
            "Authentic, but Hapax does not act on them by itself: a key or a plan could not be derived, or an order rule asks for a person."
        }
        @if rows.is_empty() {
            (empty("Nothing waits for a person", &html! { "Events that cannot be planned show up here, with the reason. " a href="/events" { "All events" } }))
        }
        @else { div class="scroll" tabindex="0" { (table(looker, rows, "")) } }
        (looked(looker, "/review?", list))
        (pager("/review?", list, wanted.paged))
    };
    framed(looker, "Review", &content)
}

/// Dead letters.
pub fn dead(
    looker: &Looker,
    wanted: &Wanted,
    sources: &Value,
    list: &Value,
    told: Option<&Told>,
) -> Markup {
    let rows = list.list("data");
    let content = html! {
        h1 { "Dead letters" }
        p class="dim" {
            "Events with an effect that was given up after its last attempt. A replay sends what is missing and leaves what is done."
        }
        @if let Some(told) = told { (note(told)) }
        @if looker.acts() { (bulk(looker, wanted, sources)) }
        @if rows.is_empty() {
            (empty("No dead letters", &html! { "An effect that fails through its whole schedule ends here. " a href="/events" { "All events" } }))
        }
        @else { div class="scroll" tabindex="0" { (table(looker, rows, "")) } }
        (looked(looker, &format!("/dead?{}", wanted.query), list))
        (pager(&format!("/dead?{}", wanted.query), list, wanted.paged))
    };
    framed(looker, "Dead letters", &content)
}

fn bulk(looker: &Looker, wanted: &Wanted, sources: &Value) -> Markup {
    let fields = html! {
        div class="filters" {
            div {
                label for="b-source" { "Source" }
                select id="b-source" name="source" {
                    option value="" { "any" }
                    @for source in sources.list("data") {
                        @let name = source.text("name"); option value=(name) selected[wanted.value("source") == name] { (name) }
                    }
                }
            }
            @for (name, label, hint) in [("type", "Type", "invoice.paid"), ("since", "Since", "2026-01-31T12:00:00Z"), ("until", "Until", "now"), ("rate", "Events a second", "no limit")] {
                div {
                    label for={ "b-" (name) } { (label) }
                    input id={ "b-" (name) } name=(name) value=(wanted.value(name)) placeholder=(hint) autocomplete="off";
                }
            }
        }
        (reason("bulk-reason", wanted.value("reason")))
        div class="buttons" {
            button type="submit" name="do" value="preview" { "Preview" }
            button class="main" type="submit" name="do" value="act" { "Replay them" }
        }
        p class="dim small" {
            "A preview looks at every event and counts what would be sent, skipped or blocked. It sends nothing."
        }
    };
    html! { section class="card" { h2 { "Replay many" } (form(looker, "/dead/replay", &fields)) } }
}

/// Effects by what they are.
pub fn effects(looker: &Looker, wanted: &Wanted, list: &Value) -> Markup {
    let rows = list.list("data");
    let content = html! {
        h1 { "Effects" }
        form class="filters" method="get" action="/effects" role="search" {
            div {
                label for="f-state" { "State" }
                select id="f-state" name="state" {
                    option value="" { "any" }
                    @for state in ["pending", "claimed", "done", "uncertain", "dead", "skipped"] {
                        option value=(state) selected[wanted.value("state") == state] { (state) }
                    }
                }
            }
            @for (name, label) in [("name", "Name"), ("source", "Source"), ("lane", "Lane")] {
                div {
                    label for={ "f-" (name) } { (label) }
                    input id={ "f-" (name) } name=(name) value=(wanted.value(name)) autocomplete="off";
                }
            }
            div { button class="main" type="submit" { "Search" } }
        }
        @if rows.is_empty() { (empty("No effect fits", &html! { a href="/effects" { "Show all effects" } })) }
        @else { div class="scroll" tabindex="0" { table {
            (heads(&["Effect", "State", "Key", "#Attempts", "Last", "Next try"]))
            tbody { @for effect in rows { tr {
                td class="wraps" { a href={ "/events/" (effect.text("eventId")) "#" (effect.text("id")) } { (effect.text("name")) } }
                td { (badge(effect.text("state"))) span class="sub" { (effect.text("repeat")) } }
                td { (copyable(effect.text("key"))) }
                td class="num" { (effect.number("attemptCount")) }
                td class="tight" { (effect.maybe("lastOutcome").unwrap_or("–")) }
                td { (maybe_time(looker, effect.maybe("nextAttemptAt"))) }
            } } }
        } } }
        (looked(looker, &format!("/effects?{}", wanted.query), list))
        (pager(&format!("/effects?{}", wanted.query), list, wanted.paged))
    };
    framed(looker, "Effects", &content)
}

//! Effects of an event, with their attempts and, where nobody knows what became of one, the form that settles it.

use maud::{Markup, html};
use serde_json::Value;

use super::frame::Looker;
use super::json::Json;
use super::parts::{badge, copyable, form, heads, maybe_time, reason, time};

/// All effects of an event.
pub fn list(looker: &Looker, effects: &[Value]) -> Markup {
    html! {
        @if !effects.is_empty() { h2 { "Effects" } }
        @for effect in effects { (card(looker, effect)) }
    }
}

fn card(looker: &Looker, effect: &Value) -> Markup {
    let state = effect.text("state");
    let open = matches!(state, "uncertain" | "dead" | "pending");
    html! {
        section class="card" id=(effect.text("id")) {
            div class="head" { h3 { (effect.text("name")) } (badge(state)) }
            dl class="facts" {
                dt { "Key" }
                dd {
                    (copyable(effect.text("key"))) @if effect.number("generation") > 1 {
                        " generation " (effect.number("generation"))
                    }
                }
                dt { "If repeated" } dd { (repeats(effect.text("repeat"))) }
                dt { "Attempts" }
                dd { (effect.number("attemptCount")) @if let Some(last) = effect.maybe("lastOutcome") { ", last: " (last) } }
                @if let Some(next) = effect.maybe("nextAttemptAt") {
                    dt { "Next try" }
                    dd {
                        (maybe_time(looker, Some(next))) @if let Some(gate) = effect.maybe("gate").filter(|gate| *gate != "open") {
                            " (gate: " (gate) ")"
                        }
                    }
                }
                @if let Some(why) = effect.maybe("skipReason") { dt { "Skipped" } dd { (why) } }
                dt { "Lane" } dd { (effect.text("lane")) }
            }
            @if !effect.list("attempts").is_empty() { (attempts(looker, effect, open)) }
            @if state == "uncertain" { (resolve(looker, effect)) }
            @else if open { (skip(looker, effect)) }
        }
    }
}

fn repeats(class: &str) -> &'static str {
    match class {
        "converges" => "converges: sending it again does no harm",
        "once" => "once: nothing may be sent again until it is known what happened",
        _ => "keyed: the receiver knows it again by its key",
    }
}

fn attempts(looker: &Looker, effect: &Value, open: bool) -> Markup {
    html! {
        details open[open] {
            summary { "Attempts" }
            div class="scroll" tabindex="0" { table {
                (heads(&["#No.", "Started", "Outcome", "What was said", "Node"]))
                tbody { @for attempt in effect.list("attempts") { tr {
                    td class="num" { (attempt.number("number")) }
                    td { (time(looker, attempt.text("startedAt"))) }
                    td { (attempt.text("outcome"))
                        @if let Some(late) = attempt.maybe("lateOutcome") { span class="sub" { "said late: " (late) } } }
                    td {
                        @if let Some(error) = attempt.maybe("error") { span { (error) } }
                        @if let Some(response) = attempt.maybe("response").filter(|text| !text.is_empty()) {
                            pre tabindex="0" { (response) }
                        }
                    }
                    td { span class="dim small" { (attempt.text("node")) } }
                } } }
            } }
        }
    }
}

fn resolve(looker: &Looker, effect: &Value) -> Markup {
    if !looker.acts() {
        return html! { p class="dim" { "Nobody knows whether it was applied. An operator can settle it." } };
    }
    let id = effect.text("id");
    let fields = html! {
        h3 { "Nobody knows whether it was applied. What did you find out?" }
        input type="hidden" name="event" value=(effect.text("eventId"));
        (reason(&format!("resolve-{id}"), ""))
        div class="buttons" {
            button class="main" type="submit" name="outcome" value="applied" { "It was applied" }
            button type="submit" name="outcome" value="not_applied" { "It was not: send it" }
            button class="danger" type="submit" name="outcome" value="skip" { "Skip it for good" }
        }
    };
    form(looker, &format!("/effects/{id}/resolve"), &fields)
}

fn skip(looker: &Looker, effect: &Value) -> Markup {
    if !looker.acts() {
        return html! {};
    }
    let id = effect.text("id");
    let fields = html! {
        input type="hidden" name="event" value=(effect.text("eventId"));
        (reason(&format!("skip-{id}"), ""))
        div class="buttons" { button class="danger" type="submit" name="outcome" value="skip" { "Skip it for good" } }
    };
    html! { details { summary { "Skip this effect" } (form(looker, &format!("/effects/{id}/resolve"), &fields)) } }
}

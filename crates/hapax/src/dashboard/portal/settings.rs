//! The form that makes an endpoint or changes it; the headers that go along; its end.

use maud::{Markup, html};
use serde_json::Value;

use super::endpoint::head;
use super::frame::{Guest, note, page as framed};
use crate::dashboard::frame::Looker;
use crate::dashboard::json::Json;
use crate::dashboard::parts::form;
use crate::dashboard::trouble::Told;

/// What the form says: what an endpoint is like, or what somebody wrote who is told what is wrong with it.
#[derive(Clone, Debug, Default)]
pub struct Written {
    /// The URL.
    pub url: String,
    /// The description.
    pub description: String,
    /// Types of events; none is all.
    pub types: Vec<String>,
    /// Channels, as one text.
    pub channels: String,
    /// Messages a second, as text.
    pub rate: String,
    /// Requests at a time, as text. Operators decide about it, as about the next.
    pub concurrency: String,
    /// Seconds within which it has to answer, as text.
    pub timeout: String,
}

impl Written {
    /// As an endpoint is.
    pub fn of(endpoint: &Value) -> Written {
        let texts = |name: &str| -> Vec<String> {
            let all = endpoint.list(name).iter();
            all.filter_map(|one| Some(one.as_str()?.to_owned()))
                .collect()
        };
        let number = |name: &str| match endpoint.number(name) {
            0 => String::new(),
            number => number.to_string(),
        };
        Written {
            url: endpoint.text("url").to_owned(),
            description: endpoint.text("description").to_owned(),
            types: texts("eventTypes"),
            channels: texts("channels").join(", "),
            rate: number("throttleRate"),
            concurrency: number("concurrency"),
            timeout: number("timeoutSeconds"),
        }
    }
}

/// The form for a new one.
pub fn new(guest: &Guest, written: &Written, types: &Value, told: Option<&Told>) -> Markup {
    let fields = html! {
        (fields(written, types, &meaning()))
        div class="buttons" {
            button class="main" type="submit" { "Add the endpoint" }
            a class="button" href="/portal/endpoints" { "Cancel" }
        }
    };
    let content = html! {
        p class="crumb" { a href="/portal/endpoints" { "Endpoints" } " /" }
        h1 { "Add an endpoint" }
        @if let Some(told) = told { (note(told)) }
        @match guest.looker.acts() {
            true => { section class="card" { (form(&guest.looker, "/portal/endpoints/new", &fields)) } }
            false => { (looks_only()) }
        }
    };
    framed(guest, "Add an endpoint", &content)
}

fn looks_only() -> Markup {
    html! { p class="note" { "Your link lets you look, and change nothing. Whoever gave it to you can give you one that does." } }
}

/// Settings of one that is there.
pub fn page(
    guest: &Guest,
    endpoint: &Value,
    written: &Written,
    types: &Value,
    headers: Option<&Value>,
    told: Option<&Told>,
) -> Markup {
    let at = |what: &str| format!("/portal/endpoints/{}/{what}", endpoint.text("id"));
    let fields = html! {
        (fields(written, types, &meaning()))
        div class="buttons" { button class="main" type="submit" { "Save" } }
    };
    let content = html! {
        (head(endpoint, "Settings"))
        @if let Some(told) = told { (note(told)) }
        @if guest.looker.acts() {
            section class="card" { h2 { "What goes where" } (form(&guest.looker, &at("settings"), &fields)) }
            @if let Some(headers) = headers { (header_list(&guest.looker, &at("headers"), headers)) }
            (pause(guest, endpoint))
            (end(guest, &at("delete")))
        } @else { (looks_only()) }
    };
    framed(guest, "Settings", &content)
}

/// To what the types mean.
fn meaning() -> Markup {
    html! { a href="/portal/events" { "What they mean" } }
}

/// What an endpoint is like, to be written. `meaning` leads to what its types mean.
pub fn fields(written: &Written, types: &Value, meaning: &Markup) -> Markup {
    html! {
        div class="fields" {
            div {
                label for="url" { "URL" }
                input id="url" name="url" type="url" required value=(written.url) placeholder="https://example.com/webhooks" autocomplete="off" spellcheck="false";
                small { "Messages are sent here with POST. It has to answer 2xx within its timeout." }
            }
            div {
                label for="description" { "Description " span class="dim" { "(if you like)" } }
                input id="description" name="description" value=(written.description) maxlength="4096" autocomplete="off";
            }
            (type_fields(written, types, meaning))
            div class="row" {
                div {
                    label for="channels" { "Channels " span class="dim" { "(if you use them)" } }
                    input id="channels" name="channels" value=(written.channels) autocomplete="off" spellcheck="false" placeholder="project-1, project-2";
                    small { "Only messages of one of these channels. Empty: all." }
                }
                div {
                    label for="rate" { "Messages a second" }
                    input id="rate" name="rate" type="number" min="1" max="65535" inputmode="numeric" value=(written.rate);
                    small { "Empty: as fast as they come." }
                }
            }
        }
    }
}

/// Boxes for the types that there are, and for those that the endpoint has beside them. Where there are none, a field for names.
fn type_fields(written: &Written, types: &Value, meaning: &Markup) -> Markup {
    let known: Vec<&str> = types
        .list("data")
        .iter()
        .map(|one| one.text("name"))
        .collect();
    if known.is_empty() {
        return html! {
            div {
                label for="types" { "Event types" }
                input id="types" name="more_types" value=(written.types.join(", ")) autocomplete="off" spellcheck="false" placeholder="invoice.paid, invoice.voided";
                small { "Names with commas between. Empty: all, also those to come." }
            }
        };
    }
    let has = |name: &str| written.types.iter().any(|one| one == name);
    let others = written.types.iter().map(String::as_str);
    let others = others.filter(|one| !known.contains(one));
    let all = known.iter().copied().chain(others);
    html! {
        fieldset {
            legend { "Event types" }
            div class="types" {
                @for name in all {
                    label class="check" { input type="checkbox" name="types" value=(name) checked[has(name)]; span { (name) } }
                }
            }
            small class="dim" { "None chosen: all, also those to come. " (meaning) }
        }
    }
}

/// The headers of an endpoint, and forms to change them.
pub fn header_list(looker: &Looker, action: &str, headers: &Value) -> Markup {
    let shown = headers.get("headers").and_then(Value::as_object);
    let shown = shown.into_iter().flatten();
    let shown = shown.map(|(name, value)| (name.as_str(), value.as_str()));
    let hidden = headers.list("sensitive").iter();
    let hidden = hidden.map(|name| (name.as_str().unwrap_or_default(), None));
    let all: Vec<(&str, Option<&str>)> = shown.chain(hidden).collect();
    let add = html! {
        div class="row" {
            div { label for="header-name" { "Name" } input id="header-name" name="name" required autocomplete="off" spellcheck="false" placeholder="x-team"; }
            div { label for="header-value" { "Value" } input id="header-value" name="value" required autocomplete="off" spellcheck="false"; }
            button type="submit" { "Add or replace" }
        }
        small { "Values of headers whose names speak of keys, tokens or secrets are not shown again." }
    };
    html! {
        section class="card" {
            h2 { "Headers that go along" }
            @if !all.is_empty() {
                ul class="headers" {
                    @for (name, value) in &all {
                        li {
                            span { code { (name) } ": " @match value { Some(value) => { (value) } None => { span class="dim" { "not shown" } } } }
                            form method="post" action=(action) {
                                input type="hidden" name="csrf" value=(looker.csrf);
                                input type="hidden" name="once" value=(looker.once);
                                input type="hidden" name="remove" value=(name);
                                button class="quiet" type="submit" aria-label={ "Remove " (name) } { "Remove" }
                            }
                        }
                    }
                }
            }
            (form(looker, action, &add))
        }
    }
}

fn pause(guest: &Guest, endpoint: &Value) -> Markup {
    let enabled = endpoint.text("standing") == "enabled";
    let (word, says, button) = match enabled {
        true => (
            "disable",
            "While it is disabled nothing is sent to it. What waits for it is skipped, and can be sent later.",
            "Disable it",
        ),
        false => (
            "enable",
            "Messages go out to it from then on. What it missed can be sent from its overview.",
            "Enable it",
        ),
    };
    let action = format!("/portal/endpoints/{}/{word}", endpoint.text("id"));
    let button = html! { div class="buttons" { button type="submit" { (button) } } };
    html! {
        section class="card" {
            h2 { @if enabled { "Pause" } @else { "Go on" } }
            p { (says) }
            (form(&guest.looker, &action, &button))
        }
    }
}

fn end(guest: &Guest, action: &str) -> Markup {
    let sure = html! {
        label class="check" { input type="checkbox" name="sure" value="yes" required; span { "Delete this endpoint and its secret" } }
        div class="buttons" { button class="danger" type="submit" { "Delete" } }
    };
    html! {
        section class="card danger-zone" {
            h2 { "Delete" }
            p { "Nothing is sent to it any more, and its secret is gone. This cannot be undone." }
            (form(&guest.looker, action, &sure))
        }
    }
}

//! What every page of the portal has around it: whose portal it is, whose pages these are, the way around, what was just done.

use std::sync::Arc;

use maud::{DOCTYPE, Markup, html};

use super::theme::Theme;
use crate::dashboard::assets::{ICON, SCRIPT, STYLE};
use crate::dashboard::frame::{Looker, sign};
use crate::dashboard::trouble::{Told, sentence};

/// Somebody who came by a link, and what the pages look like to them.
#[derive(Clone, Debug)]
pub struct Guest {
    /// Who looks, and when.
    pub looker: Looker,
    /// What the application is called whose pages these are.
    pub app: String,
    /// What the portal looks like.
    pub theme: Arc<Theme>,
}

/// What was just done, by a word in the query: nobody else's words are ever shown there.
const DONE: &[(&str, &str)] = &[
    (
        "added",
        "The endpoint is there. Next: take its secret, and verify what comes.",
    ),
    ("changed", "The change is in force."),
    (
        "enabled",
        "The endpoint is enabled: messages go out to it from now on.",
    ),
    (
        "disabled",
        "The endpoint is disabled: nothing is sent to it.",
    ),
    ("deleted", "The endpoint is deleted."),
    (
        "example",
        "The example is on its way. Its attempt is in the list in a moment.",
    ),
    (
        "recover",
        "Sending again has begun: what was given up goes out again, what got through does not.",
    ),
    (
        "missing",
        "It has begun: messages that never went to this endpoint go out to it.",
    ),
    ("resent", "The message goes out to this endpoint again."),
    ("header", "The headers are changed."),
];

/// The places of the portal.
const PLACES: [(&str, &str); 4] = [
    ("/portal/endpoints", "Endpoints"),
    ("/portal/messages", "Messages"),
    ("/portal/events", "Event types"),
    ("/portal/verify", "How to verify"),
];

/// A page of the portal.
pub fn page(guest: &Guest, title: &str, content: &Markup) -> Markup {
    let looker = &guest.looker;
    let body = html! {
        a class="skip" href="#main" { "Skip to the content" }
        div class="portal" {
            header class="bar" {
                div {
                    a class="brand" href="/portal/endpoints" { (brand(&guest.theme)) small { (guest.app) } }
                    form method="post" action="/portal/logout" {
                        input type="hidden" name="csrf" value=(looker.csrf);
                        button class="quiet" type="submit" { "Log out" }
                    }
                    nav aria-label="Pages" {
                        ul {
                            @for (href, name) in PLACES {
                                li { a href=(href) aria-current=[current(&looker.path, href)] { (name) } }
                            }
                        }
                    }
                }
            }
            main id="main" tabindex="-1" {
                @if let Some(text) = looker.done.as_deref().and_then(said) {
                    p class="note good" role="status" { (text) }
                }
                (content)
            }
            footer class="foot" {
                @if !looker.acts() { "You may look, and change nothing. " }
                "Times are as of now; the exact one, in UTC, is what a time shows when you point at it."
            }
        }
    };
    document(&guest.theme, title, &body, None)
}

/// A page without the way around.
pub fn document(theme: &Theme, title: &str, body: &Markup, script: Option<&str>) -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (title) " · " (theme.name) }
                @match &theme.logo {
                    Some(logo) => { link rel="icon" type=(logo.kind) href=(logo.path); }
                    None => { link rel="icon" type="image/svg+xml" href=(ICON.path); }
                }
                link rel="stylesheet" href=(STYLE.path);
                link rel="stylesheet" href=(theme.style.path);
                script defer src=(SCRIPT.path) {}
                @if let Some(script) = script { script defer src=(script) {} }
            }
            body { (body) }
        }
    }
}

/// The logo and the name.
pub fn brand(theme: &Theme) -> Markup {
    html! {
        @match &theme.logo {
            Some(logo) => { img src=(logo.path) alt="" height="28"; }
            None => { (sign()) }
        }
        span { (theme.name) }
    }
}

/// What went wrong. Consumers have no `hapax` to ask, so the code is there for those whom they ask.
pub fn note(told: &Told) -> Markup {
    html! {
        div class="note bad" role="alert" {
            p { strong { (sentence(&told.detail)) } }
            @if !told.fields.is_empty() {
                ul { @for (name, what) in &told.fields { li { strong { (field(name)) } ": " (what) } } }
            }
            @if !told.code.is_empty() { p class="dim small" { "Code " (told.code) } }
        }
    }
}

/// What forms call a field of the API.
fn field(name: &str) -> &str {
    match name {
        "url" => "URL",
        "description" => "Description",
        "eventTypes" | "filterTypes" => "Event types",
        "eventType" => "Event type",
        "channels" => "Channels",
        "throttleRate" | "rateLimit" => "Messages a second",
        "headers" => "Headers",
        "payload" => "Payload",
        other => other,
    }
}

/// A page with nothing else on it.
pub fn trouble(guest: &Guest, told: &Told) -> Markup {
    let content = html! {
        h1 { "That did not work" }
        (note(told))
        p { a href="/portal/endpoints" { "To your endpoints" } }
    };
    page(guest, "That did not work", &content)
}

/// The same for those of whom nothing is known.
pub fn bare_trouble(theme: &Theme, told: &Told) -> Markup {
    let body = html! {
        div class="portal" {
            main class="way-in" id="main" {
                h1 class="brand" { (brand(theme)) }
                (note(told))
                p { a href="/portal" { "To the portal" } }
            }
        }
    };
    document(theme, "That did not work", &body, None)
}

fn current(path: &str, href: &str) -> Option<&'static str> {
    let path = path.split('?').next().unwrap_or_default();
    let rest = path.strip_prefix(href)?;
    (rest.is_empty() || rest.starts_with('/')).then_some("page")
}

fn said(word: &str) -> Option<&'static str> {
    let found = DONE.iter().find(|(known, _)| *known == word);
    found.map(|(_, text)| *text)
}

/// One of several views of the same thing: where, what it is called.
pub fn tabs(label: &str, here: &str, all: &[(String, &str)]) -> Markup {
    html! {
        nav class="tabs" aria-label=(label) {
            @for (href, name) in all {
                a href=(href) aria-current=[(*name == here).then_some("page")] { (name) }
            }
        }
    }
}

/// A text that one copies as a whole, and scrolls in.
pub fn block(text: &str, class: &str, label: &str) -> Markup {
    html! {
        div class="block" {
            pre class=(class) tabindex="0" aria-label=(label) { (text) }
            button class="copy" type="button" data-copy=(text) aria-label={ "Copy: " (label) } hidden { "copy" }
        }
    }
}

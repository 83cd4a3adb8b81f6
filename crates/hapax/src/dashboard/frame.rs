//! What every page has around it: the head, the way around, who is logged in, what was just done.

use hapax_ledger::time::Time;
use hapax_store::nouns::Role;
use maud::{DOCTYPE, Markup, html};

use super::assets::{ICON, SCRIPT, STYLE};

/// Who looks at a page, and when.
#[derive(Clone, Debug)]
pub struct Looker {
    /// The name of their token.
    pub name: String,
    /// What they may do.
    pub role: Role,
    /// What their forms carry.
    pub csrf: String,
    /// Drawn for this page: forms on it count once under it.
    pub once: String,
    /// The page, as their browser knows it.
    pub path: String,
    /// A word of [`DONE`], after something was done.
    pub done: Option<String>,
    /// When they look.
    pub now: Time,
}

impl Looker {
    /// May they change something?
    pub fn acts(&self) -> bool {
        self.role >= Role::Operator
    }

    /// May they see and change what only admins do?
    pub fn rules(&self) -> bool {
        self.role == Role::Admin
    }
}

/// What was just done, by a word in the query: nobody else's words are ever shown there.
pub const DONE: &[(&str, &str)] = &[
    ("retry", "The retry has begun. What is done stays done."),
    (
        "replay",
        "The replay has begun. What is done stays done, but for what was forced.",
    ),
    (
        "reconcile",
        "The source of truth was asked. The timeline shows how it differs.",
    ),
    ("resolve", "The effect is settled."),
    ("release", "The event goes on."),
    ("dismiss", "The event is dismissed: nothing is sent for it."),
    (
        "acknowledge",
        "The other body means nothing: that is recorded.",
    ),
    ("promote", "The other body is an event of its own now."),
    (
        "bulk",
        "The replay has begun. This page shows how far it is.",
    ),
    ("cancel", "The replay is stopped. What it did stays done."),
    ("key", "The key is settled."),
    (
        "token",
        "The token is revoked: whoever shows it is refused.",
    ),
    ("app", "The application is there."),
    ("endpoint", "The endpoint is changed."),
    (
        "rotate",
        "There is a new secret. The old one counts for 24 hours more.",
    ),
    ("sent", "It is on its way."),
    ("login", "You are logged in."),
];

/// The places of the dashboard: where, what it is called, whether only admins go there.
const PLACES: &[(&str, &str, bool)] = &[
    ("/", "Overview", false),
    ("/events", "Events", false),
    ("/review", "Review", false),
    ("/dead", "Dead letters", false),
    ("/replays", "Replays", false),
    ("/sources", "Sources", false),
    ("/apps", "Apps", false),
    ("/guard", "Guard keys", false),
    ("/tokens", "Tokens", true),
    ("/audit", "Audit log", true),
    ("/settings", "Settings", true),
];

/// A page of the dashboard.
pub fn page(looker: &Looker, title: &str, content: &Markup) -> Markup {
    let body = html! {
        a class="skip" href="#main" { "Skip to the content" }
        div class="shell" {
            header class="side" {
                a class="brand" href="/" { (sign()) span { "Hapax" } }
                nav aria-label="Pages" {
                    ul {
                        @for (href, name, admins) in PLACES {
                            @if looker.rules() || !admins {
                                li { a href=(href) aria-current=[current(&looker.path, href)] { (name) } }
                            }
                        }
                    }
                }
                form class="who" method="post" action="/logout" {
                    input type="hidden" name="csrf" value=(looker.csrf);
                    span { (looker.name) " · " (looker.role.word()) }
                    button class="quiet" type="submit" { "Log out" }
                }
            }
            main id="main" tabindex="-1" {
                @if let Some(text) = looker.done.as_deref().and_then(said) {
                    p class="note good" role="status" { (text) }
                }
                (content)
            }
        }
    };
    document(title, &body)
}

/// A page without the way around: the way in, and what the portal has around it.
pub fn document(title: &str, body: &Markup) -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (title) " · Hapax" }
                link rel="icon" type="image/svg+xml" href=(ICON.path);
                link rel="stylesheet" href=(STYLE.path);
                script defer src=(SCRIPT.path) {}
            }
            body { (body) }
        }
    }
}

/// The sign: two requests, one effect.
pub fn sign() -> Markup {
    html! {
        svg class="sign" viewBox="0 0 24 24" width="22" height="22" aria-hidden="true" focusable="false" {
            path d="M2 6h6l5 6h9M2 18h6l5-6" fill="none" stroke="currentColor" stroke-width="2.4" stroke-linejoin="round" stroke-linecap="round" {}
            circle cx="21" cy="12" r="2.4" fill="currentColor" {}
        }
    }
}

fn current(path: &str, href: &str) -> Option<&'static str> {
    let path = path.split('?').next().unwrap_or_default();
    let under = path.strip_prefix(href);
    let here = match (href, under) {
        ("/", _) => path == "/",
        (_, Some(rest)) => rest.is_empty() || rest.starts_with('/'),
        (_, None) => false,
    };
    here.then_some("page")
}

fn said(word: &str) -> Option<&'static str> {
    let found = DONE.iter().find(|(known, _)| *known == word);
    found.map(|(_, text)| *text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_place_one_is_at_is_marked() {
        for (path, href, here) in [
            ("/", "/", true),
            ("/events", "/", false),
            ("/events?status=dead", "/events", true),
            ("/events/evt_1", "/events", true),
            ("/eventsish", "/events", false),
        ] {
            assert_eq!(current(path, href).is_some(), here, "{path} {href}");
        }
    }
}

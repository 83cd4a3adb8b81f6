//! The secret of an endpoint: shown when somebody asks for it, and replaced by another.

use maud::{Markup, html};
use serde_json::Value;

use super::endpoint::head;
use super::frame::{Guest, note, page as framed};
use crate::dashboard::json::Json;
use crate::dashboard::parts::form;
use crate::dashboard::trouble::Told;

/// How long the secret before signs as well: seconds, and what people call it.
pub const GRACES: [(u64, &str); 4] = [
    (24 * 60 * 60, "24 hours"),
    (60 * 60, "1 hour"),
    (7 * 24 * 60 * 60, "7 days"),
    (0, "not at all: the old one has leaked"),
];

/// What is shown of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seen<'a> {
    /// Nothing: nobody asked.
    Hidden,
    /// The secret.
    Shown(&'a str),
    /// The secret that signs from now on.
    Rotated(&'a str),
}

/// The page.
pub fn page(guest: &Guest, endpoint: &Value, seen: Seen<'_>, told: Option<&Told>) -> Markup {
    let at = |what: &str| format!("/portal/endpoints/{}/secret{what}", endpoint.text("id"));
    let public = endpoint.text("signatureScheme") == "ed25519";
    let content = html! {
        (head(endpoint, "Secret"))
        @if let Some(told) = told { (note(told)) }
        @if let Seen::Rotated(_) = seen {
            p class="note good" role="status" { "There is a new secret, shown below. Put it where your code verifies, before the old one ends." }
        }
        @if guest.looker.acts() {
            section class="card" {
                h2 { @if public { "Public key" } @else { "Signing secret" } }
                p { "Every request to this endpoint is signed with it, so that your code can tell ours from anybody else's. " a href=(format!("/portal/endpoints/{}/verify", endpoint.text("id"))) { "How to verify" } }
                @match seen {
                    Seen::Hidden => { (form(&guest.looker, &at(""), &html! { div class="buttons" { button class="main" type="submit" { "Show it" } } })) }
                    Seen::Shown(key) | Seen::Rotated(key) => {
                        div class="secret" {
                            span class="copyable" { code { (key) } button class="copy" type="button" data-copy=(key) aria-label="Copy the secret" hidden { "copy" } }
                        }
                        p { a href=(at("")) { "Hide it" } }
                    }
                }
            }
            section class="card" { h2 { "Rotate" } (rotate(guest, &at("/rotate"))) }
        } @else {
            p class="note" { "Your link lets you look, and the secret is for those who may change things." }
        }
    };
    framed(guest, "Secret", &content)
}

fn rotate(guest: &Guest, action: &str) -> Markup {
    let fields = html! {
        label for="grace" { "The old one signs as well for" }
        select id="grace" name="grace" {
            @for (seconds, words) in GRACES { option value=(seconds) { (words) } }
        }
        div class="buttons" { button type="submit" { "Make a new secret" } }
    };
    html! {
        p { "Until the old secret ends, each request carries a signature of both, and verifying with either works: nothing is lost while you change it." }
        (form(&guest.looker, action, &fields))
    }
}

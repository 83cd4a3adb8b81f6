//! The way in.

use maud::{Markup, html};

use super::frame::{document, sign};
use super::trouble::{Told, note};

/// The form that asks for a token.
pub fn page(next: &str, trouble: Option<&Told>) -> Markup {
    let body = html! {
        main class="way-in" id="main" {
            h1 class="brand" { (sign()) span { "Hapax" } }
            @if let Some(told) = trouble { (note(told)) }
            form method="post" action="/login" {
                input type="hidden" name="next" value=(next);
                label for="token" { "Token" }
                input id="token" name="token" type="password" required autocomplete="current-password" autofocus spellcheck="false" autocapitalize="off";
                button class="main" type="submit" { "Log in" }
            }
            p class="dim" {
                "The token of the first start, or one from " code { "hapax token create" } ". What you see and may do here is what it may do in the API."
            }
        }
    };
    document("Log in", &body)
}

//! The way in: a magic link leads here, and its key goes from the address into this form.

use maud::{Markup, html};

use super::frame::{brand, document, note};
use super::theme::Theme;
use crate::dashboard::trouble::Told;

/// A link of another application than the one that this browser is at: nobody is moved without having said so.
pub fn another(theme: &Theme, here: &str, there: &str, key: &str) -> Markup {
    let body = html! {
        div class="portal" {
            main class="way-in" id="main" {
                h1 class="brand" { (brand(theme)) }
                div class="note warn" role="alert" {
                    p { strong { "This link is of another application." } }
                    p { "You are at " strong { (here) } ". The link opens " strong { (there) } ", and you leave where you are." }
                }
                form method="post" action="/portal/enter" {
                    input type="hidden" name="key" value=(key);
                    input type="hidden" name="leave" value="yes";
                    button class="main" type="submit" { "Open " (there) }
                }
                p { a class="button" href="/portal/endpoints" { "Stay at " (here) } }
            }
        }
    };
    document(theme, "Another application", &body, None)
}

/// The form. The script sends it with the key of the link; without one, the link is pasted.
pub fn page(theme: &Theme, known: bool, trouble: Option<&Told>) -> Markup {
    let body = html! {
        div class="portal" {
            main class="way-in" id="main" {
                h1 class="brand" { (brand(theme)) }
                @if let Some(told) = trouble { (note(told)) }
                @if known { p { a class="button main" href="/portal/endpoints" { "Go on where you were" } } }
                form id="enter" method="post" action="/portal/enter" {
                    label for="key" { "Your link" }
                    input id="key" name="key" type="password" required autocomplete="off" spellcheck="false" autocapitalize="off" placeholder="https://…#key=…";
                    button class="main" type="submit" { "Open the portal" }
                }
                p class="dim" {
                    "Open the link that you were given: it leads in by itself. If it does not, paste it here as it is. A link ends after a while; "
                    "whoever gave it to you gives you another."
                }
            }
        }
    };
    document(theme, "Webhooks portal", &body, Some(&theme.script.path))
}

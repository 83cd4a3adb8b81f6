//! What went wrong: a code, what happened, what to do next.

use maud::{Markup, html};

use super::frame::{Looker, page as framed};

/// What is told about something that went wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Told {
    /// The code, as `hapax explain` knows it.
    pub code: String,
    /// What happened.
    pub detail: String,
    /// Fields of a form, with what is wrong with them.
    pub fields: Vec<(String, String)>,
}

/// A note on a page.
pub fn note(told: &Told) -> Markup {
    html! {
        div class="note bad" role="alert" {
            p { strong { (sentence(&told.detail)) } }
            @if !told.fields.is_empty() {
                ul { @for (name, what) in &told.fields { li { code { (name) } ": " (what) } } }
            }
            @if !told.code.is_empty() {
                p class="dim" { "What to do next: " code { "hapax explain " (told.code) } }
            }
        }
    }
}

/// A page with nothing else on it.
pub fn page(looker: &Looker, told: &Told) -> Markup {
    let content = html! {
        h1 { "That did not work" }
        (note(told))
        p { a href="/" { "To the overview" } }
    };
    framed(looker, "That did not work", &content)
}

/// Details are fragments; on a page they are sentences.
pub fn sentence(detail: &str) -> String {
    let mut letters = detail.chars();
    let first: String = letters
        .next()
        .into_iter()
        .flat_map(char::to_uppercase)
        .collect();
    let text = format!("{first}{}", letters.as_str());
    match text.ends_with(['.', '!', '?']) {
        true => text,
        false => format!("{text}."),
    }
}

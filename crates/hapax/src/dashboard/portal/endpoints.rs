//! The list of endpoints, with how each of them is.

use maud::{Markup, html};
use serde_json::Value;

use super::bars::rate;
use super::frame::{Guest, page as framed};
use crate::dashboard::json::Json;
use crate::dashboard::parts::{badge, empty, pager, time};

/// The page. `list` is a page of endpoints, `figures` has what each came to.
pub fn page(guest: &Guest, list: &Value, figures: &[Value], paged: bool) -> Markup {
    let rows = list.list("data");
    let acts = guest.looker.acts();
    let content = html! {
        div class="head" {
            h1 { "Endpoints" }
            @if acts && !rows.is_empty() { a class="button main" href="/portal/endpoints/new" { "Add an endpoint" } }
        }
        @if rows.is_empty() {
            (empty("No endpoint yet", &html! {
                "An endpoint is a URL of yours that messages are sent to. "
                @if acts { a class="button main" href="/portal/endpoints/new" { "Add an endpoint" } }
                @else { "Whoever gave you this link can give you one that may add them." }
            }))
        } @else {
            ul class="places" { @for (endpoint, figures) in rows.iter().zip(figures) { (place(guest, endpoint, figures)) } }
            (pager("/portal/endpoints?", list, paged))
        }
    };
    framed(guest, "Endpoints", &content)
}

fn place(guest: &Guest, endpoint: &Value, figures: &Value) -> Markup {
    html! {
        li class="place" {
            div {
                h2 { a href={ "/portal/endpoints/" (endpoint.text("id")) } { (endpoint.text("url")) } }
                @if let Some(text) = endpoint.maybe("description").filter(|text| !text.is_empty()) { p class="dim" { (text) } }
                div class="chips" {
                    (standing(endpoint))
                    @if let Some(since) = endpoint.maybe("failingSince") { span class="small" { "failing since " (time(&guest.looker, since)) } }
                    (types(endpoint))
                }
            }
            (rate(figures.number("success"), figures.number("fail"), figures.number("pending") + figures.number("sending")))
        }
    }
}

/// How an endpoint is: by its standing, or failing.
pub fn standing(endpoint: &Value) -> Markup {
    match (endpoint.text("standing"), endpoint.maybe("failingSince")) {
        ("enabled", Some(_)) => html! { span class="badge warn" { "failing" } },
        (word, _) => badge(word),
    }
}

/// The types that an endpoint wants.
pub fn types(endpoint: &Value) -> Markup {
    const SHOWN: usize = 4;
    let all = endpoint.list("eventTypes");
    html! {
        @if all.is_empty() { span class="small dim" { "all event types" } }
        @for one in all.iter().take(SHOWN) { span class="chip" { (one.as_str().unwrap_or_default()) } }
        @if all.len() > SHOWN { span class="small dim" { "and " (all.len() - SHOWN) " more" } }
    }
}

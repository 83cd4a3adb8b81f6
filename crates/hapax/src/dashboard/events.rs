//! The list of events: found by what they are, and followed live.

use maud::{Markup, html};
use serde_json::Value;

use super::frame::{Looker, page as framed};
use super::json::Json;
use super::parts::{badge, copyable, empty, heads, looked, pager, time};
use super::trouble::{Told, note};

/// Statuses of events, as the API knows them.
pub const STATUSES: [&str; 6] = [
    "pending",
    "in_progress",
    "completed",
    "needs_review",
    "dead",
    "stale",
];

/// What was asked for: fields of the form, in the API's words.
#[derive(Clone, Debug, Default)]
pub struct Wanted {
    /// Name and value of each filter that says something.
    pub filters: Vec<(String, String)>,
    /// The same as a query, ready for a link; ends in `&` unless it is empty.
    pub query: String,
    /// Is this not the first page?
    pub paged: bool,
}

impl Wanted {
    /// The value of a filter.
    pub fn value(&self, name: &str) -> &str {
        let found = self.filters.iter().find(|(known, _)| known == name);
        found.map_or("", |(_, value)| value)
    }
}

/// The page.
pub fn page(
    looker: &Looker,
    wanted: &Wanted,
    sources: &Value,
    list: &Value,
    told: Option<&Told>,
) -> Markup {
    let rows = list.list("data");
    let content = html! {
        div class="head" {
            h1 { "Events" }
            button id="follow" type="button" aria-pressed="false" hidden { "Follow live" }
        }
        @if let Some(told) = told { (note(told)) }
        (filters(wanted, sources))
        (looked(looker, &format!("/events?{}", wanted.query), list))
        @if !wanted.value("key").is_empty() && wanted.value("source").is_empty() && !list.is("done") {
            p class="dim" { "With its source, a key is found at once, however old the event is." }
        }
        @if rows.is_empty() && list.is("done") {
            @if wanted.filters.is_empty() {
                (empty("No event has come yet", &html! {
                    "Point a provider at " code { "/in/SOURCE" } ", or send a sample: " code { "hapax send SOURCE --type invoice.paid" }
                }))
            } @else {
                (empty("No event fits these filters", &html! { a href="/events" { "Show all events" } }))
            }
        }
        div class="scroll" tabindex="0" hidden[rows.is_empty()] { (table(looker, rows, &live(wanted))) }
        (pager(&format!("/events?{}", wanted.query), list, wanted.paged))
        (template())
    };
    framed(looker, "Events", &content)
}

/// What comes live is narrowed as the list is.
fn live(wanted: &Wanted) -> String {
    let path = format!("/events/stream?{}", wanted.query);
    path.trim_end_matches(['?', '&']).to_owned()
}

fn filters(wanted: &Wanted, sources: &Value) -> Markup {
    let text = |name: &str, label: &str, hint: &str| {
        html! {
            div {
                label for={ "f-" (name) } { (label) }
                input id={ "f-" (name) } name=(name) value=(wanted.value(name)) placeholder=(hint) autocomplete="off" spellcheck="false";
            }
        }
    };
    html! {
        form class="filters" method="get" action="/events" role="search" {
            div {
                label for="f-status" { "Status" }
                select id="f-status" name="status" {
                    option value="" { "any" }
                    @for status in STATUSES {
                        option value=(status) selected[wanted.value("status") == status] { (status.replace('_', " ")) }
                    }
                }
            }
            div {
                label for="f-source" { "Source" }
                select id="f-source" name="source" {
                    option value="" { "any" }
                    @for source in sources.list("data") {
                        @let name = source.text("name");
                        option value=(name) selected[wanted.value("source") == name] { (name) }
                    }
                }
            }
            (text("type", "Type", "invoice.paid"))
            (text("keyContains", "Text in the key", "a part of it"))
            (text("key", "Key", "all of it"))
            (text("entity", "Entity", "all of it"))
            (text("since", "Since", "2026-01-31T12:00:00Z"))
            (text("until", "Until", "2026-01-31T12:00:00Z"))
            div { button class="main" type="submit" { "Search" } }
        }
    }
}

/// Events as rows.
pub fn table(looker: &Looker, rows: &[Value], live: &str) -> Markup {
    html! {
        table data-live=(live) data-row="event-row" data-switch="follow" {
            (heads(&["Received", "Event", "Status", "Key", "Source", "#Times"]))
            tbody { @for event in rows { (row(looker, event)) } }
        }
    }
}

fn row(looker: &Looker, event: &Value) -> Markup {
    let id = event.text("id");
    html! {
        tr {
            td { (time(looker, event.text("receivedAt"))) }
            td { a href={ "/events/" (id) } { (event.maybe("type").unwrap_or("event")) } span class="sub" { (copyable(id)) } }
            td {
                (badge(event.text("status")))
                @if let Some(message) = event.maybe("lastErrorMessage") { span class="sub" { (message) } }
            }
            td {
                (copyable(event.text("key"))) @if let Some(entity) = event.maybe("entity") {
                    span class="sub" { "entity " (entity) }
                }
            }
            td { (origin(event.text("source"))) }
            td class="num" {
                (event.number("deliveryCount"))
                @if event.number("conflictCount") > 0 { span class="sub" { (event.number("conflictCount")) " conflict" } }
            }
        }
    }
}

/// Where an event came from: a source, or a part of Hapax itself.
pub fn origin(source: &str) -> Markup {
    match source.strip_prefix('~') {
        Some(app) if app.starts_with("app_") => {
            html! { a href={ "/apps/" (app) } { "outbox" } }
        }
        Some("own") => html! { "your own code" },
        Some(_) => html! { "Hapax" },
        None => html! { (source) },
    }
}

/// What the script makes live rows of.
fn template() -> Markup {
    html! {
        template id="event-row" {
            tr class="fresh" {
                td { time data-field="receivedAt" data-relative {} }
                td {
                    a data-href="/events/" { span data-field="type" {} }
                    span class="sub" {
                        span class="copyable" {
                            code data-field="id" {} button class="copy" type="button" data-copy-field="id" hidden { "copy" }
                        }
                    }
                }
                td { span class="badge" data-field="status" {} }
                td { code data-field="key" {} }
                td { span data-field="source" {} }
                td class="num" { span data-field="deliveryCount" {} }
            }
        }
    }
}

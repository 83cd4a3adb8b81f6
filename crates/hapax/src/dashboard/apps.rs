//! Applications and their endpoints: health, rate, secrets, what was given up.

use maud::{Markup, html};
use serde_json::Value;

use super::frame::{Looker, page as framed};
use super::json::Json;
use super::parts::{
    badge, copyable, empty, figure, form, heads, linked, maybe_time, pager, span, time,
};
use super::portal::secret::GRACES;
use super::portal::settings::{Written, fields, header_list};
use super::trouble::{Told, note};

/// The list.
pub fn list(looker: &Looker, list: &Value, paged: bool, told: Option<&Told>) -> Markup {
    let rows = list.list("data");
    let create = html! {
        div class="filters" {
            div {
                label for="a-name" { "Name" } input id="a-name" name="name" required autocomplete="off" placeholder="a customer";
            }
            div {
                label for="a-uid" { "Your own id " span class="dim" { "(uid)" } } input id="a-uid" name="uid" autocomplete="off";
            }
            div { button class="main" type="submit" { "Add an application" } }
        }
    };
    let content = html! {
        h1 { "Apps" }
        p class="dim" { "An application is a consumer of your webhooks. Its endpoints get the messages that you publish to it." }
        @if let Some(told) = told { (note(told)) }
        @if looker.acts() { section class="card" { (form(looker, "/apps", &create)) } }
        @if rows.is_empty() {
            (empty("No application yet", &html! { "Add one here, or with a Svix SDK: " code { "application.create" } }))
        }
        @else { div class="scroll" tabindex="0" { table {
            (heads(&["Name", "uid", "Made", "#Messages a second", "Application"]))
            tbody { @for app in rows { tr {
                td { a href={ "/apps/" (app.text("id")) } { (app.text("name")) } } td { (app.maybe("uid").unwrap_or("–")) }
                td { (time(looker, app.text("createdAt"))) }
                td class="num" {
                    @if app["throttleRate"].is_u64() { "at most " (app.number("throttleRate")) } @else { "no limit" }
                }
                td { (copyable(app.text("id"))) }
            } } }
        } } }
        (pager("/apps?", list, paged))
    };
    framed(looker, "Apps", &content)
}

/// One application.
pub fn page(
    looker: &Looker,
    app: &Value,
    endpoints: &Value,
    dead: &Value,
    link: Option<&str>,
    told: Option<&Told>,
) -> Markup {
    let id = app.text("id");
    let add = html! {
        div class="filters" {
            div {
                label for="e-url" { "URL" }
                input id="e-url" name="url" type="url" required autocomplete="off" placeholder="https://";
            }
            div {
                label for="e-types" { "Event types" }
                input id="e-types" name="types" autocomplete="off" placeholder="all, or names with commas";
            }
            div { label for="e-description" { "Description" } input id="e-description" name="description" autocomplete="off"; }
            div { button class="main" type="submit" { "Add an endpoint" } }
        }
    };
    let content = html! {
        p class="crumb" { a href="/apps" { "Apps" } }
        div class="head" { h1 { (app.text("name")) } (copyable(id)) }
        @if let Some(told) = told { (note(told)) }
        @if let Some(link) = link {
            div class="note good" role="status" {
                p { strong { "A link to this application's portal, good for a week:" } }
                p {
                    span class="copyable" {
                        code { (link) }
                        button class="copy" type="button" data-copy=(link) aria-label="Copy the link" hidden { "copy" }
                    }
                }
            }
        }
        h2 { "Endpoints" }
        @if endpoints.list("data").is_empty() {
            (empty("No endpoint yet", &html! { "Messages to this application go nowhere until it has one." }))
        }
        @else { div class="scroll" tabindex="0" { table {
            (heads(&["URL", "State", "Failing since", "Event types", "#Rate", "Endpoint"]))
            tbody { @for endpoint in endpoints.list("data") { tr {
                td {
                    a href={ "/apps/" (id) "/endpoints/" (endpoint.text("id")) } { (endpoint.text("url")) }
                    @if !endpoint.text("description").is_empty() { span class="sub" { (endpoint.text("description")) } }
                }
                td { (badge(endpoint.text("standing"))) } td { (maybe_time(looker, endpoint.maybe("failingSince"))) }
                td { (types(endpoint)) }
                td class="num" { @if endpoint["throttleRate"].is_u64() { (endpoint.number("throttleRate")) "/s" } @else { "–" } }
                td { (copyable(endpoint.text("id"))) }
            } } }
        } } }
        @if looker.acts() {
            section class="card" { h3 { "A new endpoint" } (form(looker, &format!("/apps/{id}/endpoints"), &add)) }
            section class="card" { h3 { "The consumer's own page" } p {
                "A link that opens the portal for this application alone."
            }
                (form(looker, &format!("/apps/{id}/portal"), &html! { div class="buttons" { button type="submit" { "Make a link" } } })) }
        }
        (letters(looker, dead))
    };
    framed(looker, app.text("name"), &content)
}

fn types(endpoint: &Value) -> String {
    let names: Vec<&str> = endpoint
        .list("eventTypes")
        .iter()
        .filter_map(Value::as_str)
        .collect();
    match names.is_empty() {
        true => "all".to_owned(),
        false => names.join(", "),
    }
}

fn letters(looker: &Looker, dead: &Value) -> Markup {
    let rows = dead.list("data");
    html! {
        h2 { "Deliveries that were given up" }
        @if rows.is_empty() { p class="dim" { "None." } }
        @else { div class="scroll" tabindex="0" { table {
            (heads(&["Published", "Type", "Endpoint", "#Attempts", "Last", "Message"]))
            tbody { @for row in rows { tr {
                td { (time(looker, row.text("timestamp"))) }
                td { (row.text("eventType")) }
                td { (copyable(row.text("endpointId"))) }
                td class="num" { (row.number("attemptCount")) }
                td { (row.maybe("lastOutcome").unwrap_or("–")) }
                td { (message(row.text("id"))) }
            } } }
        } } }
    }
}

/// All that is known of an endpoint.
#[derive(Debug, Default)]
pub struct Shown {
    /// The application.
    pub app: Value,
    /// The endpoint.
    pub endpoint: Value,
    /// Deliveries by where they stand.
    pub stats: Value,
    /// The latest attempts.
    pub attempts: Value,
    /// How the way to it is.
    pub lane: Value,
    /// Types of events.
    pub types: Value,
    /// What somebody wrote about it, or what it is like.
    pub written: Written,
    /// Its headers, if somebody may change them and they can be read.
    pub headers: Option<Value>,
    /// Its secret, if somebody wanted to see it.
    pub secret: Option<String>,
    /// What went wrong with the last form.
    pub told: Option<Told>,
}

/// One endpoint.
pub fn endpoint(looker: &Looker, shown: &Shown) -> Markup {
    let (app, endpoint) = (&shown.app, &shown.endpoint);
    let (id, stats) = (app.text("id"), &shown.stats);
    let content = html! {
        p class="crumb" { a href="/apps" { "Apps" } " / " a href={ "/apps/" (id) } { (app.text("name")) } }
        div class="head" { h1 { (endpoint.text("url")) } (badge(endpoint.text("standing"))) }
        @if let Some(told) = &shown.told { (note(told)) }
        @if let Some(secret) = &shown.secret {
            div class="note good" role="status" {
                p { strong { "The secret that its consumer verifies with:" } }
                p {
                    span class="copyable" {
                        code { (secret) }
                        button class="copy" type="button" data-copy=(secret) aria-label="Copy the secret" hidden { "copy" }
                    }
                }
            }
        }
        @if let Some(since) = endpoint.maybe("failingSince") {
            p class="note warn" {
                "Nothing but failures came back since " (time(looker, since)) ". After five days it is disabled."
            }
        }
        dl class="figures" {
            (figure("Got through", &stats.number("success").to_string(), "good")) (figure("Waiting", &stats.number("pending").to_string(), "")) (figure("Under way", &stats.number("sending").to_string(), ""))
            (figure("Given up", &stats.number("fail").to_string(), if stats.number("fail") > 0 { "bad" } else { "" }))
        }
        (way(looker, &shown.lane))
        div class="grid" {
            section class="card" { h2 { "Settings" } dl class="facts" {
                dt { "Id" } dd { (copyable(endpoint.text("id"))) } dt { "Event types" } dd { (types(endpoint)) }
                dt { "Rate" }
                dd {
                    @if endpoint["throttleRate"].is_u64() { "at most " (endpoint.number("throttleRate")) " a second" }
                    @else { "no limit" }
                }
                dt { "At a time" }
                dd { (endpoint.number("concurrency")) }
                dt { "Time-out" }
                dd { (endpoint.number("timeoutSeconds")) " s" }
                dt { "Signature" }
                dd { (endpoint.text("signatureScheme")) }
                dt { "Changed" }
                dd { (time(looker, endpoint.text("updatedAt"))) }
            } }
            @if looker.acts() { (acts(looker, id, endpoint)) }
        }
        @if looker.acts() { (change(looker, id, shown)) }
        (attempts(looker, &shown.attempts))
    };
    framed(looker, "Endpoint", &content)
}

/// Its breaker, how late it is, how much it may take.
fn way(looker: &Looker, lane: &Value) -> Markup {
    let (breaker, kind) = match lane.text("breaker") {
        "closed" => ("closed", "good"),
        "open" => ("open", "bad"),
        "trying" => ("trying one", "warn"),
        _ => ("on another node", ""),
    };
    let late = lane.number("lagSeconds");
    let rate = match lane["rate"].as_u64() {
        Some(rate) => format!("{rate}/s"),
        None => "no limit".to_owned(),
    };
    html! {
        dl class="figures" {
            (figure("Breaker", breaker, kind))
            (figure("Behind by", &span(late), if late > 30 { "warn" } else { "" }))
            (figure("Failures in a row", &lane.number("failures").to_string(), if lane.number("failures") > 0 { "warn" } else { "" }))
            (figure("Rate", &rate, ""))
        }
        @if let Some(until) = lane.maybe("openUntil") {
            p class="note warn" {
                "Only failures came back, so nothing is sent to it for a while; the next try is " (time(looker, until)) "."
            }
        }
    }
}

/// What only operators decide about.
fn limits(written: &Written) -> Markup {
    let number = |name: &str, label: &str, value: &str, hint: &str| {
        html! {
            div {
                label for=(name) { (label) }
                input id=(name) name=(name) type="number" min="1" inputmode="numeric" value=(value);
                small { (hint) }
            }
        }
    };
    html! {
        div class="fields" { div class="row" {
            (number("concurrency", "Requests at a time", &written.concurrency, "Empty: the default."))
            (number("timeout", "Seconds to answer", &written.timeout, "Empty: the default."))
        } }
    }
}

/// Its settings and headers, to be changed.
fn change(looker: &Looker, app: &str, shown: &Shown) -> Markup {
    let at = |what: &str| format!("/apps/{app}/endpoints/{}/{what}", shown.endpoint.text("id"));
    let all = html! {
        (fields(&shown.written, &shown.types, &html! {}))
        (limits(&shown.written))
        div class="buttons" { button class="main" type="submit" { "Save" } }
    };
    html! {
        section class="card" {
            h2 { "What goes where" }
            (form(looker, &at("settings"), &all))
        }
        @if let Some(headers) = &shown.headers { (header_list(looker, &at("headers"), headers)) }
    }
}

fn acts(looker: &Looker, app: &str, endpoint: &Value) -> Markup {
    let action = format!("/apps/{app}/endpoints/{}/act", endpoint.text("id"));
    let one = |word: &str, title: &str, class: &str| html! { button class=(class) type="submit" name="do" value=(word) { (title) } };
    html! {
        section class="card" { h2 { "Do something" }
            (form(looker, &action, &html! { div class="buttons" {
                @if endpoint.is("disabled") { (one("enable", "Enable it", "main")) }
                @else { (one("disable", "Disable it", "danger")) }
                (one("secret", "Show its secret", ""))
            } }))
            h3 { "Rotate its secret" }
            (form(looker, &action, &html! {
                label for="grace" { "The old one signs as well for" }
                select id="grace" name="grace" { @for (seconds, words) in GRACES { option value=(seconds) { (words) } } }
                div class="buttons" { (one("rotate", "Make a new secret", "")) }
            }))
            h3 { "Send again what was given up" }
            (form(looker, &action, &html! {
                label for="since" { "Since" }
                input id="since" name="since" placeholder="2026-01-31T12:00:00Z" autocomplete="off" required;
                div class="buttons" { (one("recover", "Recover", "")) }
            }))
        }
    }
}

fn attempts(looker: &Looker, attempts: &Value) -> Markup {
    let rows = attempts.list("data");
    html! {
        h2 { "The latest attempts" }
        @if rows.is_empty() { p class="dim" { "None yet." } }
        @else { div class="scroll" tabindex="0" { table {
            (heads(&["At", "Outcome", "#Status", "What was said", "Message"]))
            tbody { @for attempt in rows { tr {
                td { (time(looker, attempt.text("timestamp"))) } td { (badge(attempt.text("statusText"))) }
                td class="num" { (attempt.number("responseStatusCode")) }
                td { @if !attempt.text("response").is_empty() { pre tabindex="0" { (attempt.text("response")) } } }
                td { (message(attempt.text("msgId"))) }
            } } }
        } } }
    }
}

/// A message is an event, and its id is the event's under another name.
fn message(id: &str) -> Markup {
    match id.strip_prefix("msg_") {
        Some(rest) => linked(&format!("/events/evt_{rest}"), id),
        None => copyable(id),
    }
}

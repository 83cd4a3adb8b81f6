//! What is for admins: tokens, the audit log, settings as running.

use maud::{Markup, html};
use serde_json::Value;

use super::events::Wanted;
use super::frame::{Looker, page as framed};
use super::json::Json;
use super::parts::{copyable, empty, form, heads, maybe_time, pager, time, who};
use super::trouble::{Told, note};

/// Tokens. `made` is one that was made just now, shown this once.
pub fn tokens(looker: &Looker, list: &Value, made: Option<&Value>, told: Option<&Told>) -> Markup {
    let create = html! {
        div class="filters" {
            div {
                label for="t-name" { "Name" }
                input id="t-name" name="name" required maxlength="100" autocomplete="off" placeholder="who holds it";
            }
            div {
                label for="t-role" { "Role" }
                select id="t-role" name="role" { option { "viewer" } option { "operator" } option { "admin" } }
            }
            div { label for="t-app" { "Only for the app" } input id="t-app" name="app" autocomplete="off" placeholder="all"; }
            div {
                label for="t-until" { "Expires" }
                input id="t-until" name="expiresAt" autocomplete="off" placeholder="never, or 2027-01-31T00:00:00Z";
            }
            div { button class="main" type="submit" { "Make a token" } }
        }
    };
    let content = html! {
        h1 { "Tokens" }
        @if let Some(told) = told { (note(told)) }
        @if let Some(made) = made {
            div class="note good" role="status" {
                p { strong { "Copy it now: it is shown only this once." } }
                p { (copyable_whole(made.text("token"))) }
            }
        }
        section class="card" { h2 { "A new token" } (form(looker, "/tokens", &create)) }
        @if list.list("data").is_empty() {
            (empty("No token but the admin's", &html! { "Give everybody their own: what they decide is recorded under its name." }))
        }
        @else { div class="scroll" tabindex="0" { table {
            (heads(&["Name", "Role", "App", "Made", "Last used", "Expires", ""]))
            tbody { @for token in list.list("data") { tr {
                td { (who(token.text("name"))) } td { (token.text("role")) } td { (token.maybe("app").unwrap_or("all")) }
                td { (time(looker, token.text("createdAt"))) }
                td { (maybe_time(looker, token.maybe("lastUsedAt"))) }
                td { (maybe_time(looker, token.maybe("expiresAt"))) }
                td { @match token.maybe("revokedAt") {
                    Some(at) => span class="dim" { "revoked " (time(looker, at)) },
                    None => (form(looker, &format!("/tokens/{}/revoke", token.text("id")), &html! { button class="danger quiet" type="submit" { "Revoke" } })),
                } }
            } } }
        } } }
    };
    framed(looker, "Tokens", &content)
}

fn copyable_whole(text: &str) -> Markup {
    html! {
        span class="copyable" {
            code { (text) } button class="copy" type="button" data-copy=(text) aria-label="Copy the token" hidden { "copy" }
        }
    }
}

/// The audit log.
pub fn audit(looker: &Looker, wanted: &Wanted, list: &Value, told: Option<&Told>) -> Markup {
    let rows = list.list("data");
    let content = html! {
        h1 { "Audit log" }
        p class="dim" {
            "Who decided what. Each record carries the hash of the one before: " code { "hapax audit verify" }
            " finds a changed one."
        }
        @if let Some(told) = told { (note(told)) }
        form class="filters" method="get" action="/audit" role="search" {
            div {
                label for="f-actor" { "Who" } input id="f-actor" name="actor" value=(wanted.value("actor")) autocomplete="off";
            }
            div {
                label for="f-event" { "Event" } input id="f-event" name="event" value=(wanted.value("event")) autocomplete="off";
            }
            div { button class="main" type="submit" { "Search" } }
        }
        @if rows.is_empty() {
            (empty("Nothing was decided yet", &html! { "Retries, replays, resolutions, tokens and endpoints that somebody changes are recorded here." }))
        }
        @else { div class="scroll" tabindex="0" { table {
            (heads(&["#No.", "At", "Who", "What", "About", "Why"]))
            tbody { @for record in rows { tr {
                td class="num" { (record.number("seq")) }
                td { (time(looker, record.text("at"))) }
                td { (who(record.text("actor"))) }
                td { code { (record.text("action")) } }
                td {
                    @if record.text("subject").starts_with("evt_") {
                        a href={ "/events/" (record.text("subject")) } { code { (record.text("subject")) } }
                    }
                    @else { (copyable(record.text("subject"))) }
                }
                td class="wraps" {
                    (record.text("reason"))
                    details {
                        summary { "Detail" }
                        pre tabindex="0" {
                            (record.text("detail")) "\n\nhash " (record.text("hash")) "\nafter " (record.text("previous"))
                        }
                    }
                }
            } } }
        } } }
        (pager(&format!("/audit?{}", wanted.query), list, wanted.paged))
    };
    framed(looker, "Audit log", &content)
}

/// Settings as running, as the API tells them: lists as tables, the rest as facts. Secrets are not among them.
pub fn settings(looker: &Looker, running: &Value) -> Markup {
    let content = html! {
        h1 { "Settings as running" }
        p class="dim" { "What this node goes by now, after the file, the environment and reloads. Secrets are never shown." }
        div class="grid" {
            section class="card" {
                h2 { "This node" }
                dl class="facts" {
                    dt { "Version" } dd { (running.text("version")) } dt { "Portal" } dd { (running.text("portal")) }
                }
            }
            section class="card" { h2 { "Limits" } (facts(&running["limits"])) }
        }
        (rows("Sources", &["name", "provider", "scheme", "key", "entity", "reconciles", "effects"], running.list("sources")))
        (rows("Effects", &["name", "source", "repeat"], running.list("effects")))
        (rows("Guards", &["name", "ttlSeconds"], running.list("guards")))
    };
    framed(looker, "Settings", &content)
}

fn facts(value: &Value) -> Markup {
    let fields = value.as_object().into_iter().flatten();
    html! { dl class="facts" { @for (name, value) in fields { dt { (words(name)) } dd { (plain(value)) } } } }
}

fn rows(title: &str, names: &[&str], rows: &[Value]) -> Markup {
    html! {
        h2 { (title) }
        @if rows.is_empty() { p class="dim" { "None is configured." } }
        @else { div class="scroll" tabindex="0" { table {
            thead { tr { @for name in names { th scope="col" { (words(name)) } } } }
            tbody { @for row in rows { tr { @for name in names { td { (plain(&row[*name])) } } } } }
        } } }
    }
}

/// `inflightBytes` as words.
fn words(name: &str) -> String {
    let mut out = String::new();
    for letter in name.chars() {
        if letter.is_uppercase() {
            out.push(' ');
        }
        out.extend(letter.to_lowercase());
    }
    out
}

fn plain(value: &Value) -> String {
    match value {
        Value::Null => "–".to_owned(),
        Value::Bool(yes) => if *yes { "yes" } else { "no" }.to_owned(),
        Value::String(text) => text.clone(),
        Value::Array(all) if all.is_empty() => "–".to_owned(),
        Value::Array(all) => all.iter().map(plain).collect::<Vec<_>>().join(", "),
        Value::Number(_) | Value::Object(_) => value.to_string(),
    }
}

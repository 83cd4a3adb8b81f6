//! Types of events: what may come, what it looks like, and an example.

use maud::{Markup, html};
use serde_json::Value;

use super::frame::{Guest, block, page as framed};
use crate::dashboard::json::Json;
use crate::dashboard::parts::{empty, pager};

/// The list, by group.
pub fn page(guest: &Guest, list: &Value, paged: bool) -> Markup {
    let rows = list.list("data");
    let mut groups: Vec<&str> = rows.iter().map(|row| row.text("groupName")).collect();
    groups.sort_unstable();
    groups.dedup();
    let content = html! {
        div class="head" { h1 { "Event types" } }
        @if rows.is_empty() {
            (empty("No event type is described yet", &html! {
                "Whoever sends you messages describes them here: what they mean, their JSON Schema, an example. Messages may come all the same."
            }))
        }
        @for group in groups {
            section {
                @if !group.is_empty() { h2 { (group) } }
                ul class="places" { @for row in rows.iter().filter(|row| row.text("groupName") == group) { (line(row)) } }
            }
        }
        (pager("/portal/events?", list, paged))
    };
    framed(guest, "Event types", &content)
}

fn line(row: &Value) -> Markup {
    html! {
        li class="place" {
            div {
                h2 { a href={ "/portal/events/" (row.text("name")) } { (row.text("name")) } }
                p class="dim" { (row.text("description")) }
            }
            div class="chips" {
                @if row.is("deprecated") { span class="badge warn" { "deprecated" } }
                @if row.is("archived") { span class="badge" { "archived" } }
            }
        }
    }
}

/// One type.
pub fn event_type(guest: &Guest, known: &Value) -> Markup {
    let schemas = known.get("schemas").and_then(Value::as_object);
    let mut versions: Vec<(&String, &Value)> = schemas.into_iter().flatten().collect();
    // The latest first; numbers as people count them.
    versions.sort_by_key(|(version, _)| std::cmp::Reverse(version.parse::<u64>().ok()));
    let content = html! {
        p class="crumb" { a href="/portal/events" { "Event types" } " /" }
        div class="head" {
            h1 { (known.text("name")) }
            div class="chips" {
                @if known.is("deprecated") { span class="badge warn" { "deprecated" } }
                @if known.is("archived") { span class="badge" { "archived" } }
            }
        }
        @if let Some(text) = known.maybe("description").filter(|text| !text.is_empty()) { p { (text) } }
        p {
            a class="button" href={ "/portal/messages?event_types=" (known.text("name")) } { "Messages of this type" }
        }
        @if versions.is_empty() {
            (empty("No schema", &html! { "Nobody has described the payload of this type. Look at a message of it, or send an example." }))
        }
        @for (version, schema) in &versions { (described(version, schema)) }
    };
    framed(guest, known.text("name"), &content)
}

fn described(version: &str, schema: &Value) -> Markup {
    let examples = schema.list("examples").first();
    let example = examples.or_else(|| schema.get("example"));
    let pretty = |value: &Value| serde_json::to_string_pretty(value).unwrap_or_default();
    html! {
        h2 { "Version " (version) }
        (fields(schema))
        div class="sides" {
            @if let Some(example) = example { section class="card" { h3 { "Example" } (block(&pretty(example), "", "example")) } }
            section class="card" { h3 { "JSON Schema" } (block(&pretty(schema), "", "JSON Schema")) }
        }
    }
}

/// The fields that a schema names at its top.
fn fields(schema: &Value) -> Markup {
    let properties = schema.get("properties").and_then(Value::as_object);
    let required = |name: &str| {
        let mut all = schema.list("required").iter();
        all.any(|one| one.as_str() == Some(name))
    };
    html! {
        @if let Some(properties) = properties.filter(|all| !all.is_empty()) {
            div class="scroll" {
                table {
                    thead { tr { th scope="col" { "Field" } th scope="col" { "Is" } th scope="col" { "What it is" } } }
                    tbody {
                        @for (name, property) in properties {
                            tr {
                                td { code { (name) } @if required(name) { span class="sub" { "always there" } } }
                                td { (property.maybe("type").unwrap_or("–")) @if let Some(format) = property.maybe("format") { span class="sub" { (format) } } }
                                td { (property.maybe("description").unwrap_or_default()) }
                            }
                        }
                    }
                }
            }
        }
    }
}

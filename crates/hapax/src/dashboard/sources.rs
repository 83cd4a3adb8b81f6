//! Sources: what they count, how long they remember, what they refused and why, what their keys tell.

use maud::{Markup, html};
use serde_json::Value;

use super::frame::{Looker, page as framed};
use super::json::Json;
use super::parts::{badge, empty, figure, heads, linked, span, ticked, time};
use super::trouble::sentence;

/// The list.
pub fn list(looker: &Looker, list: &Value) -> Markup {
    let rows = list.list("data");
    let content = html! {
        h1 { "Sources" }
        @if rows.is_empty() {
            (empty("No source is configured", &html! { code { "hapax init" } " writes a config with a first one; " code { "hapax check" } " says what is wrong with it." }))
        }
        @else { div class="scroll" tabindex="0" { table {
            (heads(&["Source", "Provider", "#Accepted", "#Duplicates", "#For review", "#Refused", "Retries last", "Keys are known"]))
            tbody { @for source in rows { tr {
                td { a href={ "/sources/" (source.text("name")) } { (source.text("name")) } }
                td {
                    (source.text("provider")) @if source.text("provider") == "unverified" { " " (badge("warning")) }
                    span class="sub" { (source.text("scheme")) }
                }
                td class="num" { (source.number("accepted")) } td class="num" { (source.number("duplicates")) }
                td class="num" { (source.number("failedValidation")) } td class="num" { (source.number("refused")) }
                td { (span(source.number("retryWindowSeconds"))) }
                td { (span(source.number("identityWindowSeconds"))) }
            } } }
        } } p class="dim small" { "Counts are this node's, since its start." } }
    };
    framed(looker, "Sources", &content)
}

/// One of them.
pub fn page(looker: &Looker, source: &Value, refused: &Value, audit: &Value) -> Markup {
    let (retry, identity) = (
        source.number("retryWindowSeconds"),
        source.number("identityWindowSeconds"),
    );
    let content = html! {
        p class="crumb" { a href="/sources" { "Sources" } " / " (source.text("provider")) }
        div class="head" {
            h1 { (source.text("name")) } a class="button" href={ "/events?source=" (source.text("name")) } { "Its events" }
        }
        dl class="figures" {
            (figure("Accepted", &source.number("accepted").to_string(), "")) (figure("Duplicates", &source.number("duplicates").to_string(), ""))
            (figure("For review", &source.number("failedValidation").to_string(), if source.number("failedValidation") > 0 { "warn" } else { "" }))
            (figure("Refused", &source.number("refused").to_string(), if source.number("refused") > 0 { "bad" } else { "" }))
        }
        section class="card" {
            h2 { "How long it remembers" }
            p { "The provider may send the same event again for " strong { (span(retry)) } ". Its key is known for " strong { (span(identity)) } "."
                @if identity <= retry { " " (badge("warning")) " A retry after that is taken for a new event: raise " code { "retain.identity" } "." } }
            progress max=(identity.max(retry)) value=(retry) aria-label="The retry window within the identity window" {}
            dl class="facts" {
                dt { "Bytes are kept" }
                dd { (span(source.number("payloadWindowSeconds"))) }
                dt { "The ledger is kept" }
                dd { (span(source.number("ledgerWindowSeconds"))) }
            }
        }
        (refusals(looker, refused))
        (findings(audit))
    };
    framed(looker, source.text("name"), &content)
}

fn refusals(looker: &Looker, refused: &Value) -> Markup {
    let rows = refused.list("data");
    html! {
        h2 { "Requests that were not believed" }
        @if rows.is_empty() {
            (empty("None since the start", &html! { "A request with a wrong signature is answered 401 and shown here with the likely cause." }))
        }
        @else { div class="scroll" tabindex="0" { table {
            (heads(&["At", "From", "Likely cause", "What to do"]))
            tbody { @for one in rows { tr {
                td { (time(looker, one.text("at"))) } td { (one.maybe("remote").unwrap_or("–")) }
                td { (sentence(one.text("cause"))) span class="sub" { (one.text("code")) } }
                td { (one.maybe("remedy").map(sentence).unwrap_or_default()) }
            } } }
        } } }
    }
}

fn findings(audit: &Value) -> Markup {
    let findings = audit.list("findings");
    html! {
        h2 { "What its keys tell" }
        p class="dim" {
            (audit.number("lookedAt")) " events were looked at" @if audit.is("more") { ", the latest; there are more" } "."
        }
        @if findings.is_empty() { p class="note good" { "Nothing remarkable: keys are stable and stand for one thing each." } }
        @for finding in findings {
            section class="card" {
                h3 { (finding.text("kind").replace(['_', '-'], " ")) " " span class="dim" { "× " (finding.number("count")) } }
                p { (sentence(finding.text("what"))) }
                p { (ticked(&sentence(finding.text("advice")))) }
                ul { @for example in finding.list("examples") { li {
                    (example.text("detail")) " "
                    @for id in example.list("eventIds") {
                        @let id = id.as_str().unwrap_or_default(); (linked(&format!("/events/{id}"), id)) " "
                    }
                } } }
            }
        }
    }
}

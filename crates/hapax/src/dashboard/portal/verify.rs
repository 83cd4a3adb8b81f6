//! How to verify: what comes, and code that checks it, with the ids of the reader's own endpoint in it.

use maud::{Markup, html};
use serde_json::Value;

use super::code::{Blanks, LANGUAGES, Language};
use super::endpoint::head;
use super::frame::{Guest, block, page as framed, tabs};
use crate::dashboard::json::Json;
use crate::dashboard::parts::{empty, ticked};

/// The page about one endpoint.
pub fn page(guest: &Guest, endpoint: &Value, language: &Language) -> Markup {
    let here = format!("/portal/endpoints/{}/verify", endpoint.text("id"));
    let tab = |one: &Language| (format!("{here}?in={}", one.word), one.name);
    let all: Vec<(String, &str)> = LANGUAGES.iter().map(tab).collect();
    let content = html! {
        (head(endpoint, "Verify"))
        (what_comes(endpoint))
        @match endpoint.text("signatureScheme") {
            "v1" => {
                section class="card" {
                    h2 { "Code" }
                    (tabs("Language", language.name, &all))
                    @if endpoint.text("signatureNames") == "svix" {
                        p class="note warn" { "This endpoint gets headers named svix-* only. Use the library svix in place of standardwebhooks: it is called in the same way." }
                    }
                    p { (ticked(language.hint)) }
                    (block(language.install, "code", "how to install"))
                    p {}
                    (block(&language.filled(&blanks(endpoint)), "code", "code that verifies"))
                }
            }
            scheme => { (by_hand(endpoint, scheme)) }
        }
        (rules(endpoint))
    };
    framed(guest, "How to verify", &content)
}

/// The page of those who have no endpoint yet.
pub fn without(guest: &Guest) -> Markup {
    let content = html! {
        h1 { "How to verify" }
        (empty("No endpoint yet", &html! {
            "Code that verifies is written for an endpoint of yours. "
            @if guest.looker.acts() { a class="button main" href="/portal/endpoints/new" { "Add an endpoint" } }
        }))
    };
    framed(guest, "How to verify", &content)
}

fn blanks(endpoint: &Value) -> Blanks<'_> {
    let url = endpoint.text("url");
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let path = rest.find('/').map_or("/", |start| &rest[start..]);
    let path = path.split(['?', '#']).next().unwrap_or("/");
    // A path goes into code, between quotes: one that could end them is left out.
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/-_.~%".contains(&byte);
    Blanks {
        endpoint: endpoint.text("id"),
        path: if path.bytes().all(plain) {
            path
        } else {
            "/webhooks"
        },
    }
}

fn what_comes(endpoint: &Value) -> Markup {
    let prefix = match endpoint.text("signatureNames") {
        "svix" => "svix",
        _ => "webhook",
    };
    html! {
        section class="card" {
            h2 { "What comes" }
            p { "A POST with the payload as it was published. Its headers say what it is and that it is ours:" }
            dl class="facts" {
                dt { code { (prefix) "-id" } } dd { "the message's id. It stays the same when the message is sent again: remember it, and do the work once." }
                dt { code { (prefix) "-timestamp" } } dd { "when this attempt was signed, in seconds since 1970. Refuse what is older than five minutes." }
                dt { code { (prefix) "-signature" } } dd { "one or more signatures with a space between. One that fits is enough: during a rotation there are two." }
            }
        }
    }
}

fn by_hand(endpoint: &Value, scheme: &str) -> Markup {
    html! {
        section class="card" {
            h2 { "What to check" }
            @match scheme {
                "ed25519" => {
                    ol class="steps" {
                        li { "Take the text " code { "{id}.{timestamp}.{body}" } " with the headers' values and the bytes of the body as they came." }
                        li { "Take each signature that begins with " code { "v1a," } "; the rest is base64." }
                        li { "Verify it as ed25519 with the public key of " code { (endpoint.text("id")) } ": base64 after " code { "whpk_" } "." }
                    }
                }
                _ => {
                    ol class="steps" {
                        li { "Read the header " code { (endpoint.maybe("signatureHeader").unwrap_or("hapax-signature")) } ": " code { "t=TIME,v1=HEX" } ", perhaps with several v1." }
                        li { "Compute HMAC-SHA256 of " code { "TIME.BODY" } " with the secret of " code { (endpoint.text("id")) } ", and compare it in constant time." }
                        li { "Stripe's libraries do this: " code { "constructEvent(body, header, secret)" } "." }
                    }
                }
            }
        }
    }
}

fn rules(endpoint: &Value) -> Markup {
    html! {
        section class="card" {
            h2 { "Good to know" }
            ul class="steps" {
                li { "Verify the bytes as they came. JSON that was read and written again is other bytes." }
                li { "Answer 2xx as soon as the message is stored on your side, and work on it afterwards. What takes longer than " (endpoint.number("timeoutSeconds")) " s counts as failed and is sent again." }
                li { "Anything but 2xx is tried again by schedule; 410 says that the endpoint is gone." }
                li { "The secret is under " a href={ "/portal/endpoints/" (endpoint.text("id")) "/secret" } { "Secret" } ". Keep it where you keep passwords; the code reads it from the environment." }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_that_could_end_a_text_is_left_out() {
        for (url, path) in [
            ("https://a.example/hooks/x?y=1", "/hooks/x"),
            ("https://a.example", "/"),
            ("https://a.example/\");evil(\"", "/webhooks"),
        ] {
            let endpoint = serde_json::json!({"id": "ep_1", "url": url});
            assert_eq!(blanks(&endpoint).path, path);
        }
    }
}

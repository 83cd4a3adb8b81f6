//! Handshakes: the published ones are answered as published, and the dangerous ones only when it is safe.

use hapax_verify::provider::{self, HandshakeAnswer};
use hapax_verify::{Secret, SignInput, Verifier, sign};
use serde_json::{Value, json};

use crate::support::{NOW, Owned, URL, verifier_for};

fn verifier(name: &str, secret: &str) -> Verifier {
    let scheme = provider::find(name).expect("known").scheme();
    Verifier::new(scheme, vec![Secret::from(secret)]).expect("a secret")
}

fn request(method: &str, body: &str) -> Owned {
    Owned {
        method: method.to_owned(),
        url: Some(URL.to_owned()),
        headers: Vec::new(),
        body: body.as_bytes().to_vec(),
        now: NOW,
    }
}

fn answer(
    name: &str,
    query: &str,
    request: &Owned,
    verifier: &Verifier,
) -> Option<HandshakeAnswer> {
    let provider = provider::find(name).expect("known");
    provider.handshake_answer(query, &request.request(), verifier)
}

fn with_signature(mut request: Owned, verifier: &Verifier) -> Owned {
    let signed = sign(
        verifier,
        &SignInput {
            method: &request.method,
            url: request.url.as_deref(),
            headers: &request.headers,
            body: &request.body,
            id: "msg_1",
            now: NOW,
        },
    );
    request.headers.extend(signed.expect("signed").headers);
    request
}

fn body(answer: &HandshakeAnswer) -> Value {
    serde_json::from_slice(&answer.body).expect("JSON")
}

/// The published handshakes whose request is a query, a header or an unsigned body.
#[test]
fn published_handshakes_are_answered_as_published() {
    let file: Value = serde_json::from_str(include_str!("../vectors.json")).expect("valid JSON");
    let mut answered = Vec::new();
    for vector in file["handshakes"].as_array().expect("an array") {
        let name = match vector["provider"].as_str().expect("a name") {
            "okta" => "okta-event-hook",
            // eBay signs with keys that have to be fetched; Zoom and Xero sign the question and have tests of their own.
            "ebay" | "zoom" | "xero" => continue,
            name => name,
        };
        let asked = &vector["request"];
        let mut request = request(asked["method"].as_str().expect("a method"), "");
        if !asked["json"].is_null() {
            request.body = asked["json"].to_string().into_bytes();
        }
        for (name, value) in asked["headers"].as_object().into_iter().flatten() {
            let value = value.as_str().expect("text").to_owned();
            request.headers.push((name.clone(), value));
        }
        let query: Vec<String> = asked["query"]
            .as_object()
            .into_iter()
            .flatten()
            .map(|(name, value)| format!("{name}={}", value.as_str().expect("text")))
            .collect();
        let secret = vector["secret"].as_str().unwrap_or("any secret will do");
        let verifier = verifier(name, secret);
        let answer = answer(name, &query.join("&"), &request, &verifier).expect(name);
        let want = &vector["response"];
        assert_eq!(Value::from(answer.status), want["status"], "{name}");
        match want["text"].as_str() {
            Some(text) => assert_eq!(answer.body, text.as_bytes(), "{name}"),
            None => assert_eq!(body(&answer), want["json"], "{name}"),
        }
        let nosniff = ("x-content-type-options".to_owned(), "nosniff".to_owned());
        assert!(answer.headers.contains(&nosniff));
        answered.push(name);
    }
    assert_eq!(
        answered,
        ["x", "meta", "okta-event-hook", "dropbox", "monday", "nylas"]
    );
}

#[test]
fn a_wrong_verify_token_is_not_answered() {
    let query =
        |token: &str| format!("hub.mode=subscribe&hub.challenge=1158&hub.verify_token={token}");
    let get = request("GET", "");
    let both = verifier("meta", "the app secret").with_verify_token(Secret::from("meatyhamhock"));
    assert!(answer("meta", &query("meatyhamhock"), &get, &both).is_some());
    assert!(answer("meta", &query("other"), &get, &both).is_none());
    assert!(answer("meta", &query(""), &get, &both).is_none());
    assert!(answer("meta", "hub.challenge=1158", &get, &both).is_none());
    // With a token of its own, the secret that signs events is not good for a handshake.
    assert!(answer("meta", &query("the+app+secret"), &get, &both).is_none());
    assert!(answer("meta", &query("meatyhamhock"), &request("POST", ""), &both).is_none());
}

#[test]
fn a_verify_token_never_signs() {
    let forger = verifier("meta", "meatyhamhock");
    let forged = with_signature(request("POST", r#"{"entry":[]}"#), &forger);
    let both = verifier("meta", "the app secret").with_verify_token(Secret::from("meatyhamhock"));
    assert!(forged.verify(&both).is_err());
}

#[test]
fn zoom_is_answered_only_when_it_signed_the_question() {
    let verifier = verifier("zoom", "zoom-secret-token");
    let question = |token: &str| {
        let body = json!({"event": "endpoint.url_validation", "payload": {"plainToken": token}});
        request("POST", &body.to_string())
    };
    let unsigned = question("qgg8vlvZRS6UYooatFL8Aw");
    assert!(
        answer("zoom", "", &unsigned, &verifier).is_none(),
        "a signing oracle"
    );
    let signed = with_signature(unsigned, &verifier);
    let answered = answer("zoom", "", &signed, &verifier).expect("an answer");
    // Computed with openssl: HMAC-SHA256 of the token under zoom-secret-token.
    let mac = "d9e0d764a78494688ba3f2d5c0ed4ca311394b4834d959759213424d2df961e3";
    let want = json!({"plainToken": "qgg8vlvZRS6UYooatFL8Aw", "encryptedToken": mac});
    assert_eq!(body(&answered), want);
    let oracle = with_signature(question("v0:1:{}"), &verifier);
    assert!(
        answer("zoom", "", &oracle, &verifier).is_none(),
        "never a signature of an event"
    );
}

#[test]
fn x_signs_no_event_for_strangers() {
    let verifier = verifier("x", "consumer-secret-consumer-secret");
    let get = request("GET", "");
    for query in [
        "crc_token=%7B%22tweet%22%3A1%7D",
        "crc_token=",
        "crc_token=a%20b",
        "crc_token=a&crc_token=b",
    ] {
        assert!(answer("x", query, &get, &verifier).is_none(), "{query}");
    }
    let long = format!("crc_token={}", "a".repeat(65));
    assert!(answer("x", &long, &get, &verifier).is_none());
    assert!(answer("x", "crc_token=abc-123", &get, &verifier).is_some());
}

#[test]
fn signed_questions_in_the_body() {
    let table = [
        (
            "slack",
            json!({"type": "url_verification", "challenge": "c-1"}),
            "c-1",
        ),
        ("discord", json!({"type": 1}), ""),
        ("xero", json!({"events": []}), ""),
        ("line", json!({"destination": "x", "events": []}), ""),
    ];
    for (name, question, echo) in table {
        let provider = provider::find(name).expect("known");
        let Some(verifier) = verifier_for(provider, &[1]) else {
            continue;
        };
        let unsigned = request("POST", &question.to_string());
        assert!(
            answer(name, "", &unsigned, &verifier).is_none(),
            "{name} unsigned"
        );
        let signed = with_signature(unsigned, &verifier);
        let answered = answer(name, "", &signed, &verifier).expect(name);
        assert_eq!(
            (answered.status, answered.body),
            (200, echo.as_bytes().to_vec()),
            "{name}"
        );
        let event = with_signature(
            request("POST", r#"{"type":"other","events":[1]}"#),
            &verifier,
        );
        assert!(
            answer(name, "", &event, &verifier).is_none(),
            "{name} event"
        );
    }
}

#[test]
fn twitch_and_front_and_azure() {
    let twitch = verifier_for(provider::find("twitch").expect("known"), &[1]).expect("HMAC");
    let mut asked = request("POST", r#"{"challenge":"pogchamp","subscription":{}}"#);
    let kind = "webhook_callback_verification".to_owned();
    asked
        .headers
        .push(("twitch-eventsub-message-type".to_owned(), kind));
    assert!(answer("twitch", "", &asked, &twitch).is_none());
    let signed = with_signature(asked, &twitch);
    let answered = answer("twitch", "", &signed, &twitch).expect("an answer");
    assert_eq!(answered.body, b"pogchamp");
    assert!(answered.content_type.starts_with("text/plain"));

    let front = verifier_for(provider::find("front").expect("known"), &[1]).expect("HMAC");
    let mut asked = request("POST", "{}");
    asked
        .headers
        .push(("x-front-challenge".to_owned(), "c-2".to_owned()));
    assert!(answer("front", "", &asked, &front).is_none());
    let answered = answer("front", "", &with_signature(asked, &front), &front);
    assert_eq!(answered.expect("an answer").body, b"c-2");

    let azure = verifier("azure-event-grid", "a-token-of-our-own");
    let kind = "Microsoft.EventGrid.SubscriptionValidationEvent";
    let question = json!([{"eventType": kind, "data": {"validationCode": "c-3"}}]);
    let mut asked = request("POST", &question.to_string());
    assert!(answer("azure-event-grid", "", &asked, &azure).is_none());
    asked.url = Some(format!("{URL}&code=a-token-of-our-own"));
    let answered = answer("azure-event-grid", "", &asked, &azure).expect("an answer");
    assert_eq!(body(&answered), json!({"validationResponse": "c-3"}));
}

#[test]
fn asana_offers_a_secret_that_is_echoed_and_handed_over() {
    let verifier = verifier("asana", "any secret will do");
    let mut asked = request("POST", "{}");
    asked.headers.push((
        "x-hook-secret".to_owned(),
        "b537207f20cbfa02357cf448134da559".to_owned(),
    ));
    let answered = answer("asana", "", &asked, &verifier).expect("an answer");
    let echoed = asked.headers[0].clone();
    assert!(answered.headers.contains(&echoed));
    assert!(answered.offered_secret.is_some());
}

#[test]
fn graph_strava_and_head() {
    let graph = verifier("microsoft-graph", "client-state");
    let post = request("POST", "");
    let query = "validationToken=Validation%3A+Testing+client";
    let answered = answer("microsoft-graph", query, &post, &graph).expect("an answer");
    assert_eq!(answered.body, b"Validation: Testing client");
    let html = "validationToken=%3Cscript%3E%0A";
    assert!(
        answer("microsoft-graph", html, &post, &graph).is_none(),
        "not printable"
    );

    let scheme = provider::find("strava").expect("known").scheme();
    let strava = Verifier::new(scheme, vec![]).expect("no secret is needed");
    let strava = strava.with_verify_token(Secret::from("STRAVA"));
    let query = "hub.verify_token=STRAVA&hub.challenge=15f7d1a91c1f40f8a748fd134752feb3";
    let answered = answer("strava", query, &request("GET", ""), &strava).expect("an answer");
    assert_eq!(
        body(&answered),
        json!({"hub.challenge": "15f7d1a91c1f40f8a748fd134752feb3"})
    );

    let trello = verifier("trello", "any secret will do");
    assert!(answer("trello", "", &request("HEAD", ""), &trello).is_some());
    assert!(answer("trello", "", &request("GET", ""), &trello).is_none());
}

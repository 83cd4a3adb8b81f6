//! `/in/{source}` as the contract has it, over real HTTP: every row of its table that no fault is needed for.

use serde_json::{Value, json};

use crate::support::client::Answer;
use crate::support::sender::{SECRET, Sender};
use crate::support::server::Server;
use crate::support::site::Site;

/// Sources of several providers beside `billing`, which is Stripe's.
const MORE: &str = r#"
[[source]]
name = "keyed"
provider = "custom"
secrets = "a secret that is long enough"
type = "type"
key = ["type", "data.id"]
volatile = ["attempt"]
[source.verify]
scheme = "token"
header = "x-token"

[[source]]
name = "chat"
provider = "slack"
secrets = "8f742231b10e8888abcd99yyyzzz85a5"

[[source]]
name = "social"
provider = "meta"
secrets = "an app secret of some length"
verify_token = "a token that we chose"

[[source]]
name = "birds"
provider = "x"
secrets = "a consumer secret of some length"
"#;

fn site() -> Site {
    Site::with("sqlite:data/hapax.db", MORE)
}

fn post(server: &Server, source: &str, headers: &[(&str, &str)], body: &str) -> Answer {
    let mut request = format!(
        "POST /in/{source} HTTP/1.1\r\nhost: localhost\r\ncontent-length: {}\r\n",
        body.len()
    );
    for (name, value) in headers {
        request.push_str(&format!("{name}: {value}\r\n"));
    }
    request.push_str("\r\n");
    request.push_str(body);
    server.ask(request.as_bytes())
}

const TOKEN: (&str, &str) = ("x-token", "a secret that is long enough");
const JSON: (&str, &str) = ("content-type", "application/json");

fn keyed(server: &Server, body: &Value) -> Value {
    let answer = post(server, "keyed", &[TOKEN, JSON], &body.to_string());
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.json()
}

#[test]
fn a_new_event_is_durable_and_a_second_delivery_names_the_same_one() {
    let site = site();
    let server = site.start();
    let sender = Sender::to("billing");
    let first = server.ask(&sender.request("evt_1"));
    let id = first.json()["eventId"].as_str().expect("an id").to_owned();
    assert_eq!(
        (first.status, first.json()),
        (
            200,
            json!({"accepted": true, "duplicate": false, "eventId": id})
        )
    );
    let second = server.ask(&sender.request("evt_1"));
    assert_eq!(
        (second.status, second.json()),
        (
            200,
            json!({"accepted": true, "duplicate": true, "eventId": id})
        )
    );
    let event = server.get(&format!("/api/v1/event/{id}")).json();
    assert_eq!(event["deliveryCount"], 2);
    assert_eq!(event["key"], "evt_1");
    assert_eq!(event["keyOrigin"], "provider");
    assert_eq!(event["objectId"], "in_evt_1");
    let outcomes: Vec<_> = event["deliveries"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|each| &each["outcome"])
        .collect();
    assert_eq!(outcomes, ["accepted", "duplicate"]);
}

#[test]
fn the_bytes_come_back_as_they_came() {
    let site = site();
    let server = site.start();
    let body = "{ \"type\":\"t\",\t\"data\" : {\"id\":1.50}, \"text\":\"\\u00e9\u{e9}\" }\n";
    let answer = post(&server, "keyed", &[TOKEN, JSON], body).json();
    let bytes = server.get(&format!(
        "/api/v1/event/{}/body",
        answer["eventId"].as_str().expect("an id")
    ));
    assert_eq!(bytes.body(), body.as_bytes());
    assert_eq!(bytes.header("content-type"), Some("application/json"));
    assert_eq!(bytes.header("x-content-type-options"), Some("nosniff"));
}

#[test]
fn another_body_under_the_same_key_is_a_conflict_unless_only_volatile_fields_differ() {
    let site = site();
    let server = site.start();
    let body = |amount: u32, attempt: u32| json!({"type": "paid", "data": {"id": "a", "amount": amount}, "attempt": attempt});
    let first = keyed(&server, &body(5, 1));
    assert_eq!(
        keyed(&server, &body(5, 2)),
        json!({"accepted": true, "duplicate": true, "eventId": first["eventId"]})
    );
    let other = keyed(&server, &body(6, 3));
    assert_eq!(
        other,
        json!({"accepted": true, "duplicate": true, "conflict": true, "eventId": first["eventId"]})
    );
    let event = server
        .get(&format!(
            "/api/v1/event/{}",
            first["eventId"].as_str().expect("an id")
        ))
        .json();
    assert_eq!(
        (&event["duplicateCount"], &event["conflictCount"]),
        (&json!(2), &json!(1))
    );
    assert_eq!(event["key"], "[\"paid\",\"a\"]");
}

#[test]
fn what_cannot_be_read_or_identified_is_kept_for_review() {
    let site = site();
    let server = site.start();
    let answer = post(&server, "keyed", &[TOKEN, JSON], "{\"type\": \"paid\", ").json();
    assert_eq!(
        (&answer["accepted"], &answer["needsReview"]),
        (&json!(true), &json!(true))
    );
    let event = server
        .get(&format!(
            "/api/v1/event/{}",
            answer["eventId"].as_str().expect("an id")
        ))
        .json();
    assert_eq!(
        (&event["status"], &event["lastErrorCode"]),
        (&json!("needs_review"), &json!("H0211"))
    );
    assert_eq!(event["deliveries"][0]["outcome"], "failed_validation");
    let again = post(&server, "keyed", &[TOKEN, JSON], "{\"type\": \"paid\", ").json();
    assert_eq!(
        (&again["duplicate"], &again["eventId"]),
        (&json!(true), &answer["eventId"])
    );
    let listed = server.get("/api/v1/event?status=needs_review").json();
    assert_eq!(listed["data"].as_array().map(Vec::len), Some(1));
}

#[test]
fn a_missing_key_field_falls_to_the_hash_of_the_body_and_is_counted() {
    let site = site();
    let server = site.start();
    let answer = keyed(&server, &json!({"type": "paid", "data": {"id": ""}}));
    let event = server
        .get(&format!(
            "/api/v1/event/{}",
            answer["eventId"].as_str().expect("an id")
        ))
        .json();
    assert_eq!(event["keyOrigin"], "body");
    let metrics = String::from_utf8(server.get("/metrics").body().to_vec()).expect("text");
    assert!(
        metrics.contains("hapax_key_fallbacks_total{source=\"keyed\"} 1"),
        "{metrics}"
    );
}

#[test]
fn whoever_is_not_believed_hears_the_same_and_leaves_nothing() {
    let site = site();
    let server = site.start();
    let body = String::from_utf8(Sender::body("evt_2")).expect("text");
    let old = format!("t=1,v1={}", "0".repeat(64));
    let answers = [
        post(&server, "billing", &[], &body),
        post(
            &server,
            "billing",
            &[("stripe-signature", "t=1,v1=zz")],
            &body,
        ),
        post(&server, "billing", &[("stripe-signature", &old)], &body),
        post(&server, "nobody", &[("stripe-signature", &old)], &body),
        post(
            &server,
            "keyed",
            &[("x-token", "another secret, long enough")],
            &body,
        ),
        post(&server, "keyed", &[TOKEN, TOKEN], &body),
        post(&server, "", &[], &body),
    ];
    for answer in &answers {
        assert_eq!(
            (answer.status, answer.body()),
            (401, answers[0].body()),
            "{answer:?}"
        );
    }
    assert_eq!(server.get("/api/v1/event").json()["data"], json!([]));
    let refused = server.get("/api/v1/source/billing/refused").json();
    assert_eq!(
        refused["data"].as_array().map(Vec::len),
        Some(3),
        "{refused}"
    );
    assert!(!refused.to_string().contains(SECRET));
}

#[test]
fn a_batch_becomes_one_event_per_element_in_one_answer() {
    let hubspot = hapax_verify::provider::find("hubspot").expect("a preset");
    assert_eq!(
        hubspot.batch.as_deref(),
        Some(""),
        "the preset this test is about batches at the root"
    );
    let site = site();
    let source = "[[source]]\nname = \"crm\"\nprovider = \"hubspot\"\nsecrets = \"a client secret of some length\"\n";
    let config = crate::support::site::config("sqlite:data/hapax.db", source);
    site.configure(&format!(
        "public_url = \"https://hooks.example.com\"\n{config}"
    ));
    let server = site.start();
    let body = r#"[{"eventId":1,"subscriptionType":"contact.creation","objectId":7}, {"eventId":2,"subscriptionType":"deal.creation","objectId":8},{"eventId":1,"subscriptionType":"contact.creation","objectId":7}]"#;
    let verifier = hapax_verify::Verifier::new(
        hubspot.scheme(),
        vec!["a client secret of some length".into()],
    )
    .expect("good");
    let input = hapax_verify::SignInput {
        method: "POST",
        url: Some("https://hooks.example.com/in/crm"),
        headers: &[],
        body: body.as_bytes(),
        id: "",
        now: crate::support::clock::now_micros(),
    };
    let signed = hapax_verify::sign(&verifier, &input).expect("signed");
    let headers: Vec<(&str, &str)> = signed
        .headers
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_str()))
        .collect();
    let answer = post(&server, "crm", &[&headers[..], &[JSON]].concat(), body);
    assert_eq!(answer.status, 200, "{answer:?}");
    let events = answer.json()["events"].as_array().cloned().expect("a list");
    let duplicates: Vec<_> = events
        .iter()
        .map(|event| event["duplicate"].clone())
        .collect();
    assert_eq!(duplicates, [false, false, true]);
    assert_eq!(events[0]["eventId"], events[2]["eventId"]);
    let bytes = server.get(&format!(
        "/api/v1/event/{}/body",
        events[1]["eventId"].as_str().expect("an id")
    ));
    assert_eq!(
        bytes.body(),
        br#"{"eventId":2,"subscriptionType":"deal.creation","objectId":8}"#
    );
}

#[test]
fn handshakes_are_answered_only_to_those_who_prove_themselves() {
    let site = site();
    let server = site.start();
    let asked = |token: &str| {
        let target = format!(
            "/in/social?hub.mode=subscribe&hub.challenge=1158201444&hub.verify_token={token}"
        );
        server.ask(format!("GET {target} HTTP/1.1\r\nhost: localhost\r\n\r\n").as_bytes())
    };
    let answer = asked("a%20token%20that%20we%20chose");
    assert_eq!((answer.status, answer.body()), (200, &b"1158201444"[..]));
    assert_ne!(asked("another%20token").status, 200);
    let challenge = r#"{"type":"url_verification","token":"x","challenge":"3eZbrw1aBm2rZgRNFdxV2595E9CY3gmdALWMmHkvFXO7tYXAYM8P"}"#;
    assert_eq!(
        post(&server, "chat", &[JSON], challenge).status,
        401,
        "Slack signs its handshake"
    );
    assert_eq!(server.get("/api/v1/event").json()["data"], json!([]));
}

#[test]
fn the_api_wants_the_token_and_says_what_is_wrong() {
    let site = site();
    let server = site.start();
    let ask = |request: &str| server.ask(request.as_bytes());
    let table = [
        (
            "GET /api/v1/event HTTP/1.1\r\nhost: x\r\n\r\n",
            401,
            "H0301",
        ),
        (
            "GET /api/v1/event HTTP/1.1\r\nhost: x\r\nauthorization: Bearer nope\r\n\r\n",
            401,
            "H0301",
        ),
        (
            "GET /api/v1/nowhere HTTP/1.1\r\nhost: x\r\nauthorization: bearer 0123456789abcdef0123456789abcdef\r\n\r\n",
            404,
            "H0302",
        ),
        ("GET /nowhere HTTP/1.1\r\nhost: x\r\n\r\n", 404, "H0302"),
        ("DELETE /healthz HTTP/1.1\r\nhost: x\r\n\r\n", 405, "H0305"),
    ];
    for (request, status, code) in table {
        let answer = ask(request);
        assert_eq!(
            (answer.status, answer.code().as_str()),
            (status, code),
            "{request}"
        );
    }
    assert_eq!(server.get("/api/v1/event/evt_nope").status, 404);
    assert_eq!(server.get("/api/v1/nowhere").status, 404);
    for query in [
        "limit=0",
        "limit=x",
        "status=nope",
        "since=yesterday",
        "iterator=nope",
        "colour=red",
    ] {
        let answer = server.get(&format!("/api/v1/event?{query}"));
        let name = query.split('=').next().expect("a name");
        assert_eq!(
            (answer.status, &answer.json()["detail"][0]["loc"][1]),
            (422, &json!(name)),
            "{answer:?}"
        );
    }
    assert_eq!(server.get("/readyz").status, 200);
}

#[test]
fn lists_page_both_ways_and_filter() {
    let site = site();
    let server = site.start();
    for number in 0..5 {
        keyed(
            &server,
            &json!({"type": if number % 2 == 0 { "even" } else { "odd" }, "data": {"id": number}}),
        );
    }
    let ids = |answer: &Value| -> Vec<String> {
        let rows = answer["data"].as_array().expect("a list");
        rows.iter()
            .map(|row| row["key"].as_str().expect("a key").to_owned())
            .collect()
    };
    let first = server.get("/api/v1/event?limit=2").json();
    assert_eq!(
        (ids(&first), &first["done"]),
        (
            vec!["[\"even\",\"4\"]".into(), "[\"odd\",\"3\"]".into()],
            &json!(false)
        )
    );
    let second = server
        .get(&format!(
            "/api/v1/event?limit=2&iterator={}",
            first["iterator"].as_str().expect("one")
        ))
        .json();
    assert_eq!(ids(&second), ["[\"even\",\"2\"]", "[\"odd\",\"1\"]"]);
    let back = server
        .get(&format!(
            "/api/v1/event?limit=2&iterator={}",
            second["prevIterator"].as_str().expect("one")
        ))
        .json();
    assert_eq!(ids(&back), ids(&first));
    let odd = server.get("/api/v1/event?type=odd&source=keyed").json();
    assert_eq!((ids(&odd).len(), &odd["done"]), (2, &json!(true)));
    assert_eq!(
        ids(&server.get("/api/v1/event?source=billing").json()),
        [""; 0]
    );
}

#[test]
fn an_unsigned_content_type_does_not_change_what_identifies_an_event() {
    let site = site();
    let server = site.start();
    let body = json!({"type": "paid", "data": {"id": "a"}}).to_string();
    let first = post(&server, "keyed", &[TOKEN, JSON], &body).json();
    for other in [
        "application/x-www-form-urlencoded",
        "text/plain",
        "application/xml",
        "",
    ] {
        let again = post(&server, "keyed", &[TOKEN, ("content-type", other)], &body).json();
        assert_eq!(
            (&again["duplicate"], &again["eventId"]),
            (&json!(true), &first["eventId"]),
            "{other}"
        );
    }
    let unreadable = post(
        &server,
        "keyed",
        &[TOKEN, ("content-type", "application/x-www-form-urlencoded")],
        "not json",
    );
    assert_eq!(unreadable.json()["needsReview"], true);
}

#[test]
fn the_answer_to_a_challenge_signs_no_event() {
    let site = site();
    let server = site.start();
    let asked = b"GET /in/birds?crc_token=1234 HTTP/1.1\r\nhost: localhost\r\n\r\n";
    let answer = server.ask(asked).json();
    let token = answer["response_token"].as_str().expect("an answer");
    let header = ("x-twitter-webhooks-signature", token);
    assert_eq!(post(&server, "birds", &[header], "1234").status, 401);
    assert_eq!(server.get("/api/v1/event").json()["data"], json!([]));
}

#[test]
fn only_post_makes_events_whatever_the_source() {
    let site = site();
    let server = site.start();
    for source in ["keyed", "nobody"] {
        for method in ["GET", "PUT", "DELETE"] {
            let request = format!(
                "{method} /in/{source} HTTP/1.1\r\nhost: localhost\r\n{}: {}\r\ncontent-length: 2\r\n\r\n{{}}",
                TOKEN.0, TOKEN.1
            );
            let answer = server.ask(request.as_bytes());
            assert_eq!(
                (answer.status, answer.header("allow")),
                (405, Some("POST")),
                "{method} {source}"
            );
        }
    }
    assert_eq!(server.get("/api/v1/event").json()["data"], json!([]));
}

//! Requests, header by header and byte by byte.

use super::*;
use std::sync::LazyLock;

use hapax_ledger::id::RawId;
use hapax_verify::{Request, Verifier, provider};

const NOW: Time = Time::from_secs(1_794_304_800);
const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

static NO_HEADERS: LazyLock<HeaderMap> = LazyLock::new(HeaderMap::new);

fn parts(body: &Bytes) -> EffectRequest<'_> {
    let received_at = Time::from_micros(1_794_304_799_250_000);
    let id = |row| RawId::new(received_at, 0, row);
    EffectRequest {
        url: Uri::from_static("http://127.0.0.1:9000/activate"),
        timeout: Duration::from_secs(10),
        headers: &NO_HEADERS,
        signer: None,
        secrets: [].into(),
        body_mode: BodyMode::Raw,
        event: EventPart {
            id: EventId(id(1)),
            source: "billing",
            event_type: Some("invoice.paid"),
            key: "evt_1",
            received_at,
            content_type: Some("application/json; charset=utf-8"),
            body,
        },
        effect: EffectPart {
            id: EffectId(id(2)),
            name: "activate",
            key: "in_1",
            generation: 1,
            attempt: 3,
            repeat: Repeat::Keyed,
        },
        snapshot: None,
        now: NOW,
    }
}

fn shown(headers: &HeaderMap) -> Vec<String> {
    let show = |(name, value): (&HeaderName, &HeaderValue)| {
        format!("{name}: {}", value.to_str().expect("it is text"))
    };
    let mut lines: Vec<_> = headers.iter().map(show).collect();
    lines.sort_unstable();
    lines
}

#[test]
fn a_raw_request_carries_the_bytes_and_says_what_it_is_about() {
    let body = b"{\"n\": 1.10,\n \"n\":2}";
    let request = build(parts(&Bytes::from_static(body)));
    assert_eq!(request.body, &body[..]);
    let expected = [
        "content-type: application/json; charset=utf-8",
        "hapax-attempt: 3",
        "hapax-effect: activate",
        "hapax-event-id: evt_01m72ecwgje008000000000001",
        "hapax-event-type: invoice.paid",
        "idempotency-key: activate:in_1",
        concat!("user-agent: hapax/", env!("CARGO_PKG_VERSION")),
    ];
    assert_eq!(shown(&request.headers), expected);
}

#[test]
fn the_idempotency_key_is_the_effects_whatever_the_attempt() {
    let long = "k".repeat(300);
    let table = [
        ("in_1", 1, Some("activate:in_1")),
        ("in_1", 2, Some("activate:in_1#2")),
        ("rechnung-ü", 1, None),
        (long.as_str(), 1, None),
    ];
    for (key, generation, plain) in table {
        let sent = |attempt| {
            let body = Bytes::from_static(b"");
            let mut parts = parts(&body);
            parts.effect.key = key;
            parts.effect.generation = generation;
            parts.effect.attempt = attempt;
            build(parts).headers[IDEMPOTENCY_KEY].clone()
        };
        assert_eq!(sent(1), sent(7));
        match plain {
            Some(plain) => assert_eq!(sent(1), plain),
            None => assert!(sent(1).as_bytes().starts_with(b"hapax-sha256:")),
        }
    }
}

#[test]
fn the_envelope_holds_json_as_received_and_everything_else_as_base64() {
    let head = r#"{"event":{"id":"evt_01m72ecwgje008000000000001","source":"billing","type":"invoice.paid","key":"evt_1","receivedAt":"2026-11-10T09:59:59.25Z","contentType":"application/json; charset=utf-8","#;
    let effect = r#"},"effect":{"id":"eff_01m72ecwgje008000000000002","name":"activate","key":"in_1","generation":1,"attempt":3,"repeat":"keyed"},"snapshot":"#;
    type Case = (
        &'static [u8],
        Option<&'static [u8]>,
        &'static str,
        &'static str,
    );
    let table: [Case; 4] = [
        (
            b"{\"n\": 1.10, \"n\":2e0}",
            None,
            r#""body":{"n": 1.10, "n":2e0}"#,
            "null}",
        ),
        (
            b"a=1&b=2",
            Some(b"{\"state\": \"paid\"}"),
            r#""bodyBase64":"YT0xJmI9Mg==""#,
            r#"{"state": "paid"}}"#,
        ),
        (
            b"\xff",
            Some(b"paid"),
            r#""bodyBase64":"/w==""#,
            r#"null,"snapshotBase64":"cGFpZA=="}"#,
        ),
        (b"", None, r#""bodyBase64":"""#, "null}"),
    ];
    for (body, snapshot, event_body, end) in table {
        let request = {
            let body = Bytes::from_static(body);
            let mut parts = parts(&body);
            parts.body_mode = BodyMode::Envelope;
            parts.snapshot = snapshot;
            build(parts)
        };
        let expected = format!("{head}{event_body}{effect}{end}");
        assert_eq!(String::from_utf8_lossy(&request.body), expected);
        assert_eq!(request.headers[CONTENT_TYPE], "application/json");
    }
}

#[test]
fn a_signature_verifies_and_its_id_outlives_the_attempt() {
    let signer = Signer::new(vec![Secret::from(SECRET)]).expect("a good secret");
    let scheme = provider::find("standard-webhooks").expect("known").scheme();
    let verifier = Verifier::new(scheme, vec![Secret::from(SECRET)]).expect("a good secret");
    let table = [
        (1, "eff_01m72ecwgje008000000000002"),
        (2, "eff_01m72ecwgje008000000000002#2"),
    ];
    for (generation, id) in table {
        let request = {
            let body = Bytes::from_static(b"{}");
            let mut parts = parts(&body);
            parts.signer = Some(&signer);
            parts.effect.generation = generation;
            build(parts)
        };
        assert_eq!(request.headers["webhook-id"], id);
        let headers: Vec<(&str, &[u8])> = request
            .headers
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_bytes()))
            .collect();
        let check = |body| {
            let request = Request {
                method: "POST",
                url: None,
                headers: &headers,
                body,
                now: NOW.micros(),
            };
            verifier.verify(&request)
        };
        check(b"{}").expect("it is signed");
        check(b"{ }").expect_err("it is another body");
    }
    Signer::new(vec![Secret::from("not base64!")]).expect_err("it is no key");
}

#[test]
fn the_configs_headers_go_along_but_do_not_replace_ours() {
    let mut given = HeaderMap::new();
    for (name, value) in [
        ("authorization", "Bearer key"),
        ("content-length", "1"),
        ("transfer-encoding", "chunked"),
        ("idempotency-key", "mine"),
        ("hapax-event-type", "mine"),
    ] {
        given.insert(name, HeaderValue::from_static(value));
    }
    let request = {
        let body = Bytes::from_static(b"");
        let mut parts = parts(&body);
        parts.headers = &given;
        parts.event.event_type = None;
        build(parts)
    };
    assert_eq!(request.headers["authorization"], "Bearer key");
    assert_eq!(request.headers[IDEMPOTENCY_KEY], "activate:in_1");
    for name in ["content-length", "transfer-encoding", "hapax-event-type"] {
        assert!(!request.headers.contains_key(name), "{name}");
    }
}

#[test]
fn no_text_breaks_a_header() {
    let table = [
        ("invoice.paid", Some("invoice.paid")),
        ("Issue Hook 100%", Some("Issue Hook 100%")),
        ("a\r\nX-Evil: 1", Some("a%0D%0AX-Evil:%201")),
        ("10% größer", Some("10%25%20gr%C3%B6%C3%9Fer")),
        (" edge", Some("%20edge")),
        ("", None),
    ];
    for (given, expected) in table {
        let value = text(given);
        assert_eq!(
            value.as_ref().map(HeaderValue::as_bytes),
            expected.map(str::as_bytes)
        );
    }
    assert_eq!(text(&"x".repeat(TEXT_BYTES_MAX + 1)), None);
    assert_eq!(text(&"ü".repeat(TEXT_BYTES_MAX)), None);
    let request = {
        let body = Bytes::from_static(b"");
        let mut parts = parts(&body);
        parts.event.content_type = Some("text/plain\r\nx: y");
        build(parts)
    };
    assert!(!request.headers.contains_key(CONTENT_TYPE));
}

//! The config: what effects mean.

use std::time::Duration;

use hapax::config::{BodyForm, EffectConfig, OnDuplicateOfFailed, SequenceConfig, load_source};
use hapax_ledger::effect::Repeat;
use hapax_ledger::time::Span;
use hapax_verify::{HeaderValue, Request, SignInput, sign};

use crate::config::{good, source};
use crate::program::folder;

fn effect(more: &str) -> String {
    format!("[[effect]]\nname = \"x\"\nsource = \"a\"\nurl = \"http://b/c\"\n{more}\n")
}

fn resolved(more: &str) -> std::sync::Arc<EffectConfig> {
    let config = good(&format!("{}{}", source(""), effect(more)));
    config.effects[0].clone()
}

#[test]
fn an_effect_has_defaults() {
    let x = resolved("");
    assert_eq!((&*x.name, &*x.source), ("x", "a"));
    assert_eq!(x.rule.repeat, Repeat::Keyed);
    assert!(x.rule.types.is_empty() && x.rule.key.is_none() && x.rule.order.is_none());
    assert_eq!(x.url.uri().to_string(), "http://b/c");
    assert_eq!(
        (x.body, x.timeout),
        (BodyForm::Raw, Duration::from_secs(10))
    );
    assert_eq!(
        (x.retry.attempts_max(), x.concurrency, x.rate),
        (7, 16, None)
    );
    assert!(x.probe.is_none() && x.headers.is_empty() && x.signer.is_none());
    assert_eq!(x.probe_url("k"), None);
}

#[test]
fn every_field_of_an_effect_is_read() {
    let x = resolved(
        "types = [\"invoice.*\"]\nwhen = \"livemode\"\nkey = \"{id}\"\nrepeat = \"once\"\nafter = []\norder = \"off\"\nbody = \"envelope\"\ntimeout = \"5m\"\nretry = [\"1s\", \"2s\"]\nconcurrency = 1024\nrate = 100\nprobe = \"http://b/{key}?k={key}\"\nheaders = { authorization = \"env:SECRET\" }\n",
    );
    assert_eq!(x.rule.repeat, Repeat::Once);
    assert!(x.rule.types[0].matches("invoice.paid") && x.rule.key.is_some());
    assert_eq!(
        (x.body, x.timeout),
        (BodyForm::Envelope, Duration::from_secs(300))
    );
    assert_eq!((x.retry.attempts_max(), x.concurrency), (2, 1024));
    assert_eq!(x.rate.map(|rate| rate.get()), Some(100));
    assert_eq!(x.headers["authorization"], "a-long-enough-secret");
    assert!(!format!("{x:?}").contains("a-long-enough-secret"));
    let probe = x.probe_url("in/1:é").expect("a URL");
    assert_eq!(
        probe.to_string(),
        "http://b/in%2F1%3A%C3%A9?k=in%2F1%3A%C3%A9"
    );
}

/// Headers as a receiver gets them.
struct Got(Vec<(String, String)>);

impl hapax_verify::Headers for Got {
    fn get(&self, name: &str) -> HeaderValue<'_> {
        let found = self.0.iter().find(|(have, _)| have == name);
        found.map_or(HeaderValue::Missing, |(_, value)| {
            HeaderValue::One(value.as_bytes())
        })
    }
}

#[test]
fn a_signed_effect_verifies_as_standard_webhooks() {
    let whsec = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=";
    for secret in [whsec, "a text of at least 24 bytes"] {
        let x = resolved(&format!("secret = \"{secret}\""));
        let signer = x.signer.as_ref().expect("a signer");
        let input = SignInput {
            method: "POST",
            url: None,
            headers: &[],
            body: b"{}",
            id: "msg_1",
            now: 1_700_000_000_000_000,
        };
        let signed = sign(signer, &input).expect("signed");
        let request = Request {
            method: "POST",
            url: None,
            headers: &Got(signed.headers),
            body: b"{}",
            now: 1_700_000_000_000_000,
        };
        assert!(signer.verify(&request).is_ok(), "{secret}");
    }
}

#[test]
fn order_is_the_source_s_unless_the_effect_says_otherwise() {
    let truth = "reconcile = { url = \"http://t/{data.object.id}?v={created}\", headers = { x-key = \"env:SECRET\" } }\non_duplicate_of_failed = \"retry\"\norder = { version = \"created\", terminal = [\"*.deleted\"], reopen = [\"*.created\"], snapshot = true, review = \"\" }";
    let off = effect("order = \"off\"").replace("\"x\"", "\"y\"");
    let own = effect("order = { serial = true }").replace("\"x\"", "\"z\"");
    let config = good(&format!("{}{}{off}{own}", source(truth), effect("")));
    let [x, y, z] = &config.effects[..] else {
        panic!("three effects");
    };
    let order = x.rule.order.as_ref().expect("the source's");
    assert!(order.snapshot && order.review.is_none() && order.terminal.len() == 1);
    assert!(y.rule.order.is_none());
    assert!(z.rule.order.as_ref().is_some_and(|order| !order.snapshot));
    let a = &config.sources[0];
    assert_eq!(a.on_duplicate_of_failed, OnDuplicateOfFailed::Retry);
    let order = a.order.as_ref().expect("an order");
    assert!(
        matches!(&order.sequence, SequenceConfig::Versioned(field) if field.text() == "created")
    );
    assert_eq!(
        a.version.as_ref().map(|field| field.text()),
        Some("created")
    );
    let reconcile = a.reconcile.as_ref().expect("a source of truth");
    let body = br#"{"created": 5, "data": {"object": {"id": "in/1"}}}"#;
    let url = reconcile.url_for(body).expect("a URL");
    assert_eq!(url.to_string(), "http://t/in%2F1?v=5");
    let missing = reconcile.url_for(b"{\"created\": 5}").expect_err("no id");
    assert_eq!(
        missing.to_string(),
        "the URL needs `data.object.id`, and the event has none"
    );
    assert!(!format!("{reconcile:?}").contains("a-long-enough-secret"));
}

#[test]
fn a_review_over_the_snapshot_is_asked_when_it_is_there() {
    let truth = "reconcile = { url = \"http://t/\" }";
    let asked = |review: &str, body: &str, snapshot: &str| {
        let more = format!("order = {{ snapshot = true, review = \"{review}\" }}");
        let config = good(&format!("{}{}", source(truth), effect(&more)));
        config.effects[0].review_with_snapshot(body.as_bytes(), snapshot.as_bytes())
    };
    let body = r#"{"status": "paid"}"#;
    for (review, snapshot, want) in [
        ("snapshot.status == 'void'", r#"{"status": "void"}"#, true),
        ("snapshot.status != status", r#"{"status": "paid"}"#, false),
        ("snapshot.status != status", r#"{"status": "void"}"#, true),
        ("snapshot.status != status", "{}", false),
        // What cannot be read is for a person.
        ("snapshot.status != status", "<html>", true),
        // Asked at accept already.
        ("status == 'paid'", "{}", false),
        ("status.contains('paid')", "{}", false),
    ] {
        assert_eq!(asked(review, body, snapshot), want, "{review} {snapshot}");
    }
}

#[test]
fn whoever_wants_one_source_needs_no_secret_of_its_effects() {
    let truth = "reconcile = { url = \"http://t/\", headers = { x-key = \"env:NOPE\" } }\norder = { snapshot = true }";
    let more = "key = \"{data.customer}:{data.id}\"\nsecret = \"env:NOPE\"";
    let literal = source(truth).replace("env:SECRET", "a-long-enough-secret");
    let dir = folder(&[("hapax.toml", &format!("{literal}{}", effect(more)))]);
    let path = dir.path().join("hapax.toml");
    let loaded = load_source(Some(&path), "a").expect("fine");
    let fields: Vec<&str> = loaded.config.sources[0]
        .fields
        .iter()
        .map(|field| field.text())
        .collect();
    assert_eq!(fields, ["data.customer", "data.id"]);
    assert!(loaded.config.effects.is_empty());
    assert_eq!(loaded.config.sources[0].keep.payload, Span::from_days(30));
}

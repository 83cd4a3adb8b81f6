//! The provider data: complete, resolvable, and honest about what is known.

use std::collections::BTreeMap;

use hapax_verify::provider::{self, FieldRef, Provider, SampleInput};
use serde_json::Value;

use crate::support::NOW;

#[test]
fn every_provider_resolves() {
    for provider in provider::all() {
        let scheme = provider.verify.resolve();
        assert!(scheme.is_ok(), "{}: {scheme:?}", provider.name);
    }
}

#[test]
fn there_are_enough_and_every_family_is_there() {
    let mut families: BTreeMap<&str, usize> = BTreeMap::new();
    for provider in provider::all() {
        *families.entry(provider.scheme().name()).or_default() += 1;
    }
    let table: Vec<_> = families.into_iter().collect();
    assert_eq!(
        table,
        [
            ("basic", 2),
            ("digest-sha1", 1),
            ("ecdsa-p256", 1),
            ("ed25519", 3),
            ("hmac-sha1", 7),
            ("hmac-sha256", 72),
            ("hmac-sha512", 1),
            ("jwt", 5),
            ("rsa", 1),
            ("token", 8),
            ("unverified", 3),
        ]
    );
    assert_eq!(provider::all().len(), 104);
}

#[test]
fn names_are_unique_and_found() {
    for pair in provider::all().windows(2) {
        assert!(pair[0].name < pair[1].name, "{}", pair[1].name);
    }
    for provider in provider::all() {
        let found = provider::find(&provider.name).expect("found by its name");
        assert_eq!(found.title, provider.title);
    }
    assert!(provider::find("nobody").is_none());
}

#[test]
fn facts_are_sound() {
    const FACTS: [&str; 12] = [
        "verify",
        "event_type",
        "event_id",
        "composed_key",
        "body_varies",
        "volatile",
        "object_id",
        "version",
        "entity",
        "batch",
        "handshake",
        "retry_window_hours",
    ];
    for provider in provider::all() {
        let name = &provider.name;
        assert!(provider.retry_window_hours > 0, "{name}");
        assert!(!provider.secret_hint.is_empty(), "{name}");
        for fact in &provider.from_memory {
            let known = FACTS.contains(&fact.as_str()) || fact == "tolerance";
            assert!(known, "{name}: {fact} is no fact");
        }
        // A body that varies is volatile somewhere, or has no identity and says so.
        if provider.body_varies {
            let said = !provider.volatile.is_empty() || provider.note.is_some();
            assert!(said, "{name}");
        }
        if let Some(id) = &provider.event_id {
            let covered = provider.scheme().covers() != hapax_verify::Coverage::Nothing;
            assert!(
                covered || !id.signed,
                "{name}: nothing is covered, so the id is not"
            );
        }
    }
}

fn element<'v>(provider: &Provider, body: &'v Value) -> &'v Value {
    match &provider.batch {
        None => body,
        Some(path) => &path
            .split('.')
            .filter(|name| !name.is_empty())
            .fold(body, |at, name| &at[name])[0],
    }
}

fn lookup<'v>(field: &FieldRef, element: &'v Value) -> Option<&'v Value> {
    let path = field.path()?;
    path.split('.').try_fold(element, |at, name| match at {
        Value::Array(items) => items.get(name.parse::<usize>().ok()?),
        _ => at.get(name),
    })
}

#[test]
fn samples_have_the_fields_that_the_facts_name() {
    for provider in provider::all() {
        let input = SampleInput {
            id: "evt_1",
            event_type: Some("some.type"),
            object: "obj_1",
            now: NOW,
        };
        let Some(sample) = provider.sample_request(&input) else {
            assert_eq!(provider.name, "wix", "only a token cannot be written down");
            continue;
        };
        let Ok(body) = serde_json::from_slice::<Value>(&sample.body) else {
            let form = sample.headers[0].1 == "application/x-www-form-urlencoded";
            assert!(form, "{}: {sample:?}", provider.name);
            continue;
        };
        let element = element(provider, &body);
        let at = |field: &FieldRef| match field.header() {
            Some(name) => sample.headers.iter().any(|(have, _)| have == name),
            None => lookup(field, element).is_some(),
        };
        let id = provider.event_id.as_ref().map(|fact| &fact.field);
        for field in id
            .into_iter()
            .chain(&provider.event_type)
            .chain(&provider.composed_key)
        {
            assert!(at(field), "{}: no {field} in {body}", provider.name);
        }
        if let Some(field) = provider.event_type.as_ref().filter(|f| f.path().is_some()) {
            assert_eq!(lookup(field, element), Some(&Value::from("some.type")));
        }
    }
}

#[test]
fn a_scheme_that_makes_no_sense_is_said_to() {
    let wrong = [
        ("scheme = 'hmac'", "header"),
        (
            "scheme = 'hmac'\nheader = 'x'\nalgorithm = 'md5'",
            "algorithm",
        ),
        ("scheme = 'hmac'\nheader = 'x'\nsigned = '{nope}'", "signed"),
        (
            "scheme = 'hmac'\nheader = 'x'\nsigned = '{timestamp}.{body}'",
            "timestamp",
        ),
        (
            "scheme = 'hmac'\nheader = 'x'\nsigned = '{id}.{body}'",
            "id",
        ),
        (
            "scheme = 'hmac'\nheader = 'x'\ntimestamp = { header = 't' }",
            "timestamp",
        ),
        (
            "scheme = 'hmac'\nheader = 'x'\nsigned = '{timestamp}{body}'\ntimestamp = { header = 't', tolerance = 'soon' }",
            "timestamp",
        ),
        (
            "scheme = 'hmac'\nheader = 'x'\nform = 'pairs'",
            "signature_key",
        ),
        ("scheme = 'hmac'\nheader = 'x'\nfield = 'body.x'", "header"),
        (
            "scheme = 'hmac'\nheader = 'x'\nconstruction = 'digest'",
            "signed",
        ),
        (
            "scheme = 'token'\nheader = 'x'\nsigned = '{body}'",
            "signed",
        ),
        ("scheme = 'basic'\nheader = 'x'", "header"),
        (
            "scheme = 'hmac'\nheader = 'x'\ndigest = { header = 'd' }",
            "digest",
        ),
        (
            "scheme = 'jwt'\nheader = 'x'\nalgorithm = 'none'",
            "algorithm",
        ),
    ];
    for (text, field) in wrong {
        let spec: hapax_verify::SchemeSpec = toml::from_str(text).expect("parses");
        let error = spec.resolve().expect_err(text);
        assert_eq!(error.field, field, "{text}: {error}");
    }
    let unknown = toml::from_str::<hapax_verify::SchemeSpec>("scheme = 'hmac'\nhaeder = 'x'");
    assert!(unknown.is_err(), "unknown fields are errors");
}

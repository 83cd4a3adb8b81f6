//! The extractor against tables, and against a parsed tree as the oracle.

use proptest::prelude::*;
use serde_json::Value;

use super::*;

fn fields(texts: &[&str]) -> Fields {
    let parsed: Vec<Field> = texts.iter().map(|text| text.parse().expect(text)).collect();
    Fields::of(&parsed)
}

fn json(body: &str, path: &str) -> Option<String> {
    let set = fields(&[path]);
    let found = set
        .extract(BodyFormat::Json, body.as_bytes(), &NoHeaders)
        .expect(body);
    found.get(Slot(0)).map(str::to_owned)
}

#[test]
fn scalars_are_found_and_nothing_else_is() {
    let body = r#" {"a":{"b":[{"c":"x"},{"c":1.50}],"t":true,"n":null,"e":""},"k\u0041":"esc\n"} "#;
    let table = [
        ("a.b.0.c", Some("x")),
        ("a.b.1.c", Some("1.5")),
        ("a.b.2.c", None),
        ("a.b.00.c", None),
        ("a.b", None),
        ("a", None),
        ("a.t", Some("true")),
        ("a.t.x", None),
        ("a.n", None),
        ("a.e", Some("")),
        ("kA", Some("esc\n")),
        ("missing", None),
    ];
    for (path, expected) in table {
        assert_eq!(json(body, path).as_deref(), expected, "{path}");
    }
}

#[test]
fn of_repeated_members_the_last_one_counts_wholly() {
    assert_eq!(json(r#"{"a":1,"a":2}"#, "a").as_deref(), Some("2"));
    assert_eq!(json(r#"{"a":{"b":1},"a":{"c":2}}"#, "a.b"), None);
    assert_eq!(json(r#"{"a":{"b":1},"a":7}"#, "a.b"), None);
    assert_eq!(json(r#"{"a":1,"a":null}"#, "a"), None);
}

#[test]
fn digits_are_never_rounded() {
    let body = r#"{"id":9007199254740993,"wei":123456789012345678901234567890}"#;
    assert_eq!(json(body, "id").as_deref(), Some("9007199254740993"));
    assert_eq!(
        json(body, "wei").as_deref(),
        Some("123456789012345678901234567890")
    );
}

#[test]
fn one_pass_finds_a_path_and_its_own_beginning() {
    let set = fields(&["a", "a.b", "a.b.c", "a"]);
    assert_eq!(set.len(), 3, "a field that is known keeps its slot");
    let found = set
        .extract(BodyFormat::Json, br#"{"a":{"b":{"c":3}}}"#, &NoHeaders)
        .expect("JSON");
    let values: Vec<_> = (0..3).map(|place| found.get(Slot(place))).collect();
    assert_eq!(values, [None, None, Some("3")]);
    assert_eq!(found.get(Slot(99)), None);
}

#[test]
fn malformed_bodies_are_errors_and_depth_does_not_overflow() {
    let set = fields(&["a.b"]);
    let deep = format!("{{\"x\":{}1{}}}", "[".repeat(200_000), "]".repeat(200_000));
    assert!(
        set.extract(BodyFormat::Json, deep.as_bytes(), &NoHeaders)
            .is_ok()
    );
    let open = "[".repeat(200_000);
    for body in [
        "",
        "{",
        "{\"a\":}",
        "{} x",
        "nul",
        "{\"a\":{\"b\":1}",
        &open,
    ] {
        let result = set.extract(BodyFormat::Json, body.as_bytes(), &NoHeaders);
        assert!(
            matches!(result, Err(ExtractError::Malformed(_))),
            "{body:.20}"
        );
    }
    let result = set.extract(BodyFormat::Json, b"{\"a\":\"\xff\"}", &NoHeaders);
    assert_eq!(result, Err(ExtractError::NotText));
}

#[test]
fn headers_are_text_and_two_of_a_kind_are_none() {
    let set = fields(&["header.X-Id", "header.twice"]);
    let headers: &[(&str, &str)] = &[("x-id", "7"), ("Twice", "1"), ("twice", "2")];
    let found = set
        .extract(BodyFormat::Opaque, b"<xml/>", headers)
        .expect("nothing is parsed");
    assert_eq!(found.get(Slot(0)), Some("7"));
    assert_eq!(
        found.scalar(Slot(0)).map(Scalar::kind),
        Some(ScalarKind::Text)
    );
    assert_eq!(found.get(Slot(1)), None);
    let unread = set.extract(BodyFormat::Json, b"{ not json", headers);
    assert_eq!(
        unread,
        Ok(found),
        "a body that nobody asks for is not parsed"
    );
}

#[test]
fn forms_are_decoded_and_the_last_name_counts() {
    let set = fields(&["MessageSid", "a.b", "q", "p"]);
    let body = b"MessageSid=SM1&a.b=x%20y+z&q=1&q=2%&other=%ff";
    let found = set
        .extract(BodyFormat::Form, body, &NoHeaders)
        .expect("a form");
    let values: Vec<_> = (0..4).map(|place| found.get(Slot(place))).collect();
    assert_eq!(values, [Some("SM1"), Some("x y z"), Some("2%"), None]);
    let bad = set.extract(BodyFormat::Form, b"q=%ff", &NoHeaders);
    assert_eq!(bad, Err(ExtractError::NotText));
}

#[test]
fn content_types_choose_the_format() {
    let table = [
        (None, BodyFormat::Json),
        (Some("application/json; charset=utf-8"), BodyFormat::Json),
        (Some("application/cloudevents+json"), BodyFormat::Json),
        (Some("Application/X-WWW-Form-Urlencoded"), BodyFormat::Form),
        (Some("application/xml"), BodyFormat::Opaque),
    ];
    for (content_type, format) in table {
        assert_eq!(
            BodyFormat::of_content_type(content_type),
            format,
            "{content_type:?}"
        );
    }
}

#[test]
fn a_batch_splits_into_the_bytes_of_its_elements() {
    let body = br#"{"events": [ {"a": 1} , [2], 3 ]}"#;
    let path: Field = "events".parse().expect("a field");
    let parts = split_batch(body, Some(&path)).expect("a batch");
    assert_eq!(parts, [br#"{"a": 1}"#.as_slice(), b"[2]", b"3"]);
    assert_eq!(split_batch(b" [1,2] ", None).expect("a batch").len(), 2);
    assert_eq!(split_batch(b"[]", None), Ok(vec![]));
    assert_eq!(
        split_batch(b"{}", Some(&path)),
        Err(ExtractError::NoArray("events".into()))
    );
    assert!(matches!(
        split_batch(b"[1", None),
        Err(ExtractError::Malformed(_))
    ));
    assert_eq!(
        split_batch(b"7", None),
        Err(ExtractError::NoArray("the root".into()))
    );
}

/// What a parsed tree holds at a path.
fn oracle(tree: &Value, path: &[&str]) -> Option<String> {
    let mut value = tree;
    for part in path {
        value = match value {
            Value::Object(members) => members.get(*part)?,
            Value::Array(elements) => elements.get(part.parse::<usize>().ok()?)?,
            _ => return None,
        };
    }
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Bool(flag) => Some(flag.to_string()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

fn document() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        "[a\"\\\\\n é]{0,4}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 32, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::btree_map("[ab01]", inner, 0..4)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn agrees_with_a_parsed_tree(tree in document(), paths in prop::collection::vec(prop::collection::vec("[ab01]", 1..4), 1..5)) {
        let texts: Vec<String> = paths.iter().map(|path| path.join(".")).collect();
        let mut set = Fields::new();
        let slots: Vec<Slot> = texts.iter().map(|text| set.add(&text.parse().expect("a path"))).collect();
        let body = tree.to_string();
        let found = set.extract(BodyFormat::Json, body.as_bytes(), &NoHeaders).expect("JSON");
        for (path, slot) in paths.iter().zip(slots) {
            let path: Vec<&str> = path.iter().map(String::as_str).collect();
            prop_assert_eq!(found.get(slot).map(str::to_owned), oracle(&tree, &path));
        }
    }

    #[test]
    fn never_panics_on_any_bytes(body in prop::collection::vec(any::<u8>(), 0..64), noise in "[\\[\\]{}\",:0-9eabtrufnls\\\\.-]{0,40}") {
        let set = fields(&["a", "a.b", "0.1"]);
        for bytes in [body.as_slice(), noise.as_bytes()] {
            for format in [BodyFormat::Json, BodyFormat::Form, BodyFormat::Opaque] {
                let _ = set.extract(format, bytes, &NoHeaders);
            }
            let _ = split_batch(bytes, None);
        }
        // Whatever the extractor calls JSON, a parser does too (numbers beyond f64 aside).
        if set.extract(BodyFormat::Json, noise.as_bytes(), &NoHeaders).is_ok() {
            let parsed = serde_json::from_str::<serde::de::IgnoredAny>(&noise);
            prop_assert!(parsed.is_ok(), "{noise}");
        }
    }
}

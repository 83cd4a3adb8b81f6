//! Conditions by table, and round trips through their text.

use proptest::prelude::*;

use super::*;
use crate::extract::{BodyFormat, NoHeaders};

const BODY: &str = r#"{"plan":"enterprise","amount":1500,"big":9007199254740993,"live":true,"items":[{"sku":"a"}],"x-y":1,"nothing":null}"#;

fn holds(text: &str) -> bool {
    let mut fields = Fields::new();
    let condition =
        Condition::parse(text, &mut fields).unwrap_or_else(|error| panic!("{text}: {error}"));
    let headers: &[(&str, &str)] = &[("x-topic", "orders/paid")];
    let found = fields
        .extract(BodyFormat::Json, BODY.as_bytes(), headers)
        .expect("JSON");
    condition.holds(&found)
}

#[test]
fn plain_comparisons_hold_or_not() {
    let table = [
        (r#"plan == "enterprise""#, true),
        (r#"plan == 'enterprise'"#, true),
        (r#"plan != "enterprise""#, false),
        (r#""enterprise" == plan"#, true),
        ("amount >= 1500 && amount < 1500.01", true),
        ("amount > 1e3", true),
        ("big == 9007199254740992", false),
        ("big > 9007199254740992", true),
        (r#"amount == "1500""#, false),
        (r#"amount != "1500""#, true),
        ("live", true),
        ("!live", false),
        ("live == true", true),
        (r#"plan in ["free", "enterprise"]"#, true),
        ("amount in [1, 2]", false),
        ("amount in []", false),
        (r#"!(plan == "free") && (amount < 1 || live)"#, true),
        ("false || true && false", false),
        ("true || false && false", true),
        (r#"items[0].sku == "a""#, true),
        (r#"items[0]["sku"] == "a""#, true),
        (r#"header["x-topic"] == "orders/paid""#, true),
    ];
    for (text, expected) in table {
        assert_eq!(holds(text), expected, "{text}");
    }
}

#[test]
fn a_missing_field_makes_the_whole_false() {
    for text in [
        r#"gone == "x""#,
        r#"gone != "x""#,
        "!gone",
        "live || gone",
        "true || gone == 1",
        r#"!(gone == "x")"#,
        "nothing != 1",
        "items != 1",
        r#"plan < 5 || true"#,
        "amount || true",
    ] {
        assert!(!holds(text), "{text}");
    }
}

#[test]
fn what_is_not_plain_is_said_to_be_so() {
    let deep = format!("{}live{}", "(".repeat(1_000), ")".repeat(1_000));
    let bangs = format!("{}live", "!".repeat(100_000));
    let long = vec!["live"; 1_000].join(" && ");
    for text in [
        "",
        "size(items) > 1",
        "items.exists(i, i.sku == 'a')",
        "amount + 1 == 2",
        "live ? true : false",
        "plan == null",
        r#"plan < "z""#,
        "!live == true",
        "(amount) == 1",
        "plan = 'x'",
        "plan == 'x' extra",
        "plan == 'x",
        r"plan == '\x41'",
        "a..b == 1",
        "a.0 == 1",
        "1",
        "'x'",
        "a in b",
        "a in [b]",
        "a in [1 2]",
        "1u == a",
        "live &&",
        "inside in [1",
        &deep,
        &bangs,
        &long,
    ] {
        let mut fields = Fields::new();
        assert!(Condition::parse(text, &mut fields).is_err(), "{text:.30}");
        assert!(
            fields.is_empty(),
            "a refused condition leaves no field behind"
        );
    }
}

fn literal() -> impl Strategy<Value = String> {
    prop_oneof![
        "-?(0|[1-9][0-9]{0,20})(\\.[0-9]{1,5})?",
        "[a\"'\\\\\n é]{0,4}".prop_map(|text| parse::quoted(&text)),
        Just("true".to_owned()),
    ]
}

fn condition() -> impl Strategy<Value = String> {
    let field = prop::sample::select(vec!["a", "a.b", "a[0]", "header[\"x-y\"]", "header.z.q"]);
    let sign = prop::sample::select(vec!["==", "!="]);
    let leaf = prop_oneof![
        (field.clone(), sign, literal())
            .prop_map(|(field, sign, literal)| format!("{field}{sign}{literal}")),
        (field.clone(), prop::sample::select(vec!["<", ">="]))
            .prop_map(|(field, sign)| format!("{field} {sign} 5")),
        (field.clone(), literal()).prop_map(|(field, item)| format!("{field} in [{item},1]")),
        field.prop_map(str::to_owned),
    ];
    leaf.prop_recursive(4, 16, 2, |inner| {
        prop_oneof![
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("{a} && {b}")),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("({a}) || {b}")),
            inner.prop_map(|a| format!("!({a})")),
        ]
    })
}

proptest! {
    #[test]
    fn the_text_of_a_condition_parses_to_the_same_condition(text in condition()) {
        let mut fields = Fields::new();
        let condition = Condition::parse(&text, &mut fields).expect("plain by construction");
        let written = condition.text(&fields);
        let again = Condition::parse(&written, &mut fields);
        prop_assert_eq!(again, Ok(condition), "{}", written);
    }

    #[test]
    fn any_text_is_plain_or_not_and_never_panics(text in "[a-c.\"'!&|()<>=\\[\\]0-9 \\\\in,é-]{0,40}") {
        let mut fields = Fields::new();
        if let Ok(condition) = Condition::parse(&text, &mut fields) {
            let found = fields.extract(BodyFormat::Json, b"{}", &NoHeaders).expect("JSON");
            condition.holds(&found);
        }
    }
}

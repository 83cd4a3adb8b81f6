use super::*;

const BODY: &str = r#"{
    "type": "invoice.paid", "big": 18446744073709551615, "nothing": null,
    "data": {"id": "in_1", "amount": 1250, "rate": 0.5, "live": true, "tags": ["a", "b"],
             "lines": [{"sku": "x", "n": 1}, {"sku": "y", "n": 2}]}
}"#;

fn holds(text: &str, body: &str) -> Result<bool, Unreadable> {
    let expression = Expression::compile(text).expect(text);
    expression.holds(&Payload::new(body.as_bytes())?)
}

#[test]
fn conditions_are_asked_of_the_top_level_fields() {
    let table = [
        (r#"type.startsWith("invoice.")"#, true),
        (r#"type.endsWith(".paid") && data.amount % 100 == 50"#, true),
        ("data.amount > 1000.5 && data.rate < 1", true),
        ("size(data.tags) == 2", true),
        ("\"a\" in data.tags", true),
        (
            "data.lines.exists(line, line.sku == \"y\" && line.n > 1)",
            true,
        ),
        ("data.lines.all(line, line.n > 1)", false),
        ("data.lines.map(l, l.n)[1] == 2", true),
        ("big > 5 && big == 18446744073709551615u", true),
        ("nothing == null", true),
        ("has(data.id) && !has(data.other)", true),
        (
            "int(\"7\") == 7 && string(7) == \"7\" && double(\"1.5\") == 1.5",
            true,
        ),
        (
            "uint(7) == 7u && size(bytes(\"abc\")) == 3 && dyn(1) == 1 && type(1) == int",
            true,
        ),
        // No value is no.
        ("data.other == null", false),
        ("data.other.startsWith(\"x\")", false),
        ("missing.startsWith(\"x\")", false),
        ("!missing.startsWith(\"x\")", false),
        ("data.id.startsWith(5)", false),
        ("data.amount + 1", false),
        ("data.lines[7].sku == \"x\" || false", false),
    ];
    for (text, want) in table {
        assert_eq!(holds(text, BODY), Ok(want), "{text}");
    }
}

#[test]
fn a_form_has_fields_too() {
    assert_eq!(holds("Body.contains(\"a b\")", "Body=x+a+b&To=1"), Ok(true));
}

#[test]
fn what_could_take_too_long_is_no_condition() {
    let nested = |loops: usize| {
        let opened: String = (0..loops).map(|n| format!("a.all(x{n}, ")).collect();
        format!("{opened}true{}", ")".repeat(loops))
    };
    assert!(Expression::compile(&nested(2)).is_ok());
    assert_eq!(
        Expression::compile(&nested(3)).err(),
        Some(BadExpression::Loops)
    );
    let chained = "a.map(x, x).map(y, y).exists(z, z)";
    assert!(Expression::compile(chained).is_ok(), "one after the other");
    let long = format!("a.startsWith(\"{}\")", "x".repeat(EXPRESSION_BYTES_MAX));
    assert_eq!(Expression::compile(&long).err(), Some(BadExpression::Long));
    for deep in [
        format!("a{} == 1", ".a".repeat(1_000)),
        format!("{}a{}", "(".repeat(1_000), ")".repeat(1_000)),
        format!("a{}", " + a".repeat(500)),
    ] {
        assert!(Expression::compile(&deep).is_err(), "{}", &deep[..20]);
    }
}

#[test]
fn what_is_misspelt_is_said_at_load() {
    let table = [
        ("a.startWith(\"x\")", "there is no function `startWith`"),
        ("a.matches(\"x\")", "there is no function `matches`"),
        (
            "header[\"x\"].contains(\"y\")",
            "a condition that reads a header has to be",
        ),
        ("a ==", "Syntax error"),
        ("a.b = 1", "Syntax error"),
    ];
    for (text, want) in table {
        let error = Expression::compile(text).expect_err(text).to_string();
        assert!(error.contains(want), "{text}: {error}");
    }
    let Err(BadExpression::Syntax { column, .. }) = Expression::compile("a.b = 1") else {
        panic!("not an expression");
    };
    assert_eq!(column, 5);
}

#[test]
fn a_body_beyond_the_limits_is_for_a_person() {
    let text = "items.exists(x, x == 1) || true";
    let list = |items: usize| format!("{{\"items\": [{}0]}}", "0,".repeat(items - 1));
    assert_eq!(holds(text, &list(ITEMS_MAX)), Ok(true));
    let long = list(ITEMS_MAX + 1);
    assert_eq!(holds(text, &long), Err(Unreadable::Long(ITEMS_MAX + 1)));
    assert_eq!(
        holds("size(items) > 5", &long),
        Ok(true),
        "no loop, no limit"
    );
    let large = format!(
        "{{\"a\": \"{}\"}}",
        "x".repeat(super::super::PAYLOAD_BYTES_MAX)
    );
    assert_eq!(
        holds("a != null", &large),
        Err(Unreadable::Large(large.len()))
    );
    let deep = format!("{{\"a\": {}{}}}", "[".repeat(200), "]".repeat(200));
    assert!(matches!(
        holds("true == true", &deep),
        Err(Unreadable::Malformed(_))
    ));
}

#[test]
fn a_snapshot_is_a_variable() {
    let expression = Expression::compile("snapshot.status != data.status").expect("a condition");
    assert!(expression.mentions_snapshot());
    let asked = |snapshot: &str| {
        let body = br#"{"data": {"status": "paid"}, "snapshot": "not this one"}"#;
        let payload = Payload::with_snapshot(body, snapshot.as_bytes()).expect("readable");
        expression.holds(&payload)
    };
    assert_eq!(asked(r#"{"status": "void"}"#), Ok(true));
    assert_eq!(asked(r#"{"status": "paid"}"#), Ok(false));
    assert_eq!(asked("[]"), Ok(false));
}

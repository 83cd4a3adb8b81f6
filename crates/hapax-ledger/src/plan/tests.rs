//! Plans by table.

use super::*;
use crate::extract::{BodyFormat, NoHeaders};
use crate::order::LifeStep;

fn rule(name: &str, types: &[&str], after: &[&str]) -> EffectRule {
    EffectRule {
        name: name.to_owned(),
        types: types.iter().map(|text| Glob::new(*text)).collect(),
        when: When::Always,
        key: None,
        repeat: Repeat::Keyed,
        after: after.iter().map(|name| (*name).to_owned()).collect(),
        order: None,
    }
}

fn planned(
    rules: &[EffectRule],
    set: &Fields,
    event_type: &str,
    body: &str,
) -> Result<Vec<PlannedEffect>, PlanError> {
    let fields = set
        .extract(BodyFormat::Json, body.as_bytes(), &NoHeaders)
        .expect(body);
    let facts = EventFacts {
        event_type,
        key: "evt_1",
        fields: &fields,
        names: set,
        elsewhere: &[false, true],
    };
    let effects = plan(&facts, rules);
    assert_eq!(
        effects,
        plan(&facts, rules),
        "a plan is a function of its arguments"
    );
    effects
}

fn names(effects: &[PlannedEffect]) -> Vec<&str> {
    effects.iter().map(|effect| effect.name.as_str()).collect()
}

#[test]
fn types_and_conditions_choose_the_effects() {
    let mut set = Fields::new();
    let vip = Condition::parse("plan == 'vip'", &mut set).expect("plain");
    let rules = [
        rule("all", &[], &[]),
        rule("paid", &["invoice.paid", "charge.*"], &[]),
        EffectRule {
            when: When::Plain(vip),
            ..rule("vip", &[], &[])
        },
        EffectRule {
            when: When::Elsewhere(0),
            ..rule("no", &[], &[])
        },
        EffectRule {
            when: When::Elsewhere(1),
            ..rule("yes", &[], &[])
        },
        EffectRule {
            when: When::Elsewhere(9),
            ..rule("unanswered", &[], &[])
        },
    ];
    let called = |event_type, body| planned(&rules, &set, event_type, body).expect("a plan");
    assert_eq!(names(&called("invoice.paid", "{}")), ["all", "paid", "yes"]);
    assert_eq!(
        names(&called("charge.refund.updated", r#"{"plan":"vip"}"#)),
        ["all", "paid", "vip", "yes"]
    );
    assert_eq!(names(&called("other", "{}")), ["all", "yes"]);
}

#[test]
fn keys_come_from_the_template_or_the_event() {
    let mut set = Fields::new();
    let key = Template::parse("{obj.id}", &mut set).expect("a template");
    let rules = [
        rule("plain", &[], &[]),
        EffectRule {
            key: Some(key),
            ..rule("own", &[], &[])
        },
    ];
    let effects = planned(&rules, &set, "t", r#"{"obj":{"id":"in_1"}}"#).expect("a plan");
    assert_eq!(effects[0].key, "evt_1");
    assert_eq!(effects[1].key, "in_1");
    let error = planned(&rules, &set, "t", "{}").expect_err("the key is missing");
    assert_eq!(
        error,
        PlanError {
            effect: "own".into(),
            part: PlanPart::Key,
            field: "obj.id".into()
        }
    );
}

#[test]
fn only_planned_effects_are_waited_for() {
    let rules = [
        rule("first", &["a"], &[]),
        rule("second", &["*"], &["first"]),
    ];
    let set = Fields::new();
    assert_eq!(
        planned(&rules, &set, "a", "{}").expect("a plan")[1].after,
        ["first"]
    );
    assert!(
        planned(&rules, &set, "b", "{}").expect("a plan")[0]
            .after
            .is_empty()
    );
}

#[test]
fn order_is_frozen_with_the_plan_and_its_fields_are_needed() {
    let mut set = Fields::new();
    let entity = set.add(&"obj.id".parse().expect("a field"));
    let version = set.add(&"obj.updated".parse().expect("a field"));
    let order = OrderRule {
        entity,
        sequence: Sequence::Versioned(version),
        terminal: vec![Glob::new("*.deleted")],
        reopen: vec![Glob::new("*.restored"), Glob::new("*")],
        snapshot: false,
        review: None,
    };
    assert_eq!(order.life_step("sub.restored"), LifeStep::Reopens);
    let rules = [EffectRule {
        order: Some(order),
        ..rule("sync", &[], &[])
    }];
    let effects = planned(
        &rules,
        &set,
        "sub.deleted",
        r#"{"obj":{"id":7,"updated":3}}"#,
    )
    .expect("a plan");
    let order = effects[0].order.clone().expect("an order");
    assert_eq!(
        (order.entity.as_str(), order.version.as_deref()),
        ("7", Some("3"))
    );
    assert_eq!((order.serial, order.life_step), (true, LifeStep::Ends));
    let error = planned(&rules, &set, "t", r#"{"obj":{"id":7}}"#).expect_err("no version");
    assert_eq!(
        (error.part, error.field.as_str()),
        (PlanPart::Version, "obj.updated")
    );
    let error = planned(&rules, &set, "t", r#"{"obj":{"updated":7}}"#).expect_err("no entity");
    assert_eq!(error.part, PlanPart::Entity);
}

#[test]
fn circles_strangers_and_namesakes_are_found() {
    let line = [
        rule("a", &[], &[]),
        rule("b", &[], &["a"]),
        rule("c", &[], &["a", "b"]),
    ];
    assert_eq!(check_after(&line), Ok(()));
    let twice = [rule("a", &[], &[]), rule("a", &[], &[])];
    assert_eq!(check_after(&twice), Err(AfterError::Twice("a".into())));
    let unknown = AfterError::Unknown {
        effect: "a".into(),
        after: "x".into(),
    };
    assert_eq!(check_after(&[rule("a", &[], &["x"])]), Err(unknown));
    let own = AfterError::Circle(vec!["a".into(), "a".into()]);
    assert_eq!(check_after(&[rule("a", &[], &["a"])]), Err(own));
    let rules = [
        rule("d", &[], &["a"]),
        rule("a", &[], &["b"]),
        rule("b", &[], &["c"]),
        rule("c", &[], &["a"]),
    ];
    let found = check_after(&rules).expect_err("a circle");
    assert_eq!(
        found.to_string(),
        "these effects wait for each other: a → b → c → a"
    );
}

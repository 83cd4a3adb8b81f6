//! From a request and a real config to planned effects.

use bytes::Bytes;
use hapax::inbox::identify::{Identified, identify};
use hapax::inbox::receive::Sources;
use hapax_ledger::effect::Repeat;
use hapax_ledger::extract::HeaderLookup;
use hapax_ledger::key::{KeyHash, KeyKind};
use hapax_ledger::time::Span;
use hapax_store::nouns::NewEvent;
use serde_json::json;

use crate::config::good;
use crate::support::sender::Sender;
use crate::support::site::Site;

const SOURCE: &str = r#"
[[source]]
name = "a"
provider = "custom"
secrets = "env:SECRET"
type = "type"
id = "id"
entity = "data.id"
[source.verify]
scheme = "token"
header = "x-token"
"#;

/// One header, as if the request had it.
struct Topic;

impl HeaderLookup for Topic {
    fn header(&self, name: &str) -> Option<&str> {
        (name == "x-topic").then_some("orders")
    }
}

fn effect(name: &str, more: &str) -> String {
    format!("[[effect]]\nname = \"{name}\"\nsource = \"a\"\nurl = \"http://b\"\n{more}\n")
}

fn identified(config: &str, body: &str) -> Identified {
    let config = good(config);
    let sources = Sources::new(config.sources, &config.effects, None);
    let source = sources.get("a").expect("the source");
    identify(source, &Topic, &Bytes::from(body.to_owned()))
}

fn event(effects: &str, body: &str) -> NewEvent {
    let mut all = identified(&format!("{SOURCE}{effects}"), body).events;
    assert_eq!(all.len(), 1);
    all.remove(0)
}

/// The effects as `name=key`, or what a person is told.
fn planned(event: &NewEvent) -> String {
    match &event.review {
        Some(review) => {
            assert!(event.effects.is_empty(), "no half plans");
            format!("{} {}", review.code, review.message)
        }
        None => {
            let effects = event.effects.iter();
            let effects = effects.map(|effect| format!("{}={}", effect.name, effect.key));
            effects.collect::<Vec<_>>().join(" ")
        }
    }
}

const PAID: &str = r#"{"id": "e1", "type": "invoice.paid", "data": {"id": "in_1", "plan": "pro", "n": 5, "tags": ["a", "b"]}}"#;

#[test]
fn types_conditions_and_keys_decide_the_plan() {
    let table = [
        ("", "x=e1"),
        ("types = [\"invoice.*\", \"other\"]", "x=e1"),
        ("types = [\"invoice\"]", ""),
        ("types = [\"charge.*\"]", ""),
        ("when = 'data.plan == \"pro\"'", "x=e1"),
        ("when = 'data.plan == \"basic\"'", ""),
        ("when = 'data.missing != \"basic\"'", ""),
        ("when = 'header[\"x-topic\"] == \"orders\"'", "x=e1"),
        ("when = 'data.plan.startsWith(\"p\")'", "x=e1"),
        (
            "when = 'data.tags.exists(tag, tag == \"b\") && data.n % 2 == 1'",
            "x=e1",
        ),
        ("when = 'data.tags.exists(tag, tag == \"c\")'", ""),
        ("when = 'data.missing.startsWith(\"p\")'", ""),
        ("when = '!data.missing.startsWith(\"p\")'", ""),
        ("key = '{data.plan}:{data.id}'", "x=pro:in_1"),
        (
            "key = '{data.customer}:{data.id}'",
            "H0212 effect `x` needs the field `data.customer` for its key, and the event has none",
        ),
        // An effect that is not called for needs nothing.
        (
            "key = '{data.customer}'\nwhen = 'data.plan == \"basic\"'",
            "",
        ),
        (
            "order = { version = 'data.updated' }",
            "H0212 effect `x` needs the field `data.updated` for its version, and the event has none",
        ),
    ];
    for (more, want) in table {
        assert_eq!(planned(&event(&effect("x", more), PAID)), want, "{more}");
    }
}

#[test]
fn an_effect_is_planned_with_all_that_the_store_needs() {
    let more = "key = '{data.id}'\nrepeat = \"once\"\nretry = [\"5s\", \"1m\", \"1h\"]";
    let event = event(&effect("x", more), PAID);
    let [x] = &event.effects[..] else {
        panic!("one effect");
    };
    assert_eq!((&*x.name, &*x.lane, x.repeat), ("x", "x", Repeat::Once));
    assert_eq!(x.key_hash, KeyHash::of(KeyKind::Effect, "x", "in_1"));
    assert_eq!((x.wait, x.attempts_max), (Span::from_secs(5), 3));
    assert_eq!(x.born, None);
}

#[test]
fn effects_keep_the_order_of_the_config_and_conditions_their_effects() {
    let effects = [
        effect(
            "a",
            "types = \"charge.*\"\nwhen = 'data.plan.contains(\"r\")'",
        ),
        effect("b", "when = 'data.plan.contains(\"z\")'"),
        effect(
            "c",
            "when = 'data.plan.contains(\"r\")'\nafter = [\"b\", \"d\"]",
        ),
        effect("d", ""),
    ];
    assert_eq!(planned(&event(&effects.concat(), PAID)), "c=e1 d=e1");
}

#[test]
fn places_are_those_of_the_plan() {
    let effects = [
        effect("c", "after = [\"d\", \"e\"]"),
        effect("skipped", "types = \"charge.*\""),
        effect("d", ""),
        effect("e", "after = [\"skipped\", \"d\"]"),
    ];
    let event = event(&effects.concat(), PAID);
    let after: Vec<&[u16]> = event.effects.iter().map(|each| &each.after[..]).collect();
    assert_eq!(after, [&[1, 2][..], &[], &[1]]);
}

#[test]
fn what_cannot_be_asked_or_read_is_for_a_person() {
    let loops = effect("x", "when = 'data.items.exists(i, i == 1)'");
    let long = json!({"id": "e1", "data": {"items": vec![0; 1_001]}}).to_string();
    assert_eq!(
        planned(&event(&loops, &long)),
        "H0212 a condition of effect `x` cannot be asked: the body has a list or object of 1001 items, and a condition loops over at most 1000"
    );
    // Of another type, it is not asked.
    let typed = effect("x", "types = \"b\"\nwhen = 'data.items.exists(i, i == 1)'");
    assert_eq!(planned(&event(&typed, &long)), "");
    let large = json!({"id": "e1", "data": "x".repeat(300_000)}).to_string();
    let said = planned(&event(
        &effect("x", "when = 'data.contains(\"y\")'"),
        &large,
    ));
    assert!(said.starts_with("H0212 a condition of effect `x` cannot be asked: the body has"));
    assert_eq!(
        planned(&event(&effect("x", "when = 'data == \"y\"'"), &large)),
        ""
    );
    let broken = event(&effect("x", ""), "{\"id\": ");
    assert!(planned(&broken).starts_with("H0211"));
}

#[test]
fn a_review_condition_without_a_snapshot_is_asked_at_accept() {
    // One that cannot be asked shows that it was.
    let order = "order = { review = 'data.items.exists(i, i == 1)' }";
    let long = json!({"id": "e1", "data": {"id": "o", "items": vec![0; 1_001]}}).to_string();
    assert!(planned(&event(&effect("x", order), &long)).starts_with("H0212 a condition of"));
    let no_entity = r#"{"id": "e1", "data": {"items": []}}"#;
    assert_eq!(
        planned(&event(&effect("x", order), no_entity)),
        "H0212 effect `x` needs the field `data.id` for its entity, and the event has none"
    );
}

#[test]
fn each_element_of_a_batch_has_a_plan_of_its_own() {
    let crm = "public_url = \"https://a.example\"\n[[source]]\nname = \"a\"\nprovider = \"hubspot\"\nkey = \"eventId\"\nsecrets = \"env:SECRET\"\n";
    let effects = effect("x", "types = \"deal.*\"\nkey = '{objectId}'");
    let body = r#"[{"eventId": 1, "subscriptionType": "contact.creation", "objectId": 7},
                   {"eventId": 2, "subscriptionType": "deal.creation", "objectId": 8},
                   {"eventId": 3, "subscriptionType": "deal.creation"}]"#;
    let events = identified(&format!("{crm}{effects}"), body).events;
    let plans: Vec<String> = events.iter().map(planned).collect();
    assert_eq!(
        plans,
        [
            "",
            "x=8",
            "H0212 effect `x` needs the field `objectId` for its key, and the event has none"
        ]
    );
}

#[test]
fn an_event_without_a_key_calls_for_nothing() {
    let crm = "public_url = \"https://a.example\"\n[[source]]\nname = \"a\"\nprovider = \"hubspot\"\nsecrets = \"env:SECRET\"\n";
    let events = identified(&format!("{crm}{}", effect("x", "")), "[{}]").events;
    assert!(planned(&events[0]).starts_with("H0210"));
}

#[test]
fn a_sender_is_told_that_an_event_without_a_plan_is_kept() {
    let asked = |key: &str| {
        let more = format!(
            "[[effect]]\nname = \"x\"\nsource = \"billing\"\nurl = \"http://127.0.0.1:9\"\nkey = '{key}'\nretry = \"1h\"\n"
        );
        let site = Site::with("sqlite:data/hapax.db", &more);
        let server = site.start();
        let answer = server.ask(&Sender::to("billing").request("evt_1"));
        assert_eq!(answer.status, 200, "{answer:?}");
        let id = answer.json()["eventId"].as_str().expect("an id").to_owned();
        let event = server.get(&format!("/api/v1/event/{id}")).json();
        (answer.json()["needsReview"].clone(), event)
    };
    let (needs_review, event) = asked("{data.object.id}");
    assert_eq!(
        (needs_review, &event["status"]),
        (json!(null), &json!("pending"))
    );
    let (needs_review, event) = asked("{data.object.nope}");
    assert_eq!(needs_review, json!(true));
    assert_eq!(
        (&event["status"], &event["lastErrorCode"]),
        (&json!("needs_review"), &json!("H0212"))
    );
}

//! Which effects an event calls for, under which keys, and what their requests carry.

use std::collections::BTreeSet;

use hapax_verify::{HeaderValue, Headers, Request, Secret, Verifier, provider};
use serde_json::{Value, json};

use super::scene::{Scene, effect, fact, on_each_store};
use crate::support::clock::now_micros;
use crate::support::world::{Act, Seen, World};

/// B2, D6: types, conditions and keys decide what is sent, and nothing else is.
#[test]
fn what_the_plan_says_is_sent_and_nothing_else() {
    on_each_store(|store| {
        let world = World::well();
        let rules = [
            ("paid", "types = \"invoice.paid\""),
            ("any", "types = [\"invoice.*\", \"charge.*\"]"),
            ("pro", "when = 'data.object.plan == \"pro\"'"),
            (
                "tagged",
                "when = 'data.object.tags.exists(t, t == \"b\") && data.object.n % 2 == 1'",
            ),
            (
                "keyed",
                "types = \"invoice.*\"\nkey = \"{data.object.customer}:{data.object.id}\"",
            ),
        ];
        let effects = rules.map(|(name, more)| effect(name, &world.url("/"), more));
        let scene = Scene::new(store, &effects);
        let pro =
            json!({"id": "in_1", "customer": "cus_1", "plan": "pro", "tags": ["a", "b"], "n": 3});
        let basic =
            json!({"id": "in_2", "customer": "cus_1", "plan": "basic", "tags": ["b"], "n": 2});
        let events = [
            scene.send("evt_1", "invoice.paid", &pro),
            scene.send("evt_2", "invoice.voided", &basic),
            scene.send("evt_3", "customer.created", &json!({})),
        ];
        let [first, ..] = events
            .each_ref()
            .map(|event| scene.wait_for_status(event, "completed"));
        assert_eq!(first["effects"].as_array().map(Vec::len), Some(5));
        let sent: BTreeSet<String> = world.by_key().into_keys().collect();
        let expected = [
            "any:evt_1",
            "any:evt_2",
            "keyed:cus_1:in_1",
            "keyed:cus_1:in_2",
            "paid:evt_1",
            "pro:evt_1",
            "tagged:evt_1",
        ];
        assert_eq!(sent, expected.map(str::to_owned).into());
        assert_eq!(world.seen().len(), expected.len(), "each of them once");
    });
}

/// D6: two events that call for the same effect share one request, whether the second comes before or after its answer.
#[test]
fn two_events_share_one_effect() {
    on_each_store(|store| {
        let world = World::new(|_| Act::Held);
        let mail = "types = \"invoice.*\"\nkey = \"{data.object.id}\"";
        let scene = Scene::new(store, &[effect("mail", &world.url("/mail"), mail)]);
        let invoice = json!({"id": "in_1"});
        let first = scene.send("evt_1", "invoice.paid", &invoice);
        world.wait_for("the first request", |seen| seen.len() == 1);
        let second = scene.send("evt_2", "invoice.payment_succeeded", &invoice);
        assert_eq!(scene.event(&second)["status"], "in_progress");
        world.release(1);
        scene.wait_for_status(&first, "completed");
        scene.wait_for_status(&second, "completed");
        let third = scene.send("evt_3", "invoice.finalized", &invoice);
        scene.wait_for_status(&third, "completed");
        let effect = scene.effect(&third, "mail");
        assert_eq!(effect["eventIds"], json!([first, second, third]));
        let seen = world.seen();
        assert_eq!(seen.len(), 1);
        assert_eq!(seen[0].body, fact("evt_1", "invoice.paid", &invoice));
        assert_eq!(seen[0].headers["hapax-event-id"], first);
    });
}

/// Effects of one event come one after the other where the config says so, and others of the event do not wait.
#[test]
fn an_effect_comes_after_those_it_names() {
    on_each_store(|store| {
        let world = World::new(|seen| match seen.target.as_str() {
            "/a" => Act::Held,
            _ => Act::Answer(200),
        });
        let named = |name: &str, more: &str| effect(name, &world.url(&format!("/{name}")), more);
        let scene = Scene::new(
            store,
            &[
                named("c", "after = [\"a\", \"b\"]"),
                named("b", "after = \"a\"\nrepeat = \"once\""),
                named("a", ""),
                named("free", ""),
            ],
        );
        let event = scene.send("evt_1", "invoice.paid", &json!({}));
        scene.wait_for_state(&event, "free", "done");
        world.wait_for("a", |seen| seen.iter().any(|seen| seen.target == "/a"));
        for name in ["b", "c"] {
            let effect = scene.effect(&event, name);
            assert_eq!(
                (&effect["state"], &effect["gate"]),
                (&json!("pending"), &json!("waiting"))
            );
        }
        world.release(1);
        scene.wait_for_status(&event, "completed");
        let seen = world.seen();
        let order: Vec<&str> = seen.iter().map(|seen| seen.target.as_str()).collect();
        let order: Vec<&str> = order
            .into_iter()
            .filter(|target| *target != "/free")
            .collect();
        assert_eq!(order, ["/a", "/b", "/c"]);
    });
}

/// D7: a dead predecessor leaves its dependents pending and shows them as waiting; the event is dead.
#[test]
fn a_dead_predecessor_leaves_its_dependents_pending() {
    on_each_store(|store| {
        let world = World::new(|seen| match seen.target.as_str() {
            "/a" => Act::Answer(400),
            _ => Act::Answer(200),
        });
        let scene = Scene::new(
            store,
            &[
                effect("a", &world.url("/a"), "retry = \"0s\""),
                effect("b", &world.url("/b"), "after = \"a\""),
                effect("free", &world.url("/free"), ""),
            ],
        );
        let event = scene.send("evt_1", "invoice.paid", &json!({}));
        scene.wait_for_state(&event, "a", "dead");
        scene.wait_for_state(&event, "free", "done");
        let dependent = scene.effect(&event, "b");
        assert_eq!(
            (&dependent["state"], &dependent["gate"]),
            (&json!("pending"), &json!("waiting"))
        );
        assert_eq!(scene.event(&event)["status"], "dead");
        assert!(world.seen().iter().all(|seen| seen.target != "/b"));
    });
}

/// Headers as the world got them.
struct Got<'s>(&'s Seen);

impl Headers for Got<'_> {
    fn get(&self, name: &str) -> HeaderValue<'_> {
        let value = self.0.headers.get(name);
        value.map_or(HeaderValue::Missing, |value| {
            HeaderValue::One(value.as_bytes())
        })
    }
}

/// The contract's section 3: the bytes as they came, the key, who calls for it, and a signature that verifies.
#[test]
fn a_request_carries_what_the_contract_says() {
    on_each_store(|store| {
        const SIGNING: &str = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=";
        let world = World::well();
        let signed = format!("secret = \"{SIGNING}\"\nheaders = {{ x-team = \"payments\" }}");
        let envelope = "body = \"envelope\"\nrepeat = \"once\"";
        let scene = Scene::new(
            store,
            &[
                effect("raw", &world.url("/raw?x=1"), &signed),
                effect("envelope", &world.url("/envelope"), envelope),
            ],
        );
        // Read and written again, it would come out as something else.
        let body = "{ \"id\":\"evt_1\",\n\t\"type\" : \"a.b\", \"n\": 1.10e2, \"ü\": \"\\u00fc\", \"id2\": 9007199254740993 }";
        let event = scene.send_bytes(body.as_bytes());
        scene.wait_for_status(&event, "completed");
        let seen = world.seen();
        let of = |target: &str| {
            let found = seen.iter().find(|seen| seen.target == target);
            found.expect("a request")
        };
        let raw = of("/raw?x=1");
        assert_eq!(raw.body, body.as_bytes());
        let effect_id = scene.effect(&event, "raw")["id"].clone();
        for (name, value) in [
            ("content-type", "application/json"),
            ("idempotency-key", "raw:evt_1"),
            ("hapax-event-id", &event),
            ("hapax-event-type", "a.b"),
            ("hapax-effect", "raw"),
            ("hapax-attempt", "1"),
            ("webhook-id", effect_id.as_str().expect("an id")),
            ("x-team", "payments"),
        ] {
            assert_eq!(
                raw.headers.get(name).map(String::as_str),
                Some(value),
                "{name}"
            );
        }
        let preset = provider::find("standard-webhooks").expect("a preset");
        let verifier =
            Verifier::new(preset.scheme(), vec![Secret::from(SIGNING)]).expect("a secret");
        let request = Request {
            method: "POST",
            url: None,
            headers: &Got(raw),
            body: &raw.body,
            now: now_micros(),
        };
        assert!(verifier.verify(&request).is_ok(), "{raw:?}");

        let enveloped = of("/envelope");
        let sent = String::from_utf8(enveloped.body.clone()).expect("text");
        assert!(sent.contains(body), "letter by letter: {sent}");
        let sent: Value = serde_json::from_str(&sent).expect("JSON");
        assert_eq!(sent["event"]["id"], event);
        assert_eq!(sent["event"]["type"], "a.b");
        assert_eq!(sent["effect"]["key"], "evt_1");
        assert_eq!(sent["effect"]["repeat"], "once");
        assert_eq!(sent["snapshot"], Value::Null);
        assert!(!enveloped.headers.contains_key("webhook-signature"));
    });
}

/// A repeat of an event that was given up brings it back if its source says so, and is only linked if not.
#[test]
fn a_repeat_of_a_dead_event_revives_it_where_the_source_says_so() {
    on_each_store(|store| repeat_a_dead_event(store, "retry", "completed", 2));
    on_each_store(|store| repeat_a_dead_event(store, "link", "dead", 1));
}

fn repeat_a_dead_event(store: &str, rule: &str, ends: &str, sent: usize) {
    let world = World::new(|seen| match seen.before {
        0 => Act::Answer(422),
        _ => Act::Answer(200),
    });
    let x = effect("x", &world.url("/"), "retry = [\"0s\"]");
    let rule = format!("on_duplicate_of_failed = \"{rule}\"");
    let scene = Scene::with(store, &[x], &rule);
    let event = scene.send("evt_1", "t", &json!({}));
    scene.wait_for_status(&event, "dead");
    assert_eq!(
        scene.send("evt_1", "t", &json!({})),
        event,
        "the same event"
    );
    scene.wait_for_status(&event, ends);
    assert_eq!(world.by_key()["x:evt_1"], sent, "{rule}");
}

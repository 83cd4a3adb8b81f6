//! Messages: published once under their id, refused where they do not fit, and sent to those who are subscribed.

use std::time::Duration;

use serde_json::{Value, json};

use super::polling::delayed;
use super::scene::{message, on_each_store};
use crate::support::clock::tick;
use crate::support::server::TOKEN;
use crate::support::world::World;

#[test]
fn the_same_message_is_sent_once_and_another_under_its_id_is_refused() {
    on_each_store(|scene| {
        let world = World::well();
        scene.app("acme");
        scene.endpoint("acme", "one", &world, json!({}));
        let mut first = message(1);
        first["eventId"] = json!("e1");
        let id = scene.publish("acme", &first);
        assert_eq!(scene.publish("acme", &first), id);
        for (field, value) in [
            ("payload", json!({"n": 2})),
            ("eventType", json!("other")),
            ("tags", json!(["t"])),
        ] {
            let mut other = first.clone();
            other[field] = value;
            let refused = scene.post("/app/acme/msg", &other);
            assert_eq!(
                (refused.status, refused.code().as_str()),
                (409, "H0326"),
                "{field}"
            );
        }
        let keyed = |body: &Value| {
            let key = "idempotency-key: k1\r\n";
            let path = "/api/v1/app/acme/msg";
            scene
                .server
                .ask_as(TOKEN, "POST", path, &body.to_string(), key)
        };
        let second = keyed(&message(2)).json()["id"].clone();
        assert_eq!(keyed(&message(2)).json()["id"], second);
        let reused = keyed(&message(3));
        assert_eq!((reused.status, reused.code().as_str()), (409, "H0308"));
        let seen = world.wait_for("two messages", |seen| seen.len() == 2);
        let ids: Vec<&str> = seen.iter().map(|one| &*one.headers["webhook-id"]).collect();
        assert_eq!(ids.len(), 2);
        assert!(ids.contains(&id.as_str()), "{ids:?}");
        let by_event_id = scene.get("/app/acme/msg/e1").json();
        assert_eq!(by_event_id["id"], id.as_str());
    });
}

#[test]
fn a_payload_has_to_fit_the_schema_of_its_type() {
    on_each_store(|scene| {
        scene.app("acme");
        let schemas = json!({"1": {"required": ["n"]}, "2": {"required": ["m"]}});
        let made = json!({"name": "invoice.paid", "description": "", "schemas": schemas});
        scene.told(201, "POST", "/event-type", &made);
        let ask = |version: Value, payload: Value| {
            let body =
                json!({"eventType": "invoice.paid", "apiVersion": version, "payload": payload});
            scene.post("/app/acme/msg", &body).status
        };
        assert_eq!(ask(json!("1"), json!({"n": 1})), 202);
        assert_eq!(ask(json!("1"), json!({"m": 1})), 422);
        assert_eq!(ask(Value::Null, json!({"m": 1})), 202, "the latest counts");
        assert_eq!(ask(json!("3"), json!({"m": 1})), 422);
        let large = json!({"eventType": "x", "payload": {"a": "x".repeat(1024 * 1024)}});
        assert_eq!(scene.post("/app/acme/msg", &large).status, 413);
        assert_eq!(
            scene
                .post("/app/acme/msg", &json!({"eventType": "x"}))
                .status,
            422
        );
        assert_eq!(scene.listed("/app/acme/msg", "id").len(), 2);
    });
}

#[test]
fn a_message_goes_to_those_who_want_it_as_it_was_written() {
    on_each_store(|scene| {
        let world = World::well();
        scene.app("acme");
        scene.endpoint("acme", "all", &world, json!({}));
        scene.endpoint("acme", "other", &world, json!({"eventTypes": ["other"]}));
        scene.endpoint("acme", "channel", &world, json!({"channels": ["c"]}));
        let active = |body: &Value| {
            let told = scene.told(200, "POST", "/app/acme/msg/precheck/active", body);
            told["active"] == true
        };
        assert!(active(&json!({"eventType": "x"})));
        // Spaces and the order of fields are the publisher's.
        let body = r#"{"eventType":"x","channels":["c"],"payload":{ "b": 1.50, "a":"ü" }}"#;
        let path = "/api/v1/app/acme/msg";
        let made = scene.server.ask_as(TOKEN, "POST", path, body, "");
        assert_eq!(made.status, 202, "{made:?}");
        let seen = world.wait_for("two deliveries", |seen| seen.len() == 2);
        let mut paths: Vec<&str> = seen.iter().map(|one| one.target.as_str()).collect();
        paths.sort_unstable();
        assert_eq!(paths, ["/all", "/channel"]);
        for one in &seen {
            assert_eq!(one.body, "{ \"b\": 1.50, \"a\":\"ü\" }".as_bytes());
        }
        let raw = json!({"eventType": "x", "payload": {}, "transformationsParams": {
            "rawPayload": "<a/>", "headers": {"content-type": "text/xml"}}});
        scene.publish("acme", &raw);
        let seen = world.wait_for("three deliveries", |seen| seen.len() == 3);
        assert_eq!(seen[2].body, b"<a/>");
        assert_eq!(seen[2].headers["content-type"], "text/xml");
    });
}

/// By the consumer's own log: what is published later and due at once overtakes it.
#[test]
fn a_message_stays_away_until_its_time() {
    on_each_store(|scene| {
        let world = World::well();
        scene.app("acme");
        scene.endpoint("acme", "one", &world, json!({}));
        let start = tick();
        let later = scene.publish("acme", &delayed(1, 3));
        let first = scene.publish("acme", &message(2));
        let seen = world.wait_for("both", |seen| seen.len() == 2);
        let ids: Vec<&str> = seen.iter().map(|one| &*one.headers["webhook-id"]).collect();
        assert_eq!(ids, [first.as_str(), later.as_str()]);
        let waited = seen[1].at - start;
        assert!(waited >= Duration::from_secs(3), "{waited:?}");
    });
}

#[test]
fn a_precheck_says_whether_anybody_wants_such_a_message() {
    on_each_store(|scene| {
        let world = World::well();
        scene.app("acme");
        let active = |body: &Value| {
            let told = scene.told(200, "POST", "/app/acme/msg/precheck/active", body);
            told["active"].as_bool().expect("yes or no")
        };
        assert!(!active(&json!({"eventType": "a"})), "there is nobody");
        scene.endpoint("acme", "type", &world, json!({"eventTypes": ["a"]}));
        let both = json!({"eventTypes": ["b"], "channels": ["c"]});
        scene.endpoint("acme", "both", &world, both);
        for (body, wanted) in [
            (json!({"eventType": "a"}), true),
            (json!({"eventType": "other"}), false),
            (json!({"eventType": "b"}), false),
            (json!({"eventType": "b", "channels": ["d"]}), false),
            (json!({"eventType": "b", "channels": ["c"]}), true),
        ] {
            assert_eq!(active(&body), wanted, "{body}");
        }
        let path = "/app/acme/endpoint/type";
        scene.told(200, "PATCH", path, &json!({"disabled": true}));
        assert!(!active(&json!({"eventType": "a"})), "it is disabled");
        assert!(world.seen().is_empty(), "nothing is sent");
    });
}

#[test]
fn keys_number_messages_and_an_application_comes_along() {
    on_each_store(|scene| {
        let body = |number: u32| {
            let mut body = message(number);
            body["orderingKey"] = json!("customer-1");
            body["application"] = json!({"name": "inline"});
            body
        };
        let first = scene.told(202, "POST", "/app/inline/msg", &body(1));
        let second = scene.told(202, "POST", "/app/inline/msg", &body(2));
        assert_eq!(
            (&first["sequence"], &second["sequence"]),
            (&json!(1), &json!(2))
        );
        assert_eq!(
            scene.told(200, "GET", "/app/inline", &Value::Null)["name"],
            "inline"
        );
        let unknown = scene.post("/app/nobody/msg", &message(1));
        assert_eq!(unknown.status, 404);
    });
}

#[test]
fn content_goes_when_it_is_expunged_and_filters_narrow() {
    on_each_store(|scene| {
        scene.app("acme");
        let mut tagged = message(1);
        tagged["tags"] = json!(["t1"]);
        let one = scene.publish("acme", &tagged);
        let two = scene.publish("acme", &message(2));
        assert_eq!(
            scene.listed("/app/acme/msg", "id"),
            [two.clone(), one.clone()]
        );
        assert_eq!(scene.listed("/app/acme/msg?tag=t1", "id"), [one.as_str()]);
        assert!(
            scene
                .listed("/app/acme/msg?event_types=a,b", "id")
                .is_empty()
        );
        let path = format!("/app/acme/msg/{one}");
        let bare = scene.get(&format!("{path}?with_content=false")).json();
        assert_eq!(bare["payload"], json!({}));
        let expunged = scene.ask("DELETE", &format!("{path}/content"), &Value::Null);
        assert_eq!(expunged.status, 204);
        assert_eq!(scene.get(&path).json()["payload"], json!({"expired": true}));
        let kept = scene.get(&format!("/app/acme/msg/{two}")).json();
        assert_eq!(kept["payload"], json!({"n": 2}));
    });
}

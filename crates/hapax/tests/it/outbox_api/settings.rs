//! What is set on an application, a type of events or an endpoint, seen in the log of the consumer.

use serde_json::{Value, json};

use super::scene::{Scene, message, on_each_store};
use crate::effects::scene::SQLITE;
use crate::support::client::Connection;
use crate::support::clock::{TOO_LONG, until};
use crate::support::server::TOKEN;
use crate::support::world::{Act, World};

/// Waits until nothing of a message is tried any more, and everything of it was given up.
fn given_up(scene: &Scene, app: &str, message: &str) {
    until(TOO_LONG, "it is given up", || {
        let path = format!("/app/{app}/msg/{message}/endpoint");
        let page = scene.told(200, "GET", &path, &Value::Null);
        let rows = page["data"].as_array().expect("a list").clone();
        let dead = |row: &Value| row["statusText"] == "fail";
        (!rows.is_empty() && rows.iter().all(dead)).then_some(())
    });
}

/// The schedule of an endpoint counts before that of the type, that before the application's, that before the config's.
#[test]
fn the_nearest_schedule_counts() {
    on_each_store(|scene| {
        let world = World::new(|_| Act::Answer(500));
        let app = json!({"name": "acme", "uid": "acme", "retrySchedule": [0]});
        scene.told(201, "POST", "/app", &app);
        let kind = json!({"name": "often", "description": "", "retrySchedule": [0, 0]});
        scene.told(201, "POST", "/event-type", &kind);
        scene.endpoint("acme", "plain", &world, json!({}));
        let own = json!({"retrySchedule": [0, 0, 0]});
        scene.endpoint("acme", "own", &world, own);
        for (event_type, plain) in [("rare", 1), ("often", 2)] {
            let before = world.seen().len();
            let id = scene.publish("acme", &json!({"eventType": event_type, "payload": {}}));
            given_up(&scene, "acme", &id);
            let seen = world.seen();
            let at = |path: &str| {
                let new = seen[before..].iter();
                new.filter(|one| one.target == path).count()
            };
            assert_eq!((at("/plain"), at("/own")), (plain, 3), "{event_type}");
        }
        let wrong = json!({"retrySchedule": []});
        assert_eq!(
            scene.ask("PATCH", "/app/acme/endpoint/own", &wrong).status,
            422
        );
    });
}

#[test]
fn an_application_chooses_the_envelope() {
    on_each_store(|scene| {
        let world = World::well();
        let app = json!({"name": "acme", "uid": "acme", "envelope": true});
        scene.told(201, "POST", "/app", &app);
        scene.endpoint("acme", "one", &world, json!({}));
        let body = json!({"eventType": "a", "apiVersion": "7", "payload": {"n": 1}});
        let id = scene.publish("acme", &body);
        let seen = world.wait_for("the message", |seen| seen.len() == 1);
        let sent: Value = serde_json::from_slice(&seen[0].body).expect("JSON");
        assert_eq!(sent["id"], id.as_str());
        assert_eq!(
            (&sent["type"], &sent["api_version"]),
            (&json!("a"), &json!("7"))
        );
        assert_eq!(sent["data"], json!({"n": 1}));
        assert!(sent["created_at"].is_string());
        scene.told(200, "PATCH", "/app/acme", &json!({"envelope": false}));
        scene.publish("acme", &body);
        let seen = world.wait_for("another", |seen| seen.len() == 2);
        assert_eq!(seen[1].body, b"{\"n\":1}");
    });
}

/// Many at once to one endpoint: each is settled by the first try, and all of them are in the figures.
#[test]
fn a_busy_endpoint_is_counted_whole() {
    const PUBLISHERS: usize = 8;
    const EACH: usize = 20;
    on_each_store(|scene| {
        let world = World::well();
        scene.app("acme");
        scene.endpoint("acme", "one", &world, json!({"concurrency": 64}));
        let body = json!({"eventType": "a", "payload": {}}).to_string();
        let length = body.len();
        let request = format!(
            "POST /api/v1/app/acme/msg HTTP/1.1\r\nhost: hapax\r\nauthorization: Bearer {TOKEN}\r\n\
             content-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
        );
        let (address, request) = (scene.server.address(), request.as_bytes());
        std::thread::scope(|scope| {
            for _ in 0..PUBLISHERS {
                scope.spawn(move || {
                    let mut connection = Connection::open(address).expect("a connection");
                    for _ in 0..EACH {
                        let answer = connection.ask(request).expect("an answer");
                        assert_eq!(answer.status, 202, "{answer:?}");
                    }
                });
            }
        });
        let all = PUBLISHERS * EACH;
        world.wait_for("all of them", |seen| seen.len() == all);
        until(TOO_LONG, "all are counted", || {
            let path = "/app/acme/endpoint/one/stats";
            let told = scene.told(200, "GET", path, &Value::Null);
            (told["success"] == all).then_some(())
        });
        assert_eq!(world.seen().len(), all);
        let said = scene.server.said().lock().expect("whole").clone();
        assert!(!said.contains("\"ERROR\""), "{said}");
    });
}

/// 410 says that nobody is there: nothing more is sent, and its owner sees why, until it is enabled again.
#[test]
fn an_endpoint_that_is_gone_is_disabled() {
    on_each_store(|scene| {
        let world = World::new(|seen| match seen.target.as_str() {
            "/gone" => Act::Answer(410),
            _ => Act::Answer(200),
        });
        scene.app("acme");
        scene.endpoint("acme", "gone", &world, json!({}));
        scene.endpoint("acme", "well", &world, json!({}));
        let body = json!({"eventType": "a", "payload": {}});
        scene.publish("acme", &body);
        let path = "/app/acme/endpoint/gone";
        until(TOO_LONG, "it is disabled", || {
            let told = scene.told(200, "GET", path, &Value::Null);
            (told["standing"] == "gone" && told["disabled"] == true).then_some(())
        });
        let second = scene.publish("acme", &body);
        world.wait_for("the one that is well", |seen| {
            seen.iter().filter(|one| one.target == "/well").count() == 2
        });
        let to = scene.listed(&format!("/app/acme/msg/{second}/endpoint"), "uid");
        assert_eq!(to, ["well"]);
        assert_eq!(
            world
                .seen()
                .iter()
                .filter(|one| one.target == "/gone")
                .count(),
            1
        );
        let resend = format!("/app/acme/msg/{second}/endpoint/gone/resend");
        assert_eq!(scene.post(&resend, &Value::Null).code(), "H0332");
        let back = scene.told(200, "PATCH", path, &json!({"disabled": false}));
        assert_eq!(back["standing"], "enabled");
    });
}

/// Names that begin like an endpoint's are no names for effects of the user's own code: a key must not mean two things.
#[test]
fn names_of_endpoints_are_kept_free() {
    on_each_store(|scene| {
        let claim =
            |name: &str| json!({"name": name, "key": "k", "repeat": "keyed", "leaseSeconds": 30});
        let refused = scene.post("/effect/claim", &claim("ep_x"));
        assert_eq!(refused.status, 422, "{refused:?}");
        assert_eq!(scene.post("/effect/claim", &claim("epoch")).status, 200);
    });
}

/// What an SDK does not know it cannot send, and does not mean to clear.
#[test]
fn a_replacement_by_an_sdk_keeps_what_only_hapax_has() {
    on_each_store(|scene| {
        let world = World::well();
        let app = json!({"name": "acme", "uid": "acme", "envelope": true, "retrySchedule": [0]});
        scene.told(201, "POST", "/app", &app);
        let told = scene.told(200, "PUT", "/app/acme", &json!({"name": "Acme"}));
        assert_eq!(told["envelope"], true, "{told}");
        assert_eq!(told["retrySchedule"], json!([0]), "{told}");
        for scheme in ["stripe", "ed25519"] {
            let own = json!({"signatureScheme": scheme, "concurrency": 1, "timeoutSeconds": 20});
            scene.endpoint("acme", scheme, &world, own);
            let path = format!("/app/acme/endpoint/{scheme}");
            let known = json!({"url": world.url("/other"), "description": "moved"});
            let told = scene.told(200, "PUT", &path, &known);
            assert_eq!(told["signatureScheme"], scheme, "{told}");
            assert_eq!(told["concurrency"], 1, "{told}");
            assert_eq!(told["timeoutSeconds"], 20, "{told}");
            assert_eq!(told["description"], "moved", "{told}");
        }
        let other = json!({"name": "x", "uid": "other"});
        assert_eq!(scene.ask("PUT", "/app/new", &other).status, 422);
    });
}

/// An endpoint that says nothing is waited for as long as its own timeout says, whatever others of the same message take.
#[test]
fn an_endpoint_is_waited_for_as_long_as_it_wants() {
    let (scene, hanging) = (Scene::new(SQLITE), World::new(|_| Act::Hang));
    scene.app("acme");
    for (uid, seconds) in [("short", 5), ("long", 30)] {
        let more = json!({"timeoutSeconds": seconds, "retrySchedule": [0]});
        scene.endpoint("acme", uid, &hanging, more);
    }
    scene.publish("acme", &message(1));
    let attempts = |uid: &str| {
        let path = format!("/app/acme/attempt/endpoint/{uid}");
        let page = scene.told(200, "GET", &path, &Value::Null);
        page["data"].as_array().expect("a list").clone()
    };
    let ended = until(TOO_LONG, "it is given up", || attempts("short").pop());
    assert_eq!(ended["outcome"], "lost: timeout", "{ended}");
    assert_eq!(ended["responseStatusCode"], 0);
    let took = ended["responseDurationMs"].as_u64();
    assert!(took.is_some_and(|took| took >= 5_000), "{ended}");
    assert_eq!(attempts("long"), [Value::Null; 0], "it has more time");
    assert_eq!(hanging.seen().len(), 2);
}

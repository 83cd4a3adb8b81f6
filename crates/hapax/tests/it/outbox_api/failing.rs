//! An endpoint that fails for as long as the config puts up with, as its own log and that of the operators show it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};

use serde_json::{Value, json};

use super::scene::{Scene, message};
use crate::effects::scene::SQLITE;
use crate::support::clock::{TOO_LONG, until};
use crate::support::world::{Act, World};

fn types(world: &World) -> Vec<String> {
    let told = world.seen().into_iter().map(|seen| {
        let told: Value = serde_json::from_slice(&seen.body).expect("JSON");
        told["type"].as_str().expect("a type").to_owned()
    });
    told.collect()
}

/// A warning, then the end; nothing is sent after the end; and once it is enabled again, what is published then arrives.
#[test]
fn an_endpoint_that_only_fails_is_disabled_after_a_warning() {
    let scene = Scene::with(SQLITE, "disable_after = \"3s\"\n");
    let status = Arc::new(AtomicU16::new(500));
    let sink = World::new({
        let status = status.clone();
        move |_| Act::Answer(status.load(Ordering::SeqCst))
    });
    let operators = World::well();
    let ops = json!({"url": operators.url("/ops"),
        "eventTypes": ["endpoint.disabling", "endpoint.disabled"]});
    scene.told(201, "POST", "/operational-webhook/endpoint", &ops);
    scene.app("acme");
    // Tried every second, for longer than the config puts up with.
    let often = json!({"retrySchedule": vec![1; 30]});
    let id = scene.endpoint("acme", "one", &sink, often);
    let failed = scene.publish("acme", &message(1));
    operators.wait_for("both events", |seen| seen.len() == 2);
    assert_eq!(
        types(&operators),
        ["endpoint.disabling", "endpoint.disabled"]
    );
    let path = "/app/acme/endpoint/one";
    let known = scene.told(200, "GET", path, &Value::Null);
    assert_eq!(
        (&known["id"], &known["disabled"]),
        (&json!(id), &json!(true))
    );
    until(TOO_LONG, "what was to be sent is skipped", || {
        let page = scene.told(200, "GET", "/effect?state=skipped", &Value::Null);
        (page["data"].as_array().expect("a list").len() == 1).then_some(())
    });
    let log = sink.seen();
    assert!(log.len() >= 3, "{}", log.len());
    for seen in &log {
        assert_eq!(seen.headers["webhook-id"], failed);
    }
    status.store(200, Ordering::SeqCst);
    scene.publish("acme", &message(2));
    scene.told(200, "PATCH", path, &json!({"disabled": false}));
    let again = scene.publish("acme", &message(3));
    let seen = sink.wait_for("what is published then", |seen| seen.len() > log.len());
    assert_eq!(seen.len(), log.len() + 1, "nothing while it was disabled");
    assert_eq!(seen[log.len()].headers["webhook-id"], again);
    let known = scene.told(200, "GET", path, &Value::Null);
    assert_eq!(known["disabled"], json!(false));
}

/// What has failed was another place: an endpoint that gets another URL has not failed yet, whatever else is changed.
#[test]
fn an_endpoint_with_another_url_has_not_failed_yet() {
    // It is said to be failing after a fifth of that.
    let scene = Scene::with(SQLITE, "disable_after = \"15s\"\n");
    let sink = World::new(|_| Act::Answer(500));
    scene.app("acme");
    for uid in ["one", "two"] {
        let often = json!({"retrySchedule": vec![1; 30]});
        scene.endpoint("acme", uid, &sink, often);
    }
    scene.publish("acme", &message(1));
    for (uid, method) in [("one", "PATCH"), ("two", "PUT")] {
        let path = format!("/app/acme/endpoint/{uid}");
        until(TOO_LONG, "it is said to be failing", || {
            let known = scene.told(200, "GET", &path, &Value::Null);
            known["failingSince"].is_string().then_some(())
        });
        let kept = json!({"url": sink.url(&format!("/{uid}")), "description": "slow"});
        let told = scene.told(200, method, &path, &kept);
        assert!(told["failingSince"].is_string(), "{told}");
        let moved = json!({"url": sink.url("/elsewhere")});
        let told = scene.told(200, method, &path, &moved);
        assert_eq!(told["failingSince"], Value::Null, "{told}");
    }
}

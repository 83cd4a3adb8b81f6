//! What became of deliveries, and how they go out again.

use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};

use serde_json::{Value, json};

use super::scene::{Scene, message, on_each_store};
use crate::support::clock::{TOO_LONG, until};
use crate::support::world::{Act, World};

/// A world whose answers can be changed.
pub(super) fn moody(status: &Arc<AtomicU16>) -> World {
    let status = status.clone();
    World::new(move |_| Act::Answer(status.load(Ordering::SeqCst)))
}

/// Waits for a job to end; gives what it says.
#[track_caller]
pub(super) fn finished(scene: &Scene, task: &Value) -> Value {
    let id = task["id"].as_str().expect("an id");
    let path = format!("/background-task/{id}");
    until(TOO_LONG, "the job ends", || {
        let told = scene.get(&path).json();
        (told["status"] == "finished").then(|| told["data"].clone())
    })
}

#[test]
fn an_attempt_is_found_by_message_and_by_endpoint() {
    on_each_store(|scene| {
        let world = World::well();
        scene.app("acme");
        let endpoint = scene.endpoint("acme", "one", &world, json!({}));
        let id = scene.publish("acme", &message(1));
        let by_message = format!("/app/acme/attempt/msg/{id}");
        let tried = until(TOO_LONG, "an attempt", || {
            let page = scene.get(&by_message).json();
            page["data"]
                .as_array()
                .filter(|data| !data.is_empty())
                .map(|data| data[0].clone())
        });
        assert_eq!(tried["endpointId"], endpoint.as_str());
        assert_eq!(
            (&tried["status"], &tried["responseStatusCode"]),
            (&json!(0), &json!(200))
        );
        let attempt = tried["id"].as_str().expect("an id");
        let one = scene.told(
            200,
            "GET",
            &format!("/app/acme/msg/{id}/attempt/{attempt}"),
            &Value::Null,
        );
        assert_eq!(one["id"], attempt);
        let by_endpoint = "/app/acme/attempt/endpoint/one";
        assert_eq!(
            scene.listed(&format!("{by_endpoint}?status=0&with_msg=true"), "id"),
            [attempt]
        );
        assert!(
            scene
                .listed(&format!("{by_endpoint}?status=2"), "id")
                .is_empty()
        );
        assert!(
            scene
                .listed(&format!("{by_endpoint}?status_code_class=400"), "id")
                .is_empty()
        );
        assert_eq!(
            scene.listed("/app/acme/endpoint/one/msg?status=0", "id"),
            [id.as_str()]
        );
        assert_eq!(
            scene.listed(&format!("/app/acme/msg/{id}/endpoint"), "id"),
            [endpoint]
        );
        let stats = scene.told(200, "GET", "/app/acme/endpoint/one/stats", &Value::Null);
        assert_eq!((&stats["success"], &stats["fail"]), (&json!(1), &json!(0)));
        // Figures are by the hour, and the hour that a time is in counts.
        let since = tried["timestamp"].as_str().expect("a time");
        let path = format!("/app/acme/endpoint/one/stats?since={since}");
        let stats = scene.told(200, "GET", &path, &Value::Null);
        assert_eq!(stats["success"], 1, "{stats}");
    });
}

#[test]
fn a_dead_letter_is_listed_and_recovered_and_what_got_through_is_not_sent_again() {
    on_each_store(|scene| {
        let status = Arc::new(AtomicU16::new(500));
        let world = moody(&status);
        scene.app("acme");
        scene.endpoint("acme", "one", &world, json!({"retrySchedule": [0]}));
        let id = scene.publish("acme", &message(1));
        let dead = || scene.listed("/app/acme/dead-letter", "id");
        until(TOO_LONG, "a dead letter", || {
            Some(dead()).filter(|dead| !dead.is_empty())
        });
        assert_eq!(dead(), [id.as_str()]);
        assert_eq!(
            scene.listed("/app/acme/dead-letter?endpoint_id=one", "id"),
            [id.as_str()]
        );
        status.store(200, Ordering::SeqCst);
        let since = json!({"since": "2020-01-01T00:00:00Z"});
        let task = scene.told(202, "POST", "/app/acme/endpoint/one/recover", &since);
        assert_eq!(task["task"], "endpoint.recover");
        assert_eq!(finished(&scene, &task)["messagesSent"], 1);
        world.wait_for("the letter again", |seen| seen.len() == 2);
        until(TOO_LONG, "no dead letter", || {
            dead().is_empty().then_some(())
        });
        let task = scene.told(202, "POST", "/app/acme/endpoint/one/recover", &since);
        assert_eq!(finished(&scene, &task)["messagesSent"], 0);
        assert_eq!(world.seen().len(), 2);
        assert_eq!(
            scene
                .post("/app/acme/endpoint/one/recover", &json!({}))
                .status,
            422
        );
    });
}

#[test]
fn an_endpoint_gets_what_it_missed_and_anything_again_if_asked() {
    on_each_store(|scene| {
        let world = World::well();
        scene.app("acme");
        scene.publish("acme", &message(1));
        let other = json!({"eventType": "other", "payload": {}});
        let other = scene.publish("acme", &other);
        scene.endpoint(
            "acme",
            "late",
            &world,
            json!({"eventTypes": ["invoice.paid"]}),
        );
        let since = json!({"since": "2020-01-01T00:00:00Z"});
        let path = "/app/acme/endpoint/late";
        let task = scene.told(202, "POST", &format!("{path}/replay-missing"), &since);
        assert_eq!(
            finished(&scene, &task)["messagesSent"],
            1,
            "what it is subscribed to"
        );
        world.wait_for("what it missed", |seen| seen.len() == 1);
        // Sent, but not settled yet: done is what can be forced.
        until(TOO_LONG, "it is done", || {
            let done = scene.listed(&format!("{path}/msg?status=0"), "id");
            (done.len() == 1).then_some(())
        });
        let task = scene.told(202, "POST", &format!("{path}/bulk-replay"), &since);
        assert_eq!(finished(&scene, &task)["messagesSent"], 1);
        world.wait_for("it again", |seen| seen.len() == 2);
        let resend = format!("/app/acme/msg/{other}/endpoint/late/resend");
        assert_eq!(scene.told(202, "POST", &resend, &Value::Null), json!({}));
        world.wait_for("one that it never wanted", |seen| seen.len() == 3);
        let polled = scene.told(200, "GET", "/app/acme/poller/late", &Value::Null);
        assert!(polled["iterator"].is_string(), "{polled}");
        let gone = scene.ask(
            "DELETE",
            &format!("/app/acme/msg/{other}/content"),
            &Value::Null,
        );
        assert_eq!(gone.status, 204);
        let refused = scene.post(&resend, &Value::Null);
        assert_eq!((refused.status, refused.code().as_str()), (409, "H0332"));
    });
}

/// Nothing is sent to an endpoint that is disabled, so nothing is said to be, and what got through stays what it is.
#[test]
fn nothing_goes_again_to_an_endpoint_that_is_disabled() {
    on_each_store(|scene| {
        let world = World::well();
        scene.app("acme");
        scene.endpoint("acme", "one", &world, json!({}));
        let path = "/app/acme/endpoint/one";
        let id = scene.publish("acme", &message(1));
        let done = || scene.listed(&format!("{path}/msg?status=0"), "id");
        until(TOO_LONG, "it is done", || (done().len() == 1).then_some(()));
        scene.told(200, "PATCH", path, &json!({"disabled": true}));
        let since = json!({"since": "2020-01-01T00:00:00Z"});
        for job in ["recover", "replay-missing", "bulk-replay"] {
            let refused = scene.post(&format!("{path}/{job}"), &since);
            let said = (refused.status, refused.code());
            assert_eq!(said, (409, "H0332".to_owned()), "{job}");
        }
        assert_eq!(done(), [id]);
        assert_eq!(world.seen().len(), 1);
        scene.told(200, "PATCH", path, &json!({"disabled": false}));
        let task = scene.told(202, "POST", &format!("{path}/bulk-replay"), &since);
        assert_eq!(finished(&scene, &task)["messagesSent"], 1);
        world.wait_for("it again", |seen| seen.len() == 2);
    });
}

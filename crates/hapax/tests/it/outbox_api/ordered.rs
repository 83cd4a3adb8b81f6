//! Messages of one ordering key that were given up or canceled, and go out again.

use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};

use serde_json::{Value, json};

use super::again::{finished, moody};
use super::scene::{Scene, on_each_store};
use crate::support::clock::{TOO_LONG, until};
use crate::support::world::{Act, Seen, World};

const ENDPOINT: &str = "/app/acme/endpoint/one";

fn of_key(number: u32) -> Value {
    json!({"eventType": "invoice.paid", "payload": {"number": number}, "orderingKey": "k"})
}

/// Which message came.
fn number(seen: &Seen) -> u64 {
    let body: Value = serde_json::from_slice(&seen.body).expect("JSON");
    body["number"].as_u64().expect("a number")
}

/// Waits until the delivery of a message stands like this (0: through, 1: waits, 2: given up, 4: canceled).
#[track_caller]
fn until_status(scene: &Scene, id: &str, status: u32) {
    let path = format!("/app/acme/msg/{id}/endpoint");
    until(TOO_LONG, "the delivery stands so", || {
        let page = scene.get(&path).json();
        (page["data"][0]["status"] == status).then_some(())
    });
}

/// After an outage all of a key are given up, and each was tried after the one before it. They are recovered, not the last one alone.
#[test]
fn all_dead_letters_of_a_key_are_recovered() {
    on_each_store(|scene| {
        let status = Arc::new(AtomicU16::new(500));
        let world = moody(&status);
        scene.app("acme");
        scene.endpoint("acme", "one", &world, json!({"retrySchedule": [0]}));
        let ids: Vec<String> = (0..6)
            .map(|number| scene.publish("acme", &of_key(number)))
            .collect();
        ids.iter().for_each(|id| until_status(&scene, id, 2));
        status.store(200, Ordering::SeqCst);
        let since = json!({"since": "2020-01-01T00:00:00Z"});
        let task = scene.told(202, "POST", &format!("{ENDPOINT}/recover"), &since);
        let told = finished(&scene, &task);
        assert_eq!(told["messagesSent"], 6, "{told}");
        ids.iter().for_each(|id| until_status(&scene, id, 0));
        // In their order both times, and never two at once.
        let came: Vec<u64> = world.seen().iter().map(number).collect();
        assert_eq!(came, [0, 1, 2, 3, 4, 5, 0, 1, 2, 3, 4, 5]);
        assert_eq!(world.at_once_max(), 1);
    });
}

/// An earlier one that is sent again waits until the later one that is under way has ended.
#[test]
fn one_that_is_sent_again_does_not_go_beside_another_of_its_key() {
    on_each_store(|scene| {
        let world = World::new(|seen| match number(seen) {
            0 if seen.nth == 0 => Act::Answer(500),
            1 => Act::Held,
            _ => Act::Answer(200),
        });
        scene.app("acme");
        scene.endpoint("acme", "one", &world, json!({"retrySchedule": [0]}));
        let first = scene.publish("acme", &of_key(0));
        until_status(&scene, &first, 2);
        let second = scene.publish("acme", &of_key(1));
        world.wait_for("the second", |seen| seen.len() == 2);
        let again = format!("/app/acme/msg/{first}/endpoint/one/resend");
        scene.told(202, "POST", &again, &json!({}));
        // One of another key goes past both.
        let other =
            json!({"eventType": "invoice.paid", "payload": {"number": 9}, "orderingKey": "other"});
        let other = scene.publish("acme", &other);
        until_status(&scene, &other, 0);
        until_status(&scene, &first, 1);
        world.release(1);
        until_status(&scene, &second, 0);
        until_status(&scene, &first, 0);
        let came: Vec<u64> = world.seen().iter().map(number).collect();
        assert_eq!(came, [0, 1, 9, 0]);
    });
}

/// One that was canceled, because its endpoint was disabled, goes out when somebody asks for it, and holds up none that come later.
#[test]
fn what_was_canceled_is_sent_again_and_its_key_goes_on() {
    on_each_store(|scene| {
        let status = Arc::new(AtomicU16::new(500));
        let world = moody(&status);
        scene.app("acme");
        scene.endpoint(
            "acme",
            "one",
            &world,
            json!({"retrySchedule": [0, 2, 2, 2, 2, 2]}),
        );
        let first = scene.publish("acme", &of_key(0));
        world.wait_for("an attempt", |seen| seen.len() == 1);
        scene.told(200, "PATCH", ENDPOINT, &json!({"disabled": true}));
        until_status(&scene, &first, 4);
        scene.told(200, "PATCH", ENDPOINT, &json!({"disabled": false}));
        status.store(200, Ordering::SeqCst);
        let second = scene.publish("acme", &of_key(1));
        until_status(&scene, &second, 0);
        let again = format!("/app/acme/msg/{first}/endpoint/one/resend");
        scene.told(202, "POST", &again, &json!({}));
        until_status(&scene, &first, 0);
        let third = scene.publish("acme", &of_key(2));
        until_status(&scene, &third, 0);
        assert_eq!(world.seen().len(), 4);
    });
}

/// While one is on its way another is not promised.
#[test]
fn a_resend_while_an_attempt_is_under_way_is_refused() {
    on_each_store(|scene| {
        let world = World::new(|_| Act::Held);
        scene.app("acme");
        scene.endpoint("acme", "one", &world, json!({}));
        let id = scene.publish("acme", &of_key(0));
        world.wait_for("the first", |seen| seen.len() == 1);
        let again = format!("/app/acme/msg/{id}/endpoint/one/resend");
        let refused = scene.told(409, "POST", &again, &json!({}));
        assert_eq!(refused["code"], "H0332", "{refused}");
        world.release(1);
        until_status(&scene, &id, 0);
        scene.told(202, "POST", &again, &json!({}));
        world.wait_for("the second", |seen| seen.len() == 2);
        world.release(1);
    });
}

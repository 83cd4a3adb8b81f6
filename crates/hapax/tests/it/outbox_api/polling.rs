//! Consumers that ask: nothing before its time, nothing lost, nothing twice, and a place that is kept.

use serde_json::{Value, json};

use super::scene::{Scene, message, on_each_store};
use crate::effects::scene::SQLITE;
use crate::support::clock::{TOO_LONG, now_micros, until};
use crate::support::world::World;

/// A time from now, as the API reads it.
fn in_seconds(seconds: i64) -> String {
    let at = jiff::Timestamp::from_microsecond(now_micros() + seconds * 1_000_000);
    at.expect("a time").to_string()
}

/// A message that is to be sent so many seconds from now.
pub(super) fn delayed(number: u32, seconds: i64) -> Value {
    let mut body = message(number);
    body["deliverAt"] = in_seconds(seconds).into();
    body
}

/// What an endpoint's poller says, from an iterator on.
#[track_caller]
fn poll(scene: &Scene, path: &str, iterator: Option<&str>) -> Value {
    let path = match iterator {
        Some(iterator) => format!("{path}?iterator={iterator}"),
        None => path.to_owned(),
    };
    scene.told(200, "GET", &path, &Value::Null)
}

fn ids(polled: &Value) -> Vec<String> {
    let data = polled["data"].as_array().expect("a list").iter();
    data.map(|row| row["id"].as_str().expect("an id").to_owned())
        .collect()
}

fn iterator(polled: &Value) -> String {
    polled["iterator"].as_str().expect("an iterator").to_owned()
}

fn scene_with_endpoint(scene: &Scene, world: &World) {
    scene.app("acme");
    scene.endpoint("acme", "sink", world, json!({"disabled": true}));
}

#[test]
fn a_message_is_not_polled_before_its_time_and_is_polled_after_it() {
    let (scene, world) = (Scene::new(SQLITE), World::well());
    scene_with_endpoint(&scene, &world);
    let path = "/app/acme/poller/sink";
    let later = scene.publish("acme", &delayed(1, 2));
    let first = scene.publish("acme", &message(2));
    let polled = poll(&scene, path, None);
    assert_eq!(ids(&polled), [first.as_str()], "not before its time");
    let past = iterator(&polled);
    let came = until(TOO_LONG, "its time has come", || {
        let polled = poll(&scene, path, Some(&past));
        (!ids(&polled).is_empty()).then_some(polled)
    });
    assert_eq!(ids(&came), [later.as_str()]);
    let due = came["data"][0]["deliverAt"].as_str().expect("a time");
    let due: jiff::Timestamp = due.parse().expect("a time");
    assert!(due.as_microsecond() <= now_micros(), "not before its time");
    assert_eq!(ids(&poll(&scene, path, Some(&iterator(&came)))).len(), 0);
    let all = poll(&scene, path, None);
    assert_eq!(ids(&all), [first, later], "whoever comes later sees both");
}

#[test]
fn a_consumer_goes_on_where_it_stands_after_a_crash() {
    on_each_store(|scene| {
        let world = World::well();
        scene_with_endpoint(&scene, &world);
        let path = "/app/acme/poller/sink/consumer/worker-1";
        // What is to be sent later needs no wait for neighbours, so that this goes for every store.
        let first = scene.publish("acme", &delayed(1, 1));
        let one = until(TOO_LONG, "the first", || {
            let polled = poll(&scene, path, None);
            (!ids(&polled).is_empty()).then_some(polled)
        });
        assert_eq!(ids(&one), [first.as_str()]);
        assert_eq!(
            ids(&poll(&scene, path, None)),
            [first.as_str()],
            "not read yet"
        );
        let read = iterator(&one);
        assert_eq!(ids(&poll(&scene, path, Some(&read))).len(), 0);
        let scene = scene.restarted();
        let next = poll(&scene, path, None);
        assert_eq!(ids(&next).len(), 0, "what was read does not come again");
        let second = scene.publish("acme", &delayed(2, 1));
        let two = until(TOO_LONG, "the second", || {
            let polled = poll(&scene, path, None);
            (!ids(&polled).is_empty()).then_some(polled)
        });
        assert_eq!(ids(&two), [second.as_str()]);
        let further = iterator(&two);
        poll(&scene, path, Some(&further));
        let behind = scene.get(&format!("{path}?iterator={read}"));
        assert_eq!((behind.status, behind.code().as_str()), (409, "H0333"));
        let other = "/app/acme/poller/sink/consumer/worker-2";
        assert_eq!(ids(&poll(&scene, other, None)), [first, second]);
    });
}

#[test]
fn a_consumer_goes_on_at_a_time_that_it_is_sent_to() {
    let (scene, world) = (Scene::new(SQLITE), World::well());
    scene_with_endpoint(&scene, &world);
    let path = "/app/acme/poller/sink/consumer/worker";
    let id = scene.publish("acme", &message(1));
    let read = iterator(&poll(&scene, path, None));
    assert_eq!(ids(&poll(&scene, path, Some(&read))).len(), 0);
    let seek = format!("{path}/seek");
    let back = json!({"after": "2020-01-01T00:00:00Z"});
    let sought = scene.told(200, "POST", &seek, &back);
    assert!(sought["iterator"].is_string(), "{sought}");
    assert_eq!(ids(&poll(&scene, path, None)), [id.as_str()], "again");
    let old = scene.get(&format!("{path}?iterator={read}"));
    assert_eq!(old.status, 409, "an iterator from before the seek");
    let ahead = json!({"after": in_seconds(3_600)});
    scene.told(200, "POST", &seek, &ahead);
    assert_eq!(ids(&poll(&scene, path, None)).len(), 0, "nothing yet");
    for wrong in [json!({}), json!({"after": 7}), json!({"after": "soon"})] {
        assert_eq!(scene.post(&seek, &wrong).status, 422, "{wrong}");
    }
    let bad = scene.get(&format!("{path}?iterator=msg_1"));
    assert_eq!(bad.status, 422);
    let actions = scene.listed("/audit", "action");
    assert!(actions.contains(&"poller.seek".to_owned()), "{actions:?}");
}

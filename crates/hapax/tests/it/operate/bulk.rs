//! Replays of many events: counted, paced, cancelled, and carried on after a restart.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};

use crate::effects::scene::{Scene, effect, on_each_store};
use crate::support::clock::{TOO_LONG, until};
use crate::support::world::{Act, World};

/// Two tries, so that one that a crash takes is not the last.
const TWO_TRIES: &str = "retry = [\"0s\", \"0s\"]";

/// A target that refuses until it is mended, and events that it refused.
fn broken(store: &str, events: usize) -> (World, Arc<AtomicBool>, Scene) {
    let mended = Arc::new(AtomicBool::new(false));
    let asked = mended.clone();
    let world = World::new(move |_| match asked.load(Ordering::SeqCst) {
        true => Act::Answer(200),
        false => Act::Answer(422),
    });
    // The next server takes over once the lease of the one before has ended.
    let scene = Scene::short(store, &[effect("one", &world.url("/"), TWO_TRIES)]);
    let ids: Vec<String> = (0..events)
        .map(|n| scene.send(&format!("evt_{n}"), "invoice.paid", &json!({})))
        .collect();
    for id in &ids {
        scene.wait_for_status(id, "dead");
    }
    (world, mended, scene)
}

fn start(scene: &Scene, body: &Value) -> String {
    let answer = scene.server.post("/api/v1/replay", body);
    assert_eq!(answer.status, 202, "{answer:?}");
    answer.json()["id"].as_str().expect("an id").to_owned()
}

fn show(scene: &Scene, id: &str) -> Value {
    scene.server.get(&format!("/api/v1/replay/{id}")).json()
}

#[track_caller]
fn wait_for(scene: &Scene, id: &str, what: &str, enough: impl Fn(&Value) -> bool) -> Value {
    until(TOO_LONG, what, || Some(show(scene, id)).filter(&enough))
}

fn counts(replay: &Value) -> [u64; 5] {
    ["total", "done", "skipped", "blocked", "failed"]
        .map(|name| replay[name].as_u64().expect("a number"))
}

#[test]
fn a_replay_sends_what_is_not_done_once() {
    on_each_store(|store| {
        let (world, mended, scene) = broken(store, 40);
        mended.store(true, Ordering::SeqCst);
        let well = scene.send("evt_well", "invoice.paid", &json!({}));
        scene.wait_for_status(&well, "completed");
        let filter = json!({"source": "billing"});
        let body = json!({"filter": filter, "reason": "they mended it", "dryRun": true});
        let dry = start(&scene, &body);
        let dry = wait_for(&scene, &dry, "the preview is through", |replay| {
            replay["state"] == "completed"
        });
        assert_eq!(counts(&dry), [41, 40, 1, 0, 0], "{dry:#}");
        assert_eq!(world.seen().len(), 81, "a dry run sends nothing");

        let body = json!({"filter": filter, "reason": "they mended it"});
        let real = start(&scene, &body);
        let real = wait_for(&scene, &real, "the replay is through", |replay| {
            replay["state"] == "completed"
        });
        assert_eq!(counts(&real), [41, 40, 1, 0, 0], "{real:#}");
        until(TOO_LONG, "all are completed", || {
            let list = scene.server.get("/api/v1/event?limit=250&status=completed");
            (list.json()["data"].as_array().map(Vec::len) == Some(41)).then_some(())
        });
        for (key, requests) in world.by_key() {
            let want = if key == "one:evt_well" { 1 } else { 3 };
            assert_eq!(requests, want, "{key}");
        }
        let listed = scene.server.get("/api/v1/replay").json();
        assert_eq!(listed["data"].as_array().map(Vec::len), Some(2));
        let bad = json!({"filter": {"status": "gone", "other": 1}, "reason": "x"});
        assert_eq!(scene.server.post("/api/v1/replay", &bad).status, 422);
    });
}

#[test]
fn a_replay_goes_on_after_a_restart_and_repeats_nothing() {
    on_each_store(|store| {
        let (world, mended, scene) = broken(store, 20);
        mended.store(true, Ordering::SeqCst);
        let body = json!({"filter": {"status": "dead"}, "reason": "they mended it", "rate": 5});
        let id = start(&scene, &body);
        wait_for(&scene, &id, "it has begun", |replay| counts(replay)[0] >= 5);
        let scene = scene.restarted();
        let replay = wait_for(&scene, &id, "it is through", |replay| {
            replay["state"] == "completed"
        });
        // What was retried and not yet counted when it was killed is not dead any more, and so at most one page is missing.
        let [total, done, rest @ ..] = counts(&replay);
        assert!((15..=20).contains(&total) && done == total, "{replay:#}");
        assert_eq!(rest, [0, 0, 0], "{replay:#}");
        until(TOO_LONG, "all are completed", || {
            let list = scene.server.get("/api/v1/event?limit=250&status=completed");
            (list.json()["data"].as_array().map(Vec::len) == Some(20)).then_some(())
        });
        let audit = scene.server.get("/api/v1/audit?limit=250").json();
        let audit = audit["data"].as_array().expect("a list");
        let retries = audit.iter().filter(|one| one["action"] == "event.retry");
        assert_eq!(retries.count(), 20, "E3: each event is retried once");
        drop(world);
    });
}

#[test]
fn a_replay_can_be_stopped() {
    on_each_store(|store| {
        let (_world, _, scene) = broken(store, 6);
        let body = json!({"filter": {"status": "dead"}, "reason": "a mistake", "rate": 1});
        let id = start(&scene, &body);
        let path = format!("/api/v1/replay/{id}/cancel");
        assert_eq!(
            scene.server.post(&path, &json!({"reason": "stop"})).status,
            200
        );
        let replay = show(&scene, &id);
        assert_eq!(replay["state"], "cancelled");
        assert!(counts(&replay)[0] < 6, "{replay:#}");
        let again = scene.server.post(&path, &json!({}));
        assert_eq!((again.status, again.code().as_str()), (409, "H0321"));
        let nobody = "/api/v1/replay/rpl_01m7gsnv4be008000000000001/cancel";
        assert_eq!(scene.server.post(nobody, &json!({})).status, 404);
    });
}

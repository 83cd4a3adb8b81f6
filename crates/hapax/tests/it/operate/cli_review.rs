//! What only a person can decide, at a prompt: events that wait, and deliveries that contradict earlier ones.

use serde_json::{Value, json};

use super::cli::ask;
use crate::effects::scene::{SQLITE, Scene, effect, fact};
use crate::support::world::World;

/// A scene whose events wait for a person if they are odd.
fn scene(world: &World) -> Scene {
    let order = "order = { serial = true, review = 'data.object.odd == true' }";
    let source = "entity = \"data.object.id\"\n";
    Scene::with(SQLITE, &[effect("one", &world.url("/"), order)], source)
}

fn waiting(scene: &Scene, name: &str, object: &str) -> String {
    let id = scene.send(name, "invoice.paid", &json!({"id": object, "odd": true}));
    scene.wait_for_status(&id, "needs_review");
    id
}

#[test]
fn an_event_that_waits_is_released_or_dismissed() {
    let world = World::well();
    let scene = scene(&world);
    let id = waiting(&scene, "evt_1", "in_1");
    let release = |id: &str, more: &[&str]| {
        let args = [
            "events",
            "review",
            id,
            "--outcome",
            "release",
            "--reason",
            "seen",
        ];
        ask(&scene, &[&args, more].concat())
    };
    // Nobody can be asked here, and nothing is done without a yes; what would be done is said.
    let unasked = release(&id, &[]).expect_exit(2);
    assert!(
        unasked.stderr.contains("release: the event is planned"),
        "{unasked:?}"
    );
    assert!(unasked.stderr.contains("not confirmed"), "{unasked:?}");
    let dry = release(&id, &["--dry-run"]).expect_exit(0);
    assert!(dry.stdout.starts_with("verdict"), "{dry:?}");
    assert_eq!(scene.event(&id)["status"], "needs_review");
    assert!(world.seen().is_empty());

    let done = release(&id, &["--yes", "--json"]).expect_exit(0);
    assert!(done.json()["verdict"].is_object(), "{done:?}");
    scene.wait_for_status(&id, "completed");
    assert_eq!(world.by_key()["one:evt_1"], 1);
    let again = release(&id, &["--yes"]).expect_exit(3);
    assert!(again.stderr.contains("H0313"), "{again:?}");

    let other = waiting(&scene, "evt_2", "in_2");
    let dismiss = [
        "events",
        "review",
        &other,
        "--outcome",
        "dismiss",
        "--reason",
        "a test",
        "--yes",
    ];
    ask(&scene, &dismiss).expect_exit(0);
    scene.wait_for_status(&other, "completed");
    assert_eq!(scene.effect(&other, "one")["state"], "skipped");
    assert_eq!(world.seen().len(), 1);
    release("evt_01m7gsnv4be008000000000001", &["--yes"]).expect_exit(4);
    ask(&scene, &["events", "review", &id, "--outcome", "release"]).expect_exit(2);
    let audit = ask(&scene, &["audit", "list"]).expect_exit(0);
    assert!(audit.stdout.contains("a test"), "{audit:?}");
}

#[test]
fn a_conflict_is_acknowledged_or_promoted() {
    let world = World::well();
    let scene = Scene::new(SQLITE, &[effect("one", &world.url("/"), "")]);
    let id = scene.send("evt_1", "invoice.paid", &json!({"amount": 1}));
    scene.wait_for_status(&id, "completed");
    for amount in [2, 3] {
        scene.send_bytes(&fact("evt_1", "invoice.paid", &json!({"amount": amount})));
    }
    let decide = |number: &str, outcome: &str, more: &[&str]| {
        let args = [
            "events",
            "conflict",
            &id,
            number,
            "--outcome",
            outcome,
            "--reason",
            "seen",
        ];
        ask(&scene, &[&args, more].concat())
    };
    let dry = decide("1", "promote", &["--dry-run", "--json"]).expect_exit(0);
    assert_eq!(dry.json()["eventId"], Value::Null, "{dry:?}");
    assert!(
        dry.stderr
            .contains("promote: the other body becomes an event"),
        "{dry:?}"
    );
    assert_eq!(world.seen().len(), 1);

    let promoted = decide("1", "promote", &["--yes", "--json"])
        .expect_exit(0)
        .json();
    let event = promoted["eventId"].as_str().expect("an id").to_owned();
    scene.wait_for_status(&event, "completed");
    decide("2", "acknowledge", &["--yes"]).expect_exit(0);
    let refused = decide("2", "acknowledge", &["--yes"]).expect_exit(3);
    assert!(refused.stderr.contains("H0314"), "{refused:?}");
    assert_eq!(world.seen().len(), 2);
    let verdict = ask(&scene, &["events", "verdict", &id, "--json"])
        .expect_exit(0)
        .json();
    assert_eq!(verdict["verdict"], "nothing_to_do");
}

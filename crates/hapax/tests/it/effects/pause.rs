//! A server that stands still in mid-send, beyond its lease: it finds that others have taken over, and changes nothing.

use std::time::Duration;

use serde_json::{Value, json};

use super::judge::{judge, ledger, wait_until_all_has_ended};
use super::scene::{SQLITE, Scene, effect, ended, on_postgres};
use crate::support::clock::{TOO_LONG, until};
use crate::support::world::{Act, World};

/// The lease, and a second more.
const BEYOND_THE_LEASE: Duration = Duration::from_secs(4);

fn effects(world: &World) -> [String; 2] {
    ["keyed", "once"].map(|repeat| {
        let more = format!("repeat = \"{repeat}\"\nretry = [\"0s\", \"0s\", \"0s\"]");
        effect(repeat, &world.url("/"), &more)
    })
}

/// D2, D3, D4: alone, nobody takes over. Whatever the server makes of it, each effect ends, `once` was sent once, and it goes on.
#[test]
fn a_pause_of_the_only_server() {
    let world = World::new(|_| Act::Held);
    let scene = Scene::short(SQLITE, &effects(&world));
    let event = scene.send("evt_1", "t", &json!({}));
    world.wait_for("both requests", |seen| seen.len() == 2);
    scene.server.signal("STOP");
    let mut asking = scene.server.connect();
    assert!(asking.is_silent_for(BEYOND_THE_LEASE), "it stands still");
    world.release(100);
    scene.server.signal("CONT");
    scene.wait_for_state(&event, "keyed", "done");
    let other = scene.send("evt_2", "t", &json!({}));
    scene.wait_for_status(&other, "completed");
    wait_until_all_has_ended(&scene.server, || world.seen().len());
    judge(&world.seen(), &ledger(&scene.server));
}

/// C1, C2, C3, D2-D5: another node takes over; what the paused one says afterwards is refused, and kept as evidence.
#[test]
fn a_paused_node_changes_nothing_after_others_took_over() {
    on_postgres(|url| {
        let world = World::new(|_| Act::Held);
        let effects = effects(&world);
        let paused = Scene::short(url, &effects);
        let event = until(TOO_LONG, "it looks after its lanes", || {
            let event = paused.send("evt_1", "t", &json!({}));
            (!world.seen().is_empty()).then_some(event)
        });
        world.wait_for("both requests", |seen| seen.len() == 2);
        paused.server.signal("STOP");

        let other = Scene::short(url, &effects);
        let once = other.wait_for_state(&event, "once", "uncertain");
        assert_eq!(once["lastOutcome"], "lost: lost_lease");
        world.wait_for("the keyed one again", |seen| seen.len() == 3);
        let taken = other.wait_for_attempts(&event, "keyed", 1);
        assert_eq!(taken["state"], "claimed");
        world.release(100);
        let done = other.wait_for_state(&event, "keyed", "done");

        paused.server.signal("CONT");
        let late = |name: &str| {
            until(TOO_LONG, "what came too late is kept", || {
                let effect = other.effect(&event, name);
                let late = !ended(&effect)[0]["lateOutcome"].is_null();
                late.then_some(effect)
            })
        };
        let (keyed, once) = (late("keyed"), late("once"));
        assert_eq!(without_late(&keyed), without_late(&done));
        assert_eq!(once["state"], "uncertain", "evidence decides nothing");
        let fences: Vec<u64> = ended(&keyed)
            .iter()
            .map(|attempt| attempt["fence"].as_u64().expect("a fence"))
            .collect();
        assert!(fences.is_sorted_by(|one, next| one < next), "{fences:?}");
        assert_eq!(world.by_key()["keyed:evt_1"], 2);
        assert_eq!(world.by_key()["once:evt_1"], 1);

        // Both go on.
        for (scene, name) in [(&paused, "evt_2"), (&other, "evt_3")] {
            let event = scene.send(name, "t", &json!({}));
            scene.wait_for_status(&event, "completed");
        }
        judge(&world.seen(), &ledger(&other.server));
    });
}

/// An effect as it was before something came too late.
fn without_late(effect: &Value) -> Value {
    let mut effect = effect.clone();
    for attempt in effect["attempts"].as_array_mut().expect("attempts") {
        attempt["lateOutcome"] = Value::Null;
        attempt["lateAt"] = Value::Null;
    }
    effect
}

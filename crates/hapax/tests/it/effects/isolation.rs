//! Caps and rates hold, and a target that hangs is nobody else's trouble.

use std::time::Duration;

use serde_json::json;

use super::scene::{Scene, effect, ended, on_each_store};
use crate::support::clock::{TOO_LONG, tick, until};
use crate::support::world::{Act, World};

/// Counts effects of a name that are done, up to a page.
fn done(scene: &Scene, name: &str) -> usize {
    let path = format!("/api/v1/effect?limit=250&state=done&name={name}");
    let page = scene.server.get(&path).json();
    page["data"].as_array().expect("a list").len()
}

/// G6, promise 7: a target that never answers fills its own slots and takes none of the others'.
#[test]
fn a_target_that_hangs_delays_nobody_else() {
    on_each_store(|store| {
        let hanging = World::new(|_| Act::Hang);
        let well = World::well();
        let scene = Scene::new(
            store,
            &[
                effect(
                    "hangs",
                    &hanging.url("/"),
                    "concurrency = 2\ntimeout = \"5m\"",
                ),
                effect("well", &well.url("/"), "concurrency = 1"),
                effect("once", &well.url("/"), "repeat = \"once\""),
                effect("behind", &well.url("/"), "after = \"well\""),
            ],
        );
        const EVENTS: usize = 30;
        for n in 0..EVENTS {
            scene.send(&format!("evt_{n}"), "t", &json!({}));
        }
        for name in ["well", "once", "behind"] {
            until(TOO_LONG, "the others are done", || {
                (done(&scene, name) == EVENTS).then_some(())
            });
        }
        assert_eq!(well.seen().len(), 3 * EVENTS);
        assert_eq!(hanging.seen().len(), 2, "its cap, and not one more");
    });
}

/// G6: under way at a time are as many as the cap says, all of them and never more, until the last of 200 is done.
#[test]
fn a_cap_is_used_and_never_exceeded() {
    on_each_store(|store| {
        const EVENTS: usize = 200;
        const CAP: usize = 4;
        let worlds = ["keyed", "once"].map(|repeat| (repeat, World::new(|_| Act::Held)));
        let effects = worlds.each_ref().map(|(repeat, world)| {
            let more = format!("repeat = \"{repeat}\"\nconcurrency = {CAP}\ntimeout = \"5m\"");
            effect(repeat, &world.url("/"), &more)
        });
        let scene = Scene::new(store, &effects);
        for n in 0..EVENTS {
            scene.send(&format!("evt_{n}"), "t", &json!({}));
        }
        for (repeat, world) in &worlds {
            world.wait_for("its cap", |seen| seen.len() == CAP);
            for sent in CAP + 1..=EVENTS {
                world.release(1);
                world.wait_for("another", |seen| seen.len() >= sent);
                assert_eq!(
                    world.seen().len(),
                    sent,
                    "more than one came for one answer"
                );
            }
            world.release(CAP);
            until(TOO_LONG, "all are done", || {
                (done(&scene, repeat) == EVENTS).then_some(())
            });
            assert_eq!(world.at_once_max(), CAP, "{repeat}");
            assert_eq!(world.seen().len(), EVENTS, "{repeat}");
        }
    });
}

/// A rate holds: with one a second, the third comes no sooner than two seconds after the first was asked for.
#[test]
fn a_rate_holds() {
    on_each_store(|store| {
        let world = World::well();
        let scene = Scene::new(store, &[effect("slow", &world.url("/"), "rate = 1")]);
        let start = tick();
        for n in 0..3 {
            scene.send(&format!("evt_{n}"), "t", &json!({}));
        }
        world.wait_for("all three", |seen| seen.len() == 3);
        assert!(tick() - start >= Duration::from_secs(2));
    });
}

/// What waits in memory for its lane's rate, longer than its lease, is kept: none of it is told as lost, and each is sent once.
#[test]
fn what_waits_for_its_rate_is_kept() {
    const EVENTS: usize = 12;
    on_each_store(|store| {
        let world = World::well();
        let more = "rate = 1\nretry = [\"0s\"]";
        let scene = Scene::short(store, &[effect("slow", &world.url("/"), more)]);
        let send = |n| scene.send(&format!("evt_{n}"), "t", &json!({}));
        let events: Vec<String> = (0..EVENTS).map(send).collect();
        world.wait_for("all of them", |seen| seen.len() >= EVENTS);
        for event in &events {
            scene.wait_for_status(event, "completed");
            let attempts = ended(&scene.effect(event, "slow")).len();
            assert_eq!(attempts, 1, "no attempt was lost");
        }
        assert_eq!(world.seen().len(), EVENTS);
    });
}

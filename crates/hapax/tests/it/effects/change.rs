//! Another config while effects are pending: URLs are the current ones, classes only become stricter, and nothing is lost.

use serde_json::json;

use super::scene::{Scene, effect, ended, on_each_store};
use crate::support::clock::{TOO_LONG, until};
use crate::support::world::{Act, World};

/// A world that holds requests to `/first`, so that whatever comes after it is pending as long as the test wants.
fn holding() -> World {
    World::new(|seen| match seen.target.as_str() {
        "/first" => Act::Held,
        "/broken" => Act::Answer(500),
        _ => Act::Answer(200),
    })
}

/// URLs, headers and times are the current config's, for effects that were planned under another.
#[test]
fn a_pending_effect_goes_where_the_new_config_says() {
    on_each_store(|store| {
        let world = holding();
        let first = effect("first", &world.url("/first"), "");
        let second = |path: &str| effect("second", &world.url(path), "after = \"first\"");
        let scene = Scene::new(store, &[first.clone(), second("/old")]);
        let event = scene.send("evt_1", "t", &json!({}));
        world.wait_for("the first", |seen| seen.len() == 1);
        scene.reload(&[first, second("/new")]);
        world.release(1);
        scene.wait_for_status(&event, "completed");
        let seen = world.seen();
        let targets: Vec<&str> = seen.iter().map(|seen| seen.target.as_str()).collect();
        assert_eq!(targets, ["/first", "/new"]);
    });
}

/// Nothing is lost: an effect that the config does not name waits, is seen waiting, and goes out once it is named again.
#[test]
fn a_removed_effect_waits_until_it_is_back() {
    on_each_store(|store| {
        let world = holding();
        let first = effect("first", &world.url("/first"), "");
        let second = effect("second", &world.url("/second"), "after = \"first\"");
        let third = effect("third", &world.url("/third"), "");
        let scene = Scene::new(store, &[first.clone(), second.clone()]);
        let event = scene.send("evt_1", "t", &json!({}));
        world.wait_for("the first", |seen| seen.len() == 1);
        scene.reload(&[first.clone(), third.clone()]);
        world.release(1);
        scene.wait_for_state(&event, "first", "done");
        // Something new goes all the way meanwhile, under the new plan.
        let other = scene.send("evt_2", "t", &json!({}));
        world.release(1);
        scene.wait_for_status(&other, "completed");
        let waiting = scene.effect(&event, "second");
        assert_eq!(
            (&waiting["state"], &waiting["gate"]),
            (&json!("pending"), &json!("open"))
        );
        assert_eq!(scene.event(&event)["status"], "pending");
        assert!(!world.by_key().contains_key("second:evt_1"));
        scene.reload(&[first, second, third]);
        scene.wait_for_status(&event, "completed");
        assert_eq!(world.by_key()["second:evt_1"], 1);
    });
}

/// D3: made stricter, the class counts at once: what may have been applied before is not sent again under `once`.
#[test]
fn a_class_made_stricter_counts_for_what_is_pending() {
    on_each_store(|store| {
        let world = World::new(|seen| match (seen.key(), seen.before) {
            ("x:evt_1", 0) => Act::HeldThen(500),
            _ => Act::Held,
        });
        // One at a time: while the second event's request is held, the first event's next attempt has to wait.
        let x = |repeat: &str| {
            let more = format!("repeat = \"{repeat}\"\nconcurrency = 1\nretry = [\"0s\", \"0s\"]");
            effect("x", &world.url("/"), &more)
        };
        let scene = Scene::new(store, &[x("keyed")]);
        let first = scene.send("evt_1", "t", &json!({}));
        world.wait_for("the first", |seen| seen.len() == 1);
        let second = scene.send("evt_2", "t", &json!({}));
        world.release(1);
        world.wait_for("the second", |seen| seen.len() == 2);
        until(TOO_LONG, "the first attempt is settled", || {
            (ended(&scene.effect(&first, "x")).len() == 1).then_some(())
        });
        scene.reload(&[x("once")]);
        world.release(1);
        scene.wait_for_status(&second, "completed");
        scene.wait_for_status(&first, "needs_review");
        let effect = scene.effect(&first, "x");
        assert_eq!(
            (&effect["state"], &effect["repeat"]),
            (&json!("uncertain"), &json!("once"))
        );
        assert_eq!(world.by_key()["x:evt_1"], 1, "nothing more was sent");
    });
}

/// D3: a class made looser does not count for what was planned before.
#[test]
fn a_class_made_looser_does_not_count_for_what_is_pending() {
    on_each_store(|store| {
        let world = holding();
        let first = effect("first", &world.url("/first"), "");
        let second = |repeat: &str| {
            let more =
                format!("after = \"first\"\nrepeat = \"{repeat}\"\nretry = [\"0s\", \"0s\"]");
            effect("second", &world.url("/broken"), &more)
        };
        let scene = Scene::new(store, &[first.clone(), second("once")]);
        let event = scene.send("evt_1", "t", &json!({}));
        world.wait_for("the first", |seen| seen.len() == 1);
        scene.reload(&[first, second("keyed")]);
        world.release(1);
        scene.wait_for_status(&event, "needs_review");
        assert_eq!(scene.effect(&event, "second")["state"], "uncertain");
        assert_eq!(world.by_key()["second:evt_1"], 1);
    });
}

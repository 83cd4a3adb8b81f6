//! A target that takes longer to answer than a lease lasts: the claim is kept alive, and nobody sends again.

use std::time::Duration;

use serde_json::json;

use super::judge::{judge, ledger};
use super::scene::{Scene, effect, ended, on_each_store};
use crate::support::clock::tick;
use crate::support::world::{Act, World};

/// Three of the short leases, the beat within which a claim that ran out is found, and one more.
const BEYOND_THREE_LEASES: Duration = Duration::from_secs(3 * 3 + 2);
/// How often the ledger is looked at meanwhile.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// C3, C4, D2, D4: one claim, one request, one attempt, however long its answer takes.
#[test]
fn a_request_that_outlasts_three_leases_is_neither_lost_nor_sent_again() {
    on_each_store(|store| {
        let world = World::new(|seen| match seen.target.as_str() {
            "/slow" => Act::Held,
            _ => Act::Answer(200),
        });
        let [keyed, once] = ["keyed", "once"].map(|repeat| {
            let retry = "retry = [\"0s\", \"0s\", \"0s\"]";
            let more = format!("repeat = \"{repeat}\"\ntimeout = \"5m\"\n{retry}");
            effect(repeat, &world.url("/slow"), &more)
        });
        let quick = effect("quick", &world.url("/quick"), "");
        let scene = Scene::short(store, &[keyed, once, quick]);
        let event = scene.send("evt_1", "t", &json!({}));
        let quick = scene.wait_for_state(&event, "quick", "done");
        world.wait_for("all three requests", |seen| seen.len() == 3);
        let start = tick();
        while tick() - start < BEYOND_THREE_LEASES {
            assert!(
                scene.server.connect().is_silent_for(LOOK_EVERY),
                "it speaks only when it is asked"
            );
            for name in ["keyed", "once"] {
                let effect = scene.effect(&event, name);
                let held = (&effect["state"], ended(&effect).len());
                assert_eq!(held, (&json!("claimed"), 0), "{effect:#}");
            }
        }
        world.release(2);
        for name in ["keyed", "once"] {
            let done = scene.wait_for_state(&event, name, "done");
            assert_eq!(ended(&done).len(), 1, "{done:#}");
            // Both are the first claim of their effect, by the same process.
            let (first, only) = (&ended(&quick)[0], &ended(&done)[0]);
            assert_eq!(only["fence"], first["fence"], "{done:#}");
            assert_eq!(only["node"], first["node"], "{done:#}");
        }
        // Another event goes the same way: whatever else the lanes had to do, they have done before.
        world.release(2);
        let other = scene.send("evt_2", "t", &json!({}));
        scene.wait_for_status(&other, "completed");
        for (key, requests) in world.by_key() {
            assert_eq!(requests, 1, "{key}");
        }
        judge(&world.seen(), &ledger(&scene.server));
    });
}

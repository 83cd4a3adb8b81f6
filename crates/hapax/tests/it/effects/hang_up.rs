//! Somebody hangs up while the store commits what they brought: it is committed all the same, and so it is carried out.

use serde_json::json;

use super::scene::{SQLITE, Scene, effect, ended, patient_site};
use crate::faults::shim::Shim;
use crate::support::sender::Sender;
use crate::support::server::posting;
use crate::support::world::{Act, World};

/// A server of this site with these effects, and the switches of its shim.
fn scene(effects: &[String]) -> (Scene, Shim) {
    let mut site = patient_site(SQLITE, effects, "");
    let shim = Shim::before(&mut site);
    (Scene::of(site, SQLITE), shim)
}

/// Liveness: the sender's retry is a duplicate, and tells the lanes nothing. What is born claimed has its attempt, and does not lose it
/// to a lease that nobody kept.
#[test]
fn the_effects_of_an_event_whose_sender_hangs_up_are_sent() {
    let world = World::well();
    let url = world.url("/");
    let (scene, shim) = scene(&[
        effect("once", &url, "repeat = \"once\""),
        effect("born", &url, "retry = [\"0s\"]"),
        effect("after", &url, "after = [\"once\", \"born\"]"),
    ]);
    let request = Sender::to("billing").request("evt_1");
    shim.hang_up_at_sync(&scene.server, &request);
    world.wait_for("all effects", |seen| seen.len() == 3);
    let again = scene.server.ask(&request).json();
    assert_eq!(again["duplicate"], true, "{again:#}");
    let id = again["eventId"].as_str().expect("an id");
    scene.wait_for_status(id, "completed");
    for name in ["once", "born", "after"] {
        let effect = scene.effect(id, name);
        assert_eq!(ended(&effect).len(), 1, "{effect:#}");
    }
    assert_eq!(world.seen().len(), 3);
}

/// The same for what an operator sets free, without a key that would make the request outlive them.
#[test]
fn what_an_operator_sets_free_is_sent_though_they_hang_up() {
    let world = World::new(|seen| match seen.before {
        0 => Act::Answer(422),
        _ => Act::Answer(200),
    });
    let (scene, shim) = scene(&[effect("x", &world.url("/"), "retry = [\"0s\"]")]);
    let id = scene.send("evt_1", "t", &json!({}));
    scene.wait_for_status(&id, "dead");
    let retry = posting(
        &format!("/api/v1/event/{id}/retry"),
        &json!({"reason": "it is mended"}),
    );
    shim.hang_up_at_sync(&scene.server, &retry);
    scene.wait_for_status(&id, "completed");
    assert_eq!(world.seen().len(), 2);
}

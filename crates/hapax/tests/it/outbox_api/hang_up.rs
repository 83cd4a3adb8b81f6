//! A publisher that hangs up while its message is being committed: the message is stored all the same, and so it is delivered.

use serde_json::json;

use super::scene::{Scene, site};
use crate::effects::scene::SQLITE;
use crate::faults::shim::Shim;
use crate::support::server::posting;
use crate::support::world::World;

/// Liveness: one delivery is born claimed, the other waits for its turn. The lease outlasts the test, so that nobody finds them by
/// looking again.
#[test]
fn a_message_whose_publisher_hangs_up_is_delivered() {
    let world = World::well();
    let mut site = site("10m", SQLITE, "");
    let shim = Shim::before(&mut site);
    let scene = Scene::of(site);
    scene.app("acme");
    scene.endpoint("acme", "one", &world, json!({}));
    let messages = [
        json!({"eventType": "t", "eventId": "m0", "payload": {"n": 0}}),
        json!({"eventType": "t", "eventId": "m1", "payload": {"n": 1}, "orderingKey": "a"}),
    ];
    for (number, message) in (1..).zip(&messages) {
        let publishing = posting("/api/v1/app/acme/msg", message);
        shim.hang_up_at_sync(&scene.server, &publishing);
        world.wait_for("the delivery", |seen| seen.len() == number);
    }
    assert_eq!(world.seen().len(), messages.len());
}

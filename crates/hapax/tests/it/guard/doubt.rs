//! Claims of which nobody knows whether the database heard them: the wire is cut at their commit. The lease is so long that a test
//! which waited for it would not end.

use hapax_store::conformance::database::with_database;

use super::points::CLAIM;
use super::scene::{Scene, answered, charge, counting, leased};
use crate::support::proxy::{Proxy, Wire};
use crate::support::world::World;

/// A guard whose database is behind a wire.
fn behind_a_wire(work: impl FnOnce(Scene, Proxy, World) + Send + 'static) {
    with_database(|database| async move {
        let url = database.url();
        let work = tokio::task::spawn_blocking(move || {
            let (wire, url) = Proxy::to_database(&url);
            let world = counting();
            let lines = "principal = \"header.x-user\"";
            let scene = Scene::of(leased("60s", &url, &world.url(""), lines));
            work(scene, wire, world);
        });
        work.await.expect("the checks hold");
    });
}

/// H1: what was claimed is carried out once, though nobody heard that it was.
#[test]
fn a_claim_whose_commit_nobody_heard_of_goes_on() {
    behind_a_wire(|scene, wire, world| {
        wire.set(Wire::CutAtAnswerTo(CLAIM.to_owned()));
        answered(&scene.charge("k1"), 1, false);
        assert_eq!(wire.wire(), Wire::Whole, "the answer was lost");
        answered(&scene.charge("k1"), 1, true);
        assert_eq!(world.seen().len(), 1);
    });
}

#[test]
fn a_claim_that_the_database_never_heard_of_is_made_again() {
    behind_a_wire(|scene, wire, world| {
        wire.set(Wire::HeldAtAskOf(CLAIM.to_owned()));
        let mut first = scene.connect();
        first.send(&charge("k1")).expect("sent");
        wire.wait_until_held();
        // What is held is lost with its connection.
        wire.set(Wire::Cut);
        wire.set(Wire::Whole);
        answered(&first.answer().expect("an answer"), 1, false);
        answered(&scene.charge("k1"), 1, true);
        assert_eq!(world.seen().len(), 1);
    });
}

//! `kill -9` with a request under way, and a database that is away.

use hapax_store::conformance::database::with_database;

use super::scene::{Scene, answered, at_first, charge, counting, problem, refused};
use crate::effects::scene::on_each_store;
use crate::support::clock::{TOO_LONG, until};
use crate::support::proxy::{Proxy, Wire};
use crate::support::world::Act;

/// H1: a guard that holds sends nothing a second time, whatever crashes.
#[test]
fn what_was_under_way_at_a_crash_is_unknown_and_held() {
    on_each_store(|store| {
        let world = at_first(Act::Hang);
        let scene = Scene::new(store, &world.url(""), "");
        let mut first = scene.connect();
        first.send(&charge("k1")).expect("sent");
        world.wait_for("the request", |seen| seen.len() == 1);
        let scene = scene.restarted();
        let unknown = until(TOO_LONG, "its outcome is unknown", || {
            let answer = scene.charge("k1");
            Some(answer).filter(|answer| problem(answer) != "in-progress")
        });
        refused(&unknown, 409, "outcome-unknown");
        let keys = scene.keys("?state=unknown&guard=charges&key=k1&principal=ada");
        assert_eq!(keys.len(), 1, "{keys:?}");
        refused(&scene.charge("k1"), 409, "outcome-unknown");
        assert_eq!(world.seen().len(), 1);
    });
}

#[test]
fn what_was_under_way_at_a_crash_is_sent_again_where_that_is_safe() {
    on_each_store(|store| {
        let world = at_first(Act::Hang);
        let scene = Scene::new(store, &world.url(""), "on_unknown = \"keyed\"");
        let mut first = scene.connect();
        first.send(&charge("k1")).expect("sent");
        world.wait_for("the request", |seen| seen.len() == 1);
        let scene = scene.restarted();
        let again = until(TOO_LONG, "it is sent again", || {
            Some(scene.charge("k1")).filter(|answer| answer.status != 409)
        });
        answered(&again, 1, false);
        let keys: Vec<String> = world
            .seen()
            .iter()
            .map(|seen| seen.key().to_owned())
            .collect();
        assert_eq!(keys, ["k1", "k1"]);
    });
}

#[test]
fn answers_survive_a_crash() {
    on_each_store(|store| {
        let world = counting();
        let scene = Scene::new(store, &world.url(""), "");
        answered(&scene.charge("k1"), 1, false);
        let scene = scene.restarted();
        answered(&scene.charge("k1"), 1, true);
        assert_eq!(world.seen().len(), 1);
    });
}

/// Never passed through unguarded.
#[test]
fn a_database_that_is_away_means_503() {
    with_database(|database| async move {
        let url = database.url();
        let work = tokio::task::spawn_blocking(move || {
            let (wire, url) = Proxy::to_database(&url);
            let world = counting();
            let scene = Scene::new(&url, &world.url(""), "");
            answered(&scene.charge("k1"), 1, false);
            wire.set(Wire::Cut);
            let answer = scene.charge("k2");
            assert_eq!(answer.status, 503, "{answer:?}");
            assert!(answer.header("retry-after").is_some(), "{answer:?}");
            assert_eq!(world.seen().len(), 1);
            wire.set(Wire::Whole);
            let back = until(TOO_LONG, "the store is back", || {
                Some(scene.charge("k1")).filter(|answer| answer.status != 503)
            });
            answered(&back, 1, true);
        });
        work.await.expect("the checks hold");
    });
}

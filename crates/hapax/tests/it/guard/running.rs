//! Requests at a time, callers that go away, and a server that stops.

use std::thread;

use super::scene::{Scene, answered, charge, counting, problem, refused, request};
use crate::effects::scene::{SQLITE, on_each_store};
use crate::support::client::Connection;
use crate::support::clock::{TOO_LONG, until};
use crate::support::world::{Act, World};

/// A world that holds every request until the test says so.
fn holding() -> World {
    World::new(|_| Act::Held)
}

#[test]
fn a_second_request_hears_that_the_first_is_running_or_waits_for_it() {
    on_each_store(|store| {
        let world = holding();
        let scene = Scene::new(store, &world.url(""), "");
        let mut first = scene.connect();
        first.send(&charge("k1")).expect("sent");
        world.wait_for("the first", |seen| seen.len() == 1);
        let second = scene.charge("k1");
        refused(&second, 409, "in-progress");
        assert!(second.header("retry-after").is_some(), "{second:?}");
        let head = "x-user: ada\r\nidempotency-key: k1\r\n";
        let other = scene.ask(&request("POST", "/charges", head, "{}"));
        refused(&other, 409, "key-reused");
        let mut waiting = scene.connect();
        let head = format!("{head}prefer: wait=20\r\n");
        let patient = request("POST", "/charges", &head, "{\"amount\":1}");
        waiting.send(&patient).expect("sent");
        world.release(1);
        assert_eq!(first.answer().expect("an answer").status, 200);
        let waited = waiting.answer().expect("an answer");
        let found = (waited.status, waited.header("idempotent-replayed"));
        assert_eq!(found, (200, Some("true")), "{waited:?}");
        assert_eq!(world.seen().len(), 1);
    });
}

/// H1: 200 racing calls, one execution.
#[test]
fn of_racing_requests_one_is_carried_out() {
    on_each_store(|store| {
        let world = counting();
        let scene = Scene::new(store, &world.url(""), "");
        let address = scene.guard;
        let racing: Vec<_> = (0..200)
            .map(|_| {
                thread::spawn(move || {
                    let mut connection = Connection::open(address).expect("a connection");
                    connection.ask(&charge("k1")).expect("an answer")
                })
            })
            .collect();
        let mut fresh = 0;
        for one in racing {
            let answer = one.join().expect("whole");
            match answer.status {
                201 => {
                    assert_eq!(answer.body(), b"{\"execution\":1}", "{answer:?}");
                    fresh += usize::from(answer.header("idempotent-replayed").is_none());
                }
                409 => assert_eq!(problem(&answer), "in-progress"),
                _ => panic!("{answer:?}"),
            }
        }
        assert_eq!((fresh, world.seen().len()), (1, 1));
    });
}

#[test]
fn work_settles_although_its_caller_has_gone() {
    on_each_store(|store| {
        let world = holding();
        let scene = Scene::new(store, &world.url(""), "");
        let mut leaving = scene.connect();
        leaving.send(&charge("k1")).expect("sent");
        world.wait_for("the request", |seen| seen.len() == 1);
        drop(leaving);
        world.release(1);
        let answer = until(TOO_LONG, "the work has settled", || {
            Some(scene.charge("k1")).filter(|answer| answer.status != 409)
        });
        let found = (answer.status, answer.header("idempotent-replayed"));
        assert_eq!(found, (200, Some("true")), "{answer:?}");
        assert_eq!(world.seen().len(), 1);
    });
}

#[test]
fn a_server_that_stops_waits_for_what_runs() {
    let world = holding();
    let scene = Scene::new(SQLITE, &world.url(""), "");
    let mut first = scene.connect();
    first.send(&charge("k1")).expect("sent");
    let mut leaving = scene.connect();
    leaving.send(&charge("k2")).expect("sent");
    world.wait_for("both", |seen| seen.len() == 2);
    drop(leaving);
    scene.server.signal("TERM");
    scene
        .server
        .wait_for_log("stopping: finishing what was taken");
    world.release(2);
    assert_eq!(first.answer().expect("an answer").status, 200);
    let Scene { server, site, .. } = scene;
    assert_eq!(server.wait().code(), Some(0));
    let scene = Scene::of(site);
    for key in ["k1", "k2"] {
        assert_eq!(
            scene.charge(key).header("idempotent-replayed"),
            Some("true")
        );
    }
    assert_eq!(world.seen().len(), 2);
}

#[test]
fn a_new_config_counts_from_the_next_request_on() {
    let world = counting();
    let scene = Scene::new(SQLITE, &world.url(""), "");
    answered(&scene.charge("k1"), 1, false);
    let lines = "principal = \"header.x-user\"\nrequired = true";
    let other = super::scene::site(SQLITE, &world.url(""), lines);
    let text = std::fs::read_to_string(other.path().join("hapax.toml")).expect("text");
    scene.site.configure(&text);
    scene.server.signal("HUP");
    scene.server.wait_for_log("the new config is in force");
    let bare = request("POST", "/charges", "x-user: ada\r\n", "{}");
    refused(&scene.ask(&bare), 400, "key-missing");
    answered(&scene.charge("k1"), 1, true);
}

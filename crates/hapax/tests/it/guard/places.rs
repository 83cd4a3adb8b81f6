//! How many requests may be under way behind a guard, whatever became of those who sent them.

use super::scene::{Scene, answered, charge, refused, request};
use crate::effects::scene::SQLITE;
use crate::support::clock::{TOO_LONG, until};
use crate::support::site::{Site, config};
use crate::support::world::{Act, World};

/// J3: runs go on when their callers hang up, and each has a connection to the upstream. An upstream that hangs does not take all files of
/// the server that way.
#[test]
fn runs_without_callers_keep_their_places_until_they_end() {
    let world = World::new(|seen| match seen.key() {
        "k1" | "k2" => Act::HeldThenWith(201, "", "{\"execution\":1}".to_owned()),
        _ => Act::AnswerWith(201, "", "{\"execution\":1}".to_owned()),
    });
    let upstream = world.url("");
    let lines = format!(
        "[limits]\nconnections = 2\n[[guard]]\nname = \"charges\"\nlisten = \"127.0.0.1:0\"\nupstream = \"{upstream}\"\nprincipal = \"header.x-user\"\n"
    );
    let site = Site::sqlite();
    site.configure(&config(SQLITE, &lines));
    let scene = Scene::of(site);
    for (nth, key) in ["k1", "k2"].into_iter().enumerate() {
        let mut caller = scene.connect();
        caller.send(&charge(key)).expect("sent");
        world.wait_for("the request", |seen| seen.len() == nth + 1);
        drop(caller);
    }
    let full = until(TOO_LONG, "an answer at the door", || {
        let answer = scene.charge("k3");
        (answer.status == 503).then_some(answer)
    });
    refused(&full, 503, "overloaded");
    assert!(full.header("retry-after").is_some(), "{full:?}");
    let (head, long) = ("x-user: ada\r\n", "x".repeat(12 * 1024 * 1024));
    let full = scene.ask(&request("POST", "/charges", head, &long));
    refused(&full, 503, "overloaded");
    assert_eq!(world.seen().len(), 2);
    assert!(
        scene.keys("?key=k3").is_empty(),
        "it is refused before its key is looked up"
    );
    world.release(2);
    until(TOO_LONG, "there is room again", || {
        (scene.charge("k3").status == 201).then_some(())
    });
    answered(&scene.charge("k1"), 1, true);
}

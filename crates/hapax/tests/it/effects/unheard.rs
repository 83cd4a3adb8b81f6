//! A commit whose answer is lost moved an effect all the same, and whatever follows from that happens: though nobody heard of it, and
//! this node is alone, so that no other looks after it. The answer of the world is in the statement that settles: there the wire is cut.

use hapax::config::StoreTarget;
use hapax::http::serve::open;
use hapax_ledger::effect::Repeat;
use hapax_store::conformance::sample::{arrival, at, event};
use hapax_store::conformance::worker::planned;
use hapax_store::nouns::{NewEffect, NewEvent};
use serde_json::{Value, json};

use super::scene::{Scene, effect, ended, on_postgres, patient_site};
use crate::support::proxy::{Proxy, Wire};
use crate::support::world::{Act, World};

/// What the world says where its answer is to be lost.
const UNLUCKY: &str = "this is not my day";
/// What is said of a settlement by somebody who was fenced off.
const LATE: &str = "a settlement came too late and is kept as evidence only";

fn unlucky(status: u16) -> Act {
    Act::AnswerWith(status, "", UNLUCKY.to_owned())
}

/// A server that reaches its database through a wire.
fn scene(url: &str, effects: &[String], source: &str) -> (Scene, Proxy) {
    let (proxy, url) = Proxy::to_database(url);
    let site = patient_site(&url, effects, source);
    (Scene::of(site, &url), proxy)
}

fn lose_the_answer(proxy: &Proxy) {
    proxy.set(Wire::CutAtAnswerTo(UNLUCKY.to_owned()));
}

/// The answer was lost, and the attempt is known once, by its own word.
#[track_caller]
fn check(scene: &Scene, proxy: &Proxy, event: &str) {
    assert_eq!(proxy.wire(), Wire::Whole, "the answer was lost");
    let effect = scene.effect(event, "x");
    for attempt in ended(&effect) {
        assert_eq!(attempt["lateOutcome"], Value::Null, "{effect:#}");
    }
    let said = scene.server.said();
    assert!(!said.lock().expect("whole").contains(LATE));
}

#[test]
fn the_next_attempt_is_made_though_nobody_heard_that_it_waits() {
    on_postgres(|url| {
        let world = World::new(|seen| match seen.before {
            0 => unlucky(503),
            _ => Act::Answer(200),
        });
        let more = "retry = [\"0s\", \"1s\"]";
        let (scene, proxy) = scene(url, &[effect("x", &world.url("/"), more)], "");
        lose_the_answer(&proxy);
        let event = scene.send("evt_1", "t", &json!({}));
        scene.wait_for_status(&event, "completed");
        assert_eq!(world.seen().len(), 2);
        check(&scene, &proxy, &event);
    });
}

#[test]
fn the_next_of_an_entity_goes_though_nobody_heard_that_its_turn_came() {
    on_postgres(|url| {
        let world = World::new(|seen| match seen.key() {
            "x:a_1" => Act::HeldThenWith(200, "", UNLUCKY.to_owned()),
            _ => Act::Answer(200),
        });
        let more = "order = { serial = true }";
        let effects = [effect("x", &world.url("/"), more)];
        let (scene, proxy) = scene(url, &effects, "entity = \"data.object.id\"");
        let [first, second] =
            ["a_1", "a_2"].map(|name| scene.send(name, "t", &json!({ "id": "a" })));
        world.wait_for("the first", |seen| seen.len() == 1);
        lose_the_answer(&proxy);
        world.release(1);
        for event in [&first, &second] {
            scene.wait_for_status(event, "completed");
        }
        assert_eq!(world.seen().len(), 2);
        check(&scene, &proxy, &first);
    });
}

#[test]
fn a_probe_is_asked_though_nobody_heard_that_it_is_uncertain() {
    on_postgres(|url| {
        let world = World::new(|seen| match seen.target.as_str() {
            "/x" => unlucky(500),
            _ => Act::AnswerWith(200, "", "{\"applied\": true}".to_owned()),
        });
        let probe = world.url("/applied?key={key}");
        let more = format!("repeat = \"once\"\nprobe = \"{probe}\"");
        let (scene, proxy) = scene(url, &[effect("x", &world.url("/x"), &more)], "");
        lose_the_answer(&proxy);
        let event = scene.send("evt_1", "t", &json!({}));
        scene.wait_for_status(&event, "completed");
        check(&scene, &proxy, &event);
    });
}

/// Liveness: what is due is claimed within lease and a second, whatever kept a lone node from hearing of it. Here somebody else writes
/// into its ledger without a word.
#[test]
fn a_node_that_is_alone_finds_what_nobody_told_it_of() {
    on_postgres(|url| {
        let world = World::well();
        let scene = Scene::short(url, &[effect("x", &world.url("/"), "repeat = \"once\"")]);
        let effect = NewEffect {
            lane: "x".into(),
            ..planned("x", "unheard", Repeat::Once)
        };
        let new = NewEvent {
            effects: vec![effect],
            ..event("billing", "evt_1", "{}")
        };
        let runtime = tokio::runtime::Runtime::new().expect("a runtime");
        let receipts = runtime.block_on(async {
            let store = open(&StoreTarget::Postgres(url.to_owned())).await;
            let store = store.expect("the database of the server");
            let accepted = store.accept(arrival("billing", at(0), vec![new])).await;
            store.close().await;
            accepted.expect("the store accepts")
        });
        scene.wait_for_status(&receipts[0].event.to_string(), "completed");
        assert_eq!(world.seen().len(), 1);
    });
}

//! An endpoint that Hapax disables is an alert, and ends to be one when it is enabled or deleted.

use std::collections::BTreeSet;

use hapax_store::conformance::database::with_database;
use serde_json::{Value, json};

use super::scene::{Scene, message, on_each_store_with};
use crate::operate::alerts::{alerts, is_over, listed, of_type, stands, told, wait_for_alert};
use crate::support::clock::{TOO_LONG, until};
use crate::support::world::{Act, Seen, World};

const KIND: &str = "endpoint_disabled";

fn gone() -> World {
    World::new(|_| Act::Answer(410))
}

fn about<'a>(id: &'a str, fits: fn(&Value) -> bool) -> impl Fn(&Value) -> bool + 'a {
    move |alert| alert["subject"] == id && fits(alert)
}

#[test]
fn an_endpoint_that_is_gone_is_told_until_it_is_enabled_or_deleted() {
    let operators = World::well();
    let more = alerts(&operators.url("/ops"), "100ms");
    on_each_store_with(&more, move |scene| {
        let before = operators.seen().len();
        let world = gone();
        scene.app("acme");
        let first = scene.endpoint("acme", "first", &world, json!({}));
        let second = scene.endpoint("acme", "second", &world, json!({}));
        let paused = scene.endpoint("acme", "paused", &world, json!({"disabled": true}));
        scene.publish("acme", &message(1));
        for id in [&first, &second] {
            let alert = wait_for_alert(&scene.server, KIND, about(id, stands));
            assert_eq!(
                (&alert["code"], &alert["severity"]),
                (&json!("H0508"), &json!("warning"))
            );
            let text = alert["text"].as_str().expect("text");
            assert!(text.contains("answered that it is gone (410)"), "{text}");
        }
        let metrics = scene.server.get("/metrics");
        let metrics = String::from_utf8_lossy(metrics.body()).into_owned();
        assert!(
            metrics.contains("hapax_alerts{kind=\"endpoint_disabled\"} 2"),
            "{metrics}"
        );
        let log = scene.server.wait_for_log("an alert is raised");
        assert_eq!(
            (&log["code"], &log["kind"]),
            (&json!("H0508"), &json!(KIND))
        );

        let enabled = json!({"url": world.url("/first"), "uid": "first", "disabled": false});
        scene.told(200, "PUT", "/app/acme/endpoint/first", &enabled);
        assert_eq!(
            scene
                .ask("DELETE", "/app/acme/endpoint/second", &Value::Null)
                .status,
            204
        );
        for id in [&first, &second] {
            wait_for_alert(&scene.server, KIND, about(id, is_over));
        }
        let all = listed(&scene.server);
        assert!(
            all.iter().all(|alert| alert["subject"] != paused.as_str()),
            "{all:?}"
        );
        // Each was told, once when it began and once when it ended.
        let count = |seen: &[Seen], what| of_type(&seen[before..], what).len();
        let seen = operators.wait_for("the ends", |seen| count(seen, "alert.cleared") == 2);
        assert_eq!(count(&seen, "alert.raised"), 2);
        let data = &told(of_type(&seen[before..], "alert.raised")[0])["data"];
        assert_eq!(data["kind"], KIND);
    });
}

/// Whichever node sent to an endpoint and disabled it, the one that speaks for all tells it, and no other does.
#[test]
fn one_node_tells_what_another_one_disabled() {
    with_database(|database| async move {
        let url = database.url();
        let work = tokio::task::spawn_blocking(move || of_two_nodes(&url));
        work.await.expect("the checks hold");
    });
}

fn of_two_nodes(url: &str) {
    let operators = World::well();
    let more = alerts(&operators.url("/ops"), "100ms");
    let nodes = [Scene::with(url, &more), Scene::with(url, &more)];
    let world = gone();
    nodes[0].app("acme");
    // Their lanes are in so many shards that each node holds some.
    let endpoints: BTreeSet<String> = (0..16)
        .map(|n| nodes[0].endpoint("acme", &format!("e{n}"), &world, json!({})))
        .collect();
    nodes[0].publish("acme", &message(1));
    let alerts_of = |scene: &Scene| {
        let all = listed(&scene.server).into_iter();
        let all = all.filter(|alert| alert["kind"] == KIND && stands(alert));
        all.map(|alert| alert["subject"].as_str().expect("an id").to_owned())
            .collect::<BTreeSet<_>>()
    };
    until(TOO_LONG, "one node tells all of them", || {
        nodes
            .iter()
            .any(|node| alerts_of(node) == endpoints)
            .then_some(())
    });
    let quiet = nodes.iter().any(|node| alerts_of(node).is_empty());
    assert!(quiet, "the other one leaves it to that one");
}

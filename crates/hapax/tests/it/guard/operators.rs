//! Keys as operators see and resolve them; probes.

use serde_json::{Value, json};

use super::scene::{Scene, answered, at_first, counting, refused};
use crate::effects::scene::{SQLITE, on_each_store};
use crate::support::clock::{TOO_LONG, until};
use crate::support::server::TOKEN;
use crate::support::world::{Act, World};

/// A key whose outcome is unknown.
fn unknown(scene: &Scene, key: &str) -> String {
    refused(&scene.charge(key), 502, "upstream-lost");
    let keys = scene.keys(&format!("?state=unknown&key={key}"));
    keys[0]["id"].as_str().expect("an id").to_owned()
}

#[test]
fn an_unknown_outcome_is_resolved_at_a_prompt() {
    on_each_store(|store| {
        let world = at_first(Act::HangUp);
        let scene = Scene::new(store, &world.url(""), "");
        let (done, undone) = (unknown(&scene, "k1"), unknown(&scene, "k2"));
        let listed = scene
            .run(&["keys", "list", "--state", "unknown"])
            .expect_exit(0);
        assert!(
            listed.stdout.contains(&done) && listed.stdout.contains("ada"),
            "{listed:?}"
        );
        let shown = scene.run(&["keys", "show", &done]).expect_exit(0);
        let why = "connection closed without an answer";
        for word in ["k1", "/charges", "POST", "unknown", "charges", why] {
            assert!(shown.stdout.contains(word), "{shown:?}");
        }
        let resolve = |id: &str, outcome: &str| {
            scene.run(&[
                "keys",
                "resolve",
                id,
                "--outcome",
                outcome,
                "--reason",
                "looked it up",
            ])
        };
        resolve(&done, "executed").expect_exit(0);
        refused(&scene.charge("k1"), 409, "response-not-kept");
        resolve(&undone, "not_executed").expect_exit(0);
        answered(&scene.charge("k2"), 1, false);
        answered(&scene.charge("k2"), 1, true);
        let late = resolve(&done, "not_executed").expect_exit(3);
        assert!(late.stderr.contains("error[H0340]"), "{late:?}");
        scene
            .run(&["keys", "show", "key_00000000000000000000000000"])
            .expect_exit(4);
        scene
            .run(&["keys", "list", "--state", "odd"])
            .expect_exit(2);
        let audit = scene.server.get("/api/v1/audit").json();
        let deeds: Vec<&Value> = audit["data"]
            .as_array()
            .expect("a list")
            .iter()
            .filter(|record| record["action"] == "key.resolve")
            .collect();
        assert_eq!(deeds.len(), 2, "{audit:#}");
        assert!(
            deeds
                .iter()
                .all(|record| record["reason"] == "looked it up"),
            "{audit:#}"
        );
    });
}

#[test]
fn a_resolution_is_carried_out_once_and_by_operators() {
    let world = at_first(Act::HangUp);
    let scene = Scene::new(SQLITE, &world.url(""), "");
    let id = unknown(&scene, "k1");
    let path = format!("/api/v1/guard/key/{id}/resolve");
    let body = json!({"outcome": "not_executed", "reason": "looked it up"}).to_string();
    let made = json!({"name": "watcher", "role": "viewer"});
    let viewer = scene.server.post("/api/v1/token", &made).json();
    let viewer = viewer["token"].as_str().expect("a token");
    assert_eq!(
        scene.server.ask_as(viewer, "POST", &path, &body, "").status,
        403
    );
    let without = json!({"outcome": "executed"}).to_string();
    assert_eq!(
        scene
            .server
            .ask_as(TOKEN, "POST", &path, &without, "")
            .status,
        422
    );
    let once = "idempotency-key: r1\r\n";
    let first = scene.server.ask_as(TOKEN, "POST", &path, &body, once);
    assert_eq!(
        (first.status, &first.json()["state"]),
        (200, &json!("released")),
        "{first:?}"
    );
    let again = scene.server.ask_as(TOKEN, "POST", &path, &body, once);
    assert_eq!(again.body(), first.body());
    assert_eq!(again.header("idempotent-replayed"), Some("true"));
    let shown = scene.server.get(&format!("/api/v1/guard/key/{id}")).json();
    assert_eq!(shown["state"], "released", "{shown:#}");
    let nobody = "/api/v1/guard/key/key_00000000000000000000000000/resolve";
    assert_eq!(
        scene.server.ask_as(TOKEN, "POST", nobody, &body, "").status,
        404
    );
}

/// E4: what somebody found out about one run neither frees the key of the next nor settles it.
#[test]
fn a_resolution_is_about_the_run_that_was_looked_at() {
    on_each_store(|store| {
        let world = World::new(|_| Act::HangUp);
        let scene = Scene::new(store, &world.url(""), "");
        let id = unknown(&scene, "k1");
        let path = format!("/api/v1/guard/key/{id}");
        let fence = || scene.server.get(&path).json()["fence"].clone();
        let resolve = |fence: &Value| {
            let body =
                json!({"outcome": "not_executed", "reason": "not in the books", "ifFence": fence});
            scene.server.post(&format!("{path}/resolve"), &body)
        };
        let first = fence();
        assert_eq!(resolve(&first).status, 200);
        // It runs again, and is lost again, while somebody else still looks at the run before.
        assert_eq!(unknown(&scene, "k1"), id);
        let late = resolve(&first);
        assert_eq!(
            (late.status, &late.json()["code"]),
            (409, &json!("H0347")),
            "{late:?}"
        );
        refused(&scene.charge("k1"), 409, "outcome-unknown");
        let second = fence().to_string();
        let shown = scene.run(&["keys", "show", &id]).expect_exit(0);
        assert!(
            shown.stderr.contains(&format!("--if-fence {second}")),
            "{shown:?}"
        );
        let by_fence = |fence: &str| {
            let outcome = ["--outcome", "executed", "--reason", "found it"];
            let mut args = vec!["keys", "resolve", id.as_str(), "--if-fence", fence];
            args.extend(outcome);
            scene.run(&args)
        };
        let late = by_fence(&first.to_string()).expect_exit(3);
        assert!(late.stderr.contains("error[H0347]"), "{late:?}");
        by_fence(&second).expect_exit(0);
        refused(&scene.charge("k1"), 409, "response-not-kept");
        assert_eq!(world.seen().len(), 2);
    });
}

/// One probe that hangs holds up neither the others nor a server that stops.
#[test]
fn probes_that_hang_hold_up_nobody() {
    let world = World::new(|_| Act::HangUp);
    let probe = World::new(|_| Act::Hang);
    let lines = format!("probe = \"{}\"", probe.url("/applied?key={key}"));
    let scene = Scene::new(SQLITE, &world.url(""), &lines);
    for at in 0..5 {
        unknown(&scene, &format!("k{at}"));
    }
    probe.wait_for("a question about each", |seen| seen.len() >= 5);
    assert!(probe.at_once_max() > 1, "they were asked one by one");
    scene.server.signal("TERM");
    assert_eq!(scene.server.wait().code(), Some(0));
}

#[test]
fn lists_of_keys_have_pages() {
    on_each_store(|store| {
        let world = counting();
        let scene = Scene::new(store, &world.url(""), "");
        for at in 0..5 {
            scene.charge(&format!("k{at}"));
        }
        let listed = scene
            .run(&["keys", "list", "--json", "--limit", "3"])
            .expect_exit(0)
            .json();
        let of = |listed: &Value| -> Vec<String> {
            let rows = listed["data"].as_array().expect("a list").iter();
            rows.map(|row| row["key"].as_str().expect("a key").to_owned())
                .collect()
        };
        assert_eq!(of(&listed), ["k4", "k3", "k2"]);
        let next = listed["iterator"].as_str().expect("an iterator");
        let rest = scene
            .run(&["keys", "list", "--json", "--iterator", next])
            .expect_exit(0)
            .json();
        assert_eq!(of(&rest), ["k1", "k0"]);
        assert!(scene.keys("?principal=bob").is_empty());
        assert_eq!(scene.keys("?state=completed&guard=charges").len(), 5);
    });
}

#[test]
fn a_probe_s_yes_settles_an_unknown_outcome() {
    let world = at_first(Act::HangUp);
    let probe = World::new(|_| Act::AnswerWith(200, "", "{\"applied\":true}".to_owned()));
    let url = probe.url("/applied?key={key}&by={principal}");
    let scene = Scene::new(SQLITE, &world.url(""), &format!("probe = \"{url}\""));
    unknown(&scene, "k1");
    let settled = until(TOO_LONG, "the probe has settled it", || {
        let keys = scene.keys("?key=k1");
        Some(keys[0].clone()).filter(|key| key["state"] == "not_kept")
    });
    assert_eq!(settled["runs"], 1, "{settled:#}");
    assert_eq!(probe.seen()[0].target, "/applied?key=k1&by=ada");
    refused(&scene.charge("k1"), 409, "response-not-kept");
    let audit = scene.server.get("/api/v1/audit").json();
    assert_eq!(audit["data"][0]["actor"], "probe:charges", "{audit:#}");
}

/// A "no" could be said while the upstream is still at work: it counts only after lease, grace and time limit.
#[test]
fn a_probe_s_no_counts_when_nothing_can_be_under_way() {
    let world = at_first(Act::HangUp);
    let probe = World::new(|_| Act::AnswerWith(200, "", "{\"applied\":false}".to_owned()));
    let lines = format!(
        "timeout = \"1s\"\nprobe = \"{}\"",
        probe.url("/applied?key={key}")
    );
    let scene = Scene::new(SQLITE, &world.url(""), &lines);
    unknown(&scene, "k1");
    probe.wait_for("a first question", |seen| !seen.is_empty());
    refused(&scene.charge("k1"), 409, "outcome-unknown");
    let freed = until(TOO_LONG, "the probe has settled it", || {
        Some(scene.charge("k1")).filter(|answer| answer.status != 409)
    });
    answered(&freed, 1, false);
    assert!(probe.seen().len() > 1, "it was asked again");
}

//! What operators do to an event, and what the world sees of it.

use serde_json::{Value, json};

use crate::effects::scene::{Scene, effect, on_each_store};
use crate::support::client::Answer;
use crate::support::server::TOKEN;
use crate::support::world::{Act, World};

/// One attempt, no more.
const ONE_TRY: &str = "retry = [\"0s\"]\ntimeout = \"2s\"";

fn act(scene: &Scene, id: &str, action: &str, body: &Value) -> Answer {
    scene
        .server
        .post(&format!("/api/v1/event/{id}/{action}"), body)
}

fn verdict(scene: &Scene, id: &str, query: &str) -> Value {
    scene
        .server
        .get(&format!("/api/v1/event/{id}/verdict{query}"))
        .json()
}

#[track_caller]
fn expect(answer: &Answer, status: u16, code: &str) -> Value {
    assert_eq!(
        (answer.status, answer.code().as_str()),
        (status, code),
        "{answer:?}"
    );
    answer.json()
}

/// A world that refuses `/dead` at first, hangs up on `/silent`, and is well otherwise.
fn world() -> World {
    World::new(|seen| match (seen.target.as_str(), seen.before) {
        ("/dead", 0) => Act::Answer(422),
        ("/silent", 0) => Act::HangUp,
        _ => Act::Answer(200),
    })
}

#[test]
fn a_retry_sends_what_is_not_done_and_nothing_else() {
    on_each_store(|store| {
        let world = world();
        let scene = Scene::new(
            store,
            &[
                effect("good", &world.url("/good"), ONE_TRY),
                effect("bad", &world.url("/dead"), ONE_TRY),
            ],
        );
        let id = scene.send("evt_1", "invoice.paid", &json!({}));
        scene.wait_for_status(&id, "dead");
        scene.wait_for_state(&id, "good", "done");
        let before = verdict(&scene, &id, "");
        assert_eq!(before["verdict"], "safe", "{before:#}");

        let dry = act(
            &scene,
            &id,
            "retry",
            &json!({"reason": "why", "dryRun": true}),
        );
        assert_eq!(expect(&dry, 200, "")["verdict"], before);
        assert_eq!(scene.event(&id)["runs"].as_array().map(Vec::len), Some(1));

        let moved = json!({"reason": "why", "ifRevision": 1});
        let moved = expect(&act(&scene, &id, "retry", &moved), 409, "H0311");
        assert_eq!(moved["verdict"], before);

        let body = json!({"reason": "the target is back", "ifRevision": before["revision"]});
        let run = expect(&act(&scene, &id, "retry", &body), 202, "");
        assert_eq!(run["verdict"], before);
        scene.wait_for_status(&id, "completed");
        let counts = world.by_key();
        assert_eq!((counts["good:evt_1"], counts["bad:evt_1"]), (1, 2), "E1");
        assert_eq!(verdict(&scene, &id, "")["verdict"], "nothing_to_do");

        let event = scene.event(&id);
        let runs = event["runs"].as_array().expect("runs");
        assert_eq!(runs.len(), 2, "{runs:#?}");
        assert_eq!(runs[0]["kind"], "initial");
        assert_eq!(runs[0]["actor"], "billing");
        assert_eq!(runs[1]["kind"], "retry");
        assert_eq!(runs[1]["actor"], "admin");
        assert_eq!(runs[1]["reason"], "the target is back");
        assert_eq!(runs[1]["parentId"], runs[0]["id"]);
        assert_eq!(runs[1]["id"], run["runId"]);
    });
}

#[test]
fn a_replay_skips_what_is_done_unless_it_is_forced() {
    on_each_store(|store| {
        let world = World::well();
        let scene = Scene::new(
            store,
            &[
                effect("one", &world.url("/one"), ""),
                effect("two", &world.url("/two"), ""),
            ],
        );
        let id = scene.send("evt_1", "invoice.paid", &json!({}));
        scene.wait_for_status(&id, "completed");
        let nothing = act(&scene, &id, "replay", &json!({"reason": "to be sure"}));
        assert_eq!(
            expect(&nothing, 202, "")["verdict"]["verdict"],
            "nothing_to_do"
        );

        let shown = verdict(&scene, &id, "?action=replay&force=two");
        assert_eq!(shown["effects"][1]["would"], "send", "{shown:#}");
        let unknown = json!({"reason": "why", "force": ["three"]});
        expect(&act(&scene, &id, "replay", &unknown), 409, "H0312");
        let forced = json!({"reason": "it was lost there", "force": ["two"]});
        expect(&act(&scene, &id, "replay", &forced), 202, "");
        world.wait_for("a second generation", |seen| {
            seen.iter().any(|seen| seen.key() == "two:evt_1#2")
        });
        scene.wait_for_status(&id, "completed");
        assert_eq!(world.by_key()["one:evt_1"], 1, "E1");
        assert_eq!(scene.effect(&id, "two")["generation"], 2);
    });
}

#[test]
fn what_is_uncertain_waits_for_a_person() {
    on_each_store(|store| {
        let world = world();
        let once = format!("repeat = \"once\"\n{ONE_TRY}");
        let scene = Scene::new(store, &[effect("mail", &world.url("/silent"), &once)]);
        let id = scene.send("evt_1", "invoice.paid", &json!({}));
        let mail = scene.wait_for_state(&id, "mail", "uncertain");
        let refused = act(&scene, &id, "retry", &json!({"reason": "why"}));
        let refused = expect(&refused, 409, "H0310");
        assert_eq!(refused["verdict"]["verdict"], "needs_decision");
        assert_eq!(world.seen().len(), 1, "D4");

        let effect = mail["id"].as_str().expect("an id");
        let resolve = |body: &Value| {
            let path = format!("/api/v1/effect/{effect}/resolve");
            scene.server.post(&path, body)
        };
        let body = json!({"outcome": "not_applied", "reason": "not in the mailbox"});
        let resolved = expect(&resolve(&body), 200, "");
        assert!(resolved["verdict"].is_object(), "{resolved:#}");
        scene.wait_for_status(&id, "completed");
        assert_eq!(world.by_key()["mail:evt_1"], 2);
        expect(&resolve(&body), 409, "H0312");
        let unknown = "/api/v1/effect/eff_01m7gsnv4be008000000000001/resolve";
        assert_eq!(scene.server.post(unknown, &body).status, 404);
    });
}

#[test]
fn the_same_request_is_carried_out_once() {
    on_each_store(|store| {
        let world = World::new(|seen| match seen.before {
            0 => Act::Answer(422),
            _ => Act::Answer(200),
        });
        let scene = Scene::new(store, &[effect("bad", &world.url("/"), ONE_TRY)]);
        let id = scene.send("evt_1", "invoice.paid", &json!({}));
        scene.wait_for_status(&id, "dead");
        let path = format!("/api/v1/event/{id}/replay");
        let post = |reason: &str| {
            let body = json!({"reason": reason}).to_string();
            let key = "idempotency-key: k1\r\n";
            scene.server.ask_as(TOKEN, "POST", &path, &body, key)
        };
        let first = post("why");
        assert_eq!(first.status, 202, "{first:?}");
        scene.wait_for_status(&id, "completed");
        let second = post("why");
        assert_eq!((second.status, second.body()), (202, first.body()), "E3");
        assert_eq!(second.header("idempotent-replayed"), Some("true"));
        expect(&post("another reason"), 409, "H0308");
        assert_eq!(world.seen().len(), 2);
        assert_eq!(scene.event(&id)["runs"].as_array().map(Vec::len), Some(2));
        let twice = scene.server.ask_as(
            TOKEN,
            "POST",
            &path,
            "{}",
            "idempotency-key: a\r\nidempotency-key: b\r\n",
        );
        expect(&twice, 400, "H0307");
    });
}

#[test]
fn a_body_that_is_not_understood_changes_nothing() {
    let world = World::well();
    let scene = Scene::new(
        crate::effects::scene::SQLITE,
        &[effect("one", &world.url("/"), "")],
    );
    let id = scene.send("evt_1", "invoice.paid", &json!({}));
    for (body, field, kind) in [
        ("{}", "reason", "missing"),
        (r#"{"reason":""}"#, "reason", "value_error"),
        (
            r#"{"reason":"x","dryrun":true}"#,
            "dryrun",
            "extra_forbidden",
        ),
        (
            r#"{"reason":"x","force":["one"]}"#,
            "force",
            "extra_forbidden",
        ),
        ("[]", "", "json_invalid"),
    ] {
        let path = format!("/api/v1/event/{id}/retry");
        let answer = scene.server.ask_as(TOKEN, "POST", &path, body, "");
        assert_eq!(answer.status, 422, "{body}");
        let wrong = &answer.json()["detail"][0];
        assert_eq!(wrong["loc"], json!(["body", field]), "{body}");
        assert_eq!(wrong["type"], kind, "{body}");
    }
    let missing = "/api/v1/event/evt_01m7gsnv4be008000000000001/retry";
    assert_eq!(
        scene.server.post(missing, &json!({"reason": "x"})).status,
        404
    );
    assert_eq!(scene.event(&id)["runs"].as_array().map(Vec::len), Some(1));
}

#[test]
fn a_reconcile_sends_converging_effects_with_the_truth() {
    on_each_store(|store| {
        let world = World::new(|seen| match seen.target.as_str() {
            "/truth/in_1" if seen.before == 0 => Act::Answer(500),
            "/truth/in_1" => Act::AnswerWith(200, "", "{\"paid\":true}".to_owned()),
            _ => Act::Answer(200),
        });
        let converges = "repeat = \"converges\"\nbody = \"envelope\"";
        let effects = [
            effect("set", &world.url("/set"), converges),
            effect("mail", &world.url("/mail"), ""),
        ];
        let truth = world.url("/truth/{data.object.id}");
        let source = format!("reconcile = {{ url = \"{truth}\" }}\n");
        let scene = Scene::with(store, &effects, &source);
        let id = scene.send("evt_1", "invoice.paid", &json!({"id": "in_1"}));
        scene.wait_for_status(&id, "completed");
        let body = json!({"reason": "the books differ"});
        expect(&act(&scene, &id, "reconcile", &body), 502, "H0315");
        assert_eq!(scene.event(&id)["runs"].as_array().map(Vec::len), Some(1));

        expect(&act(&scene, &id, "reconcile", &body), 202, "");
        let seen = world.wait_for("the repair", |seen| {
            seen.iter().any(|seen| seen.key() == "set:evt_1#2")
        });
        let repair = seen.iter().find(|seen| seen.key() == "set:evt_1#2");
        let sent: Value = serde_json::from_slice(&repair.expect("it was sent").body).expect("JSON");
        assert_eq!(sent["snapshot"], json!({"paid": true}), "E5");
        scene.wait_for_status(&id, "completed");
        assert_eq!(world.by_key()["mail:evt_1"], 1, "E5");
        let run = &scene.event(&id)["runs"][1];
        assert_eq!(run["kind"], "reconcile");
        assert_eq!(run["snapshot"], "{\"paid\":true}");
        let path = format!("/api/v1/event/{id}/timeline");
        let told = scene.server.get(&path).json();
        let mut entries = told["data"].as_array().expect("a list").iter();
        let entry = entries.find(|entry| entry["detail"]["difference"].is_array());
        let entry = entry.expect("the difference is told");
        let difference = json!([
            {"path": "id", "event": "\"in_1\"", "snapshot": null},
            {"path": "paid", "event": null, "snapshot": "true"},
        ]);
        assert_eq!(entry["detail"]["difference"], difference);
        let text = entry["text"].as_str().expect("a text");
        assert!(text.ends_with("paid was nothing, is true"), "{text}");

        let other = Scene::new(crate::effects::scene::SQLITE, &effects);
        let id = other.send("evt_1", "invoice.paid", &json!({"id": "in_1"}));
        expect(&act(&other, &id, "reconcile", &body), 409, "H0316");
    });
}

//! The ledger for the user's own code: one claim at a time, and what was reported is given to whoever asks again.

use serde_json::{Value, json};

use crate::effects::scene::{Scene, effect, on_each_store};
use crate::support::client::Answer;
use crate::support::clock::{TOO_LONG, until};
use crate::support::server::TOKEN;
use crate::support::world::World;

fn claim(scene: &Scene, key: &str, repeat: &str, seconds: u64) -> Value {
    let body = json!({"name": "charge", "key": key, "repeat": repeat, "leaseSeconds": seconds});
    let answer = scene.server.post("/api/v1/effect/claim", &body);
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.json()
}

fn tell(scene: &Scene, claimed: &Value, verb: &str, mut body: Value) -> Answer {
    body["fence"] = claimed["fence"].clone();
    let id = claimed["effectId"].as_str().expect("an id");
    scene
        .server
        .post(&format!("/api/v1/effect/{id}/{verb}"), &body)
}

#[test]
fn what_is_claimed_and_settled_is_done_for_everybody() {
    on_each_store(|store| {
        let scene = Scene::new(store, &[]);
        let claimed = claim(&scene, "in_1", "once", 60);
        assert_eq!(claimed["verdict"], "claimed", "{claimed:#}");
        assert_eq!(claim(&scene, "in_1", "once", 60)["verdict"], "in_flight");
        let extended = tell(&scene, &claimed, "extend", json!({"leaseSeconds": 120}));
        assert_eq!(extended.status, 200, "{extended:?}");
        assert!(extended.json()["until"].is_string());

        let result = json!({"outcome": "done", "result": {"charge": "ch_1"}});
        let settled = tell(&scene, &claimed, "settle", result.clone());
        assert_eq!(
            (settled.status, &settled.json()["state"]),
            (200, &json!("done"))
        );
        let again = tell(&scene, &claimed, "settle", result);
        assert_eq!(
            again.status, 200,
            "whoever did not hear it asks again: {again:?}"
        );
        let done = claim(&scene, "in_1", "once", 60);
        assert_eq!(done["verdict"], "done");
        assert_eq!(done["result"], json!({"charge": "ch_1"}));
        let other = tell(&scene, &claimed, "settle", json!({"outcome": "failed"}));
        assert_eq!((other.status, other.code().as_str()), (409, "stale_fence"));
    });
}

#[test]
fn a_claim_whose_answer_got_lost_is_the_same_claim() {
    on_each_store(|store| {
        let scene = Scene::new(store, &[]);
        let post = |path: &str, key: &str, body: &Value| {
            let key = format!("idempotency-key: {key}\r\n");
            let server = &scene.server;
            server.ask_as(TOKEN, "POST", path, &body.to_string(), &key)
        };
        let body = json!({"name": "charge", "key": "in_1", "repeat": "once", "leaseSeconds": 60});
        let first = post("/api/v1/effect/claim", "k-1", &body);
        assert_eq!(first.json()["verdict"], "claimed", "{first:?}");
        let again = post("/api/v1/effect/claim", "k-1", &body);
        assert_eq!(again.json(), first.json(), "and not in_flight");
        assert_eq!(again.header("idempotent-replayed"), Some("true"));
        let mut other = body.clone();
        other["key"] = json!("in_2");
        let reused = post("/api/v1/effect/claim", "k-1", &other);
        assert_eq!((reused.status, reused.code().as_str()), (409, "H0308"));
        assert_eq!(
            post("/api/v1/effect/claim", "k-2", &body).json()["verdict"],
            "in_flight"
        );

        let id = first.json()["effectId"].as_str().expect("an id").to_owned();
        let settle = format!("/api/v1/effect/{id}/settle");
        let done =
            json!({"fence": first.json()["fence"], "outcome": "done", "result": {"charge": 1}});
        let settled = post(&settle, "k-3", &done);
        assert_eq!(settled.json()["state"], "done", "{settled:?}");
        assert_eq!(post(&settle, "k-3", &done).json(), settled.json());
        // What was in flight is done by now: an answer that may change is not kept.
        let asked = post("/api/v1/effect/claim", "k-2", &body);
        assert_eq!(asked.json()["verdict"], "done");
    });
}

#[test]
fn a_claim_that_ran_out_is_somebody_else_s() {
    on_each_store(|store| {
        let scene = Scene::new(store, &[]);
        let first = claim(&scene, "k", "keyed", 1);
        let once = claim(&scene, "o", "once", 1);
        let second = until(TOO_LONG, "the lease runs out", || {
            Some(claim(&scene, "k", "keyed", 60)).filter(|one| one["verdict"] == "claimed")
        });
        assert!(second["fence"].as_u64() > first["fence"].as_u64(), "C1");
        let late = tell(&scene, &first, "settle", json!({"outcome": "done"}));
        assert_eq!(
            (late.status, late.code().as_str()),
            (409, "stale_fence"),
            "C2"
        );
        let late = tell(&scene, &first, "extend", json!({"leaseSeconds": 5}));
        assert_eq!(
            (late.status, late.code().as_str()),
            (409, "stale_fence"),
            "C2"
        );
        until(TOO_LONG, "nobody can tell", || {
            let asked = claim(&scene, "o", "once", 60);
            (asked["verdict"] == "uncertain" && asked["effectId"] == once["effectId"]).then_some(())
        });
        let failed = tell(
            &scene,
            &second,
            "settle",
            json!({"outcome": "failed", "error": "busy"}),
        );
        assert_eq!(failed.status, 200, "{failed:?}");
        assert_eq!(claim(&scene, "k", "keyed", 60)["verdict"], "claimed");
    });
}

/// An effect of the user's own code as the API shows it.
fn shown(scene: &Scene, claimed: &Value) -> Value {
    let id = claimed["effectId"].as_str().expect("an id");
    scene.server.get(&format!("/api/v1/effect/{id}")).json()
}

/// Nobody asks again, and the ledger still says what became of them: a lost claim is freed by whoever looks after the shard. Nothing is
/// sent for it, though the config has come to name an effect so, and nobody's probe decides about it.
#[test]
fn a_lost_claim_is_freed_and_never_sent() {
    on_each_store(|store| {
        let world = World::well();
        let scene = Scene::new(store, &[]);
        let (keyed, once) = (
            claim(&scene, "k", "keyed", 1),
            claim(&scene, "o", "once", 1),
        );
        let probe = world.url("/applied?key={key}");
        let more = format!("repeat = \"once\"\nprobe = \"{probe}\"");
        scene.reload(&[effect("charge", &world.url("/"), &more)]);
        for (claimed, state) in [(&keyed, "pending"), (&once, "uncertain")] {
            let freed = until(TOO_LONG, "the claim is freed", || {
                Some(shown(&scene, claimed)).filter(|effect| effect["state"] == state)
            });
            assert_eq!(freed["lane"], "~own:charge");
            assert_eq!(freed["lastOutcome"], "lost: lost_lease");
        }
        let event = scene.send("evt_1", "invoice.paid", &json!({}));
        scene.wait_for_status(&event, "completed");
        assert_eq!(world.by_key(), [("charge:evt_1".to_owned(), 1)].into());

        scene.reload(&[]);
        let second = claim(&scene, "k", "keyed", 60);
        assert_eq!(second["verdict"], "claimed");
        assert!(second["fence"].as_u64() > keyed["fence"].as_u64(), "C1");
        assert_eq!(claim(&scene, "o", "once", 60)["verdict"], "uncertain");
    });
}

/// The user's own code runs elsewhere: what it holds outlives the server.
#[test]
fn a_claim_outlives_the_server() {
    on_each_store(|store| {
        let scene = Scene::new(store, &[]);
        let claimed = claim(&scene, "o", "once", 60);
        let scene = scene.restarted();
        assert_eq!(claim(&scene, "o", "once", 60)["verdict"], "in_flight");
        let settled = tell(&scene, &claimed, "settle", json!({"outcome": "done"}));
        assert_eq!(settled.status, 200, "{settled:?}");
        assert_eq!(claim(&scene, "o", "once", 60)["verdict"], "done");
    });
}

#[test]
fn what_hapax_sends_is_not_for_own_code() {
    on_each_store(|store| {
        let world = World::well();
        let scene = Scene::new(store, &[effect("charge", &world.url("/"), "")]);
        let event = scene.send("evt_1", "invoice.paid", &json!({}));
        scene.wait_for_status(&event, "completed");
        let claim = |body: &Value| scene.server.post("/api/v1/effect/claim", body);
        let body = json!({"name": "charge", "key": "evt_1", "repeat": "keyed", "leaseSeconds": 5});
        let refused = claim(&body);
        assert_eq!((refused.status, refused.code().as_str()), (409, "H0320"));
        let effect = scene.effect(&event, "charge");
        let id = effect["id"].as_str().expect("an id");
        let settle = format!("/api/v1/effect/{id}/settle");
        let refused = scene
            .server
            .post(&settle, &json!({"fence": 1, "outcome": "done"}));
        assert_eq!((refused.status, refused.code().as_str()), (409, "H0320"));

        // With an event, the event shows it.
        let body = json!({
            "eventId": event, "name": "note", "key": "evt_1", "repeat": "keyed", "leaseSeconds": 5,
        });
        assert_eq!(claim(&body).json()["verdict"], "claimed");
        assert_eq!(scene.effect(&event, "note")["state"], "claimed");
        let nobody = json!({
            "eventId": "evt_01m7gsnv4be008000000000001", "name": "note", "key": "k", "repeat": "keyed",
            "leaseSeconds": 5,
        });
        assert_eq!(claim(&nobody).status, 404);
        let large = json!({"fence": 1, "outcome": "done", "result": "x".repeat(8_192)});
        assert_eq!(scene.server.post(&settle, &large).status, 422);
    });
}

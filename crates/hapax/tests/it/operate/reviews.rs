//! Events that wait for a person, and deliveries with another body.

use serde_json::{Value, json};

use crate::effects::scene::{Scene, effect, fact, on_each_store};
use crate::support::client::Answer;
use crate::support::world::{Act, World};

fn review(scene: &Scene, id: &str, outcome: &str) -> Answer {
    let body = json!({"outcome": outcome, "reason": "looked at it"});
    scene
        .server
        .post(&format!("/api/v1/event/{id}/review"), &body)
}

/// An effect whose condition cannot be asked of the body below.
const CONDITION: &str = "when = 'data.object.list.all(x, x > 0)'";

/// A body with a list that is too long to loop over.
fn unplannable() -> Value {
    json!({"id": "in_1", "list": vec![1; 1_001]})
}

#[test]
fn a_release_plans_with_the_current_config() {
    on_each_store(|store| {
        let world = World::well();
        let scene = Scene::new(store, &[effect("one", &world.url("/"), CONDITION)]);
        let id = scene.send("evt_1", "invoice.paid", &unplannable());
        assert_eq!(scene.event(&id)["lastErrorCode"], "H0212");
        let refused = review(&scene, &id, "release");
        assert_eq!((refused.status, refused.code().as_str()), (409, "H0317"));
        assert_eq!(scene.event(&id)["status"], "needs_review");

        scene.reload(&[effect("one", &world.url("/"), "")]);
        assert_eq!(review(&scene, &id, "release").status, 200);
        scene.wait_for_status(&id, "completed");
        assert_eq!(world.by_key()["one:evt_1"], 1);
        let again = review(&scene, &id, "release");
        assert_eq!((again.status, again.code().as_str()), (409, "H0313"));
    });
}

#[test]
fn what_is_dismissed_comes_to_nothing() {
    on_each_store(|store| {
        let world = World::well();
        let order = "order = { serial = true, review = 'data.object.odd == true' }";
        let source = "entity = \"data.object.id\"\n";
        let scene = Scene::with(store, &[effect("one", &world.url("/"), order)], source);
        let object = json!({"id": "in_1", "odd": true});
        let dismissed = scene.send("evt_1", "invoice.paid", &object);
        scene.wait_for_status(&dismissed, "needs_review");
        assert_eq!(review(&scene, &dismissed, "dismiss").status, 200);
        scene.wait_for_status(&dismissed, "completed");
        assert_eq!(scene.effect(&dismissed, "one")["state"], "skipped");
        assert!(world.seen().is_empty());

        let released = scene.send("evt_2", "invoice.paid", &object);
        scene.wait_for_status(&released, "needs_review");
        assert_eq!(review(&scene, &released, "release").status, 200);
        scene.wait_for_status(&released, "completed");
        assert_eq!(world.by_key()["one:evt_2"], 1);
    });
}

/// What its snapshot held for a person is sent once it is released, though the snapshot is what it was.
#[test]
fn what_a_snapshot_held_is_sent_once_when_released() {
    on_each_store(|store| {
        let world = World::new(|seen| match seen.target.as_str() {
            "/truth/in_1" => Act::AnswerWith(200, "", "{\"status\": \"void\"}".to_owned()),
            _ => Act::Answer(200),
        });
        let order = "order = { snapshot = true, review = 'snapshot.status != \"paid\"' }\nbody = \"envelope\"";
        let truth = world.url("/truth/{data.object.id}");
        let source = format!("entity = \"data.object.id\"\nreconcile = {{ url = \"{truth}\" }}\n");
        let scene = Scene::with(store, &[effect("one", &world.url("/one"), order)], &source);
        let id = scene.send("evt_1", "invoice.paid", &json!({"id": "in_1"}));
        let held = scene.wait_for_status(&id, "needs_review");
        assert_eq!(held["lastErrorCode"], "H0222");
        assert!(!world.by_key().contains_key("one:evt_1"));

        assert_eq!(review(&scene, &id, "release").status, 200);
        scene.wait_for_status(&id, "completed");
        assert_eq!(world.by_key()["one:evt_1"], 1);
        let seen = world.seen();
        let sent = seen.iter().find(|seen| seen.target == "/one");
        let body: Value = serde_json::from_slice(&sent.expect("sent").body).expect("an envelope");
        assert_eq!(body["snapshot"]["status"], "void");
    });
}

#[test]
fn a_conflict_is_acknowledged_or_becomes_an_event_of_its_own() {
    on_each_store(|store| {
        let world = World::well();
        let scene = Scene::new(store, &[effect("one", &world.url("/"), "")]);
        let id = scene.send("evt_1", "invoice.paid", &json!({"amount": 1}));
        scene.wait_for_status(&id, "completed");
        let other = fact("evt_1", "invoice.paid", &json!({"amount": 2}));
        assert_eq!(scene.send_bytes(&other), id);
        let third = fact("evt_1", "invoice.paid", &json!({"amount": 3}));
        assert_eq!(scene.send_bytes(&third), id);

        let base = format!("/api/v1/event/{id}");
        let verdict = scene.server.get(&format!("{base}/verdict")).json();
        assert_eq!(verdict["verdict"], "needs_decision", "B3: {verdict:#}");
        let bytes = scene.server.get(&format!("{base}/conflict/1/body"));
        assert_eq!(bytes.body(), other);
        let decide = |number: u32, outcome: &str| {
            let body = json!({"outcome": outcome, "reason": "looked at it"});
            let path = format!("{base}/conflict/{number}");
            let key = format!("idempotency-key: {number}{outcome}\r\n");
            let token = crate::support::server::TOKEN;
            scene
                .server
                .ask_as(token, "POST", &path, &body.to_string(), &key)
        };
        let promoted = decide(1, "promote");
        assert_eq!(promoted.status, 200, "{promoted:?}");
        let event = promoted.json()["eventId"]
            .as_str()
            .expect("an id")
            .to_owned();
        assert_ne!(event, id);
        let shown = scene.wait_for_status(&event, "completed");
        assert_eq!(shown["key"], "[\"evt_1\",\"conflict\",\"1\"]");
        let body = scene.server.get(&format!("/api/v1/event/{event}/body"));
        assert_eq!(body.body(), other, "E2");
        assert_eq!(world.seen().len(), 2);
        assert_eq!(
            decide(1, "promote").body(),
            promoted.body(),
            "the same request"
        );

        assert_eq!(decide(2, "acknowledge").status, 200);
        let refused = decide(2, "promote");
        assert_eq!((refused.status, refused.code().as_str()), (409, "H0314"));
        let refused = decide(0, "acknowledge");
        assert_eq!((refused.status, refused.code().as_str()), (409, "H0314"));
        let verdict = scene.server.get(&format!("{base}/verdict")).json();
        assert_eq!(verdict["verdict"], "nothing_to_do", "{verdict:#}");
        let deliveries = &scene.event(&id)["deliveries"];
        assert_eq!(deliveries[1]["decided"], "promoted");
        assert_eq!(deliveries[1]["promotedTo"], event.as_str());
        assert_eq!(deliveries[2]["decided"], "acknowledged");
    });
}

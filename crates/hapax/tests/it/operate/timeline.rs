//! What happened to an event, told in order from what is kept.

use serde_json::json;

use crate::effects::scene::{Scene, effect, on_each_store};
use crate::support::world::{Act, World};

#[test]
fn a_timeline_tells_who_did_what_and_why() {
    on_each_store(|store| {
        let world = World::new(|seen| match seen.before {
            0 => Act::AnswerWith(422, "", "amount is missing".to_owned()),
            _ => Act::Answer(200),
        });
        let scene = Scene::new(
            store,
            &[effect("mail", &world.url("/"), "retry = [\"0s\"]")],
        );
        let id = scene.send("evt_1", "invoice.paid", &json!({}));
        scene.wait_for_status(&id, "dead");
        assert_eq!(scene.send("evt_1", "invoice.paid", &json!({})), id);
        let retry = json!({"reason": "they mended it"});
        let path = format!("/api/v1/event/{id}/retry");
        assert_eq!(scene.server.post(&path, &retry).status, 202);
        scene.wait_for_status(&id, "completed");

        let told = scene
            .server
            .get(&format!("/api/v1/event/{id}/timeline"))
            .json();
        let entries = told["data"].as_array().expect("a list");
        let kinds: Vec<&str> = (entries.iter())
            .map(|entry| entry["kind"].as_str().expect("a kind"))
            .collect();
        let want = [
            "received",
            "effect",
            "attempt",
            "duplicate",
            "run",
            "attempt",
            "status",
        ];
        assert_eq!(kinds, want, "{told:#}");
        let text = |place: usize| entries[place]["text"].as_str().expect("a text");
        assert!(text(0).contains("under key evt_1"), "{}", text(0));
        assert!(
            text(2).contains("mail (evt_1): attempt 1 answered 422"),
            "{}",
            text(2)
        );
        assert!(text(2).ends_with("amount is missing"), "{}", text(2));
        assert_eq!(text(4), "Retry, by admin: they mended it");
        assert_eq!(entries[4]["actor"], "admin");
        assert_eq!(text(6), "Now completed: mail (evt_1) done.");
        let nobody = "/api/v1/event/evt_01m7gsnv4be008000000000001/timeline";
        assert_eq!(scene.server.get(nobody).status, 404);
    });
}

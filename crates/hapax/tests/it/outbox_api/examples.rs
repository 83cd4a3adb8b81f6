//! Examples: sent to one endpoint, and no other endpoint's business.

use serde_json::{Value, json};

use super::again::finished;
use super::scene::{message, on_each_store};
use crate::support::clock::{TOO_LONG, until};
use crate::support::world::World;

#[test]
fn an_example_is_not_what_another_endpoint_missed() {
    on_each_store(|scene| {
        let world = World::well();
        scene.app("acme");
        scene.endpoint("acme", "one", &world, json!({"eventTypes": ["other"]}));
        let example = json!({"eventType": "invoice.paid", "payload": {"n": 1}});
        let path = "/app/acme/endpoint/one/send-example";
        let sent = scene.told(202, "POST", path, &example);
        let example = sent["id"].as_str().expect("an id");
        scene.endpoint("acme", "two", &world, json!({}));
        let plain = scene.publish("acme", &message(2));
        let done =
            |uid: &str| scene.listed(&format!("/app/acme/endpoint/{uid}/msg?status=0"), "id");
        until(TOO_LONG, "each has its own", || {
            (done("one") == [example] && done("two") == [plain.as_str()]).then_some(())
        });

        let since = json!({"since": "2020-01-01T00:00:00Z"});
        for job in ["replay-missing", "recover"] {
            let task = scene.told(
                202,
                "POST",
                &format!("/app/acme/endpoint/two/{job}"),
                &since,
            );
            let told = finished(&scene, &task);
            let counts = (&told["messagesSeen"], &told["messagesSent"]);
            assert_eq!(counts, (&json!(1), &json!(0)), "{job}");
        }
        assert_eq!(world.seen().len(), 2, "nothing more has gone out");
        let polled = |uid: &str| scene.listed(&format!("/app/acme/poller/{uid}"), "id");
        assert_eq!(polled("two"), [plain.as_str()]);

        assert_eq!(
            scene.listed("/app/acme/msg", "id"),
            [plain.as_str(), example]
        );
        let tried = "/app/acme/attempt/endpoint/one?with_msg=true";
        assert_eq!(scene.listed(tried, "msgId"), [example]);
        let task = scene.told(202, "POST", "/app/acme/endpoint/one/bulk-replay", &since);
        assert_eq!(finished(&scene, &task)["messagesSent"], 1, "its own again");
        world.wait_for("it again", |seen| seen.len() == 3);
        let gone = scene.told(
            202,
            "POST",
            "/app/acme/msg/expunge-all-contents",
            &Value::Null,
        );
        assert_eq!(
            finished(&scene, &gone)["messagesPurged"],
            2,
            "nothing is left out"
        );
    });
}

#[test]
fn no_example_is_promised_to_an_endpoint_that_is_disabled() {
    on_each_store(|scene| {
        let world = World::well();
        scene.app("acme");
        scene.endpoint("acme", "one", &world, json!({"disabled": true}));
        let example = json!({"eventType": "invoice.paid", "payload": {"n": 1}});
        let path = "/app/acme/endpoint/one/send-example";
        let refused = scene.told(409, "POST", path, &example);
        assert_eq!(refused["code"], "H0332", "{refused}");
    });
}

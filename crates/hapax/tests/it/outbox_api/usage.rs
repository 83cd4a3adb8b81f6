//! What was sent for each application, and what each is subscribed to, as background tasks tell it.

use serde_json::{Value, json};

use super::again::finished;
use super::scene::{message, on_each_store};
use crate::support::clock::{TOO_LONG, until};
use crate::support::world::World;

#[test]
fn attempts_are_counted_by_application() {
    on_each_store(|scene| {
        let world = World::well();
        for app in ["acme", "other", "quiet"] {
            scene.app(app);
        }
        scene.endpoint("acme", "one", &world, json!({}));
        scene.endpoint("acme", "two", &world, json!({}));
        scene.endpoint("other", "three", &world, json!({}));
        scene.publish("acme", &message(1));
        scene.publish("other", &message(2));
        let counted = |body: &Value| {
            let task = scene.told(202, "POST", "/stats/usage/app", body);
            assert_eq!(task["task"], "application.stats");
            let found = finished(&scene, &task)["appStats"].clone();
            let found = found.as_array().expect("a list").iter();
            let mut found: Vec<(String, u64)> = found
                .map(|one| {
                    let uid = one["appUid"].as_str().expect("a uid");
                    let attempts = one["messageDestinations"].as_u64().expect("a number");
                    (uid.to_owned(), attempts)
                })
                .collect();
            found.sort();
            (found, task["unresolvedAppIds"].clone())
        };
        let span = json!({"since": "2020-01-01T00:00:00Z", "until": "2100-01-01T00:00:00Z"});
        let of = |app: &str, attempts| (app.to_owned(), attempts);
        until(TOO_LONG, "all attempts are counted", || {
            let (found, unknown) = counted(&span);
            assert_eq!(unknown, json!([]));
            let all = [of("acme", 2), of("other", 1), of("quiet", 0)];
            (found == all).then_some(())
        });
        let mut some = span.clone();
        some["appIds"] = json!(["acme", "nobody"]);
        assert_eq!(counted(&some), (vec![of("acme", 2)], json!(["nobody"])));
        let mut early = span.clone();
        early["until"] = "2021-01-01T00:00:00Z".into();
        assert_eq!(counted(&early).0[0], of("acme", 0));
        some["appIds"] = json!(["nobody"]);
        for wrong in [some, json!({}), json!({"since": "2020-01-01T00:00:00Z"})] {
            let refused = scene.post("/stats/usage/app", &wrong);
            assert_eq!(refused.status, 422, "{wrong}");
        }
    });
}

#[test]
fn subscriptions_are_told_by_application() {
    on_each_store(|scene| {
        let world = World::well();
        scene.app("acme");
        scene.app("other");
        let types = json!({"eventTypes": ["b", "a"]});
        scene.endpoint("acme", "one", &world, types);
        scene.endpoint("acme", "two", &world, json!({"eventTypes": ["a"]}));
        scene.endpoint("other", "all", &world, json!({}));
        let task = scene.told(202, "PUT", "/stats/usage/event-types", &Value::Null);
        assert_eq!(task["task"], "event-type.aggregate");
        let scene = scene.restarted();
        let found = finished(&scene, &task)["event_types"].clone();
        let ids = scene.listed("/app?order=ascending", "id");
        let told = |id: &str, types: Value, all: bool| json!({"appId": id, "explicitlySubscribedEventTypes": types, "hasCatchAllEndpoint": all});
        let acme = told(&ids[0], json!(["a", "b"]), false);
        assert_eq!(found, json!([acme, told(&ids[1], json!([]), true)]));
    });
}

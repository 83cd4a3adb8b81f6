//! Tokens of one application: they see it and no other, as far as their role goes, until they end.

use serde_json::{Value, json};

use super::scene::{message, on_each_store};
use crate::support::world::World;

#[test]
fn a_token_of_the_portal_sees_its_own_application_until_it_ends() {
    on_each_store(|scene| {
        let world = World::well();
        scene.app("acme");
        scene.app("rival");
        scene.endpoint("acme", "one", &world, json!({}));
        let access = |body: Value| {
            let told = scene.told(200, "POST", "/auth/app-portal-access/acme", &body);
            told["token"].as_str().expect("a token").to_owned()
        };
        let token = access(json!({"sessionId": "s1"}));
        let looks = access(json!({"readOnly": true}));
        let ask = |token: &str, method: &str, path: &str, body: &Value| {
            scene.ask_as(token, method, path, body).status
        };
        let none = Value::Null;
        assert_eq!(ask(&token, "GET", "/app/acme/endpoint", &none), 200);
        assert_eq!(
            ask(&token, "GET", "/app/acme/endpoint/one/secret", &none),
            200
        );
        assert_eq!(ask(&token, "GET", "/event-type", &none), 200);
        assert_eq!(
            ask(&looks, "GET", "/app/acme/endpoint/one/secret", &none),
            403
        );
        assert_eq!(ask(&looks, "DELETE", "/app/acme/endpoint/one", &none), 403);
        // It is a GET, and moves the consumer's place.
        let place = "/app/acme/poller/one/consumer/main";
        assert_eq!(ask(&looks, "GET", place, &none), 403);
        assert_eq!(ask(&token, "GET", place, &none), 200);
        assert_eq!(ask(&looks, "GET", "/app/acme/poller/one", &none), 200);
        for path in [
            "/app/rival/endpoint",
            "/app/nobody/endpoint",
            "/app",
            "/event",
            "/token",
        ] {
            assert_eq!(ask(&token, "GET", path, &none), 403, "{path} (J3)");
        }
        assert_eq!(ask(&token, "POST", "/app/acme/msg", &message(1)), 403);
        assert_eq!(ask(&token, "DELETE", "/app/acme", &none), 403);
        assert_eq!(ask(&looks, "POST", "/auth/logout", &none), 204);
        assert_eq!(ask(&looks, "GET", "/app/acme/endpoint", &none), 401);
        assert_eq!(
            ask(crate::support::server::TOKEN, "POST", "/auth/logout", &none),
            409
        );
        let others = json!({"sessionIds": ["s2"]});
        assert_eq!(scene.post("/auth/app/acme/expire-all", &others).status, 204);
        assert_eq!(ask(&token, "GET", "/app/acme/endpoint", &none), 200);
        assert_eq!(
            scene.post("/auth/app/acme/expire-all", &json!({})).status,
            204
        );
        assert_eq!(ask(&token, "GET", "/app/acme/endpoint", &none), 401);
        let audit = scene.get("/audit?limit=250").json().to_string();
        assert!(!audit.contains(&token) && !audit.contains(&looks), "J2");
    });
}

/// Flags would narrow what a consumer is shown, and here nothing does: no token is made that shows more than was asked for.
#[test]
fn access_with_feature_flags_is_refused() {
    on_each_store(|scene| {
        let path = "/auth/app-portal-access/acme";
        let flags = |flags: Value| json!({"application": {"name": "acme"}, "featureFlags": flags});
        let refused = scene.post(path, &flags(json!(["beta"])));
        assert_eq!((refused.status, refused.code().as_str()), (501, "H0327"));
        assert!(refused.json()["token"].is_null(), "{refused:?}");
        assert_eq!(scene.get("/app/acme").status, 404, "nothing was done");
        assert!(scene.listed("/audit", "action").is_empty());
        assert_eq!(scene.post(path, &flags(json!("beta"))).status, 422);
        for none in [json!([]), Value::Null] {
            let access = scene.told(200, "POST", path, &flags(none));
            assert!(access["token"].is_string(), "{access}");
        }
    });
}

#[test]
fn a_publishers_token_of_one_application_publishes_for_it_alone() {
    on_each_store(|scene| {
        scene.app("acme");
        scene.app("rival");
        let body = json!({"name": "publisher", "role": "admin", "app": "acme"});
        let made = scene.told(201, "POST", "/token", &body);
        let token = made["token"].as_str().expect("a token");
        let publish = |app: &str| {
            let path = format!("/app/{app}/msg");
            scene.ask_as(token, "POST", &path, &message(1)).status
        };
        assert_eq!((publish("acme"), publish("rival")), (202, 403));
    });
}

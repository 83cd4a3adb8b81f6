//! What the SDKs know and Hapax does not offer: 501 with a code, whatever the method, and nothing is done.

use serde_json::{Value, json};

use super::scene::on_each_store;
use crate::support::server::TOKEN;

/// What is about one application, behind its path.
const OF_APP: [&str; 17] = [
    "/autoconfig",
    "/autoconfig/acfg_2",
    "/autoconfig/acfg_2/endpoint",
    "/destination",
    "/destination/one/secret/rotate",
    "/destination/one/transformation",
    "/endpoint/one/auto-config",
    "/endpoint/one/transformation",
    "/events",
    "/events/subscription/one",
    "/integration",
    "/integration/one",
    "/integration/one/key/rotate",
    "/msg/bulk-expunge",
    "/msg/one/attempt/one/content",
    "/polling-endpoint/one/consumer/two",
    "/polling-endpoint/one/consumer/two/commit",
];

/// What is not.
const OTHERS: [&str; 12] = [
    "/api/v1/auth/stream-logout",
    "/api/v1/auth/stream-portal-access/one",
    "/api/v1/auth/stream/one/sink/two/poller/token",
    "/api/v1/connector",
    "/api/v1/connector/one",
    "/api/v1/environment/export",
    "/api/v1/environment/import",
    "/api/v1/stream",
    "/api/v1/stream/event-type",
    "/api/v1/stream/one/sink/two/headers",
    "/ingest/api/v1/source",
    "/ingest/api/v1/source/one/endpoint/two",
];

#[test]
fn what_is_not_offered_answers_501_with_a_code() {
    on_each_store(|scene| {
        scene.app("acme");
        let of_app = OF_APP.iter().map(|path| format!("/api/v1/app/acme{path}"));
        let others = OTHERS.iter().map(|path| (*path).to_owned());
        for path in of_app.chain(others) {
            for method in ["GET", "POST", "PUT", "PATCH", "DELETE"] {
                let told = scene.server.ask_as(TOKEN, method, &path, "", "");
                let code = told.code();
                assert_eq!((told.status, &*code), (501, "H0327"), "{method} {path}");
            }
            let stranger = scene.server.ask_as("hpx_nobody", "GET", &path, "", "");
            assert_eq!(stranger.status, 401, "{path}");
        }
        let known = scene.listed("/audit", "action");
        assert_eq!(known, ["app.create"], "nothing was done");
    });
}

/// Tokens of one application say which; others are for all of them.
#[test]
fn a_token_says_what_it_is_for() {
    on_each_store(|scene| {
        let who = |token: &str| {
            let told = scene.ask_as(token, "GET", "/auth/whoami", &Value::Null);
            assert_eq!(told.status, 200, "{told:?}");
            told.json()
        };
        let source = "RegionalAuthToken";
        let admin = json!({"permissionSource": source, "role": "admin"});
        assert_eq!(who(TOKEN), admin);
        let made = scene.told(201, "POST", "/app", &json!({"name": "acme", "uid": "acme"}));
        let body = json!({"readOnly": true});
        let access = scene.told(200, "POST", "/auth/app-portal-access/acme", &body);
        let body = json!({"name": "publisher", "role": "admin", "app": "acme"});
        let publisher = scene.told(201, "POST", "/token", &body);
        for (token, role) in [(&access["token"], "viewer"), (&publisher["token"], "admin")] {
            let told = who(token.as_str().expect("a token"));
            let own = json!({"appId": made["id"], "permissionSource": source, "role": role});
            assert_eq!(told, own);
        }
        let nobody = scene.ask_as("hpx_nobody", "GET", "/auth/whoami", &Value::Null);
        assert_eq!(nobody.status, 401);
    });
}

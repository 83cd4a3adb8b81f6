//! Tokens: made, used, expired, revoked; and what each role may do.

use serde_json::{Value, json};

use crate::effects::scene::{Scene, on_each_store};
use crate::support::client::Answer;
use crate::support::clock::now_micros;
use crate::support::server::{Server, TOKEN};
use crate::support::site::Site;

/// Makes a token; gives its id and its secret.
#[track_caller]
pub(super) fn token(server: &Server, body: &Value) -> (String, String) {
    let answer = server.post("/api/v1/token", body);
    assert_eq!(answer.status, 201, "{answer:?}");
    let made = answer.json();
    let text = |name: &str| made[name].as_str().expect("a text").to_owned();
    (text("id"), text("token"))
}

fn get(server: &Server, token: &str, path: &str) -> Answer {
    server.ask_as(token, "GET", path, "", "")
}

#[test]
fn a_token_counts_until_it_is_revoked_and_is_kept_as_a_hash() {
    on_each_store(|store| {
        let scene = Scene::new(store, &[]);
        let server = &scene.server;
        let (id, secret) = token(server, &json!({"name": "ada", "role": "viewer"}));
        assert!(secret.starts_with("hpx_") && secret.len() == 68, "{secret}");
        assert_eq!(get(server, &secret, "/api/v1/event").status, 200);
        let taken = server.post("/api/v1/token", &json!({"name": "ada", "role": "viewer"}));
        assert_eq!((taken.status, taken.code().as_str()), (409, "H0318"));
        let taken = server.post("/api/v1/token", &json!({"name": "admin", "role": "viewer"}));
        assert_eq!((taken.status, taken.code().as_str()), (409, "H0318"));

        let listed = server.get("/api/v1/token");
        assert!(!String::from_utf8_lossy(listed.body()).contains(&secret));
        assert_eq!(listed.json()["data"][0]["name"], "ada");

        let path = format!("/api/v1/token/{id}/revoke");
        assert_eq!(server.post(&path, &json!({"reason": "left"})).status, 200);
        assert_eq!(get(server, &secret, "/api/v1/event").code(), "H0301");
        assert_eq!(server.post(&path, &json!({})).status, 404);
        let again = token(server, &json!({"name": "ada", "role": "admin"}));
        assert_eq!(get(server, &again.1, "/api/v1/token").status, 200);
        let audit = server.get("/api/v1/audit").json();
        let actions: Vec<&str> = (audit["data"].as_array().expect("a list").iter())
            .map(|record| record["action"].as_str().expect("a word"))
            .collect();
        assert_eq!(actions, ["token.create", "token.revoke", "token.create"]);
        assert!(!audit.to_string().contains(&secret), "J2");
    });
}

#[test]
fn the_same_request_makes_one_token_and_shows_its_secret_once() {
    on_each_store(|store| {
        let scene = Scene::new(store, &[]);
        let key = "idempotency-key: one\r\n";
        let post = |body: Value| {
            let body = body.to_string();
            scene
                .server
                .ask_as(TOKEN, "POST", "/api/v1/token", &body, key)
        };
        let first = post(json!({"name": "ada", "role": "viewer"}));
        let second = post(json!({"name": "ada", "role": "viewer"}));
        assert_eq!((first.status, second.status), (201, 200), "{second:?}");
        assert_eq!(first.json()["id"], second.json()["id"]);
        assert_eq!(second.json()["token"], Value::Null);
        assert_eq!(second.header("idempotent-replayed"), Some("true"));
        let other = post(json!({"name": "bob", "role": "viewer"}));
        assert_eq!((other.status, other.code().as_str()), (409, "H0308"));
    });
}

#[test]
fn an_expired_token_does_not_count() {
    let scene = Scene::new(crate::effects::scene::SQLITE, &[]);
    let soon = jiff::Timestamp::from_microsecond(now_micros() + 1_500_000).expect("a time");
    let body = json!({"name": "ada", "role": "viewer", "expiresAt": soon.to_string()});
    let (_, secret) = token(&scene.server, &body);
    crate::support::clock::until(
        crate::support::clock::TOO_LONG,
        "the token has expired",
        || (get(&scene.server, &secret, "/api/v1/event").status == 401).then_some(()),
    );
    assert!(now_micros() >= soon.as_microsecond());
    let past = json!({"name": "bob", "role": "viewer", "expiresAt": "2020-01-01T00:00:00Z"});
    assert_eq!(scene.server.post("/api/v1/token", &past).status, 422);
}

#[test]
fn a_token_says_when_it_was_last_used() {
    let site = Site::sqlite();
    let server = site.start();
    let (_, secret) = token(&server, &json!({"name": "ada", "role": "viewer"}));
    token(&server, &json!({"name": "bob", "role": "viewer"}));
    assert_eq!(get(&server, &secret, "/api/v1/event").status, 200);
    // Uses are written once a minute, and when the server stops.
    server.signal("TERM");
    assert!(server.wait().success());
    let server = site.start();
    let listed = server.get("/api/v1/token").json();
    assert_eq!(listed["data"][0]["name"], "bob");
    assert_eq!(listed["data"][0]["lastUsedAt"], Value::Null);
    assert!(listed["data"][1]["lastUsedAt"].is_string(), "{listed:#}");
}

/// Method, path, and the least role that is not refused.
const ROUTES: [(&str, &str, &str); 34] = [
    ("GET", "/event", "viewer"),
    ("GET", "/event/evt_x", "viewer"),
    ("GET", "/event/evt_x/body", "viewer"),
    ("GET", "/event/evt_x/timeline", "viewer"),
    ("GET", "/event/evt_x/verdict", "viewer"),
    ("GET", "/event/evt_x/conflict/1/body", "viewer"),
    ("GET", "/effect", "viewer"),
    ("GET", "/lane", "viewer"),
    ("GET", "/source", "viewer"),
    ("GET", "/replay", "viewer"),
    ("GET", "/replay/rpl_x", "viewer"),
    ("POST", "/event/evt_x/retry", "operator"),
    ("POST", "/event/evt_x/replay", "operator"),
    ("POST", "/event/evt_x/reconcile", "operator"),
    ("POST", "/event/evt_x/review", "operator"),
    ("POST", "/event/evt_x/conflict/1", "operator"),
    ("POST", "/effect/eff_x/resolve", "operator"),
    ("POST", "/effect/claim", "operator"),
    ("POST", "/effect/eff_x/settle", "operator"),
    ("POST", "/replay", "operator"),
    ("POST", "/replay/rpl_x/cancel", "operator"),
    ("GET", "/token", "admin"),
    ("POST", "/token", "admin"),
    ("POST", "/token/tok_x/revoke", "admin"),
    ("GET", "/audit", "admin"),
    ("POST", "/event/evt_x/erase", "admin"),
    ("POST", "/erase", "admin"),
    ("GET", "/settings", "admin"),
    ("GET", "/store", "admin"),
    ("POST", "/store/prune", "admin"),
    ("GET", "/store/backup", "admin"),
    ("GET", "/source/billing/secret", "admin"),
    ("POST", "/source/billing/secret/expect", "admin"),
    ("POST", "/source/billing/secret/x/drop", "admin"),
];

#[test]
fn every_route_has_its_least_role() {
    let scene = Scene::new(crate::effects::scene::SQLITE, &[]);
    let server = &scene.server;
    let roles = ["viewer", "operator", "admin"];
    let secret = |role: &str| token(server, &json!({"name": role.to_uppercase(), "role": role})).1;
    let secrets = roles.map(secret);
    let (_, of_an_app) = token(
        server,
        &json!({"name": "app", "role": "admin", "app": "app_1"}),
    );
    for (method, path, least) in ROUTES {
        let path = format!("/api/v1{path}");
        let ask = |token: &str| server.ask_as(token, method, &path, "", "");
        let least = roles
            .iter()
            .position(|role| *role == least)
            .expect("a role");
        for (place, secret) in secrets.iter().enumerate() {
            let answer = ask(secret);
            let refused = (answer.status, answer.code().as_str()) == (403, "H0306");
            assert_eq!(
                refused,
                place < least,
                "{method} {path} as {}",
                roles[place]
            );
        }
        assert_eq!(ask(&of_an_app).status, 403, "{method} {path} for one app");
        assert_eq!(
            ask("hpx_unknown").status,
            401,
            "{method} {path} for a stranger"
        );
    }
}

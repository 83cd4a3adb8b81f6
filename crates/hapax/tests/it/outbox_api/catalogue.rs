//! Applications, endpoints, types of events: made, changed, found, forgotten, and who did it.

use serde_json::{Value, json};

use super::scene::{Scene, on_each_store};
use crate::support::client::Connection;
use crate::support::server::TOKEN;
use crate::support::world::World;

#[test]
fn an_application_is_found_by_its_id_and_its_uid_until_it_is_deleted() {
    on_each_store(|scene| {
        let body =
            json!({"name": "Acme", "uid": "acme", "metadata": {"plan": "a"}, "rateLimit": 5});
        let made = scene.told(201, "POST", "/app", &body);
        let id = made["id"].as_str().expect("an id").to_owned();
        assert_eq!(made["throttleRate"], 5, "the older name counts");
        let by_id = scene.told(200, "GET", &format!("/app/{id}"), &Value::Null);
        assert_eq!(by_id, scene.told(200, "GET", "/app/acme", &Value::Null));
        assert_eq!(scene.post("/app", &body).code(), "H0325");
        let known = scene.told(200, "POST", "/app?get_if_exists=true", &body);
        assert_eq!(known["id"], id.as_str());
        let patched = scene.told(200, "PATCH", "/app/acme", &json!({"throttleRate": null}));
        assert_eq!(
            (&patched["throttleRate"], &patched["name"]),
            (&Value::Null, &json!("Acme"))
        );
        let replaced = scene.told(200, "PUT", "/app/acme", &json!({"name": "B"}));
        assert_eq!(
            (&replaced["metadata"], &replaced["uid"]),
            (&json!({}), &json!("acme"))
        );
        let other = scene.told(201, "PUT", "/app/other", &json!({"name": "C"}));
        assert_eq!(other["uid"], "other");
        assert_eq!(scene.ask("DELETE", "/app/acme", &Value::Null).status, 204);
        assert_eq!(scene.get("/app/acme").status, 404);
        assert_eq!(scene.get(&format!("/app/{id}")).status, 404);
        let actions = scene.listed("/audit?limit=250", "action");
        let expected = [
            "app.delete",
            "app.create",
            "app.update",
            "app.update",
            "app.create",
        ];
        assert_eq!(actions, expected, "J1");
    });
}

#[test]
fn lists_go_forth_and_back() {
    on_each_store(|scene| {
        for uid in ["a", "b", "c"] {
            scene.app(uid);
        }
        assert_eq!(
            scene.listed("/app?order=descending", "uid"),
            ["c", "b", "a"]
        );
        let first = scene.told(200, "GET", "/app?limit=2", &Value::Null);
        assert_eq!(first["done"], false);
        let iterator = first["iterator"].as_str().expect("an iterator");
        let path = format!("/app?limit=2&iterator={iterator}");
        let second = scene.told(200, "GET", &path, &Value::Null);
        assert_eq!(
            (&second["done"], &second["data"][0]["uid"]),
            (&json!(true), &json!("c"))
        );
        let back = second["prevIterator"].as_str().expect("an iterator");
        let back = scene.listed(&format!("/app?limit=2&iterator={back}"), "uid");
        assert_eq!(back, ["a", "b"]);
        assert_eq!(scene.get("/app?iterator=x").status, 422);
        assert_eq!(scene.get("/app?sideways=1").status, 422);
    });
}

#[test]
fn an_endpoint_passes_the_gate_and_shows_no_secret() {
    on_each_store(|scene| {
        let world = World::well();
        scene.app("acme");
        for (url, why) in [
            ("http://10.0.0.1/", "not allowed"),
            ("ftp://example.com/", "http or https"),
            ("http://user:pw@example.com/", "user or a password"),
        ] {
            let refused = scene.post("/app/acme/endpoint", &json!({ "url": url }));
            assert_eq!(refused.status, 422, "{url}");
            let detail = &refused.json()["detail"][0];
            assert_eq!(detail["loc"], json!(["body", "url"]));
            assert!(
                detail["msg"].as_str().expect("a text").contains(why),
                "{detail}"
            );
        }
        let more = json!({"filterTypes": ["a"], "headers": {"X-Api-Key": "hunter2", "x-ok": "1"}});
        let id = scene.endpoint("acme", "one", &world, more);
        let path = "/app/acme/endpoint/one";
        let shown = scene.told(200, "GET", path, &Value::Null);
        assert_eq!(
            (&shown["id"], &shown["eventTypes"]),
            (&json!(id), &json!(["a"]))
        );
        let headers = scene.told(200, "GET", &format!("{path}/headers"), &Value::Null);
        assert_eq!(
            headers,
            json!({"headers": {"x-ok": "1"}, "sensitive": ["X-Api-Key"]})
        );
        let key = scene.told(200, "GET", &format!("{path}/secret"), &Value::Null);
        let key = key["key"].as_str().expect("a key").to_owned();
        let audit = scene.get("/audit").json().to_string();
        assert!(!audit.contains("hunter2") && !audit.contains(&key), "J2");
        let moved = scene.ask("PATCH", path, &json!({"url": "http://[::1]/"}));
        assert_eq!(moved.status, 422);
        let pair = scene.ask("PATCH", path, &json!({"signatureScheme": "ed25519"}));
        assert_eq!(pair.status, 422);
        let off = scene.told(200, "PATCH", path, &json!({"disabled": true}));
        assert_eq!(
            (&off["disabled"], &off["standing"]),
            (&json!(true), &json!("disabled"))
        );
        assert_eq!(scene.ask("DELETE", path, &Value::Null).status, 204);
        assert_eq!(scene.get(path).status, 404);
        let transformation = scene.get(&format!("{path}/transformation"));
        assert_eq!(
            (transformation.status, transformation.code().as_str()),
            (501, "H0327")
        );
    });
}

#[test]
fn what_a_server_was_told_is_known_to_the_next() {
    on_each_store(|scene| {
        let world = World::well();
        scene.app("acme");
        scene.endpoint("acme", "one", &world, json!({}));
        let key = scene.get("/app/acme/endpoint/one/secret").json();
        let scene = scene.restarted();
        assert_eq!(scene.get("/app/acme/endpoint/one/secret").json(), key);
        scene.publish("acme", &super::scene::message(1));
        world.wait_for("the message", |seen| seen.len() == 1);
    });
}

#[test]
fn a_type_is_archived_first_and_gone_only_if_asked() {
    on_each_store(|scene| {
        let path = "/event-type/invoice.paid";
        scene.told(201, "PUT", path, &json!({"description": "paid"}));
        assert_eq!(scene.ask("DELETE", path, &Value::Null).status, 204);
        assert!(scene.listed("/event-type", "name").is_empty());
        assert_eq!(
            scene.listed("/event-type?include_archived=true", "name"),
            ["invoice.paid"]
        );
        let back = json!({"name": "invoice.paid", "description": "again"});
        assert_eq!(
            scene.told(201, "POST", "/event-type", &back)["archived"],
            false
        );
        assert_eq!(scene.post("/event-type", &back).status, 409);
        let elsewhere = json!({"schemas": {"1": {"$ref": "http://127.0.0.1:1/"}}});
        assert_eq!(scene.ask("PATCH", path, &elsewhere).status, 422);
        let gone = scene.ask("DELETE", &format!("{path}?expunge=true"), &Value::Null);
        assert_eq!(gone.status, 204);
        assert_eq!(scene.get(path).status, 404);
    });
}

/// So many ask at once. Each change can be decided anew so often, and a little more.
const AT_ONCE: usize = 12;

/// Whoever makes what is there, or gets it, and whoever makes or changes it by name, does so whoever else does the same just then.
#[test]
fn what_many_make_at_once_is_made_once() {
    on_each_store(|scene| {
        let app = json!({"name": "Acme", "uid": "acme"});
        one_is_made(&scene, "POST", "/app?get_if_exists=true", &app, "id");
        one_is_made(&scene, "PUT", "/app/other", &json!({"name": "Other"}), "id");
        let world = World::well();
        let url = json!({"url": world.url("/")});
        one_is_made(&scene, "PUT", "/app/acme/endpoint/one", &url, "id");
        let operators = "/operational-webhook/endpoint/ops";
        one_is_made(&scene, "PUT", operators, &url, "id");
        let paid = json!({"description": "paid"});
        one_is_made(&scene, "PUT", "/event-type/invoice.paid", &paid, "name");
        // What somebody else has is still taken.
        let taken = json!({"name": "Third", "uid": "acme"});
        assert_eq!(scene.post("/app", &taken).code(), "H0325");
        let other = scene.ask("PUT", "/app/other", &taken);
        assert_eq!(other.code(), "H0325", "{other:?}");
    });
}

#[track_caller]
fn one_is_made(scene: &Scene, method: &str, path: &str, body: &Value, id: &str) {
    let body = body.to_string();
    let request = format!(
        "{method} /api/v1{path} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {TOKEN}\r\n\
         content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    let mut all: Vec<Connection> = (0..AT_ONCE).map(|_| scene.server.connect()).collect();
    for one in &mut all {
        one.send(request.as_bytes()).expect("it is sent");
    }
    let answers = all.iter_mut().map(|one| one.answer().expect("an answer"));
    let answers: Vec<_> = answers.collect();
    let made = answers.iter().filter(|answer| answer.status == 201).count();
    assert_eq!(made, 1, "{method} {path}: {answers:?}");
    let first = answers[0].json()[id].clone();
    for answer in &answers {
        assert!(matches!(answer.status, 200 | 201), "{answer:?}");
        assert_eq!(answer.json()[id], first, "{answer:?}");
    }
}

//! `Idempotency-Key`: one request each, whatever is asked for under it.

use serde_json::{Value, json};

use super::scene::{Scene, message, on_each_store};
use crate::support::client::Answer;
use crate::support::clock::{TOO_LONG, until};
use crate::support::server::TOKEN;
use crate::support::world::{Act, World};

fn keyed(scene: &Scene, key: &str, path: &str, body: &Value) -> Answer {
    let head = format!("idempotency-key: {key}\r\n");
    let path = format!("/api/v1{path}");
    let server = &scene.server;
    server.ask_as(TOKEN, "POST", &path, &body.to_string(), &head)
}

#[track_caller]
fn reused(answer: &Answer) {
    let said = (answer.status, answer.code());
    assert_eq!(said, (409, "H0308".to_owned()), "{answer:?}");
}

fn with_id(number: u32, id: &str) -> Value {
    let mut body = message(number);
    body["eventId"] = json!(id);
    body
}

/// An id of its own is what a message is known by; its key still belongs to one request.
#[test]
fn a_message_with_an_id_has_a_key_as_well() {
    on_each_store(|scene| {
        scene.app("acme");
        let path = "/app/acme/msg";
        let first = keyed(&scene, "k1", path, &with_id(1, "a"));
        assert_eq!(first.status, 202, "{first:?}");
        let same = keyed(&scene, "k1", path, &with_id(1, "a"));
        assert_eq!((same.status, same.json()), (202, first.json()));
        reused(&keyed(&scene, "k1", path, &with_id(2, "b")));
        assert_eq!(scene.get("/app/acme/msg/b").status, 404);
        // What was refused has not used its key up.
        let taken = keyed(&scene, "k2", path, &with_id(2, "a"));
        assert_eq!((taken.status, taken.code().as_str()), (409, "H0326"));
        assert_eq!(keyed(&scene, "k2", path, &with_id(2, "b")).status, 202);
    });
}

/// A key stands for one way in: whoever asks again gets another, and the one before ends.
#[test]
fn access_to_the_portal_is_given_once_for_a_key() {
    on_each_store(|scene| {
        scene.app("acme");
        let path = "/auth/app-portal-access/acme";
        let body = json!({"sessionId": "s1"});
        let token = |answer: &Answer| answer.json()["token"].as_str().map(str::to_owned);
        let first = token(&keyed(&scene, "k1", path, &body)).expect("a token");
        let second = token(&keyed(&scene, "k1", path, &body)).expect("a token");
        let third = token(&keyed(&scene, "k1", path, &body)).expect("a token");
        reused(&keyed(&scene, "k1", path, &json!({"sessionId": "s2"})));
        let look = |token: &str| {
            let endpoints = "/app/acme/endpoint";
            scene.ask_as(token, "GET", endpoints, &Value::Null).status
        };
        assert_eq!((look(&first), look(&second), look(&third)), (401, 401, 200));
        let expire = "/auth/app/acme/expire-all";
        assert_eq!(keyed(&scene, "k2", expire, &json!({})).status, 204);
        assert_eq!(look(&third), 401);
        // What is made after that is not meant by the same request.
        let later = token(&keyed(&scene, "k3", path, &body)).expect("a token");
        assert_eq!(keyed(&scene, "k2", expire, &json!({})).status, 204);
        assert_eq!(look(&later), 200);
        reused(&keyed(&scene, "k2", expire, &json!({"sessionIds": ["s1"]})));
        assert_eq!(look(&later), 200);
    });
}

#[test]
fn a_description_is_imported_once_for_a_key() {
    on_each_store(|scene| {
        let path = "/event-type/import/openapi";
        let spec =
            |text: &str| json!({"spec": {"webhooks": {"paid": {"post": {"description": text}}}}});
        let first = keyed(&scene, "k1", path, &spec("one"));
        assert_eq!(first.status, 200, "{first:?}");
        let change = json!({"description": "by hand"});
        scene.told(200, "PATCH", "/event-type/paid", &change);
        let again = keyed(&scene, "k1", path, &spec("one"));
        assert_eq!((again.status, again.json()), (200, first.json()));
        reused(&keyed(&scene, "k1", path, &spec("two")));
        let known = scene.told(200, "GET", "/event-type/paid", &Value::Null);
        assert_eq!(known["description"], "by hand");
    });
}

/// Whoever did not hear that a message is sent again asks again, perhaps while it is on its way: it is the same request.
#[test]
fn a_resend_is_the_same_while_it_is_under_way() {
    on_each_store(|scene| {
        let world = World::new(|_| Act::Held);
        scene.app("acme");
        scene.endpoint("acme", "one", &world, json!({}));
        let id = scene.publish("acme", &message(1));
        world.release(1);
        let done = "/app/acme/endpoint/one/msg?status=0";
        let is_done = || (scene.listed(done, "id").len() == 1).then_some(());
        until(TOO_LONG, "it is done", is_done);
        let path = format!("/app/acme/msg/{id}/endpoint/one/resend");
        let resend = |key: &str| keyed(&scene, key, &path, &json!({}));
        assert_eq!(resend("k1").status, 202);
        world.wait_for("it again", |seen| seen.len() == 2);
        let same = resend("k1");
        assert_eq!(same.status, 202, "{same:?}");
        let other = resend("k2");
        assert_eq!((other.status, other.code().as_str()), (409, "H0332"));
        world.release(1);
        until(TOO_LONG, "it is done again", is_done);
        assert_eq!(resend("k1").status, 202);
        assert_eq!(world.seen().len(), 2);
    });
}

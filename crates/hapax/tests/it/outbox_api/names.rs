//! Endpoints by name, with a name server of the test's own: what it does not answer, and where it leads to.

use serde_json::{Value, json};

use super::scene::{Scene, message};
use crate::effects::scene::SQLITE;
use crate::support::clock::{TOO_LONG, until};
use crate::support::name_server::{NameServer, Says, at};
use crate::support::world::World;

/// More than the runtime has threads for blocking work, which are also those that read the store.
const SILENT: usize = 520;

fn scene(server: &NameServer) -> Scene {
    Scene::with(SQLITE, &format!("resolver = \"{}\"\n", server.address))
}

fn by_name(name: &str, world: &World) -> Value {
    let port = world.address().port();
    json!({"url": format!("http://{name}:{port}/hook"), "uid": name.replace('.', "-")})
}

/// G6: endpoints whose names nobody answers for hold up nobody else, neither other deliveries nor the API.
#[test]
fn names_that_nobody_answers_for_hold_up_nobody() {
    let server = NameServer::new(|name, _| match name.starts_with("silent") {
        true => Says::Silence,
        false => at(&["127.0.0.1"]),
    });
    let (scene, world) = (scene(&server), World::well());
    scene.app("crowd");
    for number in 0..SILENT {
        let endpoint = by_name(&format!("silent-{number}.example"), &world);
        scene.told(201, "POST", "/app/crowd/endpoint", &endpoint);
    }
    scene.app("other");
    let endpoint = by_name("good.example", &world);
    scene.told(201, "POST", "/app/other/endpoint", &endpoint);
    scene.publish("crowd", &message(1));
    until(TOO_LONG, "all of them are looked up", || {
        (server.names() >= SILENT).then_some(())
    });
    let id = scene.publish("other", &message(2));
    world.wait_for("what goes to a name that answers", |seen| seen.len() == 1);
    let path = format!("/app/other/msg/{id}?with_content=true");
    let shown = scene.told(200, "GET", &path, &Value::Null);
    assert_eq!(shown["payload"], json!({"n": 2}));
}

/// A name is judged by where it leads, when it is connected to; the attempt says so, and nobody was connected to.
#[test]
fn a_name_that_leads_inside_is_blocked() {
    let server = NameServer::new(|_, _| at(&["127.0.0.1", "10.0.0.1"]));
    let (scene, world) = (scene(&server), World::well());
    scene.app("acme");
    let endpoint = by_name("inside.example", &world);
    scene.told(201, "POST", "/app/acme/endpoint", &endpoint);
    let id = scene.publish("acme", &message(1));
    let path = format!("/app/acme/attempt/msg/{id}");
    let attempts = until(TOO_LONG, "an attempt has ended", || {
        let page = scene.told(200, "GET", &path, &Value::Null);
        let attempts = page["data"].as_array().expect("a list").clone();
        (!attempts.is_empty()).then_some(attempts)
    });
    let text = attempts[0].to_string();
    let why = "the address 10.0.0.1 is not allowed";
    assert!(text.contains(why), "{text}");
    assert_eq!(world.seen().len(), 0);
    assert!(server.asked("inside.example") > 0);
}

/// Whichever way a URL comes in, it is judged; and an example goes through the same gate as a message.
#[test]
fn closed_addresses_are_refused_wherever_they_are_written() {
    let server = NameServer::new(|_, _| at(&["10.0.0.1"]));
    let (scene, world) = (scene(&server), World::well());
    scene.app("acme");
    let closed = json!({"url": "http://10.0.0.1/hook"});
    // Operators hear of nothing that happens here.
    for (path, wanted) in [
        ("/app/acme/endpoint", "invoice.paid"),
        ("/operational-webhook/endpoint", "endpoint.disabled"),
    ] {
        let url = json!({"url": world.url("/hook"), "filterTypes": [wanted]});
        let one = format!("{path}/one");
        assert_eq!(scene.ask("PUT", &one, &closed).status, 422, "made: {one}");
        assert_eq!(scene.get(&one).status, 404, "{one}");
        scene.told(201, "PUT", &one, &url);
        assert_eq!(scene.ask("PUT", &one, &closed).status, 422, "{one}");
        let kept = scene.told(200, "GET", &one, &Value::Null);
        assert_eq!(kept["url"], url["url"]);
    }
    let inside = by_name("inside.example", &world);
    scene.told(201, "POST", "/app/acme/endpoint", &inside);
    let example = json!({"eventType": "invoice.paid", "payload": {"n": 1}});
    let path = "/app/acme/endpoint/inside-example";
    let sent = scene.told(202, "POST", &format!("{path}/send-example"), &example);
    let id = sent["id"].as_str().expect("an id");
    let text = until(TOO_LONG, "an attempt has ended", || {
        let tried = scene.get(&format!("/app/acme/attempt/msg/{id}")).json();
        let some = tried["data"]
            .as_array()
            .is_some_and(|data| !data.is_empty());
        some.then(|| tried.to_string())
    });
    assert!(text.contains("10.0.0.1 is not allowed"), "{text}");
    assert_eq!(world.seen().len(), 0);
}

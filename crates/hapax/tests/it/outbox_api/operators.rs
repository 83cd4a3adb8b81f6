//! Endpoints of operators: made like others, out of the way of others, and told what happens.

use std::collections::BTreeSet;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hapax::config::StoreTarget;
use hapax::http::serve::open;
use hapax_store::conformance::database::with_database;
use hapax_store::nouns::{Entry, Mark, Put, Standing};
use serde_json::{Value, json};

use super::scene::{Scene, message, on_each_store, site};
use crate::effects::scene::SQLITE;
use crate::support::clock::{TOO_LONG, until};
use crate::support::world::{Act, Seen, World};

const PATH: &str = "/operational-webhook/endpoint";

#[track_caller]
fn operators_endpoint(scene: &Scene, world: &World, more: Value) -> Value {
    let mut body = json!({"url": world.url("/operators"), "uid": "ops"});
    let fields = body.as_object_mut().expect("an object");
    fields.extend(more.as_object().expect("an object").clone());
    scene.told(201, "POST", PATH, &body)
}

fn verifies(seen: &Seen, secret: &str) -> bool {
    use aws_lc_rs::hmac::{HMAC_SHA256, Key, verify};
    let header = |name: &str| seen.headers[name].as_str();
    let mut signed = format!("{}.{}.", header("webhook-id"), header("webhook-timestamp"));
    signed.push_str(std::str::from_utf8(&seen.body).expect("text"));
    let key = secret.strip_prefix("whsec_").expect("a secret");
    let key = Key::new(HMAC_SHA256, &STANDARD.decode(key).expect("base64"));
    header("webhook-signature").split(' ').any(|signature| {
        let signature = signature.strip_prefix("v1,").expect("a signature");
        let signature = STANDARD.decode(signature).expect("base64");
        verify(&key, signed.as_bytes(), &signature).is_ok()
    })
}

#[test]
fn operators_endpoints_are_told_what_they_want_to_hear() {
    on_each_store(|scene| {
        let (gone, world) = (World::new(|_| Act::Answer(410)), World::well());
        let secret = "whsec_MDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDA=";
        let more = json!({"eventTypes": ["endpoint.disabled"], "secret": secret,
            "headers": {"x-team": "ops"}});
        operators_endpoint(&scene, &world, more);
        scene.app("acme");
        let endpoint = scene.endpoint("acme", "one", &gone, json!({"retrySchedule": [0]}));
        scene.publish("acme", &message(1));
        let seen = world.wait_for("the event", |seen| !seen.is_empty());
        let told: Value = serde_json::from_slice(&seen[0].body).expect("JSON");
        assert_eq!(told["type"], "endpoint.disabled");
        assert_eq!(told["data"]["endpointId"], endpoint.as_str());
        assert_eq!(told["data"]["appUid"], "acme");
        assert_eq!(seen[0].headers["x-team"], "ops");
        assert!(verifies(&seen[0], secret));
        // That the delivery was given up is told as well, to whoever wants to hear it.
        let rest = json!({"url": world.url("/all"), "uid": "all"});
        scene.told(201, "POST", PATH, &rest);
        scene.endpoint("acme", "two", &gone, json!({"retrySchedule": [0]}));
        scene.publish("acme", &message(2));
        let all = |seen: &[Seen]| seen.iter().filter(|one| one.target == "/all").count() == 3;
        let seen = world.wait_for("all events", all);
        let types = seen.iter().filter(|one| one.target == "/all").map(|one| {
            let told: Value = serde_json::from_slice(&one.body).expect("JSON");
            told["type"].as_str().expect("a type").to_owned()
        });
        let mut types: Vec<String> = types.collect();
        types.sort();
        let expected = [
            "endpoint.created",
            "endpoint.disabled",
            "message.attempt.exhausted",
        ];
        assert_eq!(types, expected);
    });
}

#[test]
fn operators_endpoints_are_changed_like_others() {
    let (scene, world) = (Scene::new(SQLITE), World::well());
    assert_eq!(scene.listed(PATH, "id"), [""; 0]);
    let made = operators_endpoint(&scene, &world, json!({}));
    let id = made["id"].as_str().expect("an id");
    assert_eq!(scene.listed(PATH, "id"), [id]);
    let one = format!("{PATH}/ops");
    assert_eq!(scene.told(200, "GET", &one, &Value::Null)["id"], id);
    let put = json!({"url": world.url("/other"), "description": "night shift"});
    let put = scene.told(200, "PUT", &one, &put);
    assert_eq!(
        (&put["description"], &put["uid"]),
        (&json!("night shift"), &json!("ops"))
    );
    let key = scene.told(200, "GET", &format!("{one}/secret"), &Value::Null);
    let next = scene.told(200, "POST", &format!("{one}/secret/rotate"), &json!({}));
    assert_ne!(key["key"], next["key"]);
    let headers = json!({"headers": {"x-team": "ops"}});
    let put = scene.ask("PUT", &format!("{one}/headers"), &headers);
    assert_eq!(put.status, 204);
    let told = scene.told(200, "GET", &format!("{one}/headers"), &Value::Null);
    assert_eq!(told["headers"], headers["headers"]);
    let made = scene.told(
        201,
        "PUT",
        &format!("{PATH}/second"),
        &json!({"url": world.url("/")}),
    );
    assert_eq!(made["uid"], "second");
    let private = json!({"url": "http://10.0.0.1/"});
    let refused = scene.post(PATH, &private);
    assert!(
        (400..500).contains(&refused.status),
        "the gate: {refused:?}"
    );
    assert_eq!(scene.ask("DELETE", &one, &Value::Null).status, 204);
    assert_eq!(scene.get(&one).status, 404);
}

/// The application that they belong to is nobody else's to see, to change or to publish to.
#[test]
fn the_operators_application_is_out_of_reach() {
    let (scene, world) = (Scene::new(SQLITE), World::well());
    scene.app("acme");
    operators_endpoint(&scene, &world, json!({}));
    assert_eq!(scene.listed("/app", "uid"), ["acme"]);
    let reserved = hapax::outbox::operational::OPERATIONAL_APP;
    for (method, path) in [
        ("GET", format!("/app/{reserved}")),
        ("DELETE", format!("/app/{reserved}")),
        ("GET", format!("/app/{reserved}/endpoint")),
        ("POST", format!("/app/{reserved}/msg")),
        ("GET", format!("/app/{reserved}/endpoint/ops/secret")),
        ("POST", format!("/auth/app-portal-access/{reserved}")),
    ] {
        let answer = scene.ask(method, &path, &message(1));
        assert_eq!(answer.status, 404, "{method} {path}");
    }
}

/// An operators' endpoint that fails is not told about itself: each telling would call for the next.
#[test]
fn operators_are_not_told_about_their_own_endpoints() {
    let scene = Scene::new(SQLITE);
    let (gone, world) = (
        World::new(|_| Act::Answer(410)),
        World::new(|_| Act::Answer(500)),
    );
    let troubles = ["endpoint.disabled", "message.attempt.exhausted"];
    let more = json!({"retrySchedule": [0], "eventTypes": troubles});
    operators_endpoint(&scene, &world, more);
    scene.app("acme");
    scene.endpoint("acme", "one", &gone, json!({"retrySchedule": [0]}));
    scene.publish("acme", &message(1));
    world.wait_for("both events", |seen| seen.len() == 2);
    let dead = until(TOO_LONG, "both are given up", || {
        let page = scene.told(200, "GET", "/effect?state=dead", &Value::Null);
        let dead = page["data"].as_array().expect("a list").len();
        (dead == 3).then_some(dead)
    });
    assert_eq!((dead, world.seen().len()), (3, 2));
}

/// What is never told cannot be asked for: whoever waited for it would wait for ever.
#[test]
fn operators_ask_only_for_what_is_told() {
    let (scene, world) = (Scene::new(SQLITE), World::well());
    for name in ["eventTypes", "filterTypes"] {
        let mut body = json!({"url": world.url("/operators"), "uid": "ops"});
        body[name] = json!(["endpoint.disabled", "background_task.finished"]);
        let refused = scene.post(PATH, &body);
        assert_eq!(refused.status, 422, "{refused:?}");
        let text = refused.json().to_string();
        assert!(text.contains("message.attempt.exhausted"), "{text}");
    }
    operators_endpoint(&scene, &world, json!({}));
    let put = json!({"url": world.url("/"), "eventTypes": ["endpoint.promoted"]});
    let refused = scene.ask("PUT", &format!("{PATH}/ops"), &put);
    assert_eq!(refused.status, 422, "{refused:?}");
    scene.app("acme");
    let own = json!({"eventTypes": ["background_task.finished"]});
    scene.endpoint("acme", "one", &world, own);
}

/// What an owner does to an endpoint is told, and a delivery that keeps failing.
#[test]
fn operators_hear_of_changes_and_of_failing_deliveries() {
    on_each_store(|scene| {
        let (broken, world) = (World::new(|_| Act::Answer(500)), World::well());
        operators_endpoint(&scene, &world, json!({}));
        scene.app("acme");
        let endpoint = scene.endpoint(
            "acme",
            "one",
            &broken,
            json!({"retrySchedule": [0, 0, 0, 0, 0]}),
        );
        let path = format!("/app/acme/endpoint/{endpoint}");
        scene.told(200, "PATCH", &path, &json!({"description": "slow"}));
        scene.publish("acme", &message(1));
        let seen = world.wait_for("four events", |seen| seen.len() >= 4);
        assert_eq!(scene.ask("DELETE", &path, &Value::Null).status, 204);
        let seen = world.wait_for("all events", |now| now.len() > seen.len());
        let types = seen.iter().map(|one| {
            let told: Value = serde_json::from_slice(&one.body).expect("JSON");
            assert_eq!(told["data"]["endpointId"], endpoint.as_str());
            assert_eq!(told["data"]["appUid"], "acme");
            told["type"].as_str().expect("a type").to_owned()
        });
        let mut types: Vec<String> = types.collect();
        types.sort();
        let expected = [
            "endpoint.created",
            "endpoint.deleted",
            "endpoint.updated",
            "message.attempt.exhausted",
            "message.attempt.failing",
        ];
        assert_eq!(types, expected);
    });
}

/// What was told of one type, which is told once.
#[track_caller]
fn only(seen: &[Seen], name: &str) -> Value {
    let told = seen.iter();
    let told = told.map(|one| serde_json::from_slice(&one.body).expect("JSON"));
    let of_type: Vec<Value> = told.filter(|event: &Value| event["type"] == name).collect();
    let [event] = &of_type[..] else {
        panic!("{name} is told once: {of_type:?}");
    };
    event["data"].clone()
}

/// What is told of attempts has the fields that the SDKs' models of these events have, so that whoever reads them with those finds what
/// they look for.
#[test]
fn what_is_told_of_attempts_reads_as_the_sdks_read_it() {
    on_each_store(|scene| {
        let (world, broken) = (World::well(), World::new(|_| Act::Answer(500)));
        let late = World::new(|seen| match seen.before {
            0..4 => Act::Answer(500),
            _ => Act::Answer(200),
        });
        let failing = "message.attempt.failing";
        let (exhausted, recovered) = ("message.attempt.exhausted", "message.attempt.recovered");
        scene.app("acme");
        let often = json!({"retrySchedule": [0, 0, 0, 0, 0]});
        scene.endpoint("acme", "one", &broken, often.clone());
        operators_endpoint(&scene, &world, json!({"eventTypes": [failing, exhausted]}));
        let mut asked = message(1);
        asked["eventId"] = json!("order-1");
        let id = scene.publish("acme", &asked);
        let seen = world.wait_for("both", |seen| seen.len() == 2);
        let mut attempts = BTreeSet::new();
        for name in [failing, exhausted] {
            let data = only(&seen, name);
            let about = (&data["msgId"], &data["msgEventId"]);
            assert_eq!(about, (&json!(id), &json!("order-1")), "{data}");
            let last = &data["lastAttempt"];
            let attempt = last["id"].as_str().expect("an id").to_owned();
            let path = format!("/app/acme/msg/{id}/attempt/{attempt}");
            let known = scene.told(200, "GET", &path, &Value::Null);
            assert_eq!(known["responseStatusCode"], last["responseStatusCode"]);
            assert!(last["timestamp"].is_string(), "{data}");
            attempts.insert(attempt);
        }
        assert_eq!(attempts.len(), 2, "they are of two attempts");
        // One that gets through after it was told that it fails is told, too.
        let put = json!({"url": world.url("/operators"), "eventTypes": [recovered]});
        scene.told(200, "PUT", &format!("{PATH}/ops"), &put);
        scene.endpoint("acme", "two", &late, often);
        scene.publish("acme", &message(2));
        let seen = world.wait_for("that it recovered", |seen| seen.len() == 3);
        let data = only(&seen, recovered);
        assert_eq!(data["lastAttempt"]["responseStatusCode"], 200, "{data}");
        assert_eq!(data["msgEventId"], Value::Null);
    });
}

/// Who has disabled an endpoint is told in the SDKs' words, and why in Hapax's own. Its owner does so once, whatever is said after that.
#[test]
fn an_owner_who_disables_an_endpoint_is_told_of() {
    on_each_store(|scene| {
        let (gone, world) = (World::new(|_| Act::Answer(410)), World::well());
        operators_endpoint(&scene, &world, json!({"eventTypes": ["endpoint.disabled"]}));
        scene.app("acme");
        scene.endpoint("acme", "one", &gone, json!({}));
        let path = "/app/acme/endpoint/one";
        let disabled = json!({"disabled": true});
        for _ in 0..2 {
            scene.told(200, "PATCH", path, &disabled);
        }
        let seen = world.wait_for("that it is disabled", |seen| !seen.is_empty());
        let data = only(&seen, "endpoint.disabled");
        let words = (&data["trigger"], &data["reason"], &data["endpointUid"]);
        assert_eq!(words, (&json!("manual"), &json!("disabled"), &json!("one")));
        let enabled = json!({"url": gone.url("/one")});
        scene.told(200, "PUT", path, &enabled);
        scene.publish("acme", &message(1));
        let seen = world.wait_for("that it is gone", |seen| seen.len() == 2);
        let data = only(&seen[1..], "endpoint.disabled");
        let words = (&data["trigger"], &data["reason"]);
        assert_eq!(words, (&json!("automatic"), &json!("gone")));
    });
}

/// `kill -9` right after an endpoint was disabled: operators hear of it from the next server, once.
#[test]
fn what_was_not_told_before_a_crash_is_told_after_it() {
    let scene = Scene::of(site("5s", SQLITE, ""));
    let store = StoreTarget::Sqlite(scene.site.data().join("hapax.db"));
    is_told_after_a_crash(scene, &store);
    with_database(|database| async move {
        let url = database.url();
        let work = move || {
            let scene = Scene::of(site("5s", &url, ""));
            is_told_after_a_crash(scene, &StoreTarget::Postgres(url));
        };
        let work = tokio::task::spawn_blocking(work);
        work.await.expect("the checks hold");
    });
}

fn is_told_after_a_crash(scene: Scene, store: &StoreTarget) {
    let world = World::well();
    operators_endpoint(&scene, &world, json!({"eventTypes": ["endpoint.disabled"]}));
    scene.app("acme");
    let endpoint = scene.endpoint("acme", "one", &world, json!({}));
    let site = scene.killed();
    // The last that the server did, and nothing after it.
    disable(store, &endpoint);
    let scene = Scene::of(site);
    let one = "/app/acme/endpoint/one";
    let known = scene.told(200, "GET", one, &Value::Null);
    assert_eq!(known["disabled"], true);
    let seen = world.wait_for("the event", |seen| !seen.is_empty());
    let told: Value = serde_json::from_slice(&seen[0].body).expect("JSON");
    assert_eq!(told["data"]["endpointId"], endpoint.as_str());
    assert_eq!(told["data"]["trigger"], "automatic");
    assert_eq!(told["data"]["reason"], "gone");
    // The next server has nothing more to tell, and says so by telling what comes after it.
    let scene = scene.restarted();
    let gone = World::new(|_| Act::Answer(410));
    scene.endpoint("acme", "two", &gone, json!({"retrySchedule": [0]}));
    scene.publish("acme", &message(1));
    let second = |seen: &[Seen]| {
        let ids = seen.iter().map(|one| one.headers["webhook-id"].as_str());
        ids.collect::<BTreeSet<&str>>().len() == 2
    };
    world.wait_for("the second event, and no third", second);
}

/// Disables an endpoint as the dispatcher does it.
fn disable(store: &StoreTarget, endpoint: &str) {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(async {
        let store = open(store).await.expect("a store that nobody has");
        let all = store.changes(0).await.expect("the store reads").entries;
        let revision = all.iter().find_map(|entry| match entry {
            Entry::Endpoint(one) if one.id.to_string() == endpoint => Some(one.revision),
            _ => None,
        });
        let mark = Mark {
            endpoint: endpoint.parse().expect("an id"),
            was: revision.expect("it is there"),
            standing: Standing::Gone,
            failing_since: None,
            disabled_from: None,
        };
        let marked = store.mark_endpoints(vec![mark], hapax::clock::now()).await;
        let marked = marked.expect("the store marks it");
        assert!(matches!(marked[..], [Put::Done { .. }]), "{marked:?}");
        store.close().await;
    });
}

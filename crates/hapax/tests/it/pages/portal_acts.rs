//! What consumers do in the portal: endpoints come, change and go; secrets rotate; what failed or was missed goes out again.

use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};

use serde_json::{Value, json};

use super::browser::{hidden, text};
use super::portal_scene::{Guest, LOGO, Scene, secret_in};
use crate::effects::scene::on_each_store;
use crate::outbox::delivered::verifies;
use crate::support::clock::{TOO_LONG, until};
use crate::support::world::{Act, World};

/// How deliveries are signed unless told.
const SCHEME: &str = "standard-webhooks";

#[test]
fn an_endpoint_comes_changes_and_goes() {
    on_each_store(an_endpoint_comes_changes_and_goes_on);
}

fn an_endpoint_comes_changes_and_goes_on(store: &str) {
    let scene = Scene::at(store, "");
    let world = World::well();
    scene.app("acme");
    scene.event_type("invoice.paid");
    scene.event_type("invoice.voided");
    let guest = Guest::of(&scene, "acme");
    let url = world.url("/hooks");
    let fields = [
        ("url", url.as_str()),
        ("description", "books"),
        ("types", "invoice.paid"),
        ("channels", "a, b"),
        ("rate", "7"),
    ];
    let at = guest.done("/portal/endpoints/new", "/portal/endpoints/new", &fields);
    let (at, did) = at.split_once("?did=").expect("what was done");
    assert_eq!(did, "added");
    let id = at.rsplit('/').next().expect("an id");
    let known = || scene.told("GET", &format!("/app/acme/endpoint/{id}"), &Value::Null);
    let told = known();
    assert_eq!(told["eventTypes"], json!(["invoice.paid"]));
    assert_eq!(
        (&told["channels"], &told["throttleRate"]),
        (&json!(["a", "b"]), &json!(7))
    );

    let settings = format!("{at}/settings");
    let other = world.url("/other");
    let fields = [("url", other.as_str()), ("description", "")];
    guest.done(&settings, &settings, &fields);
    let told = known();
    assert_eq!(
        (&told["url"], &told["description"]),
        (&json!(other), &json!(""))
    );
    assert!(
        told["eventTypes"].is_null()
            && told["channels"].is_null()
            && told["throttleRate"].is_null()
    );

    let headers = format!("{at}/headers");
    guest.done(
        &settings,
        &headers,
        &[("name", "x-team"), ("value", "blue")],
    );
    guest.done(
        &settings,
        &headers,
        &[("name", "authorization"), ("value", "hush")],
    );
    let page = guest.browser.page(&settings);
    assert!(page.contains("blue") && page.contains("authorization") && !page.contains("hush"));
    guest.done(&settings, &headers, &[("remove", "x-team")]);
    assert!(!guest.browser.page(&settings).contains("blue"));

    guest.done(&settings, &format!("{at}/disable"), &[]);
    assert_eq!(known()["standing"], "disabled");
    guest.done(at, &format!("{at}/enable"), &[]);
    assert_eq!(known()["standing"], "enabled");
    let unsure = guest
        .browser
        .submit(&settings, &format!("{at}/delete"), &[]);
    assert_eq!(unsure.status, 200);
    guest.done(&settings, &format!("{at}/delete"), &[("sure", "yes")]);
    assert_eq!(guest.browser.get(at).status, 404);
}

#[test]
fn an_example_arrives_and_a_form_that_is_sent_twice_counts_once() {
    on_each_store(an_example_arrives_and_a_form_that_is_sent_twice_counts_once_on);
}

fn an_example_arrives_and_a_form_that_is_sent_twice_counts_once_on(store: &str) {
    let scene = Scene::at(store, "");
    let world = World::well();
    scene.app("acme");
    scene.event_type("invoice.paid");
    let endpoint = scene.endpoint("acme", &world, &json!({}));
    let guest = Guest::of(&scene, "acme");
    let at = format!("/portal/endpoints/{endpoint}");
    let page = guest.browser.page(&at);
    let (csrf, once) = (hidden(&page, "csrf"), hidden(&page, "once"));
    let fields = [
        ("csrf", csrf.as_str()),
        ("once", once.as_str()),
        ("eventType", "invoice.paid"),
    ];
    let send = || {
        guest.browser.send(
            &format!("{at}/example"),
            &fields,
            "sec-fetch-site: same-origin\r\n",
        )
    };
    assert_eq!((send().status, send().status), (303, 303));
    let seen = world.wait_for("the example", |seen| !seen.is_empty());
    assert_eq!(seen[0].body, br#"{"id":"inv_1"}"#);
    assert_eq!(scene.count("/app/acme/msg"), 1);
    let wrong = guest.browser.submit(
        &at,
        &format!("{at}/example"),
        &[("eventType", "invoice.paid"), ("payload", "{no json")],
    );
    assert_eq!(wrong.status, 422);
    assert!(text(&wrong).contains("Payload"));
}

#[test]
fn a_secret_is_shown_on_demand_and_rotation_keeps_deliveries_verifiable() {
    on_each_store(a_secret_is_shown_on_demand_and_rotation_keeps_deliveries_verifiable_on);
}

fn a_secret_is_shown_on_demand_and_rotation_keeps_deliveries_verifiable_on(store: &str) {
    let scene = Scene::at(store, "");
    let world = World::well();
    scene.app("acme");
    let endpoint = scene.endpoint("acme", &world, &json!({}));
    let guest = Guest::of(&scene, "acme");
    let at = format!("/portal/endpoints/{endpoint}/secret");
    assert!(!guest.browser.page(&at).contains("whsec_"));
    let old = guest.secret(&at, &at);
    let new = guest.secret(&at, &format!("{at}/rotate"));
    assert_ne!(old, new);
    assert_eq!(guest.secret(&at, &at), new);
    scene.publish("acme", &json!({"n": 1}));
    let seen = world.wait_for("a delivery", |seen| !seen.is_empty());
    for key in [&old, &new] {
        assert!(
            verifies(SCHEME, key, &seen[0]),
            "both sign during the overlap"
        );
    }
    let fields = [("grace", "0")];
    let answer = guest.browser.submit(&at, &format!("{at}/rotate"), &fields);
    let last = secret_in(&text(&answer));
    scene.publish("acme", &json!({"n": 2}));
    let seen = world.wait_for("another", |seen| seen.len() == 2);
    assert!(verifies(SCHEME, &last, &seen[1]));
    assert!(
        !verifies(SCHEME, &new, &seen[1]),
        "it was said to have leaked"
    );
}

#[test]
fn what_failed_and_what_was_missed_goes_out_again() {
    on_each_store(what_failed_and_what_was_missed_goes_out_again_on);
}

fn what_failed_and_what_was_missed_goes_out_again_on(store: &str) {
    let scene = Scene::at(store, "");
    let status = Arc::new(AtomicU16::new(500));
    let moody = status.clone();
    let world = World::new(move |_| Act::Answer(moody.load(Ordering::SeqCst)));
    scene.app("acme");
    let early = scene.publish("acme", &json!({"n": 0}));
    let endpoint = scene.endpoint("acme", &world, &json!({"retrySchedule": [0]}));
    let failed = scene.publish("acme", &json!({"n": 1}));
    until(TOO_LONG, "a dead letter", || {
        (scene.count("/app/acme/dead-letter") == 1).then_some(())
    });
    status.store(200, Ordering::SeqCst);
    let guest = Guest::of(&scene, "acme");
    let at = format!("/portal/endpoints/{endpoint}");
    guest.done(&at, &format!("{at}/recover"), &[("since", "3600")]);
    let ids = |seen: &[crate::support::world::Seen]| -> Vec<String> {
        seen.iter()
            .map(|one| one.headers["webhook-id"].clone())
            .collect()
    };
    let seen = world.wait_for("the failed one", |seen| seen.len() == 2);
    assert_eq!(ids(&seen), [failed.clone(), failed.clone()]);
    guest.done(&at, &format!("{at}/missing"), &[("since", "3600")]);
    let seen = world.wait_for("the missed one", |seen| seen.len() == 3);
    assert_eq!(ids(&seen)[2], early);
    // What is under way is not sent a second time.
    until(TOO_LONG, "both attempts settled", || {
        (scene.count(&format!("/app/acme/attempt/msg/{failed}")) == 2).then_some(())
    });
    let page = format!("/portal/messages/{failed}");
    guest.done(&page, &format!("{page}/resend"), &[("endpoint", &endpoint)]);
    let seen = world.wait_for("it again", |seen| seen.len() == 4);
    assert_eq!(ids(&seen)[3], failed);
    until(TOO_LONG, "the attempt on the page", || {
        guest.browser.page(&at).contains("sent again").then_some(())
    });
}

#[test]
fn a_payload_is_shown_as_it_was_published() {
    on_each_store(a_payload_is_shown_as_it_was_published_on);
}

fn a_payload_is_shown_as_it_was_published_on(store: &str) {
    let scene = Scene::at(store, "");
    scene.app("acme");
    let path = "/api/v1/app/acme/msg";
    let body = r#"{"eventType":"a.b","payload":{"z":1,"a":12345678901234567890123}}"#;
    let made = scene
        .server
        .ask_as(crate::support::server::TOKEN, "POST", path, body, "");
    let id = made.json()["id"].as_str().expect("an id").to_owned();
    let page = Guest::of(&scene, "acme")
        .browser
        .page(&format!("/portal/messages/{id}"));
    let shown = "{\n  &quot;z&quot;: 1,\n  &quot;a&quot;: 12345678901234567890123\n}";
    assert!(page.contains(shown), "{page}");
}

#[test]
fn the_portal_looks_as_the_config_says_and_loads_nothing_from_elsewhere() {
    let scene = Scene::new(
        "[portal]\nname = \"Acme <hooks>\"\nlogo = \"logo.svg\"\ncolour = \"#5b3fd1\"\n",
    );
    scene.app("acme");
    let guest = Guest::of(&scene, "acme");
    let answer = guest.browser.get("/portal/endpoints");
    let policy = answer.header("content-security-policy").expect("a policy");
    assert!(policy.contains("default-src 'none'") && !policy.contains("unsafe"));
    let page = text(&answer);
    assert!(page.contains("Acme &lt;hooks&gt;") && !page.contains("style="));
    let mut bytes = page.len();
    let mut kinds = Vec::new();
    let loaded = page.split('"').filter(|piece| piece.contains("/assets/"));
    for piece in loaded {
        let answer = guest.browser.get(piece);
        assert_eq!(answer.status, 200, "{piece}");
        kinds.push(answer.header("content-type").expect("a type").to_owned());
        bytes += answer.body().len();
        if piece.starts_with("/portal/assets/portal") {
            assert!(text(&answer).contains("--brand: #5b3fd1"), "{piece}");
        }
        if piece.contains("logo") {
            assert_eq!(answer.body(), LOGO.as_bytes());
        }
    }
    assert!(
        kinds.iter().any(|kind| kind == "image/svg+xml"),
        "{kinds:?}"
    );
    assert!(bytes < 100_000, "{bytes} bytes");
    scene.reconfigure("[portal]\nname = \"Another\"\n");
    let page = guest.browser.page("/portal/endpoints");
    assert!(page.contains("Another") && !page.contains("logo."));
}

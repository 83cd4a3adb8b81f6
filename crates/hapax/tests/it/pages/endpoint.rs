//! An endpoint on the operators' pages: what it is like is changed there, and how the way to it is can be seen.

use serde_json::{Value, json};

use super::browser::{Browser, text};
use super::portal_scene::{Guest, Scene};
use crate::effects::scene::on_each_store;
use crate::support::clock::{TOO_LONG, until};
use crate::support::server::TOKEN;
use crate::support::world::{Act, World};

#[test]
fn operators_change_types_headers_and_rate_of_an_endpoint() {
    on_each_store(|store| {
        let scene = Scene::at(store, "");
        let world = World::well();
        scene.app("acme");
        scene.event_type("invoice.paid");
        scene.event_type("invoice.voided");
        let id = scene.endpoint("acme", &world, &json!({}));
        let browser = Browser::logged_in(&scene.server, TOKEN);
        let page = format!("/apps/acme/endpoints/{id}");
        let url = world.url("/other");
        let fields = [
            ("url", url.as_str()),
            ("types", "invoice.voided"),
            ("rate", "9"),
            ("concurrency", "3"),
            ("timeout", "7"),
        ];
        let answer = browser.submit(&page, &format!("{page}/settings"), &fields);
        assert_eq!(answer.status, 303, "{}", text(&answer));
        let known = || scene.told("GET", &format!("/app/acme/endpoint/{id}"), &Value::Null);
        let told = known();
        assert_eq!(told["eventTypes"], json!(["invoice.voided"]));
        assert_eq!(
            (&told["url"], &told["throttleRate"]),
            (&json!(url), &json!(9))
        );
        assert_eq!(
            (&told["concurrency"], &told["timeoutSeconds"]),
            (&json!(3), &json!(7))
        );
        let wrong = [("url", "ftp://nowhere"), ("rate", "many")];
        let answer = browser.submit(&page, &format!("{page}/settings"), &wrong);
        assert_eq!(answer.status, 422);
        assert!(
            text(&answer).contains("ftp://nowhere"),
            "what was written stays"
        );
        let headers = format!("{page}/headers");
        let add = [("name", "x-team"), ("value", "blue")];
        assert_eq!(browser.submit(&page, &headers, &add).status, 303);
        assert!(browser.page(&page).contains("blue"));
        let remove = [("remove", "x-team")];
        assert_eq!(browser.submit(&page, &headers, &remove).status, 303);
        assert!(!browser.page(&page).contains("blue"));
    });
}

#[test]
fn operators_choose_how_long_the_old_secret_signs_as_well() {
    let scene = Scene::new("");
    let world = World::well();
    scene.app("acme");
    let id = scene.endpoint("acme", &world, &json!({}));
    let browser = Browser::logged_in(&scene.server, TOKEN);
    let page = format!("/apps/acme/endpoints/{id}");
    let signatures = |number: usize| {
        scene.publish("acme", &json!({ "id": number }));
        let seen = world.wait_for("a message", |seen| seen.len() >= number);
        let signature = seen[number - 1].headers["webhook-signature"].clone();
        signature.split(' ').count()
    };
    assert_eq!(signatures(1), 1);
    for (number, grace, signs) in [(2, "0", 1), (3, "3600", 2)] {
        let fields = [("do", "rotate"), ("grace", grace)];
        let answer = browser.submit(&page, &format!("{page}/act"), &fields);
        assert_eq!(answer.status, 303, "{}", text(&answer));
        assert_eq!(signatures(number), signs, "{grace} seconds");
    }
}

#[test]
fn the_breaker_of_an_endpoint_is_seen_when_only_failures_come_back() {
    let scene = Scene::new("");
    let world = World::new(|_| Act::HangUp);
    scene.app("acme");
    let more = json!({"retrySchedule": [1, 1, 1, 1, 1, 1]});
    let id = scene.endpoint("acme", &world, &more);
    let path = format!("/app/acme/endpoint/{id}/lane");
    let lane = scene.told("GET", &path, &Value::Null);
    assert_eq!(lane["breaker"], "closed", "{lane}");
    assert_eq!(
        (&lane["failures"], &lane["rate"]),
        (&json!(0), &Value::Null)
    );
    for number in 0..12 {
        scene.publish("acme", &json!({ "id": number }));
    }
    let lane = until(TOO_LONG, "an open breaker", || {
        let lane = scene.told("GET", &path, &Value::Null);
        (lane["failures"].as_u64() >= Some(10)).then_some(lane)
    });
    let breaker = lane["breaker"].as_str().unwrap_or_default();
    assert!(["open", "trying"].contains(&breaker), "{lane}");
    assert!(lane["pending"].as_u64() > Some(0), "{lane}");
    let browser = Browser::logged_in(&scene.server, TOKEN);
    let page = browser.page(&format!("/apps/acme/endpoints/{id}"));
    assert!(page.contains("Failures in a row") && page.contains("Breaker"));
    let lanes = scene.told("GET", "/lane", &Value::Null);
    let broken = &lanes["data"][0];
    assert_eq!(broken["lane"], id.as_str(), "{lanes}");
    assert!(broken["failures"].as_u64() >= Some(10), "{broken}");
    let overview = browser.page("/");
    assert!(overview.contains("they are left alone for a while"));
    assert!(overview.contains(&format!("/effects?lane={id}")));
}

#[test]
fn examples_of_an_application_have_a_limit() {
    let scene = Scene::new("");
    let world = World::well();
    scene.app("acme");
    scene.app("other");
    let id = scene.endpoint("acme", &world, &json!({}));
    let other = scene.endpoint("other", &world, &json!({}));
    let send = |app: &str, id: &str| {
        let body = json!({"eventType": "invoice.paid", "payload": {"id": 1}});
        scene.post(&format!("/app/{app}/endpoint/{id}/send-example"), &body)
    };
    let answers: Vec<u16> = (0..40).map(|_| send("acme", &id).status).collect();
    let refused = answers.iter().filter(|status| **status == 429).count();
    // A minute may begin in between, but no second one.
    assert!(refused > 0, "{answers:?}");
    assert!(answers.iter().filter(|status| **status == 202).count() <= 60);
    if send("acme", &id).status == 429 {
        assert_eq!(send("acme", &id).json()["code"], "H0346");
    }
    assert_eq!(send("other", &other).status, 202, "each has its own");
}

#[test]
fn a_link_of_another_application_asks_before_it_takes_over() {
    let scene = Scene::new("");
    scene.app("acme");
    scene.app("globex");
    let guest = Guest::of(&scene, "acme");
    let same = scene.key("acme", &json!({}));
    assert_eq!(Guest::enter(&guest.browser, &same).status, 303);
    let key = scene.key("globex", &json!({}));
    let asked = Guest::enter(&guest.browser, &key);
    assert_eq!(asked.status, 409, "{asked:?}");
    assert!(asked.header("set-cookie").is_none());
    let page = text(&asked);
    assert!(page.contains("acme") && page.contains("globex"), "{page}");
    assert!(guest.browser.page("/portal/endpoints").contains("acme"));
    let fields = [("key", key.as_str()), ("leave", "yes")];
    let more = "sec-fetch-site: same-origin\r\n";
    let answer = guest.browser.send("/portal/enter", &fields, more);
    assert_eq!(answer.status, 303);
    assert!(answer.header("set-cookie").is_some());
}

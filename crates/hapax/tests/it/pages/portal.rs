//! The consumers' portal: in by a magic link, one's own application and no other, and out when the token ends.

use serde_json::{Value, json};

use super::browser::{Browser, hidden, text};
use super::portal_scene::{ATTACKS, Guest, Scene, has_no_attack};
use crate::support::clock::{TOO_LONG, until};
use crate::support::server::TOKEN;
use crate::support::world::World;

#[test]
fn a_magic_link_leads_to_pages_and_its_key_is_in_no_address() {
    let scene = Scene::new("");
    scene.app("acme");
    let access = scene.access("acme", &json!({}));
    let url = access["url"].as_str().expect("a link");
    let (page, key) = url.split_once("#key=").expect("a key behind #");
    assert_eq!(access["token"], key);
    let path = page.split_once("/portal").expect("a path").1;
    let mut browser = Browser::new(&scene.server);
    let entry = browser.page(&format!("/portal{path}"));
    assert!(entry.contains("id=\"enter\"") && entry.contains("/portal/assets/portal."));
    assert!(!entry.contains(key));
    // Pasted as a whole, as those do who have no script.
    let answer = Guest::enter(&browser, url);
    assert_eq!(answer.header("location"), Some("/portal/endpoints"));
    let cookie = answer.header("set-cookie").expect("a cookie");
    assert!(cookie.starts_with("hapax-portal="), "{cookie}");
    for part in ["HttpOnly", "SameSite=Lax"] {
        assert!(cookie.contains(part), "{part} in {cookie}");
    }
    assert!(!cookie.contains(key));
    browser.take_cookie(cookie.split(';').next().expect("a pair"));
    assert!(
        browser
            .page("/portal/endpoints")
            .contains("No endpoint yet")
    );
    assert_eq!(
        browser.get("/portal").header("location"),
        Some("/portal/endpoints")
    );
    let again = browser.page(&format!("/portal{path}"));
    assert!(again.contains("Go on where you were"));
}

#[test]
fn a_wrong_key_an_operators_token_and_another_sites_form_do_not_lead_in() {
    let scene = Scene::new("");
    scene.app("acme");
    let browser = Browser::new(&scene.server);
    let wrong = Guest::enter(&browser, "hpx_wrong");
    assert_eq!(wrong.status, 401);
    assert!(text(&wrong).contains("This link has ended"));
    assert_eq!(Guest::enter(&browser, TOKEN).status, 403);
    let key = scene.key("acme", &json!({}));
    let fields = [("key", key.as_str())];
    let foreign = browser.send("/portal/enter", &fields, "sec-fetch-site: cross-site\r\n");
    assert_eq!(foreign.status, 403);
    assert!(foreign.header("set-cookie").is_none());
}

#[test]
fn the_portal_and_the_dashboard_do_not_open_each_other() {
    let scene = Scene::new("");
    scene.app("acme");
    let guest = Guest::of(&scene, "acme");
    for path in ["/events", "/events/stream", "/logout"] {
        let status = guest.browser.get(path).status;
        assert!(matches!(status, 303 | 405), "{path}: {status}");
    }
    let operator = Browser::logged_in(&scene.server, TOKEN);
    for path in ["/portal/endpoints", "/portal/messages", "/portal/verify"] {
        let answer = operator.get(path);
        assert_eq!(answer.header("location"), Some("/portal"), "{path}");
    }
    // Under each other's names the cookies are nothing, either.
    let mut mixed = Browser::new(&scene.server);
    let sealed = |cookie: &str| cookie.split_once('=').expect("a pair").1.to_owned();
    mixed.take_cookie(&format!("hapax={}", sealed(guest.browser.cookie())));
    assert_eq!(mixed.get("/events").status, 303);
    mixed.take_cookie(&format!("hapax-portal={}", sealed(operator.cookie())));
    assert_eq!(mixed.get("/portal/endpoints").status, 303);
}

#[test]
fn what_is_another_applications_is_not_there() {
    let scene = Scene::new("");
    let world = World::well();
    scene.app("acme");
    scene.app("rival");
    let theirs = scene.endpoint("rival", &world, &json!({}));
    let message = scene.publish("rival", &json!({"secret": "theirs"}));
    let attempt = scene.attempt("rival", &message);
    let guest = Guest::of(&scene, "acme");
    for path in [
        format!("/portal/endpoints/{theirs}"),
        format!("/portal/endpoints/{theirs}/settings"),
        format!("/portal/endpoints/{theirs}/secret"),
        format!("/portal/endpoints/{theirs}/verify"),
        format!("/portal/messages/{message}"),
        format!("/portal/messages/{message}/attempts/{attempt}"),
        "/portal/events/none".to_owned(),
        "/portal/no/such/page".to_owned(),
    ] {
        let answer = guest.browser.get(&path);
        assert_eq!(answer.status, 404, "{path}");
        assert!(!text(&answer).contains("theirs"), "{path}");
    }
    for what in [
        "disable",
        "delete",
        "example",
        "recover",
        "secret",
        "secret/rotate",
        "headers",
    ] {
        let action = format!("/portal/endpoints/{theirs}/{what}");
        let fields = [
            ("sure", "yes"),
            ("eventType", "a"),
            ("since", "3600"),
            ("name", "x-a"),
            ("value", "b"),
        ];
        let answer = guest
            .browser
            .submit("/portal/endpoints/new", &action, &fields);
        assert_eq!(answer.status, 404, "{what}");
    }
    let known = scene.told(
        "GET",
        &format!("/app/rival/endpoint/{theirs}"),
        &Value::Null,
    );
    assert_eq!(known["standing"], "enabled");
}

#[test]
fn a_session_ends_with_its_token() {
    let scene = Scene::new("");
    scene.app("acme");
    let revoked = Guest::of(&scene, "acme");
    assert_eq!(revoked.browser.get("/portal/endpoints").status, 200);
    assert_eq!(
        scene.post("/auth/app/acme/expire-all", &json!({})).status,
        204
    );
    let answer = revoked.browser.get("/portal/endpoints");
    assert_eq!(answer.header("location"), Some("/portal"));
    assert!(
        answer
            .header("set-cookie")
            .expect("a cookie")
            .contains("Max-Age=0")
    );
    let form = [("csrf", "00")];
    let answer = revoked.browser.send("/portal/endpoints/new", &form, "");
    assert_eq!(answer.status, 303);

    let expiring = scene.ending("acme");
    until(TOO_LONG, "the token ends", || {
        let status = expiring.browser.get("/portal/endpoints").status;
        (status == 303).then_some(())
    });
}

#[test]
fn a_session_ends_with_its_application() {
    let scene = Scene::new("");
    scene.app("acme");
    let guest = Guest::of(&scene, "acme");
    assert_eq!(scene.ask("DELETE", "/app/acme", &Value::Null).status, 204);
    let answer = guest.browser.get("/portal/endpoints");
    assert_eq!(answer.header("location"), Some("/portal"));
    // Else the way in would lead back here.
    let cookie = answer.header("set-cookie").expect("a cookie");
    assert!(cookie.contains("Max-Age=0"), "{cookie}");
}

#[test]
fn logging_out_ends_the_link() {
    let scene = Scene::new("");
    scene.app("acme");
    let key = scene.key("acme", &json!({}));
    let guest = Guest::with(&scene, &key);
    let left = guest
        .browser
        .submit("/portal/endpoints/new", "/portal/logout", &[]);
    assert_eq!(left.header("location"), Some("/portal"));
    assert!(
        left.header("set-cookie")
            .expect("a cookie")
            .contains("Max-Age=0")
    );
    assert_eq!(guest.browser.get("/portal/endpoints").status, 303);
    assert_eq!(Guest::enter(&Browser::new(&scene.server), &key).status, 401);
}

#[test]
fn forms_without_the_sessions_token_or_from_elsewhere_do_nothing() {
    let scene = Scene::new("");
    let world = World::well();
    scene.app("acme");
    let endpoint = scene.endpoint("acme", &world, &json!({}));
    let guest = Guest::of(&scene, "acme");
    let csrf = hidden(&guest.browser.page("/portal/endpoints/new"), "csrf");
    let ours = [("csrf", csrf.as_str()), ("sure", "yes")];
    for (fields, more) in [
        (&[("sure", "yes")][..], "sec-fetch-site: same-origin\r\n"),
        (
            &[("csrf", "00"), ("sure", "yes")],
            "sec-fetch-site: same-origin\r\n",
        ),
        (&ours, "sec-fetch-site: cross-site\r\n"),
        (&ours, "origin: https://evil.example\r\n"),
    ] {
        for what in ["delete", "disable", "secret", "secret/rotate"] {
            let action = format!("/portal/endpoints/{endpoint}/{what}");
            let answer = guest.browser.send(&action, fields, more);
            assert_eq!(answer.status, 403, "{what} {more}");
            assert!(!text(&answer).contains("whsec_"));
        }
    }
    let known = scene.told(
        "GET",
        &format!("/app/acme/endpoint/{endpoint}"),
        &Value::Null,
    );
    assert_eq!(known["standing"], "enabled");
}

#[test]
fn whoever_may_only_look_sees_pages_without_forms_and_changes_nothing() {
    let scene = Scene::new("");
    let world = World::well();
    scene.app("acme");
    let endpoint = scene.endpoint("acme", &world, &json!({}));
    let guest = Guest::with(&scene, &scene.key("acme", &json!({"readOnly": true})));
    let at = format!("/portal/endpoints/{endpoint}");
    for path in [
        at.clone(),
        format!("{at}/settings"),
        format!("{at}/secret"),
        "/portal/endpoints".to_owned(),
    ] {
        let page = guest.browser.page(&path);
        // The way out is the only form.
        assert_eq!(page.matches("<form").count(), 1, "{path}");
    }
    let action = format!("{at}/disable");
    let answer = guest.browser.submit("/portal/endpoints", &action, &[]);
    assert_eq!(answer.status, 403);
    let answer = guest
        .browser
        .submit("/portal/endpoints", &format!("{at}/secret"), &[]);
    assert!(answer.status == 403 && !text(&answer).contains("whsec_"));
}

#[test]
fn every_page_is_there_with_data_and_without() {
    let scene = Scene::new("");
    let world = World::well();
    scene.app("empty");
    scene.app("acme");
    let nobody = Guest::of(&scene, "empty");
    for path in ["endpoints", "endpoints/new", "messages", "events"] {
        nobody.browser.page(&format!("/portal/{path}"));
    }
    assert!(
        nobody
            .browser
            .page("/portal/verify")
            .contains("No endpoint yet")
    );
    scene.event_type("invoice.paid");
    let endpoint = scene.endpoint("acme", &world, &json!({"description": "books"}));
    let message = scene.publish("acme", &json!({"n": 1}));
    let attempt = scene.attempt("acme", &message);
    let guest = Guest::of(&scene, "acme");
    for path in [
        "/portal/endpoints".to_owned(),
        format!("/portal/endpoints/{endpoint}"),
        format!("/portal/endpoints/{endpoint}?status=0"),
        format!("/portal/endpoints/{endpoint}?status=2"),
        format!("/portal/endpoints/{endpoint}/settings"),
        format!("/portal/endpoints/{endpoint}/secret"),
        "/portal/endpoints/new".to_owned(),
        "/portal/messages?event_types=invoice.paid".to_owned(),
        "/portal/messages?event_types=none".to_owned(),
        format!("/portal/messages/{message}"),
        format!("/portal/messages/{message}/attempts/{attempt}"),
        "/portal/events".to_owned(),
        "/portal/events/invoice.paid".to_owned(),
    ] {
        let page = guest.browser.page(&path);
        assert!(page.len() < 60_000, "{path}: {} bytes", page.len());
        assert!(!page.contains("whsec_"), "{path}");
    }
    for language in ["javascript", "python", "go", "rust", "ruby", "php"] {
        let page = guest.browser.page(&format!(
            "/portal/endpoints/{endpoint}/verify?in={language}"
        ));
        assert!(
            page.contains(&endpoint) && page.contains("WEBHOOK_SECRET"),
            "{language}"
        );
        assert!(!page.contains("whsec_"));
    }
    let asked_wrongly = guest.browser.get("/portal/messages?after=yesterday");
    assert_eq!(asked_wrongly.status, 422);
}

#[test]
fn whatever_others_write_stays_text() {
    let scene = Scene::new("");
    let world = ATTACKS.world();
    scene.app("acme");
    let [first, second] = ATTACKS.texts;
    let about = json!({"description": first, "retrySchedule": [0]});
    let endpoint = scene.endpoint("acme", &world, &about);
    let message = scene.publish("acme", &json!({"a": first, second: 1}));
    let attempt = scene.attempt("acme", &message);
    let guest = Guest::of(&scene, "acme");
    for path in [
        "/portal/endpoints".to_owned(),
        format!("/portal/endpoints/{endpoint}"),
        format!("/portal/endpoints/{endpoint}/settings"),
        format!("/portal/messages/{message}"),
        format!("/portal/messages/{message}/attempts/{attempt}"),
        format!("/portal/messages?channel={}", ATTACKS.encoded()),
        format!("/portal/endpoints/{endpoint}?did={}", ATTACKS.encoded()),
    ] {
        has_no_attack(&path, &text(&guest.browser.get(&path)));
    }
    // What somebody wrote into a form comes back with what is wrong with it.
    let fields = [
        ("url", first),
        ("description", second),
        ("rate", first),
        ("channels", first),
    ];
    let refused = guest
        .browser
        .submit("/portal/endpoints/new", "/portal/endpoints/new", &fields);
    assert_eq!(refused.status, 422);
    has_no_attack("a refused form", &text(&refused));
}

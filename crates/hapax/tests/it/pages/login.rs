//! In and out, and what makes a session end; forms that are refused; what pages say to browsers.

use serde_json::json;

use super::browser::{Browser, hidden, text};
use crate::effects::scene::{SQLITE, Scene};
use crate::support::server::TOKEN;

fn scene() -> Scene {
    Scene::new(SQLITE, &[])
}

#[test]
fn pages_ask_for_a_token_and_lead_back() {
    let scene = scene();
    let mut browser = Browser::new(&scene.server);
    let answer = browser.get("/events?status=dead");
    assert_eq!(answer.status, 303);
    let way_in = answer.header("location").expect("a way").to_owned();
    assert_eq!(way_in, "/login?next=%2Fevents%3Fstatus%3Ddead");
    let form = browser.page(&way_in);
    assert_eq!(hidden(&form, "next"), "/events?status=dead");

    let wrong = browser.log_in("hpx_wrong");
    assert_eq!(wrong.status, 401);
    assert!(text(&wrong).contains("H0301"));
    let right = browser.log_in(TOKEN);
    assert_eq!((right.status, right.header("location")), (303, Some("/")));
    let cookie = right.header("set-cookie").expect("a cookie");
    for part in ["HttpOnly", "SameSite=Lax", "Path=/"] {
        assert!(cookie.contains(part), "{part} in {cookie}");
    }
    assert!(!cookie.contains(TOKEN));
    assert!(browser.page("/events").contains("No event has come yet"));
}

#[test]
fn a_revoked_token_ends_its_sessions_and_so_does_logging_out() {
    let scene = scene();
    let made = scene
        .server
        .post("/api/v1/token", &json!({"name": "ada", "role": "viewer"}));
    let made = made.json();
    let token = made["token"].as_str().expect("a token").to_owned();
    let browser = Browser::logged_in(&scene.server, &token);
    assert_eq!(browser.get("/events").status, 200);
    let left = browser.submit("/events", "/logout", &[]);
    let cookie = left.header("set-cookie").expect("a cookie");
    assert!(cookie.contains("Max-Age=0"), "{cookie}");
    let id = made["id"].as_str().expect("an id");
    let revoked = scene
        .server
        .post(&format!("/api/v1/token/{id}/revoke"), &json!({}));
    assert_eq!(revoked.status, 200, "{revoked:?}");
    assert_eq!(browser.get("/events").status, 303);
}

#[test]
fn a_session_outlives_a_restart_and_a_changed_cookie_is_none() {
    let scene = scene();
    let browser = Browser::logged_in(&scene.server, TOKEN);
    let cookie = browser.cookie().to_owned();
    let scene = scene.restarted();
    let mut browser = Browser::new(&scene.server);
    browser.take_cookie(&cookie);
    assert_eq!(browser.get("/events").status, 200);
    browser.take_cookie(&format!("{cookie}A"));
    assert_eq!(browser.get("/events").status, 303);
}

#[test]
fn forms_without_the_sessions_token_or_from_elsewhere_do_nothing() {
    let scene = scene();
    let browser = Browser::logged_in(&scene.server, TOKEN);
    let page = browser.page("/events");
    let csrf = hidden(&page, "csrf");
    let ours = [("csrf", csrf.as_str())];
    for (fields, more) in [
        (&[][..], "sec-fetch-site: same-origin\r\n"),
        (&[("csrf", "00")], "sec-fetch-site: same-origin\r\n"),
        (&ours, "sec-fetch-site: cross-site\r\n"),
        (&ours, "origin: https://evil.example\r\n"),
        (&ours, "origin: null\r\n"),
    ] {
        let answer = browser.send("/logout", fields, more);
        assert_eq!(answer.status, 403, "{fields:?} {more}");
        assert!(text(&answer).contains("H0341"));
    }
    assert_eq!(
        browser
            .send("/logout", &ours, "origin: http://localhost\r\n")
            .status,
        303
    );
    let foreign = Browser::new(&scene.server).send(
        "/login",
        &[("token", TOKEN)],
        "sec-fetch-site: cross-site\r\n",
    );
    assert_eq!(foreign.status, 403);
}

#[test]
fn whoever_tries_many_tokens_waits() {
    let scene = scene();
    let mut browser = Browser::new(&scene.server);
    for _ in 0..10 {
        assert_eq!(browser.log_in("hpx_guess").status, 401);
    }
    let answer = browser.log_in(TOKEN);
    assert_eq!(
        (answer.status, answer.header("retry-after")),
        (429, Some("60"))
    );
    assert!(text(&answer).contains("H0342"));
}

#[test]
fn every_page_says_what_browsers_may_do_with_it() {
    let scene = scene();
    let browser = Browser::logged_in(&scene.server, TOKEN);
    for path in ["/login", "/events", "/assets/none.css"] {
        let answer = browser.get(path);
        let policy = answer.header("content-security-policy").expect("a policy");
        for part in [
            "default-src 'none'",
            "script-src 'self'",
            "style-src 'self'",
            "frame-ancestors 'none'",
            "base-uri 'none'",
        ] {
            assert!(policy.contains(part), "{part} in {policy}");
        }
        assert!(!policy.contains("unsafe"), "{policy}");
        assert_eq!(answer.header("x-content-type-options"), Some("nosniff"));
        assert_eq!(answer.header("referrer-policy"), Some("same-origin"));
        assert_eq!(answer.header("cache-control"), Some("no-store"), "{path}");
    }
}

#[test]
fn assets_are_kept_by_browsers_and_a_first_page_is_small() {
    let scene = scene();
    let browser = Browser::logged_in(&scene.server, TOKEN);
    let page = browser.page("/events");
    let mut bytes = page.len();
    for piece in page
        .split('"')
        .filter(|piece| piece.starts_with("/assets/"))
    {
        let answer = browser.get(piece);
        let kept = answer.header("cache-control").expect("how long");
        assert!(kept.contains("immutable"), "{piece}: {kept}");
        bytes += answer.body().len();
    }
    assert!(bytes < 100_000, "{bytes} bytes");
}

#[test]
fn a_token_of_one_app_does_not_open_the_dashboard() {
    let scene = scene();
    let made = scene.server.post(
        "/api/v1/token",
        &json!({"name": "theirs", "role": "admin", "app": "app_1"}),
    );
    let token = made.json()["token"].as_str().expect("a token").to_owned();
    let answer = Browser::new(&scene.server).log_in(&token);
    assert_eq!(answer.status, 403, "{answer:?}");
}

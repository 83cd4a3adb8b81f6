//! Finding events by a text in their key; what is no page; how a source's duplicates compare with what is usual.

use serde_json::json;

use super::browser::Browser;
use crate::effects::scene::{SQLITE, Scene, on_each_store};
use crate::support::clock::{TOO_LONG, until};
use crate::support::server::TOKEN;

#[test]
fn a_text_in_a_key_finds_events_on_the_page_and_in_the_api() {
    on_each_store(|store| {
        let scene = Scene::new(store, &[]);
        let wanted = scene.send("evt_needle_1", "invoice.paid", &json!({}));
        let other = scene.send("evt_hay_2", "invoice.paid", &json!({}));
        let browser = Browser::logged_in(&scene.server, TOKEN);
        let page = browser.page("/events?keyContains=needle");
        assert!(page.contains(&wanted) && !page.contains(&other));
        assert!(
            page.contains("value=\"needle\""),
            "the form says what was asked"
        );
        assert!(
            page.contains("data-live=\"/events/stream?keyContains=needle\""),
            "what comes live is narrowed, too"
        );
        let none = browser.page("/events?keyContains=NEEDLE");
        assert!(none.contains("No event fits these filters"));
        let found = scene
            .server
            .get("/api/v1/event?keyContains=needle&source=billing");
        let rows = found.json()["data"].clone();
        assert_eq!(rows.as_array().map(Vec::len), Some(1), "{rows}");
        assert_eq!(rows[0]["id"], json!(wanted));
        // What is replayed is named by what it is: a text is for looking.
        let body = json!({"filter": {"keyContains": "needle"}, "reason": "why"});
        let refused = scene.server.post("/api/v1/replay", &body);
        assert_eq!(refused.status, 422, "{refused:?}");
    });
}

#[test]
fn what_is_no_page_is_told_as_a_page_to_browsers_and_as_json_to_programs() {
    let scene = Scene::new(SQLITE, &[]);
    let ask = |path: &str, accept: &str| {
        let request = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\naccept: {accept}\r\n\r\n");
        scene.server.ask(request.as_bytes())
    };
    let browser = "text/html,application/xhtml+xml";
    for path in ["/nothing", "/events-of-old", "/portal/assets/none/else"] {
        let answer = ask(path, browser);
        let kind = answer.header("content-type").unwrap_or_default();
        if answer.status == 303 {
            // Under the portal whoever has no session is led to the way in.
            assert!(path.starts_with("/portal/"), "{path}");
            continue;
        }
        assert_eq!(answer.status, 404, "{path}");
        assert!(kind.starts_with("text/html"), "{path}: {kind}");
        assert!(answer.header("content-security-policy").is_some(), "{path}");
        let program = ask(path, "application/json");
        assert_eq!(program.status, 404);
        assert_eq!(program.json()["code"], "H0302", "{path}");
    }
    let api = ask("/api/v1/nothing", browser);
    let kind = api.header("content-type").unwrap_or_default().to_owned();
    assert!(kind.contains("json"), "{kind}");
}

#[test]
fn a_source_tells_its_share_of_duplicates_once_some_came() {
    let every = "[alerts]\nevery = \"1s\"\n".to_owned();
    let scene = Scene::new(SQLITE, &[every]);
    let browser = Browser::logged_in(&scene.server, TOKEN);
    for _ in 0..4 {
        scene.send("evt_1", "invoice.paid", &json!({}));
    }
    let source = until(TOO_LONG, "a share of duplicates", || {
        let told = scene.server.get("/api/v1/source").json();
        let source = told["data"][0].clone();
        // What came while somebody looked is counted in the next look.
        (source["duplicateShare"].as_f64() == Some(0.75)).then_some(source)
    });
    assert_eq!(
        (&source["accepted"], &source["duplicates"]),
        (&json!(1), &json!(3))
    );
    assert!(source["duplicateShareUsual"].is_null(), "{source}");
    assert!(browser.page("/").contains("75.0 %"));
}

#[test]
fn a_source_tells_its_share_of_duplicates_and_what_is_usual() {
    let scene = Scene::new(SQLITE, &[]);
    let told = scene.server.get("/api/v1/source").json();
    let source = &told["data"][0];
    assert!(source["duplicateShare"].is_null(), "{source}");
    assert!(source["duplicateShareUsual"].is_null(), "{source}");
    let browser = Browser::logged_in(&scene.server, TOKEN);
    let page = browser.page("/");
    assert!(page.contains("what is usual for the source"));
}

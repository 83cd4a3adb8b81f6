//! Every page answers, with data and without, to those who may see it; and nothing that came from outside is markup on it.

use serde_json::json;

use super::browser::Browser;
use crate::effects::scene::{SQLITE, Scene, effect};
use crate::support::server::{Server, TOKEN};
use crate::support::world::{Act, World};

const PAGES: [&str; 9] = [
    "/",
    "/?span=day",
    "/events",
    "/effects",
    "/review",
    "/dead",
    "/replays",
    "/sources",
    "/guard",
];
const ADMIN_PAGES: [&str; 3] = ["/tokens", "/audit", "/settings"];
const ONE_TRY: &str = "retry = [\"0s\"]\ntimeout = \"2s\"";

/// What a careless page would run, or be broken by.
const CORPUS: [&str; 6] = [
    "<script>alert(1)</script>",
    "\"><img src=x onerror=alert(1)>",
    "'onmouseover='alert(1)",
    "</pre></template><svg onload=alert(1)>",
    "javascript:alert(1)",
    "{{7*7}}<!--",
];

fn token(server: &Server, role: &str) -> String {
    let made = server.post(
        "/api/v1/token",
        &json!({"name": format!("a {role}"), "role": role}),
    );
    made.json()["token"].as_str().expect("a token").to_owned()
}

#[test]
fn every_page_answers_without_data_and_says_what_to_do() {
    let scene = Scene::new(SQLITE, &[]);
    let browser = Browser::logged_in(&scene.server, TOKEN);
    for path in PAGES
        .iter()
        .chain(&ADMIN_PAGES)
        .chain(&["/apps", "/sources/billing"])
    {
        let page = browser.page(path);
        assert!(page.starts_with("<!DOCTYPE html>"), "{path}");
        assert!(!page.contains("style=\""), "{path} has an inline style");
    }
    for (path, said) in [
        ("/", "Nothing waits for a person."),
        ("/events", "hapax send"),
        ("/dead", "No dead letters"),
        ("/apps", "No application yet"),
    ] {
        assert!(browser.page(path).contains(said), "{path}");
    }
    for path in [
        "/events/evt_none",
        "/replays/rpl_none",
        "/sources/none",
        "/apps/none",
        "/guard/none",
    ] {
        assert_eq!(browser.get(path).status, 404, "{path}");
    }
    assert_eq!(browser.get("/events?since=yesterday").status, 422);
}

#[test]
fn viewers_see_no_forms_and_only_admins_see_what_is_theirs() {
    let world = World::new(|_| Act::Answer(422));
    let scene = Scene::new(SQLITE, &[effect("bad", &world.url("/dead"), ONE_TRY)]);
    let id = scene.send("evt_1", "invoice.paid", &json!({}));
    scene.wait_for_status(&id, "dead");
    let event = format!("/events/{id}");
    for (role, acts, rules) in [
        ("viewer", false, false),
        ("operator", true, false),
        ("admin", true, true),
    ] {
        let browser = Browser::logged_in(&scene.server, &token(&scene.server, role));
        let page = browser.page(&event);
        assert_eq!(page.contains("Retry now"), acts, "{role}");
        assert_eq!(
            browser.page("/dead").contains("Replay them"),
            acts,
            "{role}"
        );
        for path in ADMIN_PAGES {
            let status = if rules { 200 } else { 403 };
            assert_eq!(browser.get(path).status, status, "{role} {path}");
        }
        if !acts {
            let form = [("action", "retry"), ("do", "act"), ("reason", "because")];
            let answer = browser.submit(&event, &format!("{event}/act"), &form);
            assert_eq!(answer.status, 403, "{role}");
        }
    }
    assert_eq!(world.seen().len(), 1, "nothing was sent again");
}

#[test]
fn nothing_from_outside_is_markup() {
    let world =
        World::new(|_| Act::AnswerWith(422, "content-type: text/html\r\n", CORPUS.concat()));
    let scene = Scene::new(SQLITE, &[effect("bad", &world.url("/dead"), ONE_TRY)]);
    let server = &scene.server;
    let mut paths: Vec<String> = PAGES
        .iter()
        .chain(&ADMIN_PAGES)
        .map(|path| (*path).to_owned())
        .collect();
    for (at, text) in CORPUS.iter().enumerate() {
        let id = scene.send(
            &format!("{text}{at}"),
            text,
            &json!({"id": text, "name": CORPUS}),
        );
        paths.push(format!("/events/{id}"));
        server.post(
            "/api/v1/token",
            &json!({"name": text, "role": "viewer", "app": text, "reason": text}),
        );
        let app = server.post("/api/v1/app", &json!({"name": text})).json();
        paths.push(format!("/apps/{}", app["id"].as_str().expect("an id")));
        scene.wait_for_status(&id, "dead");
        let body = json!({"reason": text, "dryRun": true, "filter": {"type": text}});
        let replay = server.post("/api/v1/replay", &body).json();
        paths.push(format!(
            "/replays/{}",
            replay["id"].as_str().expect("an id")
        ));
        let query: String = form_urlencoded::byte_serialize(text.as_bytes()).collect();
        for path in [
            "/events?type=",
            "/events?key=",
            "/login?next=",
            "/audit?actor=",
            "/effects?lane=",
            "/?did=",
        ] {
            paths.push(format!("{path}{query}"));
        }
    }
    paths.extend(["/apps".to_owned(), "/sources/billing".to_owned()]);
    let browser = Browser::logged_in(server, TOKEN);
    for path in &paths {
        let page = browser.page(path);
        for bad in [
            "<script>",
            "<img",
            "<svg onload",
            "href=\"javascript:",
            "<!--",
        ] {
            assert!(!page.contains(bad), "{path} has {bad}");
        }
    }
}

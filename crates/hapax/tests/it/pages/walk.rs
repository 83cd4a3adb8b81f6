//! The incident walk: a half-failed event, the evidence, a dry run, the retry, and done; an uncertain effect; many dead letters.

use serde_json::json;

use super::browser::{Browser, hidden, text};
use crate::effects::scene::{Scene, effect, on_each_store};
use crate::support::clock::{TOO_LONG, until};
use crate::support::server::TOKEN;
use crate::support::world::{Act, World};

const ONE_TRY: &str = "retry = [\"0s\"]\ntimeout = \"2s\"";

/// A world that refuses `/dead` at first, hangs up on `/silent`, and is well otherwise.
fn world() -> World {
    World::new(|seen| match (seen.target.as_str(), seen.before) {
        ("/dead", 0) => Act::AnswerWith(422, "", "no such plan".to_owned()),
        ("/silent", 0) => Act::HangUp,
        _ => Act::Answer(200),
    })
}

/// A form without a reason, and one about a ledger that has moved, do nothing.
fn refused(browser: &Browser<'_>, event: &str, revision: &str) {
    let act = format!("{event}/act");
    let no_reason = [
        ("action", "retry"),
        ("do", "act"),
        ("reason", ""),
        ("revision", revision),
    ];
    let answer = browser.submit(event, &act, &no_reason);
    assert_eq!(answer.status, 422, "{answer:?}");
    let moved = [
        ("action", "retry"),
        ("do", "act"),
        ("reason", "why"),
        ("revision", "1"),
    ];
    let answer = browser.submit(event, &act, &moved);
    assert_eq!(answer.status, 409);
    assert!(text(&answer).contains("H0311"));
}

#[test]
fn a_half_failed_event_is_understood_tried_and_done() {
    on_each_store(a_half_failed_event_is_understood_tried_and_done_on);
}

fn a_half_failed_event_is_understood_tried_and_done_on(store: &str) {
    let world = world();
    let effects = [
        effect("good", &world.url("/good"), ONE_TRY),
        effect("bad", &world.url("/dead"), ONE_TRY),
    ];
    let scene = Scene::new(store, &effects);
    let id = scene.send("evt_1", "invoice.paid", &json!({}));
    // Dead as soon as one effect is, whatever the other does.
    scene.wait_for_state(&id, "good", "done");
    scene.wait_for_status(&id, "dead");
    let browser = Browser::logged_in(&scene.server, TOKEN);
    let event = format!("/events/{id}");
    assert!(
        browser.page("/").contains(&event),
        "the overview leads to it"
    );
    assert!(browser.page("/events?status=dead").contains(&event));
    let page = browser.page(&event);
    for part in ["no such plan", "This is safe", "422", "evt_1"] {
        assert!(page.contains(part), "{part}");
    }
    let act = format!("{event}/act");
    let revision = hidden(&page, "revision");

    refused(&browser, &event, &revision);

    let mut form = [
        ("action", "retry"),
        ("do", "preview"),
        ("reason", "the plan is there"),
        ("revision", &revision),
    ];
    let dry = browser.submit(&event, &act, &form);
    assert_eq!(dry.status, 200);
    let dry = text(&dry);
    assert!(dry.contains("Dry run") && dry.contains("value=\"the plan is there\""));
    assert_eq!(world.seen().len(), 2, "a dry run sends nothing");

    form[1] = ("do", "act");
    let mut once = Vec::from(form);
    let (csrf, key) = (hidden(&dry, "csrf"), hidden(&dry, "once"));
    once.extend([("csrf", csrf.as_str()), ("once", key.as_str())]);
    for _ in 0..2 {
        let answer = browser.send(&act, &once, "sec-fetch-site: same-origin\r\n");
        let to = answer.header("location").unwrap_or_default();
        assert_eq!(
            (answer.status, to),
            (303, format!("{event}?did=retry").as_str())
        );
    }
    scene.wait_for_status(&id, "completed");
    let page = browser.page(&format!("{event}?did=retry"));
    for part in [
        "The retry has begun",
        "the plan is there",
        "There is nothing to do",
    ] {
        assert!(page.contains(part), "{part}");
    }
    let runs = scene.event(&id)["runs"].as_array().map(Vec::len);
    assert_eq!(runs, Some(2), "the same form twice is one retry");
    assert!(browser.page("/audit").contains("event.retry"));
}

#[test]
fn an_uncertain_effect_is_settled_by_a_person() {
    on_each_store(an_uncertain_effect_is_settled_by_a_person_on);
}

fn an_uncertain_effect_is_settled_by_a_person_on(store: &str) {
    let world = world();
    let more = format!("repeat = \"once\"\n{ONE_TRY}");
    let scene = Scene::new(store, &[effect("card", &world.url("/silent"), &more)]);
    let id = scene.send("evt_1", "invoice.paid", &json!({}));
    let effect = scene.wait_for_state(&id, "card", "uncertain");
    let effect = effect["id"].as_str().expect("an id");
    let browser = Browser::logged_in(&scene.server, TOKEN);
    let event = format!("/events/{id}");
    let page = browser.page(&event);
    assert!(
        page.contains("Somebody has to decide"),
        "the verdict says so"
    );
    let fields = [
        ("outcome", "applied"),
        ("reason", "it is in their log"),
        ("event", id.as_str()),
    ];
    let answer = browser.submit(&event, &format!("/effects/{effect}/resolve"), &fields);
    assert_eq!(answer.status, 303, "{answer:?}");
    scene.wait_for_status(&id, "completed");
    assert_eq!(world.seen().len(), 1, "nothing was sent again");
}

#[test]
fn dead_letters_are_previewed_and_replayed() {
    on_each_store(dead_letters_are_previewed_and_replayed_on);
}

fn dead_letters_are_previewed_and_replayed_on(store: &str) {
    let world = world();
    let scene = Scene::new(store, &[effect("bad", &world.url("/dead"), ONE_TRY)]);
    let ids: Vec<String> = (0..5)
        .map(|at| scene.send(&format!("evt_{at}"), "invoice.paid", &json!({})))
        .collect();
    for id in &ids {
        scene.wait_for_status(id, "dead");
    }
    let browser = Browser::logged_in(&scene.server, TOKEN);
    for (word, done) in [("preview", "dead"), ("act", "completed")] {
        let fields = [
            ("do", word),
            ("reason", "the target is back"),
            ("type", "invoice.paid"),
        ];
        let answer = browser.submit("/dead", "/dead/replay", &fields);
        let to = answer.header("location").expect("the replay").to_owned();
        until(TOO_LONG, "the replay to be through", || {
            browser.page(&to).contains("data-through").then_some(())
        });
        assert!(browser.page(&to).contains(">5</dd>"), "all of them");
        for id in &ids {
            scene.wait_for_status(id, done);
        }
    }
    assert!(browser.page("/replays").contains("the target is back"));
}

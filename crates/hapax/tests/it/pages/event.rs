//! The page of one event: how the source of truth differed, and how large the page gets.

use serde_json::json;

use super::browser::Browser;
use crate::effects::scene::{SQLITE, Scene, effect, on_each_store};
use crate::support::clock::{TOO_LONG, until};
use crate::support::server::TOKEN;
use crate::support::world::{Act, World};

/// What a page may have, so that it is there at once.
const PAGE_BYTES_MAX: usize = 100 * 1024;

#[test]
fn a_reconcile_shows_what_the_source_of_truth_says_beside_the_event() {
    on_each_store(|store| {
        let world = World::new(|seen| match seen.target.as_str() {
            "/truth/in_1" => Act::AnswerWith(200, "", "{\"id\":\"in_1\",\"paid\":true}".to_owned()),
            _ => Act::Answer(200),
        });
        let set = effect("set", &world.url("/set"), "repeat = \"converges\"");
        let truth = world.url("/truth/{data.object.id}");
        let source = format!("reconcile = {{ url = \"{truth}\" }}\n");
        let scene = Scene::with(store, &[set], &source);
        let object = json!({"id": "in_1", "paid": false, "note": "<b>by hand</b>"});
        let id = scene.send("evt_1", "invoice.paid", &object);
        scene.wait_for_status(&id, "completed");
        let browser = Browser::logged_in(&scene.server, TOKEN);
        let event = format!("/events/{id}");
        assert!(!browser.page(&event).contains("The source of truth says"));
        let fields = [
            ("action", "reconcile"),
            ("do", "act"),
            ("reason", "the books differ"),
        ];
        let answer = browser.submit(&event, &format!("{event}/act"), &fields);
        assert_eq!(answer.status, 303, "{answer:?}");
        let page = until(TOO_LONG, "the difference on the page", || {
            let page = browser.page(&event);
            page.contains("The source of truth says").then_some(page)
        });
        let (_, table) = page
            .split_once("class=\"difference\"")
            .expect("a table of differences");
        let (table, _) = table.split_once("</table>").expect("its end");
        for said in [
            "<code>paid</code>",
            "<del>false</del>",
            "<ins>true</ins>",
            "<code>note</code>",
            "&lt;b&gt;by hand&lt;/b&gt;",
        ] {
            assert!(table.contains(said), "{said} in {table}");
        }
        assert!(
            !table.contains("<code>id</code>"),
            "what is the same: {table}"
        );
    });
}

#[test]
fn the_page_of_an_event_stays_small_whatever_its_payload() {
    let world = World::well();
    let effects: Vec<String> = (0..8)
        .map(|n| effect(&format!("effect-{n}"), &world.url("/well"), ""))
        .collect();
    let scene = Scene::new(SQLITE, &effects);
    let lines: Vec<String> = (0..5_000)
        .map(|n| format!("line {n} of an invoice"))
        .collect();
    for (name, object) in [
        ("evt_small", json!({"id": "in_1"})),
        ("evt_large", json!({"id": "in_2", "lines": lines})),
    ] {
        let id = scene.send(name, "invoice.paid", &object);
        scene.wait_for_status(&id, "completed");
        let browser = Browser::logged_in(&scene.server, TOKEN);
        let page = browser.page(&format!("/events/{id}"));
        assert!(page.contains("effect-7"), "{name} shows its effects");
        let bytes = page.len();
        assert!(bytes < PAGE_BYTES_MAX, "{name}: {bytes} bytes");
    }
}

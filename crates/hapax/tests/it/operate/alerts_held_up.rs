//! Alerts about work that is held up: attempts that begin late, a disk without space, a queue for review that grows. From what really
//! happens to a server to what its API lists.

use serde_json::{Value, json};

use super::alerts::{is_over, stands, wait_for_alert};
use crate::effects::scene::{Scene, effect, fact, on_each_store};
use crate::faults::shim::{AHEAD, Fault, Shim};
use crate::support::sender::Sender;
use crate::support::site::{Site, config};
use crate::support::world::{Act, World};

const EVERY: &str = "[alerts]\nevery = \"100ms\"\n";

fn text(alert: &Value) -> &str {
    alert["text"].as_str().expect("text")
}

/// Effects that waited while nobody sent them begin late, and that is told of their lane.
#[test]
fn attempts_that_begin_late_are_told() {
    let world = World::new(|seen| match seen.before {
        0 if seen.key().ends_with("evt_0") => Act::Hang,
        _ => Act::Answer(200),
    });
    let mut site = Site::sqlite();
    Shim::before(&mut site);
    let crm = effect("crm", &world.url("/"), "concurrency = 1");
    site.configure(&config("sqlite:data/hapax.db", &format!("{EVERY}{crm}")));
    let server = site.start();
    let sender = Sender::to("billing");
    for n in 0..20 {
        let body = fact(&format!("evt_{n}"), "invoice.paid", &json!({}));
        assert_eq!(server.ask(&sender.request_with(&body)).status, 200);
    }
    // The lane takes one at a time, and that one hangs: all others wait, a few of them in memory, the rest to be claimed.
    world.wait_for("the first", |seen| seen.len() == 1);
    server.kill();
    site.set(AHEAD, "60");
    let server = site.start();
    let lag = wait_for_alert(&server, "dispatch_lag", stands);
    assert_eq!(
        (&lag["subject"], &lag["code"]),
        (&json!("crm"), &json!("H0505"))
    );
    assert!(
        text(&lag).contains("began more than 30 s after they were due, the latest 6"),
        "{lag}"
    );
}

/// A disk below the watermark is told as long as it is, and critical: nothing is taken.
#[test]
fn a_disk_without_space_is_told_and_so_is_its_end() {
    let mut site = Site::sqlite();
    let shim = Shim::before(&mut site);
    site.configure(&config("sqlite:data/hapax.db", EVERY));
    let server = site.start();
    shim.begin(Fault::Low);
    let disk = wait_for_alert(&server, "disk", stands);
    assert_eq!(
        (&disk["subject"], &disk["severity"], &disk["code"]),
        (&json!("store"), &json!("critical"), &json!("H0506"))
    );
    assert!(
        text(&disk).starts_with("0 MiB are free on the disk of the store"),
        "{disk}"
    );
    shim.end(Fault::Low);
    let over = wait_for_alert(&server, "disk", is_over);
    assert_eq!(over["since"], disk["since"]);
}

/// Looks are far enough apart that a dozen events come within one window of them.
const EVERY_SLOW: &str = "[alerts]\nevery = \"500ms\"\n";

/// Events that wait for a person and become more are told.
#[test]
fn a_queue_for_review_that_grows_is_told() {
    on_each_store(|store| {
        let world = World::new(|seen| match seen.target.as_str() {
            "/dead" => Act::Answer(422),
            _ => Act::Answer(200),
        });
        let order = "order = { serial = true, review = 'data.object.odd == true' }";
        let source = "entity = \"data.object.id\"\n";
        let dies = "types = [\"first\"]\nretry = [\"0s\"]";
        let held = format!("types = [\"invoice.*\"]\n{order}");
        let parts = [
            EVERY_SLOW.to_owned(),
            effect("dies", &world.url("/dead"), dies),
            effect("one", &world.url("/"), &held),
        ];
        let scene = Scene::with(store, &parts, source);
        // The look that finds a dead letter has also found the queue for review empty.
        scene.send("evt_dead", "first", &json!({"id": "in_dead"}));
        wait_for_alert(&scene.server, "dead_letters", stands);
        let sent: Vec<String> = (0..12)
            .map(|n| {
                let object = json!({"id": format!("in_{n}"), "odd": true});
                scene.send(&format!("evt_{n}"), "invoice.paid", &object)
            })
            .collect();
        for id in &sent {
            scene.wait_for_status(id, "needs_review");
        }
        let queue = wait_for_alert(&scene.server, "review_queue", stands);
        assert_eq!(
            (&queue["subject"], &queue["code"]),
            (&json!("events"), &json!("H0503"))
        );
        let told = text(&queue);
        assert!(
            told.contains(" events or more wait for a person, ")
                && told.ends_with(" more than 15s ago"),
            "{told}"
        );
        assert_eq!(world.seen().len(), 1, "none of them is sent");
    });
}

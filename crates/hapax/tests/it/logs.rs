//! Log lines: JSON where no person reads, with the same words for the same things, and never a payload or a secret.

use serde_json::{Value, json};

use crate::effects::scene::fact;
use crate::support::clock::{TOO_LONG, until};
use crate::support::sender::{SECRET, Sender};
use crate::support::server::{Server, TOKEN};
use crate::support::site::Site;
use crate::support::world::{Act, World};

/// In the payload, and nowhere else.
const CANARY: &str = "canary-in-the-payload";

/// Starts a server that logs all it can, over a target that never does what it is asked.
fn scene(world: &World) -> (Site, Server) {
    let more = format!(
        "[[effect]]\nname = \"book\"\nsource = \"billing\"\nretry = [\"0s\", \"0s\"]\nurl = \"{}\"\n",
        world.url("/book")
    );
    let mut site = Site::sqlite();
    site.configure(&format!(
        "{}\n{more}",
        crate::support::site::config("sqlite:data/hapax.db", "")
    ));
    site.set("HAPAX_LOG", "debug,fjall=warn,lsm_tree=warn");
    let server = site.start();
    (site, server)
}

#[test]
fn every_line_about_an_event_names_it_in_the_same_words() {
    let world = World::new(|_| Act::Answer(500));
    let (_site, server) = scene(&world);
    let body = fact(
        "evt_1",
        "invoice.paid",
        &json!({ "id": "in_1", "note": CANARY }),
    );
    let request = Sender::to("billing").request_with(&body);
    for _ in 0..2 {
        assert_eq!(server.ask(&request).status, 200);
    }
    let lines = until(TOO_LONG, "it is given up", || {
        // A whole request, which paces the loop.
        server.get("/healthz");
        let said = server.said().lock().expect("whole").clone();
        said.contains("given up after").then_some(said)
    });
    assert!(!lines.contains(CANARY), "a payload is in the log");
    for secret in [SECRET, TOKEN] {
        assert!(!lines.contains(secret), "a secret is in the log");
    }
    let lines: Vec<Value> = lines
        .lines()
        .map(|line| serde_json::from_str(line).expect("a line is JSON"))
        .collect();
    for (message, key) in [
        ("an event is accepted", "key"),
        ("an event came again", "key"),
        ("no success yet; will be tried again", "event_key"),
        (
            "given up after its whole schedule; it waits among the dead letters",
            "event_key",
        ),
    ] {
        let line = lines.iter().find(|line| line["message"] == message);
        let line = line.unwrap_or_else(|| panic!("no line says `{message}`: {lines:#?}"));
        let about = [&line["source"], &line["type"], &line[key], &line["object"]];
        assert_eq!(
            about,
            ["billing", "invoice.paid", "evt_1", "in_1"],
            "{line}"
        );
        assert!(
            line["event"]
                .as_str()
                .is_some_and(|id| id.starts_with("evt_")),
            "{line}"
        );
    }
}

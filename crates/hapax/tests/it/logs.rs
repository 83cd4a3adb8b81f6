//! Log lines: JSON where no person reads, with the same words for the same things, and never a payload or a secret.

use serde_json::{Value, json};

use crate::effects::scene::{SQLITE, Scene, effect, fact, on_postgres};
use crate::support::clock::{TOO_LONG, until};
use crate::support::sender::{SECRET, Sender};
use crate::support::server::{Server, TOKEN};
use crate::support::site::{Site, config};
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
    site.configure(&format!("{}\n{more}", config("sqlite:data/hapax.db", "")));
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
        names_it(&lines, message, key);
    }
}

/// A line that says this names the event in the words that all lines have.
#[track_caller]
fn names_it(lines: &[Value], message: &str, key: &str) {
    let line = lines.iter().find(|line| line["message"] == message);
    let line = line.unwrap_or_else(|| panic!("no line says `{message}`: {lines:#?}"));
    let about = [&line["source"], &line["type"], &line[key], &line["object"]];
    assert_eq!(
        about,
        ["billing", "invoice.paid", "evt_1", "in_1"],
        "{line}"
    );
    let id = line["event"].as_str();
    assert!(id.is_some_and(|id| id.starts_with("evt_")), "{line}");
}

/// What a target refuses again and again is an error to look at from the third time on; what it only puts off, or breaks over, is not.
#[test]
fn what_is_refused_again_and_again_is_said_loudly() {
    let loud = "the target keeps refusing this request; somebody should look before it is given up";
    let table: [(&str, u16, &[u64]); 4] = [
        ("wrong", 422, &[3, 4]),
        ("gone", 410, &[3, 4]),
        ("busy", 429, &[]),
        ("broken", 500, &[]),
    ];
    let world = World::new(move |seen| {
        let row = table.iter().find(|row| seen.target[1..] == *row.0);
        Act::Answer(row.expect("a path of ours").1)
    });
    let effects = table.map(|(name, ..)| {
        let retry = format!("retry = [{}]", ["\"0s\""; 5].join(", "));
        effect(name, &world.url(&format!("/{name}")), &retry)
    });
    let scene = Scene::new(SQLITE, &effects);
    let object = json!({ "id": "in_1", "note": CANARY });
    let event = scene.send("evt_1", "invoice.paid", &object);
    let lines = until(TOO_LONG, "all are given up", || {
        // A whole request, which paces the loop.
        scene.server.get("/healthz");
        let said = scene.server.said().lock().expect("whole").clone();
        let given_up = said.matches("given up after").count() == table.len();
        // The line of a refusal may come after that of the next.
        (given_up && said.matches(loud).count() >= 4).then_some(said)
    });
    assert!(!lines.contains(CANARY), "a payload is in the log");
    let lines: Vec<Value> = lines
        .lines()
        .map(|line| serde_json::from_str(line).expect("a line is JSON"))
        .collect();
    names_it(&lines, loud, "event_key");
    for (name, status, expected) in table {
        let id = scene.effect(&event, name)["id"].clone();
        let about = |line: &&Value| line["message"] == loud && line["effect"] == id;
        let found: Vec<&Value> = lines.iter().filter(about).collect();
        let attempts: Vec<u64> = found
            .iter()
            .filter_map(|line| line["attempts"].as_u64())
            .collect();
        assert_eq!(attempts, expected, "{name}: {lines:#?}");
        for line in found {
            let outcome = format!("answered {status}");
            assert_eq!(line["level"], "ERROR", "{line}");
            assert_eq!(line["outcome"], outcome, "{line}");
            assert_eq!(
                (&line["event"], &line["name"]),
                (&json!(event), &json!(name))
            );
        }
    }
}

/// A probe's word is told in the same words.
#[test]
fn the_line_of_a_probe_names_it_too() {
    let message = "its probe has decided what was uncertain";
    names_its_effect(&after_a_crash(SQLITE, message), message);
}

/// What another process left is told in the same words. On SQLite no line is written: a start voids what the one before it held.
#[test]
fn the_line_of_a_rescue_names_it_too() {
    on_postgres(|url| {
        let message = "a claim ran out and was taken over";
        names_its_effect(&after_a_crash(url, message), message);
    });
}

#[track_caller]
fn names_its_effect(lines: &[Value], message: &str) {
    names_it(lines, message, "event_key");
    let line = lines.iter().find(|line| line["message"] == message);
    let line = line.expect("it was found before");
    assert_eq!(
        (&line["name"], &line["key"]),
        (&json!("mail"), &json!("evt_1"))
    );
}

/// The log of a server whose predecessor was killed while it sent a mail, up to these words.
fn after_a_crash(store: &str, words: &str) -> Vec<Value> {
    let world = World::new(|seen| match seen.target.as_str() {
        "/mail" => Act::Hang,
        _ => Act::AnswerWith(200, "", "{\"applied\": true}".to_owned()),
    });
    let more = format!(
        "[limits]\nlease = \"3s\"\n[[effect]]\nname = \"mail\"\nsource = \"billing\"\nrepeat = \"once\"\n\
         timeout = \"1s\"\nurl = \"{}\"\nprobe = \"{}\"\n",
        world.url("/mail"),
        world.url("/applied?key={key}")
    );
    let mut site = Site::sqlite();
    site.configure(&config(store, &more));
    site.set("HAPAX_LOG", "debug,fjall=warn,lsm_tree=warn");
    let server = site.start();
    let body = fact(
        "evt_1",
        "invoice.paid",
        &json!({ "id": "in_1", "note": CANARY }),
    );
    let request = Sender::to("billing").request_with(&body);
    assert_eq!(server.ask(&request).status, 200);
    world.wait_for("the mail", |seen| seen.len() == 1);
    server.kill();

    let server = site.start();
    let lines = until(TOO_LONG, words, || {
        // A whole request, which paces the loop.
        server.get("/healthz");
        let said = server.said().lock().expect("whole").clone();
        said.contains(words).then_some(said)
    });
    assert!(!lines.contains(CANARY), "a payload is in the log");
    let lines = lines.lines();
    lines
        .map(|line| serde_json::from_str(line).expect("a line is JSON"))
        .collect()
}

//! Erasing: what an event brought is gone at once, from the API and from the store's files, and it is still known.

use std::path::PathBuf;

use serde_json::{Value, json};

use crate::effects::scene::{SQLITE, Scene, effect, on_each_store};
use crate::program::{Ran, hapax};
use crate::support::files::{below, text};
use crate::support::server::TOKEN;
use crate::support::world::{Act, World};

/// Somebody who wants to be forgotten.
const PERSON: &str = "Ada-Lovelace-of-Saint-James-Square-12";

/// A world that says back what it was told, and then refuses it.
fn world() -> World {
    World::new(|seen| match seen.target.as_str() {
        "/echo" => Act::AnswerWith(422, "", String::from_utf8_lossy(&seen.body).into_owned()),
        _ => Act::Answer(200),
    })
}

fn scene(store: &str, world: &World) -> Scene {
    let effects = [
        effect("crm", &world.url("/echo"), "retry = [\"0s\"]"),
        effect("mail", &world.url("/"), "after = [\"crm\"]"),
    ];
    Scene::with(store, &effects, "entity = \"data.object.customer\"\n")
}

fn send(scene: &Scene, name: &str, customer: &str) -> String {
    let padding = "x".repeat(9_000);
    let object = json!({"id": name, "customer": customer, "name": PERSON, "padding": padding});
    let id = scene.send(name, "invoice.paid", &object);
    scene.wait_for_status(&id, "dead");
    let other = json!({"id": name, "customer": customer, "name": format!("{PERSON} again")});
    assert_eq!(scene.send(name, "invoice.paid", &other), id, "a conflict");
    id
}

/// Files of the store in which the person is named.
fn named_in(scene: &Scene) -> Vec<PathBuf> {
    let mut found = below(&scene.folder().join("data"));
    found.retain(|file| text(file).contains(PERSON));
    found
}

#[test]
fn what_is_erased_is_in_no_answer_and_no_file() {
    on_each_store(|store| {
        let world = world();
        let scene = scene(store, &world);
        let id = send(&scene, "evt_1", "cus_1");
        let before = scene.effect(&id, "crm").to_string();
        assert!(before.contains(PERSON), "the receiver said it back");
        if store == SQLITE {
            assert_ne!(named_in(&scene), [] as [PathBuf; 0]);
        }

        let path = format!("/api/v1/event/{id}/erase");
        let dry = json!({"reason": "article 17", "dryRun": true});
        assert_eq!(scene.server.post(&path, &dry).status, 200);
        let body = format!("/api/v1/event/{id}/body");
        assert_eq!(scene.server.get(&body).status, 200);
        let erased = scene.server.post(&path, &json!({"reason": "article 17"}));
        assert_eq!(erased.status, 200, "{erased:?}");
        assert_ne!(erased.json()["verdict"]["verdict"], "safe");

        assert_eq!(scene.server.get(&body).code(), "H0304");
        let parts = ["", "/timeline", "/verdict", "/conflict/1/body"];
        let mut said = parts.map(|part| {
            let answer = scene.server.get(&format!("/api/v1/event/{id}{part}"));
            String::from_utf8_lossy(answer.body()).into_owned()
        });
        said[0].push_str(&scene.effect(&id, "crm").to_string());
        assert!(!said.concat().contains(PERSON), "{said:#?}");
        assert!(said[1].contains("Erased: payload"), "{}", said[1]);
        if store == SQLITE {
            assert_eq!(named_in(&scene), [] as [PathBuf; 0]);
        }

        let skipped = scene.effect(&id, "mail");
        assert_eq!(
            (&skipped["state"], &skipped["skipReason"]),
            (&json!("skipped"), &json!("erased"))
        );
        let again = json!({"id": "evt_1", "customer": "cus_1", "name": PERSON});
        assert_eq!(
            scene.send("evt_1", "invoice.paid", &again),
            id,
            "it is still known"
        );
        if store == SQLITE {
            assert_eq!(
                named_in(&scene),
                [] as [PathBuf; 0],
                "and brings nothing back"
            );
        }
    });
}

#[test]
fn all_about_an_object_is_erased_at_a_prompt() {
    on_each_store(|store| {
        let world = world();
        let scene = scene(store, &world);
        let ids = ["evt_1", "evt_2"].map(|name| send(&scene, name, "cus_1"));
        let other = send(&scene, "evt_3", "cus_2");
        let cli = |more: &[&str]| {
            let mut command = hapax(scene.folder());
            command.env("HAPAX_URL", format!("http://{}", scene.server.address()));
            command.env("HAPAX_TOKEN", TOKEN);
            let of = [
                "events", "erase", "--source", "billing", "--entity", "cus_1",
            ];
            Ran::of(command.args(of).args(["--reason", "article 17"]).args(more))
        };
        let counted = cli(&["--dry-run"]).expect_exit(0);
        assert_eq!(counted.stdout, "2 events would be erased\n");
        cli(&[]).expect_exit(2);
        let erased = cli(&["--yes", "--json"]).expect_exit(0).json();
        assert_eq!(erased, json!({"events": 2, "erased": 2, "dryRun": false}));
        let again = cli(&["--yes", "--json"]).expect_exit(0).json();
        assert_eq!((&again["events"], &again["erased"]), (&json!(2), &json!(0)));
        let status = |id: &String| scene.server.get(&format!("/api/v1/event/{id}/body")).status;
        assert_eq!(ids.each_ref().map(status), [410, 410]);
        assert_eq!(status(&other), 200);
        let audit = scene.server.get("/api/v1/audit").json();
        let records = audit["data"].as_array().expect("a list").iter();
        let erasures = records.filter(|record| record["action"] == "event.erase");
        let subjects: Vec<&Value> = erasures.map(|record| &record["subject"]).collect();
        assert_eq!(subjects.len(), 4, "J1: {audit:#}");
    });
}

#[test]
fn what_comes_back_without_its_bytes_is_given_up() {
    on_each_store(|store| {
        let world = World::new(|_| Act::HangUp);
        let once = effect(
            "pay",
            &world.url("/"),
            "repeat = \"once\"\nretry = [\"0s\"]",
        );
        let scene = Scene::new(store, &[once]);
        let id = scene.send("evt_1", "invoice.paid", &json!({}));
        let effect = scene.wait_for_state(&id, "pay", "uncertain");
        let reason = json!({"reason": "article 17"});
        let path = format!("/api/v1/event/{id}/erase");
        assert_eq!(scene.server.post(&path, &reason).status, 200);
        let path = format!(
            "/api/v1/effect/{}/resolve",
            effect["id"].as_str().expect("an id")
        );
        let not_applied = json!({"outcome": "not_applied", "reason": "they say no"});
        assert_eq!(scene.server.post(&path, &not_applied).status, 200);
        let effect = scene.wait_for_state(&id, "pay", "dead");
        assert!(effect.to_string().contains("no longer kept"), "{effect:#}");
        assert_eq!(world.seen().len(), 1, "nothing more was sent");
    });
}

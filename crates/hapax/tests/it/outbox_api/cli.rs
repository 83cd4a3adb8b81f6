//! Applications, endpoints and messages at a prompt.

use serde_json::Value;

use super::scene::Scene;
use crate::effects::scene::SQLITE;
use crate::program::{Ran, hapax};
use crate::support::server::TOKEN;
use crate::support::world::World;

/// A command that a scene's server is asked with; it ends with this exit code.
#[track_caller]
fn ask(scene: &Scene, exit: i32, args: &[&str]) -> Ran {
    let mut command = hapax(scene.site.path());
    command
        .args(args)
        .env("HAPAX_URL", format!("http://{}", scene.server.address()))
        .env("HAPAX_TOKEN", TOKEN);
    Ran::of(&mut command).expect_exit(exit)
}

/// One field of each row of a list.
fn column(ran: &Ran, field: &str) -> Vec<String> {
    let json = ran.json();
    let rows = json["data"].as_array().expect("a list").iter();
    rows.map(|row| row[field].as_str().expect("a text").to_owned())
        .collect()
}

#[track_caller]
fn shows(ran: &Ran, texts: &[&str]) {
    for text in texts {
        assert!(ran.stdout.contains(text), "{text}: {}", ran.stdout);
    }
}

#[test]
fn applications_are_listed_shown_and_deleted() {
    let scene = Scene::new(SQLITE);
    assert_eq!(ask(&scene, 0, &["apps", "list"]).stderr, "no apps\n");
    let made = ask(&scene, 0, &["apps", "create", "Acme Inc", "--uid", "acme"]);
    let id = made.stdout.trim();
    assert!(id.starts_with("app_"), "{made:?}");
    ask(&scene, 0, &["apps", "create", "Globex", "--uid", "globex"]);

    let listed = ask(&scene, 0, &["apps", "list"]);
    shows(
        &listed,
        &["ID", "NAME", id, "acme", "Acme Inc", "globex", "Globex"],
    );
    let first = ask(&scene, 0, &["apps", "list", "--limit", "1", "--json"]);
    assert_eq!(column(&first, "uid"), ["acme"]);
    let json = first.json();
    let iterator = json["iterator"].as_str().expect("there is more");
    let rest = ["apps", "list", "--iterator", iterator, "--json"];
    assert_eq!(column(&ask(&scene, 0, &rest), "uid"), ["globex"]);

    // By either name.
    for name in ["acme", id] {
        let shown = ask(&scene, 0, &["apps", "show", name]);
        shows(&shown, &[id, "acme", "Acme Inc"]);
    }
    let shown = ask(&scene, 0, &["apps", "show", "acme", "--json"]).json();
    assert_eq!(
        (&shown["id"], &shown["name"]),
        (&id.into(), &"Acme Inc".into())
    );
    let nobody = ask(&scene, 4, &["apps", "show", "nobody"]);
    assert!(nobody.stderr.contains("has no app nobody"), "{nobody:?}");

    let gone = ask(&scene, 0, &["apps", "delete", "acme"]);
    assert_eq!(gone.stderr, "acme is gone, with its endpoints\n");
    ask(&scene, 4, &["apps", "show", "acme"]);
    ask(&scene, 4, &["apps", "delete", "acme"]);
    let left = ask(&scene, 0, &["apps", "list", "--json"]);
    assert_eq!(column(&left, "uid"), ["globex"]);
}

#[test]
fn endpoints_are_listed_shown_switched_and_deleted() {
    let (scene, world) = (Scene::new(SQLITE), World::well());
    scene.app("acme");
    let none = ask(&scene, 0, &["endpoints", "list", "acme"]);
    assert_eq!(none.stderr, "no endpoints\n");
    ask(&scene, 4, &["endpoints", "list", "nobody"]);
    let url = world.url("/one");
    let create = ["endpoints", "create", "acme", &url, "--uid", "one"];
    let create = [&create[..], &["--type", "invoice.paid"]].concat();
    let made = ask(&scene, 0, &create);
    let id = made.stdout.trim();
    assert!(id.starts_with("ep_"), "{made:?}");

    let one = |word: &'static str| ["endpoints", word, "acme", "one"];
    let listed = ask(&scene, 0, &["endpoints", "list", "acme"]);
    shows(&listed, &["STANDING", id, "one", "enabled", &url]);
    shows(&ask(&scene, 0, &one("show")), &[id, &url, "invoice.paid"]);
    let shown = ask(&scene, 0, &["endpoints", "show", "acme", id, "--json"]);
    assert_eq!(shown.json()["uid"], "one");
    ask(&scene, 4, &["endpoints", "show", "acme", "two"]);

    // What is published while it is switched off does not go there.
    let off = ask(&scene, 0, &one("disable"));
    assert_eq!(off.stderr, "one is disabled\n");
    let listed = ask(&scene, 0, &["endpoints", "list", "acme", "--json"]);
    assert_eq!(column(&listed, "standing"), ["disabled"]);
    let send = |data| {
        [
            "messages",
            "send",
            "acme",
            "--type",
            "invoice.paid",
            "--data",
            data,
        ]
    };
    ask(&scene, 0, &send("{\"n\":1}"));
    let on = ask(&scene, 0, &one("enable"));
    assert_eq!(on.stderr, "one is enabled\n");
    ask(&scene, 0, &send("{\"n\":2}"));
    let seen = world.wait_for("the second", |seen| !seen.is_empty());
    let bodies: Vec<Value> = seen
        .iter()
        .map(|seen| serde_json::from_slice(&seen.body).expect("JSON"))
        .collect();
    assert_eq!(bodies, [serde_json::json!({"n": 2})]);

    let key = ask(&scene, 0, &one("secret")).stdout;
    let rotate = ["endpoints", "rotate", "acme", "one", "--grace", "60"];
    let next = ask(&scene, 0, &rotate).stdout;
    assert!(key.starts_with("whsec_") && next.starts_with("whsec_"));
    assert_ne!(key, next);
    assert_eq!(ask(&scene, 0, &one("secret")).stdout, next);

    assert_eq!(ask(&scene, 0, &one("delete")).stderr, "one is gone\n");
    for word in ["show", "enable", "disable", "rotate", "delete"] {
        ask(&scene, 4, &one(word));
    }
    let none = ask(&scene, 0, &["endpoints", "list", "acme"]);
    assert_eq!(none.stderr, "no endpoints\n");
}

#[test]
fn messages_are_listed_newest_first() {
    let scene = Scene::new(SQLITE);
    scene.app("acme");
    let list = ["messages", "list", "acme"];
    assert_eq!(ask(&scene, 0, &list).stderr, "no messages\n");
    for (kind, event_id) in [("invoice.paid", "inv-1"), ("invoice.void", "inv-2")] {
        let send = ["messages", "send", "acme", "--type", kind];
        let send = [&send[..], &["--event-id", event_id, "--data", "{\"n\":1}"]].concat();
        ask(&scene, 0, &send);
    }
    let listed = ask(&scene, 0, &list);
    shows(
        &listed,
        &["TYPE", "invoice.paid", "invoice.void", "inv-1", "inv-2"],
    );
    let as_json = |more: &[&str]| ask(&scene, 0, &[&list[..], more, &["--json"]].concat());
    let all = as_json(&[]);
    assert_eq!(column(&all, "eventId"), ["inv-2", "inv-1"]);
    // With what is in them, as JSON only.
    assert_eq!(all.json()["data"][0]["payload"]["n"], 1);
    let paid = as_json(&["--type", "invoice.paid"]);
    assert_eq!(column(&paid, "eventId"), ["inv-1"]);
    let first = as_json(&["--limit", "1"]);
    assert_eq!(column(&first, "eventId"), ["inv-2"]);
    let json = first.json();
    let iterator = json["iterator"].as_str().expect("there is more");
    assert_eq!(
        column(&as_json(&["--iterator", iterator]), "eventId"),
        ["inv-1"]
    );
    ask(&scene, 4, &["messages", "list", "nobody"]);
}

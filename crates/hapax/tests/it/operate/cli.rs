//! The same at a prompt: find out what is done, whether a retry is safe, and repair it.

use std::process::Command;

use serde_json::json;

use crate::effects::scene::{SQLITE, Scene, effect};
use crate::program::{Ran, hapax};
use crate::support::screen::on_terminal;
use crate::support::server::TOKEN;
use crate::support::world::{Act, World};

fn ask_as(scene: &Scene, token: &str, args: &[&str]) -> Ran {
    Ran::of(&mut command(scene, token, args))
}

fn command(scene: &Scene, token: &str, args: &[&str]) -> Command {
    let mut command = hapax(scene.folder());
    command
        .args(args)
        .env("HAPAX_URL", format!("http://{}", scene.server.address()))
        .env("HAPAX_TOKEN", token);
    command
}

pub(super) fn ask(scene: &Scene, args: &[&str]) -> Ran {
    ask_as(scene, TOKEN, args)
}

#[test]
fn an_event_that_half_failed_is_found_and_repaired() {
    let world = World::new(|seen| match (seen.target.as_str(), seen.before) {
        ("/mail", 0) => Act::HangUp,
        ("/note", 0) => Act::Answer(422),
        _ => Act::Answer(200),
    });
    let once = "repeat = \"once\"\nretry = [\"0s\"]";
    let scene = Scene::new(
        SQLITE,
        &[
            effect("activate", &world.url("/activate"), ""),
            effect("mail", &world.url("/mail"), once),
            effect("note", &world.url("/note"), "retry = [\"0s\"]"),
        ],
    );
    let id = scene.send("evt_1", "invoice.paid", &json!({}));
    let mail = scene.wait_for_state(&id, "mail", "uncertain");
    scene.wait_for_state(&id, "note", "dead");
    let mail = mail["id"].as_str().expect("an id");

    let verdict = ask(&scene, &["events", "verdict", &id]).expect_exit(0);
    assert!(
        verdict.stdout.starts_with("verdict   needs_decision\n"),
        "{verdict:?}"
    );
    let refused = ["events", "retry", &id, "--reason", "again", "--yes"];
    let refused = ask(&scene, &refused).expect_exit(3);
    assert!(refused.stderr.contains("error[H0310]"), "{refused:?}");
    assert!(refused.stderr.contains("needs_decision"), "{refused:?}");

    let unasked = [
        "effects",
        "resolve",
        mail,
        "--outcome",
        "applied",
        "--reason",
        "it is there",
    ];
    let asked = ask(&scene, &unasked).expect_exit(2);
    assert!(asked.stderr.contains("error[H0411]"), "{asked:?}");
    ask(&scene, &[&unasked[..], &["--yes"]].concat()).expect_exit(0);
    ask(&scene, &[&unasked[..], &["--yes"]].concat()).expect_exit(3);

    let dry = ["events", "retry", &id, "--reason", "mended", "--dry-run"];
    let dry = ask(&scene, &dry).expect_exit(0);
    assert!(dry.stdout.starts_with("verdict   safe\n"), "{dry:?}");
    assert!(
        dry.stdout.contains("note      evt_1  dead   keyed  send"),
        "{dry:?}"
    );
    let retried = ["events", "retry", &id, "--reason", "mended", "--yes"];
    let retried = ask(&scene, &retried).expect_exit(0);
    assert!(retried.stdout.contains("\nrun  run_"), "{retried:?}");
    scene.wait_for_status(&id, "completed");
    assert_eq!(world.by_key()["mail:evt_1"], 1, "D4");

    let told = ask(&scene, &["events", "timeline", &id]).expect_exit(0);
    assert!(
        told.stdout
            .contains("mail (evt_1) resolved by hand, by admin: it is there"),
        "{told:?}"
    );
    assert!(told.stdout.contains("Retry, by admin: mended"), "{told:?}");
}

#[test]
fn a_replay_forces_by_name_and_a_reconcile_needs_somebody_to_ask() {
    let world = World::well();
    let scene = Scene::new(SQLITE, &[effect("note", &world.url("/"), "")]);
    let id = scene.send("evt_1", "invoice.paid", &json!({}));
    scene.wait_for_status(&id, "completed");
    let nobody = ["events", "timeline", "evt_01m7gsnv4be008000000000001"];
    ask(&scene, &nobody).expect_exit(4);

    let forced = [
        "events", "replay", &id, "--force", "note", "--reason", "lost", "--yes", "--json",
    ];
    let forced = ask(&scene, &forced).expect_exit(0).json();
    assert!(forced["runId"].is_string(), "{forced:#}");
    world.wait_for("a second generation", |seen| {
        seen.iter().any(|seen| seen.key() == "note:evt_1#2")
    });
    let reconcile = ["events", "reconcile", &id, "--reason", "x", "--yes"];
    let reconcile = ask(&scene, &reconcile).expect_exit(1);
    assert!(reconcile.stderr.contains("error[H0316]"), "{reconcile:?}");
}

#[test]
fn tokens_and_the_audit_log() {
    let scene = Scene::new(SQLITE, &[]);
    let create = [
        "token",
        "create",
        "ada",
        "--role",
        "operator",
        "--expires",
        "30d",
    ];
    let made = ask(&scene, &create).expect_exit(0);
    let secret = made.stdout.trim();
    assert!(secret.starts_with("hpx_"), "{made:?}");
    ask_as(&scene, secret, &["events", "list"]).expect_exit(0);
    let refused = ask_as(&scene, secret, &["token", "list"]).expect_exit(1);
    assert!(refused.stderr.contains("error[H0306]"), "{refused:?}");
    let taken = ask(&scene, &create).expect_exit(1);
    assert!(taken.stderr.contains("error[H0318]"), "{taken:?}");

    let listed = ask(&scene, &["token", "list", "--json"])
        .expect_exit(0)
        .json();
    let id = listed["data"][0]["id"].as_str().expect("an id");
    ask(&scene, &["token", "revoke", id, "--reason", "left"]).expect_exit(0);
    ask_as(&scene, secret, &["events", "list"]).expect_exit(1);
    ask(&scene, &["token", "revoke", id]).expect_exit(4);
    ask(
        &scene,
        &[
            "token",
            "create",
            "x",
            "--role",
            "viewer",
            "--expires",
            "soon",
        ],
    )
    .expect_exit(2);

    let verified = ask(&scene, &["audit", "verify"]).expect_exit(0);
    assert_eq!(verified.stdout, "2 records, all whole\n");
    let listed = ask(&scene, &["audit", "list", "--actor", "admin"]).expect_exit(0);
    assert!(listed.stdout.contains("token.revoke"), "{listed:?}");
    let nobody = ask(&scene, &["audit", "list", "--actor", "bob"]).expect_exit(0);
    assert_eq!(nobody.stderr, "no decisions\n");
}

#[test]
fn a_replay_of_many() {
    let world = World::new(|seen| match seen.before {
        0 => Act::Answer(422),
        _ => Act::Answer(200),
    });
    let scene = Scene::new(
        SQLITE,
        &[effect("one", &world.url("/"), "retry = [\"0s\"]")],
    );
    let id = scene.send("evt_1", "invoice.paid", &json!({}));
    scene.wait_for_status(&id, "dead");
    let start = [
        "replay", "start", "--status", "dead", "--since", "1h", "--reason", "mended", "--json",
    ];
    let started = ask(&scene, &start).expect_exit(0).json();
    let replay = started["id"].as_str().expect("an id");
    scene.wait_for_status(&id, "completed");
    let shown = ask(&scene, &["replay", "show", replay]).expect_exit(0);
    assert!(shown.stdout.contains("by             admin\n"), "{shown:?}");
    ask(
        &scene,
        &["replay", "show", "rpl_01m7gsnv4be008000000000001"],
    )
    .expect_exit(4);
    let wrong = ["replay", "start", "--since", "soon", "--reason", "x"];
    ask(&scene, &wrong).expect_exit(2);
}

/// Somebody at a terminal sees how many of how many; whoever reads a file does not.
#[test]
fn a_replay_of_many_shows_how_far_it_is() {
    let world = World::new(|seen| match seen.before {
        0 => Act::Answer(422),
        _ => Act::Answer(200),
    });
    let once = effect("one", &world.url("/"), "retry = [\"0s\"]");
    let scene = Scene::new(SQLITE, &[once]);
    for n in 0..40 {
        let id = scene.send(&format!("evt_{n}"), "invoice.paid", &json!({}));
        scene.wait_for_status(&id, "dead");
    }
    let start = [
        "replay", "start", "--status", "dead", "--reason", "mended", "--rate", "40",
    ];
    let (exit, shown) = on_terminal(&mut command(&scene, TOKEN, &start));
    assert_eq!(exit, 0, "{shown}");
    assert!(shown.contains("running  ["), "{shown}");
    assert!(shown.contains("of 40  "), "{shown}");
    let last = shown.rsplit('\r').find(|line| line.contains("sent"));
    let last = last.expect("a line").trim_end();
    assert!(last.contains("100%  40 of 40"), "{last}");
    assert!(
        last.ends_with("/s: 40 sent, 0 nothing to do, 0 blocked, 0 failed"),
        "{last}"
    );
    let silent = ask(&scene, &start).expect_exit(0);
    assert_eq!(silent.stderr, "");
}

//! The handlers of `examples/own-code`, as they stand there: each charges an order once, however often it is called.

use std::process::Command;

use serde_json::{Value, json};

use crate::effects::scene::{SQLITE, Scene};
use crate::support::example::{example, example_file};
use crate::support::server::TOKEN;
use crate::support::world::World;

/// D2, D6: called three times with the same order, a handler sends one request, and gives the same result from then on.
fn charges_once(name: &str, program: &mut Command) {
    let world = World::well();
    let scene = Scene::new(SQLITE, &[]);
    program
        .args(["order-1", &world.url("/charge")])
        .env("HAPAX_URL", format!("http://{}", scene.server.address()))
        .env("HAPAX_TOKEN", TOKEN);
    let mut run = || -> Value {
        let ran = program.output().expect("it runs");
        let said = String::from_utf8_lossy(&ran.stdout).into_owned();
        let complained = String::from_utf8_lossy(&ran.stderr).into_owned();
        assert!(ran.status.success(), "{name}: {said}{complained}");
        serde_json::from_str(&said).expect("JSON")
    };
    let result = json!({ "status": 200 });
    let first = run();
    assert_eq!(
        first,
        json!({ "verdict": "charged", "result": result }),
        "{name}"
    );
    for _ in 0..2 {
        let again = run();
        assert_eq!(
            (&again["verdict"], &again["result"]),
            (&json!("done"), &result)
        );
    }
    assert_eq!(world.seen().len(), 1, "{name}");
}

/// Is this interpreter there? `./test` installs what is needed.
fn is_there(program: &str) -> bool {
    let there = Command::new(program).arg("--version").output().is_ok();
    if !there {
        eprintln!("skipped: there is no {program}");
    }
    there
}

#[test]
fn the_rust_handler_charges_once() {
    charges_once("Rust", &mut Command::new(example("own-code")));
}

#[test]
fn the_python_handler_charges_once() {
    if is_there("python3") {
        let mut python = Command::new("python3");
        charges_once("Python", python.arg(example_file("own-code/handler.py")));
    }
}

#[test]
fn the_typescript_handler_charges_once() {
    if is_there("node") {
        // It has no types to strip, so that a copy under another name is JavaScript.
        let folder = tempfile::tempdir().expect("a folder");
        let copy = folder.path().join("handler.mjs");
        std::fs::copy(example_file("own-code/handler.ts"), &copy).expect("a copy");
        charges_once("TypeScript", Command::new("node").arg(copy));
    }
}

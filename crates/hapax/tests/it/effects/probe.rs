//! Probes: what is uncertain is asked about. A "yes" settles it; a "no" is not believed while the request may still be on its way.

use serde_json::json;

use super::scene::{Scene, effect, ended, on_each_store};
use crate::support::clock::{TOO_LONG, until};
use crate::support::world::{Act, Seen, World};

fn world() -> World {
    World::new(|seen| match seen.target.as_str() {
        "/applied?key=yes" => Act::AnswerWith(200, "", "{\"applied\": true}".to_owned()),
        "/applied?key=no" => Act::AnswerWith(200, "", "{\"applied\": false}".to_owned()),
        "/applied?key=unclear" => Act::Answer(404),
        _ => Act::Answer(500),
    })
}

fn probed(world: &World) -> String {
    let probe = world.url("/applied?key={key}");
    let more = format!("repeat = \"once\"\nprobe = \"{probe}\"\nheaders = {{ x-team = \"a\" }}");
    effect("x", &world.url("/x"), &more)
}

/// D3, D4: the probe says that it was applied, so it is done, after one request.
#[test]
fn a_probe_that_says_yes_settles_without_a_second_request() {
    on_each_store(|store| {
        let world = world();
        let scene = Scene::new(store, &[probed(&world)]);
        let event = scene.send("yes", "t", &json!({}));
        scene.wait_for_status(&event, "completed");
        let effect = scene.effect(&event, "x");
        assert_eq!(
            (&effect["state"], ended(&effect).len()),
            (&json!("done"), 1)
        );
        let seen = world.seen();
        // Asking twice would be no harm: whoever starts looks for what is uncertain, and may find what was just decided.
        assert_eq!(seen[0].target, "/x");
        assert!(
            seen[1..]
                .iter()
                .all(|seen| seen.target == "/applied?key=yes")
        );
        assert_eq!(seen[1].headers["x-team"], "a");
    });
}

/// D4: a "no", or nothing clear, changes nothing before lease, timeout and grace have passed.
#[test]
fn a_probe_that_says_no_is_not_believed_at_once() {
    on_each_store(|store| {
        let world = world();
        let scene = Scene::new(store, &[probed(&world)]);
        let no = scene.send("no", "t", &json!({}));
        let unclear = scene.send("unclear", "t", &json!({}));
        for key in ["no", "unclear"] {
            let target = format!("/applied?key={key}");
            world.wait_for("the probe", |seen| {
                seen.iter().any(|seen| seen.target == target)
            });
        }
        until(TOO_LONG, "both answers are counted", || {
            let metrics = scene.server.get("/metrics");
            let metrics = String::from_utf8_lossy(metrics.body()).into_owned();
            let counted = |answer: &str| {
                let mut lines = metrics.lines();
                lines.any(|line| line.contains("probe") && line.contains(answer))
            };
            (counted("\"not_applied\"") && counted("\"no_answer\"")).then_some(())
        });
        // Asked and decided after them.
        let yes = scene.send("yes", "t", &json!({}));
        scene.wait_for_status(&yes, "completed");
        for event in [&no, &unclear] {
            assert_eq!(scene.effect(event, "x")["state"], "uncertain");
            assert_eq!(scene.event(event)["status"], "needs_review");
        }
        for key in ["x:no", "x:unclear", "x:yes"] {
            assert_eq!(world.by_key()[key], 1, "{key}");
        }
    });
}

/// A probe that the config gets later speaks for what is uncertain already.
#[test]
fn a_probe_that_is_added_is_asked_about_what_was_uncertain_before() {
    on_each_store(|store| {
        let world = world();
        let without = effect("x", &world.url("/x"), "repeat = \"once\"");
        let scene = Scene::new(store, &[without]);
        let event = scene.send("yes", "t", &json!({}));
        scene.wait_for_state(&event, "x", "uncertain");
        scene.reload(&[probed(&world)]);
        scene.wait_for_status(&event, "completed");
        assert_eq!(world.by_key()["x:yes"], 1);
    });
}

/// Promise 7: probes that hang, many more than are asked at a time, keep no other target's probe waiting.
#[test]
fn a_probe_that_hangs_delays_nobody_elses() {
    // Fewer in a row than would have the target left alone, and so often that all of them, some at a time, would take minutes.
    const ROUNDS: usize = 10;
    const FAILURES: usize = 4;
    const HANGING: &str = "/hangs?key=";
    const WELL: &str = "/well?key=";
    on_each_store(|store| {
        let world = World::new(|seen| match seen.target.as_str() {
            target if target.starts_with(HANGING) => Act::Hang,
            target if target.starts_with(WELL) => {
                Act::AnswerWith(200, "", "{\"applied\": true}".to_owned())
            }
            _ if seen.key().contains("well") => Act::Answer(200),
            _ => Act::Answer(500),
        });
        let effects = [("hangs", HANGING), ("other", WELL)].map(|(name, probe)| {
            let probe = world.url(&format!("{probe}{{key}}"));
            let more = format!("types = \"{name}\"\nrepeat = \"once\"\nprobe = \"{probe}\"");
            effect(name, &world.url("/x"), &more)
        });
        let scene = Scene::new(store, &effects);
        for round in 0..ROUNDS {
            let well = scene.send(&format!("well_{round}"), "hangs", &json!({}));
            scene.wait_for_status(&well, "completed");
            for n in 0..FAILURES {
                let event = scene.send(&format!("bad_{round}_{n}"), "hangs", &json!({}));
                scene.wait_for_state(&event, "hangs", "uncertain");
            }
        }
        let hanging = |seen: &Seen| seen.target.starts_with(HANGING);
        world.wait_for("probes that hang", |seen| seen.iter().any(hanging));
        let event = scene.send("bad", "other", &json!({}));
        scene.wait_for_status(&event, "completed");
    });
}

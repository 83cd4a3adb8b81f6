//! Order: one entity at a time, versions, ends, snapshots, reviews.

use serde_json::{Value, json};

use super::scene::{Scene, effect, on_each_store};
use crate::support::world::{Act, World};

const ENTITY: &str = "entity = \"data.object.id\"";

fn of(entity: &str) -> Value {
    json!({ "id": entity })
}

/// F1, F3: n+1 leaves only after n was answered, and another entity does not wait for either.
#[test]
fn one_entity_is_served_in_turn_and_others_do_not_wait() {
    on_each_store(|store| {
        let world = World::new(|seen| match seen.key() {
            "x:a_1" | "x:a_2" => Act::Held,
            _ => Act::Answer(200),
        });
        let scene = Scene::with(
            store,
            &[effect("x", &world.url("/"), "order = { serial = true }")],
            ENTITY,
        );
        let held = ["a_1", "a_2", "a_3"].map(|name| scene.send(name, "t", &of("a")));
        world.wait_for("the first of a", |seen| {
            seen.iter().any(|seen| seen.key() == "x:a_1")
        });
        for round in 0..3 {
            let name = format!("b_{round}");
            let other = scene.send(&name, "t", &of("b"));
            scene.wait_for_status(&other, "completed");
        }
        assert_eq!(scene.effect(&held[1], "x")["gate"], "waiting");
        assert_eq!(world.seen().len(), 4, "a second of a was sent");
        world.release(1);
        world.wait_for("the second of a", |seen| {
            seen.iter().any(|seen| seen.key() == "x:a_2")
        });
        let other = scene.send("b_3", "t", &of("b"));
        scene.wait_for_status(&other, "completed");
        assert_eq!(scene.effect(&held[2], "x")["gate"], "waiting");
        world.release(1);
        for event in &held {
            scene.wait_for_status(event, "completed");
        }
        let seen = world.seen();
        let keys: Vec<&str> = seen.iter().map(|seen| seen.key()).collect();
        let keys: Vec<&str> = keys
            .into_iter()
            .filter(|key| key.starts_with("x:a"))
            .collect();
        assert_eq!(keys, ["x:a_1", "x:a_2", "x:a_3"]);
    });
}

/// F1: a dead one lets the next go; an uncertain one blocks its own entity and no other.
#[test]
fn a_dead_one_lets_the_next_go_and_an_uncertain_one_does_not() {
    on_each_store(|store| {
        let world = World::new(|seen| match seen.key() {
            "x:a_1" => Act::Answer(400),
            "x:b_1" => Act::Answer(500),
            _ => Act::Answer(200),
        });
        let more = "order = { serial = true }\nrepeat = \"once\"\nretry = \"0s\"";
        let scene = Scene::with(store, &[effect("x", &world.url("/"), more)], ENTITY);
        let [dead, next, unsure, blocked, free] =
            ["a_1", "a_2", "b_1", "b_2", "c_1"].map(|name| scene.send(name, "t", &of(&name[..1])));
        scene.wait_for_status(&dead, "dead");
        scene.wait_for_status(&unsure, "needs_review");
        scene.wait_for_status(&next, "completed");
        scene.wait_for_status(&free, "completed");
        let blocked = scene.effect(&blocked, "x");
        assert_eq!(
            (&blocked["state"], &blocked["gate"]),
            (&json!("pending"), &json!("waiting"))
        );
        assert!(!world.by_key().contains_key("x:b_2"));
    });
}

/// F2: what is older than the newest sent is never sent, and is seen as stale; what is equal goes.
#[test]
fn an_older_version_is_stale() {
    on_each_store(|store| {
        let world = World::well();
        let more = "order = { version = \"data.object.v\" }";
        let scene = Scene::with(store, &[effect("x", &world.url("/"), more)], ENTITY);
        let table = [
            ("v2", "a", json!(2), "completed"),
            ("v1", "a", json!(1), "stale"),
            ("v2-again", "a", json!(2), "completed"),
            ("v10", "a", json!(10), "completed"),
            ("v9", "a", json!(9), "stale"),
            ("other", "b", json!(1), "completed"),
        ];
        for (name, entity, version, status) in table.clone() {
            let event = scene.send(name, "t", &json!({ "id": entity, "v": version }));
            scene.wait_for_status(&event, status);
            let effect = scene.effect(&event, "x");
            let (state, reason) = match status {
                "stale" => ("skipped", json!("stale")),
                _ => ("done", Value::Null),
            };
            assert_eq!(
                (&effect["state"], &effect["skipReason"]),
                (&json!(state), &reason),
                "{name}"
            );
        }
        let sent = world.by_key();
        for (name, .., status) in table {
            let requests = sent.get(&format!("x:{name}")).copied().unwrap_or(0);
            assert_eq!(requests, usize::from(status != "stale"), "{name}");
        }
    });
}

/// F2: a source's versions count for each of its effects, but for those whose order is off or their own.
#[test]
fn a_source_s_versions_count_for_every_effect_that_says_nothing_else() {
    on_each_store(|store| {
        let world = World::well();
        let rules = [
            ("x", ""),
            ("y", "order = \"source\""),
            ("free", "order = \"off\""),
            ("own", "order = { serial = true }"),
        ];
        let effects = rules.map(|(name, more)| effect(name, &world.url("/"), more));
        let versions = "order = { version = \"data.object.v\" }";
        let scene = Scene::with(store, &effects, &format!("{ENTITY}\n{versions}"));
        let table = [
            ("v2", "a", 2, "completed"),
            ("v1", "a", 1, "stale"),
            ("v3", "a", 3, "completed"),
            ("other", "b", 1, "completed"),
        ];
        for (name, entity, version, status) in table {
            let event = scene.send(name, "t", &json!({ "id": entity, "v": version }));
            scene.wait_for_status(&event, status);
            let (state, reason) = match status {
                "stale" => ("skipped", json!("stale")),
                _ => ("done", Value::Null),
            };
            for guarded in ["x", "y"] {
                let effect = scene.effect(&event, guarded);
                assert_eq!(
                    (&effect["state"], &effect["skipReason"]),
                    (&json!(state), &reason),
                    "{guarded} of {name}"
                );
            }
            for unguarded in ["free", "own"] {
                let effect = scene.effect(&event, unguarded);
                assert_eq!(effect["state"], "done", "{unguarded} of {name}");
            }
        }
        let sent = world.by_key();
        for (name, .., status) in table {
            let requests = |who: &str| sent.get(&format!("{who}:{name}")).copied().unwrap_or(0);
            let guarded = usize::from(status != "stale");
            let all = ["x", "y", "free", "own"].map(requests);
            assert_eq!(all, [guarded, guarded, 1, 1], "{name}");
        }
    });
}

/// F1, F3: a source's turns hold for each of its effects, but for those whose order is off; other entities do not wait.
#[test]
fn a_source_s_turns_hold_for_every_effect_that_says_nothing_else() {
    on_each_store(|store| {
        let world = World::new(|seen| match seen.key() {
            "x:a_1" | "free:a_1" => Act::Held,
            _ => Act::Answer(200),
        });
        let effects = [
            effect("x", &world.url("/"), ""),
            effect("free", &world.url("/"), "order = \"off\""),
        ];
        let turns = "order = { serial = true }";
        let scene = Scene::with(store, &effects, &format!("{ENTITY}\n{turns}"));
        let first = scene.send("a_1", "t", &of("a"));
        world.wait_for("the first of a", |seen| seen.len() == 2);
        let second = scene.send("a_2", "t", &of("a"));
        scene.wait_for_state(&second, "free", "done");
        let other = scene.send("b_1", "t", &of("b"));
        scene.wait_for_status(&other, "completed");
        let waiting = scene.effect(&second, "x");
        assert_eq!(
            (&waiting["state"], &waiting["gate"]),
            (&json!("pending"), &json!("waiting"))
        );
        assert!(!world.by_key().contains_key("x:a_2"), "out of turn");
        world.release(2);
        for event in [&first, &second] {
            scene.wait_for_status(event, "completed");
        }
        let keys: Vec<String> = world
            .seen()
            .iter()
            .map(|seen| seen.key().to_owned())
            .filter(|key| key.starts_with("x:a"))
            .collect();
        assert_eq!(keys, ["x:a_1", "x:a_2"]);
        for (key, requests) in world.by_key() {
            assert_eq!(requests, 1, "{key}");
        }
    });
}

/// After the end of an entity its other types wait for a person, until something opens it again; other entities go on, and so do
/// effects whose order is off.
#[test]
fn after_the_end_a_person_decides() {
    on_each_store(|store| {
        let world = World::well();
        let ends = "order = { terminal = [\"sub.deleted\"], reopen = [\"sub.created\"] }";
        let scene = Scene::with(
            store,
            &[
                effect("x", &world.url("/"), ""),
                effect("free", &world.url("/"), "order = \"off\""),
            ],
            &format!("{ENTITY}\n{ends}"),
        );
        let send = |name: &str, event_type: &str, entity: &str, status: &str| {
            let event = scene.send(name, event_type, &of(entity));
            scene.wait_for_state(&event, "free", "done");
            let seen = scene.wait_for_status(&event, status);
            (event, seen)
        };
        send("e1", "sub.updated", "a", "completed");
        send("e2", "sub.deleted", "a", "completed");
        let (late, seen) = send("e3", "sub.updated", "a", "needs_review");
        assert_eq!(seen["lastErrorCode"], "H0220");
        assert_eq!(scene.effect(&late, "x")["gate"], "review");
        send("e4", "sub.updated", "b", "completed");
        send("e5", "sub.created", "a", "completed");
        send("e6", "sub.updated", "a", "completed");
        let sent = world.by_key();
        assert!(!sent.contains_key("x:e3"));
        assert_eq!(sent.len(), 11, "{sent:?}");
    });
}

/// The snapshot is fetched before the first attempt and goes along in the envelope. It is frozen, unless the effect converges.
#[test]
fn a_snapshot_goes_along() {
    on_each_store(|store| {
        let world = World::new(|seen| match seen.target.as_str() {
            "/truth/a%2F1" => {
                let snapshot = format!("{{\"asked\": {}, \"n\": 1.0}}", seen.before);
                Act::AnswerWith(200, "", snapshot)
            }
            "/truth/gone" => Act::Answer(404),
            _ if seen.before == 0 => Act::Answer(500),
            _ => Act::Answer(200),
        });
        let more = "order = { snapshot = true }\nbody = \"envelope\"\nretry = [\"0s\", \"0s\"]";
        let named = |repeat: &str| {
            let more = format!("types = \"{repeat}\"\nrepeat = \"{repeat}\"\n{more}");
            effect(repeat, &world.url("/x"), &more)
        };
        let truth = world.url("/truth/{data.object.id}");
        let scene = Scene::with(
            store,
            &[named("keyed"), named("converges")],
            &format!("{ENTITY}\nreconcile = {{ url = \"{truth}\" }}"),
        );
        let keyed = scene.send("e1", "keyed", &of("a/1"));
        scene.wait_for_status(&keyed, "completed");
        let converges = scene.send("e2", "converges", &of("a/1"));
        scene.wait_for_status(&converges, "completed");
        let seen = world.seen();
        let asked: Vec<Value> = seen
            .iter()
            .filter(|seen| seen.target == "/x")
            .map(|seen| {
                let body: Value = serde_json::from_slice(&seen.body).expect("an envelope");
                body["snapshot"]["asked"].clone()
            })
            .collect();
        assert_eq!(asked, [json!(0), json!(0), json!(1), json!(2)]);
        let kept = scene.effect(&keyed, "keyed")["snapshot"].clone();
        assert_eq!(kept, "{\"asked\": 0, \"n\": 1.0}");

        // Without its snapshot nothing is sent, and that is no secret.
        let missing = scene.send("e3", "keyed", &of("gone"));
        scene.wait_for_status(&missing, "dead");
        assert_eq!(
            scene.effect(&missing, "keyed")["lastOutcome"],
            "not sent: snapshot"
        );
        assert!(!world.by_key().contains_key("keyed:e3"));
    });
}

/// A review condition asks for a person: over the payload, and over the snapshot.
#[test]
fn a_review_condition_asks_for_a_person() {
    on_each_store(|store| {
        let world = World::new(|seen| match seen.target.as_str() {
            "/truth/void" => Act::AnswerWith(200, "", "{\"status\": \"void\"}".to_owned()),
            "/truth/paid" => Act::AnswerWith(200, "", "{\"status\": \"paid\"}".to_owned()),
            _ => Act::Answer(200),
        });
        let truth = world.url("/truth/{data.object.id}");
        let over_payload = "types = \"p\"\norder = { review = 'data.object.amount > 1000' }";
        let over_snapshot = "types = \"s\"\norder = { snapshot = true, review = 'snapshot.status != \"paid\"' }\nbody = \"envelope\"";
        let scene = Scene::with(
            store,
            &[
                effect("x", &world.url("/x"), over_payload),
                effect("y", &world.url("/y"), over_snapshot),
            ],
            &format!("{ENTITY}\nreconcile = {{ url = \"{truth}\" }}"),
        );
        let table = [
            ("p1", "p", "a", 2_000, "needs_review"),
            ("p2", "p", "b", 10, "completed"),
            ("s1", "s", "void", 10, "needs_review"),
            ("s2", "s", "paid", 2_000, "completed"),
        ];
        for (name, event_type, entity, amount, status) in table {
            let object = json!({ "id": entity, "amount": amount });
            let event = scene.send(name, event_type, &object);
            let event = scene.wait_for_status(&event, status);
            if status == "needs_review" {
                assert_eq!(event["lastErrorCode"], "H0222", "{event:#}");
                assert_eq!(event["effects"][0]["gate"], "review", "{event:#}");
            }
        }
        let sent = world.by_key();
        assert!(sent.contains_key("x:p2") && sent.contains_key("y:s2"));
        assert!(!sent.contains_key("x:p1") && !sent.contains_key("y:s1"));
    });
}

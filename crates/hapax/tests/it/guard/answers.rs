//! The cases of a key, one by one.

use super::scene::{Scene, answered, at_first, carried_out, counting, refused, request};
use crate::effects::scene::{SQLITE, on_each_store};
use crate::support::clock::{TOO_LONG, until};
use crate::support::world::{Act, World};

#[test]
fn a_retry_gets_the_first_answer() {
    on_each_store(|store| {
        let world = counting();
        let scene = Scene::new(store, &world.url(""), "");
        let first = scene.charge("k1");
        answered(&first, 1, false);
        assert_eq!(first.header("set-cookie"), Some("session=hush"));
        let again = scene.charge("\"k1\"");
        answered(&again, 1, true);
        assert!(again.header("idempotency-expires").is_some(), "{again:?}");
        assert_eq!(again.header("content-type"), Some("application/json"));
        for private in ["set-cookie", "x-private"] {
            assert_eq!(again.header(private), None, "{again:?}");
        }
        assert_eq!(world.seen().len(), 1);
        assert_eq!(
            world.seen()[0].key(),
            "k1",
            "the upstream gets the key as it came"
        );
        let metrics = scene.server.get("/metrics");
        let metrics = String::from_utf8_lossy(metrics.body()).into_owned();
        for verdict in ["run", "replay"] {
            let line =
                format!("hapax_guard_requests_total{{guard=\"charges\",verdict=\"{verdict}\"}} 1");
            assert!(metrics.contains(&line), "{metrics}");
        }
    });
}

#[test]
fn a_reused_key_is_refused() {
    on_each_store(|store| {
        let world = counting();
        let scene = Scene::new(store, &world.url(""), "mismatch_status = 422");
        answered(&scene.charge("k1"), 1, false);
        let head = "x-user: ada\r\nidempotency-key: k1\r\n";
        let other = scene.ask(&request("POST", "/charges", head, "{\"amount\":2}"));
        refused(&other, 422, "key-reused");
        // Another route is another scope, and so is another method.
        answered(
            &scene.ask(&request("POST", "/refunds", head, "{}")),
            2,
            false,
        );
        answered(
            &scene.ask(&request("PATCH", "/charges", head, "{}")),
            3,
            false,
        );
        answered(&scene.charge("k1"), 1, true);
    });
}

#[test]
fn a_key_on_other_methods_is_passed_through() {
    on_each_store(|store| {
        let world = counting();
        let scene = Scene::new(store, &world.url(""), "");
        let head = "idempotency-key: k1\r\n";
        for (method, execution) in [("GET", 1), ("PUT", 2), ("DELETE", 3), ("GET", 4)] {
            answered(
                &scene.ask(&request(method, "/charges", head, "")),
                execution,
                false,
            );
        }
        let bare = request("POST", "/charges", "", "{}");
        answered(&scene.ask(&bare), 5, false);
        answered(&scene.ask(&bare), 6, false);
        assert!(scene.keys("").is_empty());
    });
}

#[test]
fn a_key_is_one_to_255_letters_in_one_header() {
    let world = counting();
    let scene = Scene::new(SQLITE, &world.url(""), "required = true");
    let long = "k".repeat(256);
    let two = "a\r\nidempotency-key: b";
    for key in ["", "\"open", long.as_str(), two] {
        refused(&scene.charge(key), 400, "key-malformed");
    }
    let bare = request("POST", "/charges", "x-user: ada\r\n", "{}");
    refused(&scene.ask(&bare), 400, "key-missing");
    assert!(world.seen().is_empty());
    answered(&scene.charge(&"k".repeat(255)), 1, false);
}

#[test]
fn an_upstream_that_dies_after_the_work_leaves_an_unknown_outcome() {
    on_each_store(|store| {
        let world = at_first(Act::HangUp);
        let scene = Scene::new(store, &world.url(""), "");
        refused(&scene.charge("k1"), 502, "upstream-lost");
        refused(&scene.charge("k1"), 409, "outcome-unknown");
        assert_eq!(
            world.seen().len(),
            1,
            "a guard that holds sends nothing again"
        );
        assert_eq!(scene.keys("?state=unknown").len(), 1);

        let world = at_first(Act::HangUp);
        let scene = Scene::new(
            store,
            &world.url(""),
            "tenant = \"b\"\non_unknown = \"keyed\"",
        );
        refused(&scene.charge("k1"), 502, "upstream-lost");
        answered(&scene.charge("k1"), 1, false);
        answered(&scene.charge("k1"), 1, true);
        let keys: Vec<String> = world
            .seen()
            .iter()
            .map(|seen| seen.key().to_owned())
            .collect();
        assert_eq!(keys, ["k1", "k1"], "the upstream can dedupe");
    });
}

/// The bare and the quoted form are one key, also for an upstream that compares letter by letter.
#[test]
fn a_key_is_sent_again_as_it_was_sent_before() {
    on_each_store(|store| {
        for (preset, sent) in [("", "k1"), ("preset = \"ietf\"", "\"k1\"")] {
            let world = at_first(Act::HangUp);
            let tenant = preset.len();
            let lines = format!("tenant = \"t{tenant}\"\non_unknown = \"keyed\"\n{preset}");
            let scene = Scene::new(store, &world.url(""), &lines);
            refused(&scene.charge("k1"), 502, "upstream-lost");
            answered(&scene.charge("\"k1\""), 1, false);
            answered(&scene.charge("k1"), 1, true);
            let seen = world.seen().into_iter();
            let keys: Vec<String> = seen.map(|seen| seen.key().to_owned()).collect();
            assert_eq!(keys, [sent, sent], "{preset}");
        }
    });
}

#[test]
fn a_key_that_has_expired_says_so_and_does_not_run_again() {
    on_each_store(|store| {
        let world = counting();
        let lines = "ttl = \"1s\"\nforce_short_ttl = true\ngrace = \"1h\"";
        let scene = Scene::new(store, &world.url(""), lines);
        answered(&scene.charge("k1"), 1, false);
        let expired = until(TOO_LONG, "it has expired", || {
            Some(scene.charge("k1")).filter(|answer| answer.status != 201)
        });
        refused(&expired, 409, "key-expired");
        assert_eq!(world.seen().len(), 1);
    });
}

#[test]
fn a_guard_says_which_headers_are_kept() {
    let world = counting();
    let scene = Scene::new(SQLITE, &world.url(""), "headers = [\"X-Private\"]");
    answered(&scene.charge("k1"), 1, false);
    let again = scene.charge("k1");
    answered(&again, 1, true);
    assert_eq!(again.header("x-private"), Some("1"));
    for other in ["content-type", "set-cookie"] {
        assert_eq!(again.header(other), None, "{again:?}");
    }
}

#[test]
fn an_upstream_that_is_silent_leaves_an_unknown_outcome() {
    let world = World::new(|_| Act::Hang);
    let scene = Scene::new(SQLITE, &world.url(""), "timeout = \"200ms\"");
    refused(&scene.charge("k1"), 504, "upstream-lost");
    refused(&scene.charge("k1"), 409, "outcome-unknown");
    assert_eq!(world.seen().len(), 1);
}

#[test]
fn errors_are_unknown_unless_they_are_stored_or_prove_that_nothing_ran() {
    on_each_store(|store| {
        let world = at_first(Act::Answer(500));
        let scene = Scene::new(store, &world.url(""), "");
        assert_eq!(scene.charge("k1").status, 500);
        refused(&scene.charge("k1"), 409, "outcome-unknown");

        let scene = Scene::new(store, &world.url(""), "tenant = \"b\"\nstore_5xx = true");
        let head = "x-user: ada\r\nidempotency-key: k2\r\n";
        let fails = request("POST", "/charges", head, "{}");
        assert_eq!(scene.ask(&fails).status, 500);
        let again = scene.ask(&fails);
        assert_eq!(
            (again.status, again.header("idempotent-replayed")),
            (500, Some("true"))
        );

        let world = at_first(Act::Answer(429));
        let scene = Scene::new(store, &world.url(""), "tenant = \"c\"");
        assert_eq!(scene.charge("k1").status, 429);
        answered(&scene.charge("k1"), 1, false);
        let world = at_first(Act::Answer(402));
        let scene = Scene::new(store, &world.url(""), "tenant = \"d\"");
        assert_eq!(scene.charge("k1").status, 402);
        let again = scene.charge("k1");
        assert_eq!(
            (again.status, again.header("idempotent-replayed")),
            (402, Some("true"))
        );
    });
}

#[test]
fn an_upstream_that_was_not_reached_frees_the_key() {
    on_each_store(|store| {
        let gone = counting().url("");
        let scene = Scene::new(store, &gone, "");
        // The world has gone with its port.
        refused(&scene.charge("k1"), 502, "upstream-unreachable");
        refused(&scene.charge("k1"), 502, "upstream-unreachable");
        let keys = scene.keys("");
        assert!(
            keys.iter().all(|key| key["state"] == "released"),
            "{keys:?}"
        );
    });
}

#[test]
fn an_answer_that_is_too_large_is_not_kept_and_not_made_again() {
    on_each_store(|store| {
        let large = "x".repeat(3_000);
        let world = World::new(move |seen| match seen.key() {
            "placed" => Act::AnswerWith(201, "location: /charges/7\r\n", large.clone()),
            _ => Act::AnswerWith(201, "", large.clone()),
        });
        let scene = Scene::new(store, &world.url(""), "answer_max = \"1KiB\"");
        let first = scene.charge("k1");
        assert_eq!((first.status, first.body().len()), (201, 3_000));
        refused(&scene.charge("k1"), 409, "response-not-kept");
        assert_eq!(scene.charge("placed").status, 201);
        let placed = scene.charge("placed");
        let found = (placed.status, placed.header("location"));
        assert_eq!(found, (303, Some("/charges/7")), "{placed:?}");
        assert_eq!(world.seen().len(), 2);
    });
}

#[test]
fn a_request_beyond_the_limit_is_refused_and_a_large_one_arrives_whole() {
    let world = World::new(|seen| {
        let sum: usize = seen.body.iter().map(|byte| usize::from(*byte)).sum();
        Act::AnswerWith(201, "", format!("{} {sum}", seen.body.len()))
    });
    let scene = Scene::new(SQLITE, &world.url(""), "body_max = \"1MiB\"");
    let head = "x-user: ada\r\nidempotency-key: k1\r\n";
    let large = "a".repeat(1 << 20);
    let answer = scene.ask(&request("POST", "/charges", head, &large));
    let sum = 97 * (1 << 20);
    assert_eq!(
        answer.body(),
        format!("1048576 {sum}").as_bytes(),
        "{answer:?}"
    );
    let head = "x-user: ada\r\nidempotency-key: k2\r\n";
    let mut connection = scene.connect();
    let beyond = request("POST", "/charges", head, &format!("{large}a"));
    // The guard may answer and close before it has read all of it.
    let _ = connection.send(&beyond);
    refused(
        &connection.answer().expect("an answer"),
        413,
        "request-too-large",
    );
    assert_eq!(world.seen().len(), 1);
}

#[test]
fn stored_answers_cannot_be_read_in_the_store_s_files() {
    let executions = std::sync::atomic::AtomicUsize::new(0);
    let world = World::new(move |_| match carried_out(&executions) {
        Act::AnswerWith(status, head, _) => Act::AnswerWith(status, head, "card=4242424242".into()),
        other => other,
    });
    let scene = Scene::new(crate::effects::scene::SQLITE, &world.url(""), "");
    assert_eq!(scene.charge("k1").body(), b"card=4242424242");
    let mut looked_at = 0;
    let mut folders = vec![scene.site.data()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let bytes = std::fs::read(&path).expect("bytes");
            looked_at += bytes.len();
            let found = bytes.windows(10).any(|part| part == b"4242424242");
            assert!(!found, "{}", path.display());
        }
    }
    assert!(looked_at > 0);
    assert_eq!(scene.charge("k1").body(), b"card=4242424242");
}

#[test]
fn a_body_that_stands_still_is_given_up_and_nothing_is_done() {
    let world = counting();
    let lines = "idle_timeout = \"200ms\"";
    let scene = Scene::new(crate::effects::scene::SQLITE, &world.url(""), lines);
    let head = "x-user: ada\r\nidempotency-key: k1\r\n";
    let whole = request("POST", "/charges", head, "{\"amount\":1}");
    let mut connection = scene.connect();
    connection.send(&whole[..whole.len() - 1]).expect("sent");
    refused(
        &connection.answer().expect("an answer"),
        400,
        "request-incomplete",
    );
    assert!(world.seen().is_empty());
    answered(&scene.ask(&whole), 1, false);
}

/// H2: nobody knows which of two the upstream goes by, so both count.
#[test]
fn a_second_content_type_makes_it_another_request() {
    let world = counting();
    let scene = Scene::new(SQLITE, &world.url(""), "");
    answered(&scene.charge("k1"), 1, false);
    let more = "x-user: ada\r\nidempotency-key: k1\r\ncontent-type: text/plain\r\n";
    let other = request("POST", "/charges", more, "{\"amount\":1}");
    refused(&scene.ask(&other), 409, "key-reused");
    assert_eq!(world.seen().len(), 1);
}

/// A client that writes everything before it listens hears why it was refused.
#[test]
fn a_refusal_is_heard_by_a_client_that_is_still_writing() {
    let world = counting();
    let scene = Scene::new(SQLITE, &world.url(""), "");
    let body = "x".repeat(12 * 1024 * 1024);
    let table = [
        (
            "x-user: ada\r\nidempotency-key: k1\r\n",
            413,
            "request-too-large",
        ),
        ("idempotency-key: k1\r\n", 401, "caller-unknown"),
        (
            "x-user: ada\r\nidempotency-key: a\r\nidempotency-key: b\r\n",
            400,
            "key-malformed",
        ),
    ];
    for (more, status, name) in table {
        refused(
            &scene.ask(&request("POST", "/charges", more, &body)),
            status,
            name,
        );
    }
    assert!(world.seen().is_empty());
}

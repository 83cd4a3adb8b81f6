//! The wall clock jumps, forwards and backwards, at a restart and under running requests. With SQLite the program's steady clock counts, with
//! PostgreSQL the database's: the program's wall clock may say what it likes.

use hapax_ledger::time::{Span, Time};

use super::scene::{Scene, answered, charge, problem, refused, request, site};
use crate::effects::scene::on_each_store;
use crate::faults::shim::{AHEAD, Shim};
use crate::support::clock::{TOO_LONG, until};
use crate::support::world::{Act, World};

const LINES: &str = "principal = \"header.x-user\"";
/// Longer than an answer is kept and its key refused after that, together.
const FAR_S: i64 = 200 * 3_600;

#[test]
fn a_clock_that_has_jumped_frees_no_key() {
    on_each_store(|store| comes_back(store, "3600"));
}

#[test]
fn a_clock_that_was_set_back_frees_no_key() {
    on_each_store(|store| comes_back(store, "-3600"));
}

#[test]
fn a_clock_that_jumps_far_ahead_ends_no_run() {
    on_each_store(|store| jumps_meanwhile(store, FAR_S));
}

#[test]
fn a_clock_that_jumps_far_back_ends_no_run() {
    on_each_store(|store| jumps_meanwhile(store, -FAR_S));
}

/// H1, I2: a server that comes back with another time on its clock neither forgets an answer nor runs again what may have run.
fn comes_back(store: &str, ahead: &str) {
    let world = World::new(|seen| match seen.key() {
        "under-way" => Act::Hang,
        _ => Act::AnswerWith(201, "", "{\"execution\":1}".to_owned()),
    });
    let mut site = site(store, &world.url(""), LINES);
    Shim::before(&mut site);
    let scene = Scene::of(site);
    answered(&scene.charge("done"), 1, false);
    let mut first = scene.connect();
    first.send(&charge("under-way")).expect("sent");
    world.wait_for("both", |seen| seen.len() == 2);
    let Scene {
        server, mut site, ..
    } = scene;
    server.kill();
    site.set(AHEAD, ahead);
    let scene = Scene::of(site);
    answered(&scene.charge("done"), 1, true);
    let unknown = until(TOO_LONG, "its outcome is unknown", || {
        let answer = scene.charge("under-way");
        Some(answer).filter(|answer| problem(answer) != "in-progress")
    });
    refused(&unknown, 409, "outcome-unknown");
    assert_eq!(world.seen().len(), 2);
}

/// H1, H4, I2: while a request runs, no jump ends it, frees its key or forgets an answer.
fn jumps_meanwhile(store: &str, seconds: i64) {
    let world = World::new(|seen| {
        let execution = |count: usize| format!("{{\"execution\":{count}}}");
        match seen.key() {
            "under-way" => Act::HeldThenWith(201, "", execution(2)),
            "done" => Act::AnswerWith(201, "", execution(1)),
            _ => Act::AnswerWith(201, "", execution(3)),
        }
    });
    let mut site = site(store, &world.url(""), LINES);
    let shim = Shim::before(&mut site);
    let scene = Scene::of(site);
    answered(&scene.charge("done"), 1, false);
    let mut first = scene.connect();
    first.send(&charge("under-way")).expect("sent");
    world.wait_for("both", |seen| seen.len() == 2);

    shim.jump(seconds);
    if seconds > 0 {
        jumped(&scene);
    }
    // Longer than a lease lasts that nobody extends.
    let head = "x-user: ada\r\nidempotency-key: under-way\r\nprefer: wait=4\r\n";
    let waited = scene.ask(&request("POST", "/charges", head, "{\"amount\":1}"));
    refused(&waited, 409, "in-progress");
    answered(&scene.charge("done"), 1, true);
    // What is new is carried out, and kept.
    answered(&scene.charge("new"), 3, false);
    answered(&scene.charge("new"), 3, true);

    world.release(1);
    answered(&first.answer().expect("an answer"), 2, false);
    answered(&scene.charge("under-way"), 2, true);
    assert_eq!(world.seen().len(), 3);
}

/// The server's own clock is ahead of the test's by now. (How far it is back nobody would see: answers are not dated back.)
fn jumped(scene: &Scene) {
    until(TOO_LONG, "a later date", || {
        let answer = scene.server.get("/healthz");
        let date = httpdate::parse_http_date(answer.header("date")?).ok()?;
        let since = date.duration_since(std::time::UNIX_EPOCH).ok()?;
        let date = Time::from_secs(i64::try_from(since.as_secs()).ok()?);
        (date > hapax::clock::now() + Span::from_hours(24)).then_some(())
    });
}

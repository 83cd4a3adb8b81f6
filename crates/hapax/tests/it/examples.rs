//! The examples that are configs and scripts, as they stand in `examples/`: each does what its page says.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::{Value, json};

use crate::effects::scene::{SQLITE, Scene};
use crate::program::{Ran, hapax};
use crate::support::clock::{TOO_LONG, until};
use crate::support::example::example_file;
use crate::support::server::{Server, TOKEN};
use crate::support::site::Site;
use crate::support::world::World;

/// An example's config on a free port and against a world, and a server that runs it.
struct Example {
    name: &'static str,
    site: Site,
    server: Server,
    world: World,
}

impl Example {
    fn start(name: &'static str) -> Example {
        let world = World::well();
        let config = std::fs::read_to_string(example_file(&format!("{name}/hapax.toml")))
            .expect("a config")
            .replace("127.0.0.1:8080", "127.0.0.1:0")
            .replace("http://127.0.0.1:9000", &world.url(""));
        let mut site = Site::sqlite();
        site.configure(&config);
        for (name, value) in ENVIRONMENT {
            site.set(name, value);
        }
        let server = site.start();
        Example {
            name,
            site,
            server,
            world,
        }
    }

    /// Sends a sample of the example; gives the id of the event.
    fn send(&self, source: &str, sample: &str, times: &str) -> String {
        let data = example_file(&format!("{}/{sample}", self.name));
        let mut command = hapax(self.site.path());
        command
            .args(["send", source, "--times", times, "--json", "--data"])
            .arg(data)
            .env("HAPAX_URL", format!("http://{}", self.server.address()))
            .envs(ENVIRONMENT);
        let answers = Ran::of(&mut command).expect_exit(0).json();
        let id = answers[0]["answer"]["eventId"].as_str();
        id.expect("an id").to_owned()
    }

    fn wait_for(&self, event: &str, status: &str) {
        until(TOO_LONG, &format!("{event} is {status}"), || {
            let event = self.server.get(&format!("/api/v1/event/{event}")).json();
            (event["status"] == status).then_some(())
        });
    }
}

/// What the configs of the examples ask for.
const ENVIRONMENT: [(&str, &str); 3] = [
    ("HAPAX_ADMIN_TOKEN", TOKEN),
    ("LEMON_SECRET", "a-secret-of-the-test"),
    ("BILLING_SECRET", "whsec_a_secret_of_the_test_0123456789"),
];

#[test]
fn a_lemon_squeezy_order_gets_one_licence() {
    let example = Example::start("lemon-squeezy");
    let event = example.send("lemon", "order.json", "3");
    example.wait_for(&event, "completed");
    let seen = example.world.seen();
    assert_eq!(seen.len(), 1, "{seen:?}");
    assert_eq!(seen[0].target, "/licences");
    assert_eq!(seen[0].key(), "make-licence:1001");
}

#[test]
fn an_older_state_of_a_subscription_is_not_set_after_a_newer_one() {
    let example = Example::start("subscription-state");
    let newer = example.send("billing", "change-2.json", "1");
    example.wait_for(&newer, "completed");
    let older = example.send("billing", "change-1.json", "2");
    example.wait_for(&older, "stale");
    let seen = example.world.seen();
    let bodies = seen.iter().map(|seen| serde_json::from_slice(&seen.body));
    let bodies: Vec<Value> = bodies.map(|body| body.expect("JSON")).collect();
    assert_eq!(bodies.len(), 1, "{bodies:?}");
    assert_eq!(bodies[0]["data"]["object"]["plan"], "team");
}

/// Runs the queue's worker to its end.
fn work(scene: &Scene, queue: &Path) -> Output {
    let mut worker = Command::new("python3");
    worker
        .arg(example_file("queue-worker/worker.py"))
        .arg(queue)
        .env("HAPAX_URL", format!("http://{}", scene.server.address()))
        .env("HAPAX_TOKEN", TOKEN);
    worker.output().expect("it runs")
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Work that certainly has not happened is tried again; work of which nobody knows is not.
#[cfg(target_os = "linux")]
#[test]
fn a_queue_worker_tells_a_failure_from_not_knowing() {
    if Command::new("python3").arg("--version").output().is_err() {
        eprintln!("skipped: there is no python3");
        return;
    }
    let scene = Scene::new(SQLITE, &[]);
    let folder = tempfile::tempdir().expect("a folder");
    let queue = folder.path().join("jobs.jsonl");
    let later = folder.path().join("later");
    let outbox = later.join("outbox");
    // A device that takes nothing: it opens, and what is written to it is lost in the middle.
    let jobs = [
        json!({ "report": "january", "outbox": outbox }).to_string(),
        json!({ "report": "february", "outbox": "/dev/full" }).to_string(),
    ];
    std::fs::write(&queue, jobs.join("\n")).expect("written");
    let first = work(&scene, &queue);
    assert_eq!(
        said(&first),
        "january: failed\nfebruary: uncertain\n",
        "{first:?}"
    );
    std::fs::create_dir(&later).expect("a folder");
    let second = work(&scene, &queue);
    assert_eq!(
        said(&second),
        "january: carried out\nfebruary: uncertain\n",
        "{second:?}"
    );
    assert_eq!(
        std::fs::read_to_string(&outbox).expect("an outbox"),
        "january\n"
    );
}

/// Each report goes out once, over workers, repeated messages and a worker that dies.
#[test]
fn a_queue_worker_carries_each_job_out_once() {
    if Command::new("python3").arg("--version").output().is_err() {
        eprintln!("skipped: there is no python3");
        return;
    }
    let scene = Scene::new(SQLITE, &[]);
    let folder = tempfile::tempdir().expect("a folder");
    let outbox = folder.path().join("outbox");
    let queue = folder.path().join("jobs.jsonl");
    let job = |report: &str| json!({ "report": report, "outbox": outbox }).to_string();
    let poison = json!({ "report": "march", "outbox": outbox, "poison": true });
    let jobs = [
        job("january"),
        job("february"),
        job("january"),
        poison.to_string(),
    ];
    std::fs::write(&queue, jobs.join("\n")).expect("written");
    let work = || work(&scene, &queue);
    let first = work();
    assert_eq!(first.status.code(), Some(9), "{first:?}");
    assert_eq!(
        said(&first),
        "january: carried out\nfebruary: carried out\njanuary: done\n"
    );
    // Another worker: what is done is done, and what the first one died over is nobody's to guess.
    let again = until(TOO_LONG, "the dead worker's lease ends", || {
        let again = said(&work());
        (!again.contains("in_flight")).then_some(again)
    });
    assert_eq!(
        again,
        "january: done\nfebruary: done\njanuary: done\nmarch: uncertain\n"
    );
    let sent = std::fs::read_to_string(&outbox).expect("an outbox");
    assert_eq!(sent, "january\nfebruary\n");
}

//! `hapax listen`: live events at a local URL, also over a cut.

use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStderr, ChildStdout, Command, Stdio};

use serde_json::json;

use crate::effects::scene::{SQLITE, Scene, fact};
use crate::program::{Ran, hapax};
use crate::support::proxy::{Proxy, Wire};
use crate::support::server::TOKEN;
use crate::support::world::{Act, World};

/// A command that listens.
struct Listening {
    child: Child,
    out: BufReader<ChildStdout>,
    talk: BufReader<ChildStderr>,
}

fn command(scene: &Scene, url: &str, args: &[&str]) -> Command {
    let mut command = hapax(scene.folder());
    command
        .arg("listen")
        .args(args)
        .env("HAPAX_URL", url)
        .env("HAPAX_TOKEN", TOKEN);
    command
}

impl Listening {
    fn start(command: &mut Command) -> Listening {
        let command = command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("it starts");
        let out = BufReader::new(child.stdout.take().expect("piped"));
        let talk = BufReader::new(child.stderr.take().expect("piped"));
        let mut listening = Listening { child, out, talk };
        listening.wait_for("listening; forwarding to");
        listening
    }

    fn wait_for(&mut self, word: &str) {
        let mut line = String::new();
        while !line.contains(word) {
            line.clear();
            let read = self.talk.read_line(&mut line).expect("text");
            assert!(read > 0, "it ended and never said `{word}`");
        }
    }

    /// The words of its next line.
    fn line(&mut self) -> Vec<String> {
        let mut line = String::new();
        self.out.read_line(&mut line).expect("text");
        line.split_whitespace().map(str::to_owned).collect()
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn live_events_are_forwarded_also_over_a_cut() {
    let world = World::new(|seen| match seen.headers["hapax-event-type"].as_str() {
        "moved" => Act::AnswerWith(302, "location: /elsewhere\r\n", String::new()),
        _ => Act::Answer(201),
    });
    let scene = Scene::new(SQLITE, &[]);
    let wire = Proxy::to(scene.server.address());
    let url = format!("http://{}", wire.address());
    let to = world.url("/local?a=b");
    let args = ["--forward", &to, "--source", "billing"];
    let mut listening = Listening::start(&mut command(&scene, &url, &args));

    let id = scene.send("evt_1", "invoice.paid", &json!({"n": 1.0}));
    let line = listening.line();
    let [status, millis, unit, shown, source, kind] = &line[..] else {
        panic!("{line:?}");
    };
    assert_eq!((status.as_str(), unit.as_str()), ("201", "ms"));
    assert!(millis.parse::<u32>().is_ok(), "{line:?}");
    assert_eq!([shown, source, kind], [&id, "billing", "invoice.paid"]);
    let seen = &world.seen()[0];
    assert_eq!(seen.target, "/local?a=b");
    assert_eq!(seen.body, fact("evt_1", "invoice.paid", &json!({"n": 1.0})));
    let header = |name: &str| seen.headers.get(name).map(String::as_str);
    assert_eq!(header("content-type"), Some("application/json"));
    assert_eq!(header("hapax-event-id"), Some(id.as_str()));
    assert_eq!(header("hapax-source"), Some("billing"));
    assert_eq!(header("authorization"), None, "the token stays here");

    wire.set(Wire::Cut);
    listening.wait_for("the stream has ended");
    let moved = scene.send("evt_2", "moved", &json!({}));
    listening.wait_for("error[H0401]");
    wire.set(Wire::Whole);
    let line = listening.line();
    assert_eq!((line[0].as_str(), &line[3]), ("302", &moved));
    assert_eq!(world.seen().len(), 2, "no redirect is followed");

    let pid = listening.child.id().to_string();
    let sent = Command::new("sh")
        .args(["-c", "kill -s INT \"$1\"", "sh", &pid])
        .status();
    assert!(sent.expect("a shell").success());
    assert_eq!(listening.child.wait().expect("it ends").code(), Some(0));
}

#[test]
fn whoever_cannot_listen_hears_why() {
    let scene = Scene::new(SQLITE, &[]);
    let url = format!("http://{}", scene.server.address());
    let run = |url: &str, args: &[&str], token: &str| {
        Ran::of(command(&scene, url, args).env("HAPAX_TOKEN", token))
    };
    let to = ["--forward", "http://127.0.0.1:9"];
    run(&url, &["--forward", "localhost"], TOKEN).expect_exit(2);
    let unknown = run(&url, &to, "nobody").expect_exit(1);
    assert!(unknown.stderr.contains("error[H0301]"), "{unknown:?}");
    let nobody = run("http://127.0.0.1:9", &to, TOKEN).expect_exit(5);
    assert!(nobody.stderr.contains("error[H0401]"), "{nobody:?}");

    // A local server that is down is no reason to stop.
    let mut listening = Listening::start(&mut command(&scene, &url, &to));
    let id = scene.send("evt_1", "invoice.paid", &json!({}));
    let line = listening.line().join(" ");
    assert!(line.starts_with("connection refused"), "{line}");
    assert!(line.contains(&id), "{line}");
}

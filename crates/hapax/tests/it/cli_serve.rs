//! The whole way at a prompt: init, serve, send, look.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use hapax_verify::provider;

use crate::program::{Ran, folder, hapax, run};

const TOKEN: &str = "0123456789abcdef0123456789abcdef";

/// A server on a port of its own; it is stopped with the value.
struct Served {
    child: Child,
    url: String,
}

impl Served {
    fn start(dir: &Path) -> Served {
        let mut child = hapax(dir)
            .args(["serve", "--listen", "127.0.0.1:0"])
            .env("HAPAX_ADMIN_TOKEN", TOKEN)
            .stderr(Stdio::piped())
            .spawn()
            .expect("it starts");
        let stderr = child.stderr.take().expect("piped");
        let mut lines = BufReader::new(stderr).lines();
        let address = loop {
            let line = lines
                .next()
                .expect("it listens before it ends")
                .expect("text");
            let line: serde_json::Value = serde_json::from_str(&line).expect("log lines are JSON");
            if line["message"] == "listening" {
                break line["address"].as_str().expect("an address").to_owned();
            }
        };
        // Nobody else reads what it says; without a reader it would stop at a full pipe.
        std::thread::spawn(move || lines.for_each(drop));
        let url = format!("http://{address}");
        Served { child, url }
    }

    fn client(&self, dir: &Path) -> Command {
        let mut command = hapax(dir);
        command
            .env("HAPAX_URL", &self.url)
            .env("HAPAX_TOKEN", TOKEN);
        command
    }

    fn ask(&self, dir: &Path, args: &[&str]) -> Ran {
        Ran::of(self.client(dir).args(args))
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn one_event_sent_three_times_is_one_event() {
    let dir = folder(&[]);
    let dir = dir.path();
    run(dir, &["init"]).expect_exit(0);
    let served = Served::start(dir);

    let sent = served.ask(
        dir,
        &[
            "send",
            "demo",
            "--type",
            "invoice.paid",
            "--times",
            "3",
            "--json",
        ],
    );
    let sent = sent.expect_exit(0).json();
    let id = sent[0]["answer"]["eventId"].as_str().expect("an id");
    for (index, duplicate) in [(0, false), (1, true), (2, true)] {
        assert_eq!(sent[index]["status"], 200);
        assert_eq!(sent[index]["answer"]["duplicate"], duplicate);
        assert_eq!(sent[index]["answer"]["eventId"], id);
    }
    for refused in ["--forge", "--late"] {
        let ran = served.ask(dir, &["send", "demo", refused]).expect_exit(1);
        assert!(ran.stdout.contains("401"), "{}", ran.stdout);
    }

    let list = served.ask(
        dir,
        &[
            "events",
            "list",
            "--type",
            "invoice.paid",
            "--since",
            "1h",
            "--json",
        ],
    );
    let list = list.expect_exit(0).json();
    assert_eq!(list["data"].as_array().map(Vec::len), Some(1), "{list:#}");
    assert_eq!(list["data"][0]["id"], id);
    let table = served.ask(dir, &["events", "list"]).expect_exit(0);
    let lines: Vec<Vec<&str>> = table
        .stdout
        .lines()
        .map(|line| line.split_whitespace().collect())
        .collect();
    let [heads, event] = &lines[..] else {
        panic!("one line for the one event: {}", table.stdout);
    };
    assert_eq!(
        heads.join(" "),
        "ID SOURCE TYPE KEY STATUS RECEIVED SEEN",
        "{}",
        table.stdout
    );
    assert_eq!((event[0], event[1], event[2]), (id, "demo", "invoice.paid"));
    assert_eq!(event[3], list["data"][0]["key"]);
    assert_eq!((event[5].len(), event[6].len(), event[7]), (10, 8, "3"));
    let shown = served
        .ask(dir, &["events", "show", id, "--json"])
        .expect_exit(0)
        .json();
    assert_eq!(shown["deliveries"].as_array().map(Vec::len), Some(3));
    let shown = served.ask(dir, &["events", "show", id]).expect_exit(0);
    assert!(shown.stdout.contains("deliveries\nAT "), "{}", shown.stdout);
    let want = "\ndeliveries         3 (2 duplicates)\n";
    assert!(shown.stdout.contains(want), "{}", shown.stdout);
}

#[test]
fn a_list_goes_on_where_another_ended_and_a_store_has_one_server() {
    let dir = folder(&[]);
    let dir = dir.path();
    run(dir, &["init"]).expect_exit(0);
    let served = Served::start(dir);
    let second = run(dir, &["serve", "--listen", "127.0.0.1:0"]).expect_exit(1);
    let want = "one process holds a store";
    assert!(second.stderr.contains(want), "{}", second.stderr);
    for _ in 0..2 {
        served.ask(dir, &["send", "demo"]).expect_exit(0);
    }
    let page = |more: &[&str]| {
        let args = [&["events", "list", "--limit", "1", "--json"], more].concat();
        served.ask(dir, &args).expect_exit(0).json()
    };
    let first = page(&[]);
    let second = page(&["--iterator", first["iterator"].as_str().expect("more")]);
    assert!(second["data"][0]["id"].is_string(), "{second:#}");
    assert_ne!(first["data"][0]["id"], second["data"][0]["id"]);
}

#[test]
fn a_type_is_honoured_in_data_of_one_s_own() {
    let custom = "provider = \"custom\"\nsecrets = \"0123456789abcdef\"\nid = \"id\"\n";
    let verify = "[source.verify]\nscheme = \"hmac\"\nheader = \"x-signature\"\n";
    let config = format!(
        "[[source]]\nname = \"head\"\n{custom}type = \"header.x-event\"\n{verify}\n[[source]]\nname = \"body\"\n{custom}type = \"event.type\"\n{verify}"
    );
    let dir = folder(&[
        ("hapax.toml", &config),
        (
            "one.json",
            "{\"id\": \"1\",  \"event\": {\"type\": \"old\"}}",
        ),
        ("two.json", "{\"id\": \"2\",  \"event\": \"old\"}"),
    ]);
    let dir = dir.path();
    let served = Served::start(dir);
    for (source, event_type, told) in [("head", "new", false), ("body", "new", true)] {
        let sent = served.ask(
            dir,
            &[
                "send", source, "--data", "one.json", "--type", event_type, "--json",
            ],
        );
        let sent = sent.expect_exit(0);
        assert_eq!(sent.stderr.contains("--type sets `event.type`"), told);
        let id = sent.json()[0]["answer"]["eventId"].clone();
        let id = id.as_str().expect("an id");
        let event = served.ask(dir, &["events", "show", id, "--json"]).json();
        assert_eq!(event["type"], "new", "{event:#}");
    }
    let ran = served.ask(
        dir,
        &["send", "body", "--data", "two.json", "--type", "new"],
    );
    let ran = ran.expect_exit(2);
    let want = "something else than an object is on the way to `event.type`";
    assert!(ran.stderr.contains(want), "{}", ran.stderr);
}

#[test]
fn a_server_that_goes_away_leaves_the_rows_so_far() {
    let dir = folder(&[]);
    let dir = dir.path();
    run(dir, &["init"]).expect_exit(0);
    let mut served = Served::start(dir);
    let mut command = served.client(dir);
    command.args(["send", "demo", "--times", "10000"]);
    let mut sending = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    // The first rows come while the rest is still being sent.
    let mut lines = BufReader::new(sending.stdout.take().expect("piped")).lines();
    let first: Vec<String> = lines
        .by_ref()
        .take(2)
        .map(|line| line.expect("text"))
        .collect();
    assert_eq!(first[0], "ATTEMPT  STATUS  ANSWER");
    assert!(first[1].starts_with("1        200     {"), "{first:?}");
    served.child.kill().expect("killed");
    let rows = 1 + lines.count();
    let ended = sending.wait_with_output().expect("it ends");
    assert_eq!(ended.status.code(), Some(5));
    let said = String::from_utf8(ended.stderr).expect("text");
    let want = format!("error[H0401]: {rows} of 10000 were answered; could not reach ");
    assert!(said.starts_with(&want), "{said}");
}

#[test]
fn without_a_config_the_server_says_so_in_one_line() {
    let dir = folder(&[]);
    let mut child = hapax(dir.path())
        .args(["serve", "--listen", "127.0.0.1:0"])
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    let mut lines = BufReader::new(child.stderr.take().expect("piped")).lines();
    let line = lines.next().expect("a line").expect("text");
    child.kill().expect("killed");
    child.wait().expect("it ends");
    let line: serde_json::Value = serde_json::from_str(&line).expect("log lines are JSON");
    assert_eq!(line["code"], "H0125");
    let want = "no source is configured: every webhook is refused";
    assert_eq!(line["message"], want);
}

#[test]
fn what_the_server_refuses_is_said_in_words() {
    let dir = folder(&[]);
    let dir = dir.path();
    run(dir, &["init"]).expect_exit(0);
    let served = Served::start(dir);
    let ran = served.ask(dir, &["events", "list"]).expect_exit(0);
    assert_eq!(
        (ran.stdout.as_str(), ran.stderr.as_str()),
        ("", "no events\n")
    );
    let ran = served
        .ask(dir, &["events", "show", "evt_nope"])
        .expect_exit(4);
    assert!(ran.stderr.contains("error[H0302]"), "{}", ran.stderr);
    let ran = served
        .ask(dir, &["events", "list", "--status", "bogus"])
        .expect_exit(2);
    assert!(ran.stderr.contains("error[H0303]"), "{}", ran.stderr);
    let ran = Ran::of(
        served
            .client(dir)
            .args(["events", "list"])
            .env_remove("HAPAX_TOKEN"),
    );
    let ran = ran.expect_exit(1);
    assert!(
        ran.stderr.contains("HAPAX_TOKEN is not set"),
        "{}",
        ran.stderr
    );
    let ran = Ran::of(
        served
            .client(dir)
            .args(["events", "list"])
            .env("HAPAX_TOKEN", "hpx_other"),
    );
    let ran = ran.expect_exit(1);
    let want = "does not know this HAPAX_TOKEN";
    assert!(ran.stderr.contains(want), "{}", ran.stderr);
}

#[test]
fn a_custom_source_is_sent_what_its_fields_ask_for() {
    let config = "[[source]]\nname = \"partner\"\nprovider = \"custom\"\nsecrets = \"0123456789abcdef\"\ntype = \"header.x-event\"\nid = \"meta.id\"\nentity = \"order.id\"\n[source.verify]\nscheme = \"hmac\"\nheader = \"x-signature\"\nsigned = \"{body}\"\n";
    let dir = folder(&[("hapax.toml", config)]);
    let dir = dir.path();
    let served = Served::start(dir);
    let sent = served.ask(
        dir,
        &[
            "send",
            "partner",
            "--type",
            "order.paid",
            "--times",
            "2",
            "--json",
        ],
    );
    let sent = sent.expect_exit(0).json();
    assert_eq!(sent[1]["answer"]["duplicate"], true, "{sent:#}");
    let id = sent[0]["answer"]["eventId"].as_str().expect("an id");
    let event = served
        .ask(dir, &["events", "show", id, "--json"])
        .expect_exit(0)
        .json();
    assert_eq!(event["type"], "order.paid");
    assert_eq!(event["keyOrigin"], "provider");
    assert!(event["entity"].is_string(), "{event:#}");
}

#[test]
fn every_preset_s_sample_is_believed_once_signed_and_refused_once_forged() {
    // Public keys are the providers' own: nobody here can sign for them.
    let signable = || {
        provider::all()
            .iter()
            .filter(|preset| !preset.scheme().is_asymmetric())
    };
    let mut config = "public_url = \"https://hooks.example.com\"\n".to_owned();
    for preset in signable() {
        let secrets = match preset.scheme().name() {
            "unverified" => String::new(),
            "basic" => "secrets = \"user:0123456789abcdef\"\n".to_owned(),
            _ => format!("secrets = \"{}\"\n", "0123456789abcdef".repeat(4)),
        };
        let name = &preset.name;
        config.push_str(&format!(
            "[[source]]\nname = \"{name}\"\nprovider = \"{name}\"\n{secrets}"
        ));
    }
    let dir = folder(&[("hapax.toml", &config)]);
    let dir = dir.path();
    let served = Served::start(dir);
    for preset in signable() {
        let name = &preset.name;
        let ran = served
            .ask(dir, &["send", name, "--times", "2", "--json"])
            .expect_exit(0);
        assert!(
            ran.stdout.contains("\"duplicate\": true"),
            "{name}: {}",
            ran.stdout
        );
        let forged = served.ask(dir, &["send", name, "--forge", "--json"]);
        match preset.scheme().name() {
            "unverified" => assert_eq!(forged.exit, 2, "{name}: {forged:?}"),
            _ => assert_eq!(forged.expect_exit(1).json()[0]["status"], 401, "{name}"),
        }
    }
}

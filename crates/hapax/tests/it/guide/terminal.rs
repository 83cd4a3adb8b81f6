//! A terminal in a folder of its own: the few commands that a guide's reader types. The services of the page are the test's own world,
//! and the server is on whatever port is free.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::Value;

use super::words::Words;
use crate::program::{Ran, hapax};
use crate::support::client::Connection;
use crate::support::clock::{TOO_LONG, until};
use crate::support::server::Server;
use crate::support::world::{Act, World};

/// Where the pages' server listens.
const SERVER: &str = "127.0.0.1:8080";
/// Where the pages' guard listens.
const GUARD: &str = "127.0.0.1:8081";
/// Where the pages' services are.
const SERVICES: &str = "http://127.0.0.1:9000";
/// The file whose being there mends the services.
const MENDED: &str = "mended";

pub(super) struct Terminal {
    folder: tempfile::TempDir,
    world: World,
    server: Option<Server>,
    guard: Option<SocketAddr>,
    environment: Vec<(String, String)>,
    words: Words,
}

impl Terminal {
    /// A terminal in a new folder with these files.
    pub(super) fn open(files: &[(String, String)]) -> Terminal {
        let folder = tempfile::tempdir().expect("a folder");
        let mended = folder.path().join(MENDED);
        let charges = AtomicUsize::new(0);
        let world = World::new(move |seen| match seen.target.as_str() {
            "/charges" if seen.body == b"amount=500" && seen.before == 0 => Act::HangUp,
            "/charges" => {
                let count = charges.fetch_add(1, Ordering::SeqCst) + 1;
                Act::AnswerWith(201, "", format!("{{\"charge\":{count}}}\n"))
            }
            "/activate" => Act::Answer(200),
            _ if mended.exists() => Act::Answer(200),
            _ => Act::Answer(500),
        });
        for (name, text) in files {
            let text = text
                .replace(SERVER, "127.0.0.1:0")
                .replace(GUARD, "127.0.0.1:0")
                .replace(SERVICES, &world.url(""));
            std::fs::write(folder.path().join(name), text).expect("written");
        }
        Terminal {
            folder,
            world,
            server: None,
            guard: None,
            environment: Vec::new(),
            words: Words::default(),
        }
    }

    /// Runs a command when everything before it has come to rest. Gives what stands below it then.
    pub(super) fn run(&mut self, command: &str) -> String {
        self.rest();
        let words = split(&self.words.real(command));
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        match &words[..] {
            // The world is there already.
            ["python3", ..] => String::new(),
            ["hapax", "serve", ..] => {
                let mut serve = hapax(self.folder.path());
                let server = Server::start(serve.arg("serve"));
                let config = std::fs::read_to_string(self.folder.path().join("hapax.toml"));
                if config.expect("a config").contains("[[guard]]") {
                    let address = server.wait_for_log("guarding")["address"].clone();
                    self.guard = address.as_str().and_then(|address| address.parse().ok());
                }
                self.server = Some(server);
                String::new()
            }
            ["touch", name] => {
                std::fs::write(self.folder.path().join(name), "").expect("written");
                String::new()
            }
            ["export", set] => {
                let (name, value) = set.split_once('=').expect("a value");
                self.environment.push((name.to_owned(), value.to_owned()));
                String::new()
            }
            ["curl", "-s", url, more @ ..] => self.curl(url, more),
            ["hapax", args @ ..] => self.ask(args),
            other => panic!("the guide's terminal does not know {other:?}"),
        }
    }

    fn ask(&mut self, args: &[&str]) -> String {
        let address = self.server.as_ref().expect("a server").address();
        let mut command = hapax(self.folder.path());
        command
            .args(args)
            .env("HAPAX_URL", format!("http://{address}"))
            .envs(self.environment.iter().map(|(name, value)| (name, value)));
        let Ran { stdout, stderr, .. } = Ran::of(&mut command);
        let said = format!("{stdout}{stderr}")
            .replace(&address.to_string(), SERVER)
            .replace(&self.world.url(""), SERVICES);
        let lines = said.lines().map(|line| format!("{}\n", line.trim_end()));
        self.words.example(&lines.collect::<String>())
    }

    /// A request to the guard: `-H` is a line of its head, `-d` its body.
    fn curl(&self, url: &str, more: &[&str]) -> String {
        let path = url
            .strip_prefix("http://")
            .and_then(|url| url.strip_prefix(GUARD));
        let path = path.expect("the guard's URL");
        let (mut head, mut body) = (String::new(), "");
        for pair in more.chunks(2) {
            match pair {
                ["-H", line] => head.push_str(&format!("{line}\r\n")),
                ["-d", text] => body = text,
                other => panic!("the guide's terminal does not know curl {other:?}"),
            }
        }
        let request = format!(
            "POST {path} HTTP/1.1\r\nhost: {GUARD}\r\ncontent-length: {}\r\n{head}\r\n{body}",
            body.len()
        );
        let mut connection = Connection::open(self.guard.expect("a guard")).expect("a guard");
        let answer = connection.ask(request.as_bytes()).expect("an answer");
        let said = String::from_utf8_lossy(answer.body()).into_owned();
        match said.ends_with('\n') {
            true => said,
            false => said + "\n",
        }
    }

    /// Waits until nothing more happens by itself: nothing is held, and what is pending waits for something else.
    fn rest(&self) {
        let token = self
            .environment
            .iter()
            .find(|(name, _)| name == "HAPAX_TOKEN");
        let (Some(server), Some((_, token))) = (&self.server, token) else {
            return;
        };
        let is_under_way = |effect: &Value| match effect["state"].as_str() {
            Some("claimed") => true,
            Some("pending") => effect["gate"] == "open",
            _ => false,
        };
        until(TOO_LONG, "everything has come to rest", || {
            let effects = server.ask_as(token, "GET", "/api/v1/effect", "", "").json();
            let mut effects = effects["data"].as_array().expect("effects").iter();
            (!effects.any(is_under_way)).then_some(())
        });
    }
}

/// The words of a command; what is in double quotes is one.
fn split(command: &str) -> Vec<String> {
    let mut words = Vec::new();
    for (number, part) in command.split('"').enumerate() {
        match number % 2 {
            0 => words.extend(part.split_whitespace().map(str::to_owned)),
            _ => words.push(part.to_owned()),
        }
    }
    words
}

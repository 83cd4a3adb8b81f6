//! A terminal in a folder of its own: the few commands that a guide's reader types. The services of the page are the test's own world,
//! and the server is on whatever port is free.

use serde_json::Value;

use super::words::Words;
use crate::program::{Ran, hapax};
use crate::support::clock::{TOO_LONG, until};
use crate::support::server::Server;
use crate::support::world::{Act, World};

/// Where the pages' server listens.
const SERVER: &str = "127.0.0.1:8080";
/// Where the pages' services are.
const SERVICES: &str = "http://127.0.0.1:9000";
/// The file whose being there mends the services.
const MENDED: &str = "mended";

pub(super) struct Terminal {
    folder: tempfile::TempDir,
    world: World,
    server: Option<Server>,
    environment: Vec<(String, String)>,
    words: Words,
}

impl Terminal {
    /// A terminal in a new folder with these files.
    pub(super) fn open(files: &[(String, String)]) -> Terminal {
        let folder = tempfile::tempdir().expect("a folder");
        let mended = folder.path().join(MENDED);
        let world = World::new(move |seen| match seen.target.as_str() {
            "/activate" => Act::Answer(200),
            _ if mended.exists() => Act::Answer(200),
            _ => Act::Answer(500),
        });
        for (name, text) in files {
            let text = text
                .replace(SERVER, "127.0.0.1:0")
                .replace(SERVICES, &world.url(""));
            std::fs::write(folder.path().join(name), text).expect("written");
        }
        Terminal {
            folder,
            world,
            server: None,
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
            ["python3", "targets.py", ..] => String::new(),
            ["hapax", "serve", ..] => {
                let mut serve = hapax(self.folder.path());
                self.server = Some(Server::start(serve.arg("serve")));
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

//! A terminal in a folder of its own: the few commands that a guide's reader types. The services of the page are the test's own world,
//! and the server is on whatever port is free.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::process::Command;
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
/// A token as pages show it.
const TOKEN_EXAMPLE: &str = "hpx_the-token-that-serve-printed";
/// The file whose being there mends the services.
const MENDED: &str = "mended";

pub(super) struct Terminal {
    folder: tempfile::TempDir,
    world: World,
    /// Servers, and the address that the page has for each.
    servers: Vec<(String, Server)>,
    jobs: Jobs,
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
            "/mail" | "/note" | "/hooks" if !mended.exists() => Act::Answer(500),
            _ => Act::Answer(200),
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
            servers: Vec::new(),
            jobs: Jobs::default(),
            guard: None,
            environment: Vec::new(),
            words: Words::default(),
        }
    }

    /// Runs a command when everything before it has come to rest. Gives what stands below it then.
    pub(super) fn run(&mut self, command: &str) -> String {
        self.rest();
        let command = self.words.real(command);
        let words = split(&command.replace(SERVICES, &self.world.url("")));
        let mut words: Vec<&str> = words.iter().map(String::as_str).collect();
        // `NAME=value command`: for this command only.
        let before = self.environment.len();
        while let Some((name, value)) = words.first().and_then(|word| assignment(word)) {
            self.environment.push((name.to_owned(), value.to_owned()));
            words.remove(0);
        }
        let said = self.obey(&words);
        if words.first() != Some(&"export") {
            self.environment.truncate(before);
        }
        said
    }

    fn obey(&mut self, words: &[&str]) -> String {
        match words {
            // Services of a page: the world is there already.
            ["python3", .., "&"] | ["hapax", "echo", .., "&"] => {
                self.jobs.begin(None);
                String::new()
            }
            ["python3", script] => self.python(script),
            ["hapax", "serve", args @ ..] => {
                self.serve(args);
                String::new()
            }
            ["kill", "-9", job] => {
                let number = job.strip_prefix('%').and_then(|job| job.parse().ok());
                let shown = self.jobs.end(number.expect("the number of a job"));
                let shown = shown.expect("a server: the page's services are the test's own");
                let at = self.servers.iter().position(|(other, _)| *other == shown);
                let (_, server) = self.servers.remove(at.expect("it runs"));
                server.kill();
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

    /// Starts a server on a port that is free, whatever the page says.
    fn serve(&mut self, args: &[&str]) {
        let mut args: Vec<&str> = args.to_vec();
        args.retain(|word| *word != "&" && !word.starts_with("2>"));
        let mut shown = SERVER.to_owned();
        if let Some(at) = args.iter().position(|word| *word == "--listen") {
            shown = args[at + 1].to_owned();
            args.drain(at..at + 2);
        }
        let mut serve = hapax(self.folder.path());
        serve
            .arg("serve")
            .args(&args)
            .args(["--listen", "127.0.0.1:0"])
            .envs(self.environment.iter().map(|(name, value)| (name, value)));
        let server = Server::start(&mut serve);
        let config = std::fs::read_to_string(self.folder.path().join("hapax.toml"));
        if config.expect("a config").contains("[[guard]]") {
            let address = server.wait_for_log("guarding")["address"].clone();
            self.guard = address.as_str().and_then(|address| address.parse().ok());
        }
        // Printed once, and different each time.
        let said = server.said().lock().expect("whole").clone();
        let token = said
            .split_whitespace()
            .find(|word| word.starts_with("hpx_"));
        if let Some(token) = token {
            self.words.know(token, TOKEN_EXAMPLE);
        }
        self.jobs.begin(Some(shown.clone()));
        self.servers.push((shown, server));
    }

    /// A script of the page, with the servers of this run.
    fn python(&mut self, script: &str) -> String {
        let mut command = Command::new("python3");
        command.current_dir(self.folder.path()).arg(script);
        self.told(&mut command)
    }

    fn ask(&mut self, args: &[&str]) -> String {
        let mut command = hapax(self.folder.path());
        command.args(args);
        let said = self.told(&mut command);
        if args.first() == Some(&"init") {
            self.point_to_the_world();
        }
        said
    }

    /// What a command says.
    fn told(&mut self, command: &mut Command) -> String {
        let asked = self
            .environment
            .iter()
            .rev()
            .find(|(name, _)| name == "HAPAX_URL");
        let shown = asked.map_or(SERVER, |(_, url)| url.trim_start_matches("http://"));
        let server = self.servers.iter().find(|(other, _)| other == shown);
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        if let Some((_, server)) = server {
            command.env("HAPAX_URL", format!("http://{}", server.address()));
        }
        let Ran { stdout, stderr, .. } = Ran::of(command);
        let mut said = format!("{stdout}{stderr}").replace(&self.world.url(""), SERVICES);
        for (shown, server) in &self.servers {
            said = said.replace(&server.address().to_string(), shown);
        }
        let lines = said.lines().map(|line| format!("{}\n", line.trim_end()));
        self.words.example(&lines.collect::<String>())
    }

    /// A config that `hapax init` wrote names the services of the page.
    fn point_to_the_world(&self) {
        let path = self.folder.path().join("hapax.toml");
        let config = std::fs::read_to_string(&path).expect("a config");
        let config = config.replace(SERVICES, &self.world.url(""));
        std::fs::write(&path, config).expect("written");
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
        let (Some((_, server)), Some((_, token))) = (self.servers.last(), token) else {
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

/// What runs in the background, by the numbers that a shell gives: servers by the address that the page has for them, services without.
#[derive(Default)]
struct Jobs(BTreeMap<usize, Option<String>>);

impl Jobs {
    /// A shell counts on from the highest number that is in use.
    fn begin(&mut self, server: Option<String>) {
        let last = self.0.last_key_value().map_or(0, |(number, _)| *number);
        self.0.insert(last + 1, server);
    }

    /// A job ends; gives the server that it was.
    fn end(&mut self, number: usize) -> Option<String> {
        let job = self.0.remove(&number);
        job.unwrap_or_else(|| panic!("there is no job %{number}"))
    }
}

#[test]
fn jobs_are_counted_as_a_shell_does() {
    let mut jobs = Jobs::default();
    jobs.begin(None);
    for server in ["one", "two"] {
        jobs.begin(Some(server.to_owned()));
    }
    assert_eq!(
        jobs.end(2).as_deref(),
        Some("one"),
        "a service is a job, too"
    );
    jobs.begin(Some("three".to_owned()));
    assert_eq!(jobs.end(4).as_deref(), Some("three"), "it counts on");
    assert_eq!(jobs.end(3).as_deref(), Some("two"));
    assert_eq!(jobs.end(1), None);
    jobs.begin(None);
    assert_eq!(jobs.end(1), None, "and from the start when none is left");
}

/// `NAME=value`.
fn assignment(word: &str) -> Option<(&str, &str)> {
    let (name, value) = word.split_once('=')?;
    let is_name = |byte: u8| byte.is_ascii_uppercase() || byte == b'_';
    name.bytes().all(is_name).then_some((name, value))
}

/// The words of a command; what is in double or single quotes is one.
fn split(command: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut rest = command.trim_start();
    while let Some(first) = rest.chars().next() {
        let (word, more) = match first {
            '"' | '\'' => {
                let inner = &rest[1..];
                inner.split_once(first).expect("a closing quote")
            }
            _ => rest.split_at(rest.find(' ').unwrap_or(rest.len())),
        };
        words.push(word.to_owned());
        rest = more.trim_start();
    }
    words
}

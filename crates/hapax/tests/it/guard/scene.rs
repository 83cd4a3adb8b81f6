//! A server with one guard in front of a world.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::Value;

use crate::program::{Ran, hapax};
use crate::support::client::{Answer, Connection};
use crate::support::server::{Server, TOKEN};
use crate::support::site::{Site, config};
use crate::support::world::{Act, Seen, World};

/// Seals the answers in databases that nodes share.
const VAULT_KEY: &str = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";

/// A site with one server and its guard.
pub(crate) struct Scene {
    pub(crate) server: Server,
    pub(crate) guard: SocketAddr,
    pub(crate) site: Site,
}

impl Scene {
    /// A guard before this upstream that knows callers by `x-user`, with more lines of its own.
    pub(crate) fn new(store: &str, upstream: &str, more: &str) -> Scene {
        Scene::with(
            store,
            upstream,
            &format!("principal = \"header.x-user\"\n{more}"),
        )
    }

    /// A guard before this upstream with these lines.
    pub(crate) fn with(store: &str, upstream: &str, lines: &str) -> Scene {
        Scene::of(site(store, upstream, lines))
    }

    /// The server of a site.
    pub(crate) fn of(site: Site) -> Scene {
        let server = site.start();
        let guard = server.wait_for_log("guarding");
        let address = guard["address"].as_str().expect("an address");
        Scene {
            guard: address.parse().expect("an address"),
            server,
            site,
        }
    }

    /// `kill -9`, and another server on the same ledger.
    pub(crate) fn restarted(self) -> Scene {
        self.server.kill();
        Scene::of(self.site)
    }

    /// A connection to the guard.
    #[track_caller]
    pub(crate) fn connect(&self) -> Connection {
        Connection::open(self.guard).expect("the guard takes connections")
    }

    /// One request on a connection of its own.
    #[track_caller]
    pub(crate) fn ask(&self, request: &[u8]) -> Answer {
        self.connect().ask(request).expect("an answer")
    }

    /// A charge by ada under a key.
    #[track_caller]
    pub(crate) fn charge(&self, key: &str) -> Answer {
        self.ask(&charge(key))
    }

    /// The keys that the API lists.
    #[track_caller]
    pub(crate) fn keys(&self, query: &str) -> Vec<Value> {
        let answer = self.server.get(&format!("/api/v1/guard/key{query}"));
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.json()["data"].as_array().expect("a list").clone()
    }

    /// A command at a prompt, with the admin's token.
    pub(crate) fn run(&self, args: &[&str]) -> Ran {
        let mut command = hapax(self.site.path());
        command
            .args(args)
            .env("HAPAX_URL", format!("http://{}", self.server.address()))
            .env("HAPAX_TOKEN", TOKEN);
        Ran::of(&mut command)
    }

    /// Where the guard is, for a command.
    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.guard)
    }
}

/// A site with one guard before this upstream, and a short lease.
pub(crate) fn site(store: &str, upstream: &str, lines: &str) -> Site {
    leased("3s", store, upstream, lines)
}

/// A site with one guard before this upstream, and this lease.
pub(crate) fn leased(lease: &str, store: &str, upstream: &str, lines: &str) -> Site {
    let guard = format!(
        "[limits]\nlease = \"{lease}\"\n[[guard]]\nname = \"charges\"\nlisten = \"127.0.0.1:0\"\nupstream = \"{upstream}\"\n{lines}\n"
    );
    let mut site = Site::sqlite();
    site.set("HAPAX_VAULT_KEY", VAULT_KEY);
    site.configure(&config(store, &guard));
    site
}

/// A charge by ada under a key.
pub(crate) fn charge(key: &str) -> Vec<u8> {
    request(
        "POST",
        "/charges",
        &format!("x-user: ada\r\nidempotency-key: {key}\r\n"),
        "{\"amount\":1}",
    )
}

/// A request with more lines of the head.
pub(crate) fn request(method: &str, path: &str, more: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    format!(
        "{method} {path} HTTP/1.1\r\nhost: api.test\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n{more}\r\n{body}"
    )
    .into_bytes()
}

/// A world that carries out what it is asked, and says how often it has done so.
pub(crate) fn counting() -> World {
    let executions = AtomicUsize::new(0);
    World::new(move |_| carried_out(&executions))
}

/// Carried out once more.
pub(crate) fn carried_out(executions: &AtomicUsize) -> Act {
    let count = executions.fetch_add(1, Ordering::SeqCst) + 1;
    let head = "content-type: application/json\r\nset-cookie: session=hush\r\nx-private: 1\r\n";
    Act::AnswerWith(201, head, format!("{{\"execution\":{count}}}"))
}

/// A world that does this with the first request under a key, and carries out the others.
pub(crate) fn at_first(first: Act) -> World {
    let executions = AtomicUsize::new(0);
    World::new(move |seen: &Seen| match seen.before {
        0 => first.clone(),
        _ => carried_out(&executions),
    })
}

/// The name of a problem: the end of its `type`.
#[track_caller]
pub(crate) fn problem(answer: &Answer) -> String {
    let kind = answer.header("content-type");
    assert_eq!(kind, Some("application/problem+json"), "{answer:?}");
    let kind = answer.json()["type"].as_str().expect("a type").to_owned();
    kind.rsplit(':').next().expect("a name").to_owned()
}

/// A refusal with this status and name.
#[track_caller]
pub(crate) fn refused(answer: &Answer, status: u16, name: &str) {
    let found = (answer.status, problem(answer));
    assert_eq!(found, (status, name.to_owned()), "{answer:?}");
}

/// The answer of this execution: fresh, or given again.
#[track_caller]
pub(crate) fn answered(answer: &Answer, execution: usize, again: bool) {
    let want = format!("{{\"execution\":{execution}}}");
    assert_eq!(
        (answer.status, String::from_utf8_lossy(answer.body())),
        (201, want.into()),
        "{answer:?}"
    );
    let marked = answer.header("idempotent-replayed");
    assert_eq!(marked, again.then_some("true"), "{answer:?}");
}

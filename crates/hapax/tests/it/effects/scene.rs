//! A server with effects, and what its API shows of them.

use std::path::Path;
use std::sync::Arc;

use hapax_store::conformance::database::{Database, with_database};
use hapax_store::conformance::pooler::Pooler;
use hapax_store::postgres::SHARDS;
use serde_json::{Value, json};
use tokio::runtime::Handle;

use crate::support::clock::{TOO_LONG, until};
use crate::support::sender::Sender;
use crate::support::server::Server;
use crate::support::site::{Site, config};

/// The embedded store.
pub(crate) const SQLITE: &str = "sqlite:data/hapax.db";
/// The shortest lease there is, so that nobody waits long for a lost worker's claims.
const SHORT_LEASE: &str = "[limits]\nlease = \"3s\"\n";

/// The longest there is, and far more than a test waits.
const LONG_LEASE: &str = "[limits]\nlease = \"10m\"\n";

/// A site with one server.
pub(crate) struct Scene {
    pub(crate) server: Server,
    store: String,
    site: Site,
    sender: Sender,
}

impl Scene {
    /// A server with these effects.
    pub(crate) fn new(store: &str, effects: &[String]) -> Scene {
        Scene::with(store, effects, "")
    }

    /// The same, with more lines for the source whose events call for them.
    pub(crate) fn with(store: &str, effects: &[String], source: &str) -> Scene {
        let site = Site::sqlite();
        site.configure(&text(store, "", effects, source));
        Scene::of(site, store)
    }

    /// The same with a short lease.
    pub(crate) fn short(store: &str, effects: &[String]) -> Scene {
        Scene::of(site(store, effects, ""), store)
    }

    /// A server of this site, which has this store.
    pub(super) fn of(site: Site, store: &str) -> Scene {
        Scene {
            server: site.start(),
            store: store.to_owned(),
            site,
            sender: Sender::to("billing"),
        }
    }

    /// `kill -9`, and another server on the same ledger.
    pub(crate) fn restarted(self) -> Scene {
        self.server.kill();
        Scene {
            server: self.site.start(),
            store: self.store,
            site: self.site,
            sender: self.sender,
        }
    }

    /// The folder of its server.
    pub(crate) fn folder(&self) -> &std::path::Path {
        self.site.path()
    }

    /// Puts other effects in force while the server runs.
    pub(crate) fn reload(&self, effects: &[String]) {
        self.site.configure(&text(&self.store, "", effects, ""));
        self.server.signal("HUP");
        self.server.wait_for_log("the new config is in force");
    }

    /// Sends an event; gives its id.
    #[track_caller]
    pub(crate) fn send(&self, name: &str, event_type: &str, object: &Value) -> String {
        self.send_bytes(&fact(name, event_type, object))
    }

    /// Sends an event with this body; gives its id.
    #[track_caller]
    pub(crate) fn send_bytes(&self, body: &[u8]) -> String {
        let answer = self.server.ask(&self.sender.request_with(body));
        assert_eq!(answer.status, 200, "{answer:?}");
        let id = answer.json()["eventId"].as_str().map(str::to_owned);
        id.expect("an id")
    }

    /// An event as the API shows it.
    #[track_caller]
    pub(crate) fn event(&self, id: &str) -> Value {
        self.server.get(&format!("/api/v1/event/{id}")).json()
    }

    /// Waits for an event to have a status.
    #[track_caller]
    pub(crate) fn wait_for_status(&self, id: &str, status: &str) -> Value {
        until(TOO_LONG, &format!("{id} is {status}"), || {
            Some(self.event(id)).filter(|event| event["status"] == status)
        })
    }

    /// One effect of an event, with its attempts.
    #[track_caller]
    pub(crate) fn effect(&self, event: &str, name: &str) -> Value {
        let event = self.event(event);
        let effects = event["effects"].as_array().expect("effects");
        let effect = effects.iter().find(|effect| effect["name"] == name);
        let id = effect.unwrap_or_else(|| panic!("no effect {name} in {event:#}"))["id"].as_str();
        let path = format!("/api/v1/effect/{}", id.expect("an id"));
        self.server.get(&path).json()
    }

    /// Waits for an effect to be in a state.
    #[track_caller]
    pub(crate) fn wait_for_state(&self, event: &str, name: &str, state: &str) -> Value {
        until(TOO_LONG, &format!("{name} of {event} is {state}"), || {
            Some(self.effect(event, name)).filter(|effect| effect["state"] == state)
        })
    }

    /// Waits until so many attempts at an effect have ended.
    #[track_caller]
    pub(crate) fn wait_for_attempts(&self, event: &str, name: &str, attempts: usize) -> Value {
        let what = format!("{attempts} attempts at {name} of {event} have ended");
        until(TOO_LONG, &what, || {
            Some(self.effect(event, name)).filter(|effect| ended(effect).len() == attempts)
        })
    }
}

/// The attempts of an effect that have ended.
#[track_caller]
pub(crate) fn ended(effect: &Value) -> &Vec<Value> {
    effect["attempts"].as_array().expect("attempts")
}

/// The body of an event.
pub(crate) fn fact(name: &str, event_type: &str, object: &Value) -> Vec<u8> {
    let body = json!({
        "id": name, "object": "event", "type": event_type, "created": 1_700_000_000,
        "data": { "object": object },
    });
    body.to_string().into_bytes()
}

/// One `[[effect]]`.
pub(crate) fn effect(name: &str, url: &str, more: &str) -> String {
    format!("[[effect]]\nname = \"{name}\"\nsource = \"billing\"\nurl = \"{url}\"\n{more}\n")
}

/// A site with these effects and more lines for its source, whose lease is short.
pub(crate) fn site(store: &str, effects: &[String], source: &str) -> Site {
    let site = Site::sqlite();
    site.configure(&text(store, SHORT_LEASE, effects, source));
    site
}

/// The same with a lease that outlasts every test: nothing is found because somebody looks again, or takes over.
pub(super) fn patient_site(store: &str, effects: &[String], source: &str) -> Site {
    let site = Site::sqlite();
    site.configure(&text(store, LONG_LEASE, effects, source));
    site
}

fn text(store: &str, limits: &str, effects: &[String], source: &str) -> String {
    let more = format!("{limits}{}", effects.concat());
    // The source comes last, so that more lines are the source's.
    format!("{}{source}\n", config(store, &more))
}

/// Runs a test on SQLite, and then on PostgreSQL.
pub(crate) fn on_each_store(test: fn(&str)) {
    test(SQLITE);
    on_postgres(test);
}

/// Runs a test with the URL of a PostgreSQL database of its own.
pub(crate) fn on_postgres(test: fn(&str)) {
    with_database(move |database| async move {
        let url = database.url();
        let work = tokio::task::spawn_blocking(move || test(&url));
        work.await.expect("the checks hold");
    });
}

/// The same with all that a test can see of the database.
pub(crate) fn on_database(test: fn(&Shelf)) {
    with_database(move |database| async move {
        let shelf = Shelf {
            database,
            runtime: Handle::current(),
        };
        let work = tokio::task::spawn_blocking(move || test(&shelf));
        work.await.expect("the checks hold");
    });
}

/// A PostgreSQL database, and who looks after what in it.
pub(crate) struct Shelf {
    database: Arc<Database>,
    runtime: Handle,
}

impl Shelf {
    pub(crate) fn url(&self) -> String {
        self.database.url()
    }

    /// PgBouncer before it, with so many sessions, in this folder; `None` if it is not installed.
    pub(crate) fn pooler(&self, folder: &Path, sessions: usize) -> Option<Pooler> {
        let starting = Pooler::start(&self.database, folder, sessions);
        self.runtime.block_on(starting)
    }

    /// How many shards each node looks after that looks after any.
    pub(crate) fn shares(&self) -> Vec<usize> {
        self.runtime.block_on(self.database.shares())
    }

    /// Until when a lane's shard is held, or what is claimed in that lane if that is longer, in unix microseconds of the database's clock.
    pub(crate) fn held_until(&self, lane: &str) -> i64 {
        self.runtime
            .block_on(self.database.held_until(lane))
            .micros()
    }

    /// Waits until so many nodes look after all shards between them, none after more than its share: then nothing moves any more.
    #[track_caller]
    pub(crate) fn wait_until_shared_out(&self, nodes: usize) {
        let fair = usize::from(SHARDS).div_ceil(nodes);
        until(TOO_LONG, "the shards are shared out", || {
            let shares = self.shares();
            let all: usize = shares.iter().sum();
            let even = shares.len() == nodes && shares.iter().all(|share| *share <= fair);
            (even && all == usize::from(SHARDS)).then_some(())
        });
    }
}

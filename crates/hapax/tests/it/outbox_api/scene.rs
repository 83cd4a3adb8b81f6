//! A server whose endpoints may be on this machine.

use hapax_store::conformance::database::with_database;
use serde_json::{Value, json};

use crate::effects::scene::SQLITE;
use crate::support::client::Answer;
use crate::support::server::{Server, TOKEN};
use crate::support::site::Site;
use crate::support::world::World;

/// The shortest there is, so that nobody waits long for what a killed server held.
const LEASE: &str = "3s";
/// 32 bytes, as several nodes would share them.
const VAULT_KEY: &str = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";

pub(super) struct Scene {
    pub(super) server: Server,
    pub(super) site: Site,
}

/// Runs a test on SQLite and, where there is one, on PostgreSQL.
pub(super) fn on_each_store(test: fn(Scene)) {
    on_each_store_with("", test);
}

/// The same with more lines in its config.
pub(super) fn on_each_store_with(more: &str, test: impl Fn(Scene) + Send + 'static) {
    test(Scene::with(SQLITE, more));
    let more = more.to_owned();
    with_database(move |database| async move {
        let url = database.url();
        let work = tokio::task::spawn_blocking(move || test(Scene::with(&url, &more)));
        work.await.expect("the checks hold");
    });
}

/// A site whose endpoints may be on this machine, without a server: with this lease, and more lines in its config, which begin under
/// `[outbox]`.
pub(super) fn site(lease: &str, store: &str, more: &str) -> Site {
    let limits = format!("[limits]\nlease = \"{lease}\"");
    let outbox = "[outbox]\nallow_subnets = [\"127.0.0.0/8\"]";
    let mut site = Site::with(store, &format!("{limits}\n{outbox}\n{more}"));
    site.set("HAPAX_VAULT_KEY", VAULT_KEY);
    site
}

impl Scene {
    pub(super) fn new(store: &str) -> Scene {
        Scene::with(store, "")
    }

    /// One with more lines in its config; they begin under `[outbox]`.
    pub(super) fn with(store: &str, more: &str) -> Scene {
        Scene::of(site(LEASE, store, more))
    }

    /// A server on the ledger of a site.
    pub(super) fn of(site: Site) -> Scene {
        Scene {
            server: site.start(),
            site,
        }
    }

    /// `kill -9`, and no other server yet.
    pub(super) fn killed(self) -> Site {
        self.server.kill();
        self.site
    }

    /// `kill -9`, and another server on the same ledger.
    pub(super) fn restarted(self) -> Scene {
        Scene::of(self.killed())
    }

    /// Something is done to its store while no server has it, then another one begins.
    pub(super) fn restarted_after(self, meanwhile: impl FnOnce(&std::path::Path)) -> Scene {
        let site = self.killed();
        meanwhile(&site.data().join("hapax.db"));
        Scene::of(site)
    }

    pub(super) fn get(&self, path: &str) -> Answer {
        self.ask("GET", path, &Value::Null)
    }

    pub(super) fn post(&self, path: &str, body: &Value) -> Answer {
        self.ask("POST", path, body)
    }

    pub(super) fn ask(&self, method: &str, path: &str, body: &Value) -> Answer {
        self.ask_as(TOKEN, method, path, body)
    }

    pub(super) fn ask_as(&self, token: &str, method: &str, path: &str, body: &Value) -> Answer {
        let body = match body {
            Value::Null => String::new(),
            body => body.to_string(),
        };
        let path = format!("/api/v1{path}");
        self.server.ask_as(token, method, &path, &body, "")
    }

    /// What is answered with this status, as JSON.
    #[track_caller]
    pub(super) fn told(&self, status: u16, method: &str, path: &str, body: &Value) -> Value {
        let answer = self.ask(method, path, body);
        assert_eq!(answer.status, status, "{method} {path}: {answer:?}");
        answer.json()
    }

    /// An application by this uid.
    #[track_caller]
    pub(super) fn app(&self, uid: &str) {
        self.told(201, "POST", "/app", &json!({"name": uid, "uid": uid}));
    }

    /// An endpoint of it in a world, with more about it.
    #[track_caller]
    pub(super) fn endpoint(&self, app: &str, uid: &str, world: &World, more: Value) -> String {
        let mut body = json!({"url": world.url(&format!("/{uid}")), "uid": uid});
        let fields = body.as_object_mut().expect("an object");
        fields.extend(more.as_object().expect("an object").clone());
        let made = self.told(201, "POST", &format!("/app/{app}/endpoint"), &body);
        made["id"].as_str().expect("an id").to_owned()
    }

    /// Publishes a message; gives its id.
    #[track_caller]
    pub(super) fn publish(&self, app: &str, body: &Value) -> String {
        let made = self.told(202, "POST", &format!("/app/{app}/msg"), body);
        made["id"].as_str().expect("an id").to_owned()
    }

    /// The texts of one field of a list.
    #[track_caller]
    pub(super) fn listed(&self, path: &str, field: &str) -> Vec<String> {
        let page = self.told(200, "GET", path, &Value::Null);
        let data = page["data"].as_array().expect("a list").iter();
        data.map(|row| row[field].as_str().expect("a text").to_owned())
            .collect()
    }
}

/// A message of a type, with a number in it.
pub(super) fn message(number: u32) -> Value {
    json!({"eventType": "invoice.paid", "payload": {"n": number}})
}

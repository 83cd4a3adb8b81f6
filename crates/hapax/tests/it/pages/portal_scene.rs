//! A server with applications and their consumers, and what somebody may try to write into their pages.

use serde_json::{Value, json};

use super::browser::{Browser, text};
use crate::effects::scene::SQLITE;
use crate::support::client::Answer;
use crate::support::clock::{TOO_LONG, now_micros, until};
use crate::support::server::{Server, TOKEN};
use crate::support::site::{Site, config};
use crate::support::world::{Act, World};

/// Endpoints may be on this machine.
const CONFIG: &str = "[outbox]\nallow_subnets = [\"127.0.0.0/8\"]\n";
/// What seals secrets.
const VAULT_KEY: &str = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
/// A picture.
pub(super) const LOGO: &str = "<svg xmlns=\"http://www.w3.org/2000/svg\"/>";

/// Words that would do something if they were markup.
pub(super) struct Attacks {
    pub(super) texts: [&'static str; 2],
}

/// See [`Attacks`].
pub(super) const ATTACKS: Attacks = Attacks {
    texts: [
        "\"><script>alert(1)</script>",
        "'><img src=x onerror=alert(2)></textarea></pre><svg onload=alert(3)>",
    ],
};

impl Attacks {
    /// An endpoint that answers with all of them.
    pub(super) fn world(&self) -> World {
        let answer = self.texts.concat();
        World::new(move |_| Act::AnswerWith(500, "content-type: text/html\r\n", answer.clone()))
    }

    /// All of them, for a query.
    pub(super) fn encoded(&self) -> String {
        form_urlencoded::byte_serialize(self.texts.concat().as_bytes()).collect()
    }
}

/// None of them is markup on this page.
#[track_caller]
pub(super) fn has_no_attack(path: &str, page: &str) {
    for begin in ["<script>", "<img src=x", "<svg onload"] {
        assert!(!page.contains(begin), "{begin} on {path}");
    }
}

/// A server with its ledger somewhere.
pub(super) struct Scene {
    pub(super) server: Server,
    site: Site,
}

impl Scene {
    /// In SQLite, with more config.
    pub(super) fn new(more: &str) -> Scene {
        Scene::at(SQLITE, more)
    }

    /// In this store, with more config.
    pub(super) fn at(store: &str, more: &str) -> Scene {
        let mut site = Site::with(store, &format!("{CONFIG}{more}"));
        site.set("HAPAX_VAULT_KEY", VAULT_KEY);
        std::fs::write(site.path().join("logo.svg"), LOGO).expect("written");
        Scene {
            server: site.start(),
            site,
        }
    }

    /// Puts another config in force.
    pub(super) fn reconfigure(&self, more: &str) {
        self.site
            .configure(&config(SQLITE, &format!("{CONFIG}{more}")));
        self.server.signal("HUP");
        self.server.wait_for_log("the new config is in force");
    }

    pub(super) fn ask(&self, method: &str, path: &str, body: &Value) -> Answer {
        let body = match body {
            Value::Null => String::new(),
            body => body.to_string(),
        };
        let path = format!("/api/v1{path}");
        self.server.ask_as(TOKEN, method, &path, &body, "")
    }

    pub(super) fn post(&self, path: &str, body: &Value) -> Answer {
        self.ask("POST", path, body)
    }

    /// What the API answers where all is well.
    #[track_caller]
    pub(super) fn told(&self, method: &str, path: &str, body: &Value) -> Value {
        let answer = self.ask(method, path, body);
        assert!(answer.status < 300, "{method} {path}: {answer:?}");
        answer.json()
    }

    /// How many rows a list has.
    #[track_caller]
    pub(super) fn count(&self, path: &str) -> usize {
        let told = self.told("GET", path, &Value::Null);
        told["data"].as_array().expect("a list").len()
    }

    #[track_caller]
    pub(super) fn app(&self, uid: &str) {
        self.told("POST", "/app", &json!({"name": uid, "uid": uid}));
    }

    /// A type of events with an example.
    #[track_caller]
    pub(super) fn event_type(&self, name: &str) {
        let schema = json!({"type": "object", "properties": {"id": {"type": "string"}}, "examples": [{"id": "inv_1"}]});
        let body = json!({"name": name, "description": "paid", "schemas": {"1": schema}});
        self.told("POST", "/event-type", &body);
    }

    /// An endpoint in a world, with more about it.
    #[track_caller]
    pub(super) fn endpoint(&self, app: &str, world: &World, more: &Value) -> String {
        let mut body = json!({"url": world.url("/hooks")});
        let fields = body.as_object_mut().expect("an object");
        fields.extend(more.as_object().expect("an object").clone());
        let made = self.told("POST", &format!("/app/{app}/endpoint"), &body);
        made["id"].as_str().expect("an id").to_owned()
    }

    #[track_caller]
    pub(super) fn publish(&self, app: &str, payload: &Value) -> String {
        let body = json!({"eventType": "invoice.paid", "payload": payload});
        let made = self.told("POST", &format!("/app/{app}/msg"), &body);
        made["id"].as_str().expect("an id").to_owned()
    }

    /// The first attempt at a message.
    #[track_caller]
    pub(super) fn attempt(&self, app: &str, message: &str) -> String {
        until(TOO_LONG, "an attempt", || {
            let path = format!("/app/{app}/attempt/msg/{message}");
            let told = self.told("GET", &path, &Value::Null);
            Some(told["data"][0]["id"].as_str()?.to_owned())
        })
    }

    /// A way into the portal.
    #[track_caller]
    pub(super) fn access(&self, app: &str, body: &Value) -> Value {
        self.told("POST", &format!("/auth/app-portal-access/{app}"), body)
    }

    /// Its key.
    #[track_caller]
    pub(super) fn key(&self, app: &str, body: &Value) -> String {
        let access = self.access(app, body);
        access["token"].as_str().expect("a token").to_owned()
    }

    /// A consumer whose token ends soon. On a machine that is too slow for that, a little later.
    #[track_caller]
    pub(super) fn ending(&self, app: &str) -> Guest<'_> {
        let guest = [2, 8, 32].into_iter().find_map(|seconds| {
            let at = jiff::Timestamp::from_microsecond(now_micros() + seconds * 1_000_000);
            let body = json!({
                "name": format!("ends after {seconds}"), "role": "operator", "app": app,
                "expiresAt": at.expect("a time").to_string(),
            });
            let made = self.post("/token", &body);
            let token = made.json()["token"].as_str()?.to_owned();
            let guest = Guest::try_with(self, &token)?;
            let page = guest.browser.get("/portal/endpoints");
            (page.status == 200).then_some(guest)
        });
        guest.expect("half a minute is enough for two requests")
    }
}

/// A consumer in the portal.
pub(super) struct Guest<'a> {
    pub(super) browser: Browser<'a>,
}

impl<'a> Guest<'a> {
    /// One who may change things.
    #[track_caller]
    pub(super) fn of(scene: &'a Scene, app: &str) -> Guest<'a> {
        Guest::with(scene, &scene.key(app, &json!({})))
    }

    /// One who came by this key.
    #[track_caller]
    pub(super) fn with(scene: &'a Scene, key: &str) -> Guest<'a> {
        Guest::try_with(scene, key).expect("the key leads in")
    }

    /// One who came by this key, if it leads in.
    fn try_with(scene: &'a Scene, key: &str) -> Option<Guest<'a>> {
        let mut browser = Browser::new(&scene.server);
        let answer = Guest::enter(&browser, key);
        let cookie = answer
            .header("set-cookie")
            .filter(|_| answer.status == 303)?;
        browser.take_cookie(cookie.split(';').next()?);
        Some(Guest { browser })
    }

    /// Sends the form of the way in.
    pub(super) fn enter(browser: &Browser<'_>, key: &str) -> Answer {
        let more = "sec-fetch-site: same-origin\r\n";
        browser.send("/portal/enter", &[("key", key)], more)
    }

    /// Sends a form of a page, and says where that leads.
    #[track_caller]
    pub(super) fn done(&self, page: &str, action: &str, fields: &[(&str, &str)]) -> String {
        let answer = self.browser.submit(page, action, fields);
        assert_eq!(answer.status, 303, "{action}: {}", text(&answer));
        answer.header("location").expect("a way").to_owned()
    }

    /// The secret that a form of the page shows.
    #[track_caller]
    pub(super) fn secret(&self, page: &str, action: &str) -> String {
        let answer = self.browser.submit(page, action, &[]);
        assert_eq!(answer.status, 200, "{action}");
        assert_eq!(answer.header("cache-control"), Some("no-store"));
        secret_in(&text(&answer))
    }
}

/// The secret on a page.
#[track_caller]
pub(super) fn secret_in(page: &str) -> String {
    let begin = page.find("whsec_").expect("a secret");
    let rest = &page[begin..];
    rest[..rest.find('<').expect("an end")].to_owned()
}

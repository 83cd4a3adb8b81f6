//! J2: secrets that everybody would recognise, in every place that takes one; a server that goes through all it can go through; and
//! a search in its files, its log and its answers. What is not secret is looked for the same way and has to be found, so that a search
//! that finds nothing says something.

use std::path::PathBuf;
use std::process::Stdio;

use hapax_store::conformance::database::with_database;
use hapax_verify::{Secret, SignInput, Verifier, provider, sign};
use serde_json::{Value, json};

use super::secrets::{offer, send as send_task};
use crate::effects::scene::{SQLITE, fact};
use crate::program::{Ran, hapax};
use crate::support::clock::{TOO_LONG, now_micros, until};
use crate::support::files::{below, text};
use crate::support::server::Server;
use crate::support::site::Site;
use crate::support::world::{Act, World};

const SOURCE: &str = "whsec_canary1source0000000000000";
const SOURCE_OLD: &str = "whsec_canary2source0000000000000";
const VERIFY_TOKEN: &str = "canary3verifytoken000000000000000";
const EFFECT: &str = "whsec_Y2FuYXJ5NGVmZmVjdHMwMDAwMDAwMDAwMDAwMDA=";
const HEADER: &str = "canary5header00000000000000000000";
const RECONCILE: &str = "canary6reconcile00000000000000000";
const ALERTS: &str = "whsec_Y2FuYXJ5N2FsZXJ0czAwMDAwMDAwMDAwMDAwMDA=";
const ADMIN: &str = "canary8admin000000000000000000000";
const OFFERED: &str = "canary9offered0000000000000000000";
const VAULT: &str = "Y2FuYXJ5YXZhdWx0MDAwMDAwMDAwMDAwMDAwMDAwMDA=";
const PASSWORD: &str = "canaryBpassword00000000000000000";

/// Not secret: it stands in bodies and keys, and has to be found.
const PLAIN: &str = "canary-that-may-be-seen";

const ALL: [&str; 11] = [
    SOURCE,
    SOURCE_OLD,
    VERIFY_TOKEN,
    EFFECT,
    HEADER,
    RECONCILE,
    ALERTS,
    ADMIN,
    OFFERED,
    VAULT,
    PASSWORD,
];

fn config(store: &str, world: &World) -> String {
    let (echo, good, truth) = (
        world.url("/echo"),
        world.url("/good"),
        world.url(&format!("/truth?key={RECONCILE}")),
    );
    format!(
        r#"
listen = "127.0.0.1:0"
store = "{store}"
vault_key = "env:CANARY_VAULT"

[admin]
token = "{ADMIN}"

[alerts]
url = "{good}"
secret = "{ALERTS}"
every = "100ms"

[[source]]
name = "billing"
provider = "stripe"
secrets = ["{SOURCE}", "env:CANARY_OLD"]
verify_token = "{VERIFY_TOKEN}"
reconcile = {{ url = "{truth}", headers = {{ authorization = "Bearer {RECONCILE}" }} }}

[[source]]
name = "tasks"
provider = "asana"

[[effect]]
name = "crm"
source = "billing"
url = "{echo}"
retry = ["0s"]
repeat = "converges"
secret = "{EFFECT}"
headers = {{ authorization = "{HEADER}", x-key = "{HEADER}" }}

[[effect]]
name = "shop"
source = "billing"
url = "{good}"
secret = "{EFFECT}"
headers = {{ authorization = "Bearer {HEADER}" }}
"#
    )
}

/// A world that says back all that it is told, as error pages do.
fn world() -> World {
    World::new(|seen| match seen.target.as_str() {
        "/echo" => {
            let headers = serde_json::to_string(&seen.headers).expect("JSON");
            Act::AnswerWith(422, "", headers)
        }
        target if target.starts_with("/truth") => {
            Act::AnswerWith(500, "", format!("{:?}", seen.headers))
        }
        _ => Act::Answer(200),
    })
}

/// Asks, and keeps what is said.
struct Asker<'a> {
    server: &'a Server,
    said: String,
}

impl Asker<'_> {
    fn ask(&mut self, method: &str, path: &str, body: &Value) -> Value {
        let body = match body {
            Value::Null => String::new(),
            body => body.to_string(),
        };
        let answer = self.server.ask_as(ADMIN, method, path, &body, "");
        let text = String::from_utf8_lossy(answer.body()).into_owned();
        self.said.push_str(&format!("{answer:?}\n{text}\n"));
        serde_json::from_str(&text).unwrap_or_default()
    }

    fn get(&mut self, path: &str) -> Value {
        self.ask("GET", path, &Value::Null)
    }

    fn deliver(&mut self, secret: &str, body: &[u8]) -> u16 {
        let stripe = provider::find("stripe").expect("a preset");
        let verifier =
            Verifier::new(stripe.scheme(), vec![Secret::from(secret)]).expect("a secret");
        let input = SignInput {
            method: "POST",
            url: None,
            headers: &[],
            body,
            id: "",
            now: now_micros(),
        };
        let signed = sign(&verifier, &input).expect("signed");
        let (name, value) = &signed.headers[0];
        let length = body.len();
        let mut request = format!(
            "POST /in/billing HTTP/1.1\r\nhost: localhost\r\n{name}: {value}\r\ncontent-length: {length}\r\n\r\n"
        )
        .into_bytes();
        request.extend_from_slice(body);
        let answer = self.server.ask(&request);
        self.said.push_str(&format!("{answer:?}\n"));
        answer.status
    }
}

/// Goes through all that a server can go through; the secret of a token that was made.
fn exercise(asker: &mut Asker<'_>) -> String {
    let body = fact(PLAIN, "invoice.paid", &json!({"id": PLAIN}));
    assert_eq!(asker.deliver(SOURCE, &body), 200);
    assert_eq!(asker.deliver(SOURCE_OLD, &body), 200, "a duplicate");
    let other = fact(PLAIN, "invoice.paid", &json!({"id": "another"}));
    assert_eq!(asker.deliver(SOURCE, &other), 200, "a conflict");
    assert_eq!(asker.deliver("whsec_of_somebody_else", &body), 401);
    let events = asker.get("/api/v1/event?source=billing");
    let id = events["data"][0]["id"].as_str().expect("an id").to_owned();
    until(TOO_LONG, "the echo was heard", || {
        let event = asker.get(&format!("/api/v1/event/{id}"));
        (event["status"] == "dead").then_some(())
    });
    // The answer to this one shows the secret, once, to whoever made it.
    let body = json!({"name": "ada", "role": "operator"}).to_string();
    let made = asker
        .server
        .ask_as(ADMIN, "POST", "/api/v1/token", &body, "");
    let token = made.json()["token"].as_str().expect("a secret").to_owned();
    let used = asker.server.ask_as(&token, "GET", "/api/v1/event", "", "");
    assert_eq!(used.status, 200);
    let reason = json!({"reason": "a look"});
    for action in ["retry", "replay", "reconcile"] {
        asker.ask("POST", &format!("/api/v1/event/{id}/{action}"), &reason);
    }
    asker.ask(
        "POST",
        &format!("/api/v1/event/{id}/conflict/2"),
        &json!({"outcome": "acknowledge", "reason": "a look"}),
    );
    asker.ask(
        "POST",
        "/api/v1/replay",
        &json!({"filter": {}, "reason": "all"}),
    );
    asker.ask("POST", "/api/v1/source/tasks/secret/expect", &reason);
    // What the provider offers is said back to it: that is its handshake.
    assert_eq!(
        offer(asker.server, OFFERED).header("x-hook-secret"),
        Some(OFFERED)
    );
    assert_eq!(send_task(asker.server, OFFERED, "1").status, 200);
    assert_eq!(
        send_task(asker.server, "somebody-elses-secret", "1").status,
        401
    );
    until(TOO_LONG, "an alert is told", || {
        let alerts = asker.get("/api/v1/alert");
        (!alerts["data"].as_array()?.is_empty()).then_some(())
    });
    look_at_everything(asker, &id);
    token
}

fn look_at_everything(asker: &mut Asker<'_>, id: &str) {
    let effects = asker.get("/api/v1/effect");
    for effect in effects["data"].as_array().expect("a list") {
        asker.get(&format!(
            "/api/v1/effect/{}",
            effect["id"].as_str().expect("an id")
        ));
    }
    for part in ["", "/body", "/timeline", "/verdict", "/conflict/2/body"] {
        asker.get(&format!("/api/v1/event/{id}{part}"));
    }
    for path in [
        "/api/v1/source",
        "/api/v1/source/billing/refused",
        "/api/v1/source/tasks/refused",
        "/api/v1/source/billing/audit",
        "/api/v1/source/tasks/secret",
        "/api/v1/token",
        "/api/v1/audit",
        "/api/v1/replay",
        "/api/v1/alert",
        "/api/v1/lane",
        "/api/v1/openapi.json",
        "/metrics",
        "/readyz",
        "/api/v1/nothing",
    ] {
        asker.get(path);
    }
}

/// Configs that are refused, each with a mistake close to a secret.
fn bad_configs(good: &str) -> [String; 4] {
    [
        good.replace(
            "provider = \"asana\"",
            "provider = \"asana\"\nsecrets = [\"short\"]",
        ),
        good.replace("[admin]\ntoken", "[admin]\ntokens"),
        good.replace(
            &format!("secret = \"{EFFECT}\""),
            &format!("secrets = \"{EFFECT}\""),
        ),
        good.replace(&format!("\"{SOURCE}\""), &format!("\"{SOURCE}")),
    ]
}

#[track_caller]
fn search(what: &str, text: &str, token: &str) {
    for canary in ALL.iter().chain([&token]) {
        // Also the part that is secret, behind a scheme's prefix, and as databases write bytes.
        let bare = canary.trim_start_matches("whsec_");
        assert!(!text.contains(bare), "{canary} is in {what}");
        let bytes = hex::encode(bare);
        assert!(!text.contains(&bytes), "{canary} is in {what}, as bytes");
    }
}

/// Runs a server through everything; its folder, and the secret of a token that it made.
fn run(store: &str) -> (Site, String) {
    let world = world();
    let mut site = Site::sqlite();
    let config = config(store, &world);
    site.configure(&config);
    site.set("CANARY_VAULT", VAULT);
    site.set("CANARY_OLD", SOURCE_OLD);
    site.set("HAPAX_LOG", "debug");
    let server = Server::start(site.command().stdout(Stdio::null()));
    let mut asker = Asker {
        server: &server,
        said: String::new(),
    };
    let token = exercise(&mut asker);
    let said = std::mem::take(&mut asker.said);
    let mut checks = String::new();
    for bad in bad_configs(&config) {
        site.configure(&bad);
        server.signal("HUP");
        server.wait_for_log("the new config is refused; the running one stays");
        let mut check = hapax(site.path());
        check
            .env("CANARY_VAULT", VAULT)
            .env("CANARY_OLD", SOURCE_OLD);
        let ran = Ran::of(check.arg("check")).expect_exit(1);
        checks.push_str(&format!("{}{}", ran.stdout, ran.stderr));
    }
    // While it runs, with its log; and again when it has ended.
    look_into(&site, &token);
    let log = server.said();
    server.signal("TERM");
    assert!(server.wait().success());
    let log = log.lock().expect("nobody panics with it").clone();
    assert!(
        log.contains("listening") && log.contains("\"DEBUG\""),
        "{log}"
    );
    assert!(said.contains(PLAIN) && checks.contains("H01"));
    search("the log", &log, &token);
    search("an answer", &said, &token);
    search("what `check` says", &checks, &token);
    look_into(&site, &token);
    (site, token)
}

fn look_into(site: &Site, token: &str) {
    for file in below(&site.data()) {
        search(&file.display().to_string(), &text(&file), token);
    }
}

#[test]
fn no_secret_is_in_a_file_a_log_or_an_answer() {
    let (site, _) = run(SQLITE);
    let seen = |file: &PathBuf| text(file).contains(PLAIN);
    assert!(
        below(&site.data()).iter().any(seen),
        "the search finds what is there"
    );
}

#[test]
fn no_secret_is_in_a_table() {
    with_database(|database| async move {
        let url = with_password(&database.url());
        let work = tokio::task::spawn_blocking(move || run(&url));
        let (_, token) = work.await.expect("it runs");
        let dump = database.dump().await;
        assert!(dump.contains(PLAIN) && dump.contains("secret (") && dump.contains("audit ("));
        search("a table", &dump, &token);
    });
}

/// The server lets everybody in, whatever the password is.
fn with_password(url: &str) -> String {
    let (scheme, rest) = url.split_once("://").expect("a URL");
    let (user, host) = rest.split_once('@').unwrap_or(("postgres", rest));
    let user = user.split(':').next().unwrap_or_default();
    format!("{scheme}://{user}:{PASSWORD}@{host}")
}

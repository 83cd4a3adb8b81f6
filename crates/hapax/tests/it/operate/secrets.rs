//! Secrets at rest: taken from a provider, sealed in the store, and opened with the store's own keys only.

use std::os::unix::fs::PermissionsExt;

use hapax_verify::{Secret, SignInput, Verifier, provider, sign};
use serde_json::{Value, json};

use crate::effects::scene::{SQLITE, on_each_store, on_postgres};
use crate::program::{Ran, hapax};
use crate::support::client::Answer;
use crate::support::clock::{TOO_LONG, now_micros, until};
use crate::support::server::{Server, TOKEN};
use crate::support::site::Site;

const ASANA: &str = "[[source]]\nname = \"tasks\"\nprovider = \"asana\"\n";
/// What the provider chooses.
pub(super) const CHOSEN: &str = "b537207f20cbfa02357cf448134da559";
const KEY: &str = "AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE=";
const OTHER_KEY: &str = "AgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgI=";

fn site(store: &str) -> Site {
    let mut site = Site::with(store, ASANA);
    if store != SQLITE {
        site.set("HAPAX_VAULT_KEY", KEY);
    }
    site
}

/// The provider's first request.
pub(super) fn offer(server: &Server, secret: &str) -> Answer {
    let request = format!(
        "POST /in/tasks HTTP/1.1\r\nhost: localhost\r\nx-hook-secret: {secret}\r\ncontent-length: 0\r\n\r\n"
    );
    server.ask(request.as_bytes())
}

/// An event, signed with this secret.
pub(super) fn send(server: &Server, secret: &str, task: &str) -> Answer {
    let asana = provider::find("asana").expect("a preset");
    let verifier = Verifier::new(asana.scheme(), vec![Secret::from(secret)]).expect("a secret");
    let body = json!({"events": [{
        "action": "changed", "resource": {"gid": task}, "created_at": "2026-01-01T00:00:00Z",
    }]})
    .to_string();
    let input = SignInput {
        method: "POST",
        url: None,
        headers: &[],
        body: body.as_bytes(),
        id: "",
        now: now_micros(),
    };
    let signed = sign(&verifier, &input).expect("signed");
    let (name, value) = &signed.headers[0];
    let length = body.len();
    let request = format!(
        "POST /in/tasks HTTP/1.1\r\nhost: localhost\r\n{name}: {value}\r\ncontent-length: {length}\r\n\r\n{body}"
    );
    server.ask(request.as_bytes())
}

fn taken(server: &Server) -> Vec<Value> {
    let listed = server.get("/api/v1/source/tasks/secret").json();
    listed["data"].as_array().expect("a list").clone()
}

#[test]
fn a_secret_is_taken_while_somebody_expects_it_and_verifies_from_then_on() {
    on_each_store(|store| {
        let site = site(store);
        let server = site.start();
        let stranger = "a-secret-of-a-stranger";
        let unexpected = offer(&server, stranger);
        assert_eq!(unexpected.header("x-hook-secret"), Some(stranger));
        assert_eq!(taken(&server), [] as [Value; 0], "nobody expected it");
        assert_eq!(send(&server, stranger, "1").status, 401);

        let path = "/api/v1/source/tasks/secret/expect";
        let expected = server.post(path, &json!({"reason": "a new webhook"}));
        assert_eq!(expected.status, 200, "{expected:?}");
        assert_eq!(offer(&server, CHOSEN).header("x-hook-secret"), Some(CHOSEN));
        assert_eq!(offer(&server, stranger).status, 200);
        assert_eq!(taken(&server).len(), 1, "the first that came");
        assert_eq!(send(&server, CHOSEN, "1").status, 200);
        assert_eq!(send(&server, stranger, "1").status, 401);

        server.signal("TERM");
        assert!(server.wait().success());
        let server = site.start();
        assert_eq!(send(&server, CHOSEN, "2").status, 200, "it was kept");
        let id = taken(&server)[0]["id"].as_str().expect("an id").to_owned();
        let drop = format!("/api/v1/source/tasks/secret/{id}/drop");
        let reason = json!({"reason": "the webhook is gone"});
        assert_eq!(server.post(&drop, &reason).status, 200);
        assert_eq!(server.post(&drop, &reason).status, 404);
        assert_eq!(send(&server, CHOSEN, "3").status, 401);
        let audit = server.get("/api/v1/audit").json();
        let actions: Vec<&str> = (audit["data"].as_array().expect("a list").iter())
            .map(|record| record["action"].as_str().expect("a word"))
            .collect();
        assert_eq!(actions, ["secret.drop", "secret.keep", "secret.expect"]);
        assert!(!audit.to_string().contains(CHOSEN));
    });
}

#[test]
fn a_key_is_made_beside_the_database_and_a_server_without_it_does_not_start() {
    let site = site(SQLITE);
    let server = site.start();
    let key = site.data().join("hapax.db.key");
    let mode = std::fs::metadata(&key).expect("there").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    server.signal("TERM");
    assert!(server.wait().success());

    let kept = std::fs::read(&key).expect("read");
    std::fs::remove_file(&key).expect("removed");
    let ran = Ran::of(&mut site.command()).expect_exit(1);
    assert!(ran.stderr.contains("H0413"), "{ran:?}");
    assert!(!key.exists(), "no other key is made in its place");
    std::fs::write(&key, format!("{OTHER_KEY}\n")).expect("written");
    let ran = Ran::of(&mut site.command()).expect_exit(1);
    assert!(
        ran.stderr.contains("not the one that this store's secrets"),
        "{ran:?}"
    );
    std::fs::write(&key, kept).expect("written");
    site.start();
}

#[test]
fn nodes_with_different_keys_do_not_share_a_store() {
    on_postgres(|store| {
        let mut one = Site::with(store, ASANA);
        let server = one.start();
        let path = "/api/v1/source/tasks/secret/expect";
        let refused = server.post(path, &json!({"reason": "a new webhook"}));
        assert_eq!((refused.status, refused.code().as_str()), (409, "H0323"));
        server.signal("TERM");
        assert!(server.wait().success());

        one.set("HAPAX_VAULT_KEY", KEY);
        let _first = one.start();
        let mut other = Site::with(store, ASANA);
        let ran = Ran::of(&mut other.command()).expect_exit(1);
        assert!(ran.stderr.contains("H0413"), "{ran:?}");
        other.set("HAPAX_VAULT_KEY", OTHER_KEY);
        let ran = Ran::of(&mut other.command()).expect_exit(1);
        assert!(ran.stderr.contains("H0413"), "{ran:?}");
        other.set("HAPAX_VAULT_KEY", format!("{OTHER_KEY}\n{KEY}"));
        other.start();
    });
}

#[test]
fn a_key_is_changed_while_the_server_runs() {
    let site = site(SQLITE);
    let server = site.start();
    let path = "/api/v1/source/tasks/secret/expect";
    server.post(path, &json!({"reason": "a new webhook"}));
    assert_eq!(offer(&server, CHOSEN).status, 200);
    let key = site.data().join("hapax.db.key");
    let old = std::fs::read_to_string(&key).expect("read");

    std::fs::write(&key, format!("{OTHER_KEY}\n")).expect("written");
    server.signal("HUP");
    server.wait_for_log("the new vault key is refused; the one before stays");
    assert_eq!(send(&server, CHOSEN, "1").status, 200);

    std::fs::write(&key, format!("{OTHER_KEY}\n{old}")).expect("written");
    server.signal("HUP");
    server.wait_for_log("secrets are sealed with the new vault key");
    until(TOO_LONG, "all is sealed with the new key", || {
        (taken(&server)[0]["currentKey"] == true).then_some(())
    });
    std::fs::write(&key, format!("{OTHER_KEY}\n")).expect("written");
    server.signal("TERM");
    assert!(server.wait().success());
    let server = site.start();
    assert_eq!(
        send(&server, CHOSEN, "2").status,
        200,
        "the old key is gone"
    );
}

#[test]
fn at_a_prompt() {
    let site = site(SQLITE);
    let server = site.start();
    let cli = |args: &[&str]| {
        let mut command = hapax(site.path());
        command.env("HAPAX_URL", format!("http://{}", server.address()));
        Ran::of(command.env("HAPAX_TOKEN", TOKEN).args(args))
    };
    let wrong = cli(&["secrets", "expect", "billing", "--reason", "x"]).expect_exit(1);
    assert!(wrong.stderr.contains("H0324"), "{wrong:?}");
    cli(&["secrets", "list", "nobody"]).expect_exit(4);
    let expected = cli(&["secrets", "expect", "tasks", "--reason", "x"]).expect_exit(0);
    assert!(expected.stderr.contains("make the webhook"), "{expected:?}");
    offer(&server, CHOSEN);
    let listed = cli(&["secrets", "list", "tasks", "--json"]).expect_exit(0);
    let id = listed.json()["data"][0]["id"]
        .as_str()
        .expect("an id")
        .to_owned();
    cli(&["secrets", "drop", "tasks", &id, "--reason", "x"]).expect_exit(0);
    let listed = cli(&["secrets", "list", "tasks"]).expect_exit(0);
    assert!(!listed.stdout.contains(&id));
}

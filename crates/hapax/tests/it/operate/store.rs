//! Upkeep of the store at a prompt: through a running server, and on a file that nobody has open.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use serde_json::{Value, json};

use crate::effects::scene::{SQLITE, Scene, effect, on_each_store, on_postgres};
use crate::program::{Ran, hapax};
use crate::support::server::{Server, TOKEN};
use crate::support::site::Site;
use crate::support::world::{Act, World};

fn cli(folder: &Path, server: Option<&Server>, args: &[&str]) -> Ran {
    let mut command = hapax(folder);
    if let Some(server) = server {
        command.env("HAPAX_URL", format!("http://{}", server.address()));
        command.env("HAPAX_TOKEN", TOKEN);
    }
    Ran::of(command.arg("store").args(args))
}

fn counts(stats: &Value) -> (u64, u64, u64) {
    let count = |name: &str| stats[name].as_u64().expect("a number");
    (count("events"), count("payloads"), count("keysTwice"))
}

#[test]
fn stats_count_and_cross_check() {
    on_each_store(|store| {
        let scene = Scene::new(store, &[]);
        for name in ["evt_1", "evt_2", "evt_2"] {
            scene.send(name, "invoice.paid", &json!({}));
        }
        let (folder, server) = (scene.folder(), Some(&scene.server));
        let stats = cli(folder, server, &["stats", "--json"])
            .expect_exit(0)
            .json();
        assert_eq!(counts(&stats), (2, 2, 0));
        let shown = cli(folder, server, &["stats"]).expect_exit(0);
        assert!(shown.stdout.contains("keys held twice    0"), "{shown:?}");
        let opened = cli(folder, None, &["stats", "--json", "--store", store]);
        match store == SQLITE {
            true => {
                let refused = opened.expect_exit(1);
                assert!(refused.stderr.contains("H0415"), "{refused:?}");
                assert!(refused.stderr.contains("leave out --store"), "{refused:?}");
            }
            false => assert_eq!(counts(&opened.expect_exit(0).json()), (2, 2, 0)),
        }
    });
}

#[test]
fn what_has_expired_is_counted_and_deleted() {
    on_each_store(|store| {
        let windows = "retry_window = \"1s\"\nretain = { payload = \"0s\", ledger = \"0s\", identity = \"30d\" }\n";
        let scene = Scene::with(store, &[], windows);
        for name in ["evt_1", "evt_2"] {
            scene.send(name, "invoice.paid", &json!({}));
        }
        let (folder, server) = (scene.folder(), Some(&scene.server));
        // The server goes round by itself when it starts, and may have been faster.
        let due = cli(folder, server, &["prune", "--dry-run", "--json"]);
        let due = due.expect_exit(0).json();
        let expected = json!({"payloads": 2, "ledgers": 2, "identities": 0, "more": false});
        let at_most = |name: &str| due[name].as_u64() <= expected[name].as_u64();
        assert!(
            ["payloads", "ledgers", "identities"]
                .into_iter()
                .all(at_most),
            "{due}"
        );
        let pruned = cli(folder, server, &["prune"]).expect_exit(0);
        assert!(
            pruned.stdout.ends_with("identities deleted\n"),
            "{pruned:?}"
        );
        let due = cli(folder, server, &["prune", "--dry-run"]).expect_exit(0);
        let nothing = "0 payloads, 0 ledgers and 0 identities would be deleted\n";
        assert_eq!(due.stdout, nothing);
        let stats = cli(folder, server, &["stats", "--json"])
            .expect_exit(0)
            .json();
        assert_eq!(counts(&stats), (2, 0, 0));
        let again = scene.send("evt_1", "invoice.paid", &json!({}));
        let verdict = scene
            .server
            .get(&format!("/api/v1/event/{again}/verdict"))
            .json();
        assert_eq!(verdict["verdict"], "needs_decision", "{verdict:#}");
    });
}

#[test]
fn a_backup_is_made_while_the_server_runs_and_opens_as_what_it_is() {
    let world = World::new(|_| Act::Hang);
    let once = effect(
        "pay",
        &world.url("/"),
        "repeat = \"once\"\ntimeout = \"60s\"",
    );
    let scene = Scene::new(SQLITE, &[once]);
    let id = scene.send("evt_1", "invoice.paid", &json!({}));
    let (folder, server) = (scene.folder(), Some(&scene.server));
    let copied = cli(folder, server, &["backup", "copy.db"]).expect_exit(0);
    assert_eq!(copied.stdout, "copy.db\n");
    assert!(copied.stderr.contains("hapax.db.key"), "{copied:?}");
    let copy = folder.join("copy.db");
    let mode = std::fs::metadata(&copy)
        .expect("there")
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600);
    let again = cli(folder, server, &["backup", "copy.db"]).expect_exit(1);
    assert!(again.stderr.contains("H0405"), "{again:?}");
    let left: Vec<_> = std::fs::read_dir(folder.join("data"))
        .expect("a folder")
        .collect();
    let names = left.iter().flatten().map(|entry| entry.file_name());
    assert!(
        !names
            .into_iter()
            .any(|name| name.to_string_lossy().contains("backup"))
    );

    // Restored elsewhere: nobody knows what was sent since, so nothing is sent again.
    let restored = Site::with(SQLITE, "");
    std::fs::copy(&copy, restored.data().join("hapax.db")).expect("copied");
    let key = restored.data().join("hapax.db.key");
    std::fs::copy(folder.join("data/hapax.db.key"), key).expect("copied");
    let server = restored.start();
    let event = server.get(&format!("/api/v1/event/{id}")).json();
    assert_eq!(event["effects"][0]["state"], "uncertain", "{event:#}");
}

#[test]
fn a_file_that_nobody_has_open_is_migrated_backed_up_and_pruned() {
    let site = Site::sqlite();
    let new = cli(site.path(), None, &["migrate", "--json"])
        .expect_exit(0)
        .json();
    assert_eq!(new["from"], 0);
    let again = cli(site.path(), None, &["migrate"]).expect_exit(0);
    assert!(again.stdout.starts_with("nothing to do"), "{again:?}");
    let direct = |args: &[&str]| {
        let all = [args, &["--store", SQLITE]].concat();
        cli(site.path(), None, &all)
    };
    direct(&["backup", "copy.db"]).expect_exit(0);
    direct(&["backup", "copy.db"]).expect_exit(1);
    assert_eq!(
        counts(&direct(&["stats", "--json"]).expect_exit(0).json()),
        (0, 0, 0)
    );
    direct(&["prune"]).expect_exit(0);
    let nowhere = ["stats", "--store", "sqlite:data/nothing.db"];
    cli(site.path(), None, &nowhere).expect_exit(4);
    assert!(
        !site.data().join("nothing.db").exists(),
        "looking makes nothing"
    );
    cli(site.path(), None, &["stats", "--store", "nonsense"]).expect_exit(2);
    let _server = site.start();
    let held = direct(&["backup", "other.db"]).expect_exit(1);
    assert!(held.stderr.contains("H0415"), "{held:?}");
}

#[test]
fn postgres_is_migrated_and_sends_backups_to_its_own_tools() {
    on_postgres(|store| {
        let site = Site::with(store, "");
        let new = cli(site.path(), None, &["migrate", "--json"])
            .expect_exit(0)
            .json();
        assert_eq!(new["from"], 0);
        let again = cli(site.path(), None, &["migrate", "--json", "--store", store]);
        let again = again.expect_exit(0).json();
        assert_eq!(again["from"], again["to"]);
        let server = site.start();
        for args in [
            &["backup", "copy.db"][..],
            &["backup", "copy.db", "--store", store],
        ] {
            let refused = cli(site.path(), Some(&server), args).expect_exit(1);
            assert!(refused.stderr.contains("H0414"), "{refused:?}");
        }
        assert!(!site.path().join("copy.db").exists());
    });
}

//! An audit log that somebody with the store in their hands has changed.

use hapax_store::conformance::database::{Database, with_database};
use hapax_store::conformance::tamper::{Tamper, tamper_with_file};
use serde_json::json;

use super::tokens::token;
use crate::effects::scene::SQLITE;
use crate::program::{Ran, hapax};
use crate::support::server::{Server, TOKEN};
use crate::support::site::Site;

fn decide(server: &Server) {
    for name in ["ada", "bob", "cyd", "dan"] {
        token(server, &json!({"name": name, "role": "viewer"}));
    }
}

fn verify(site: &Site, server: &Server) -> Ran {
    let mut command = hapax(site.path());
    command.env("HAPAX_URL", format!("http://{}", server.address()));
    command.env("HAPAX_TOKEN", TOKEN);
    Ran::of(command.args(["audit", "verify"]))
}

/// It is found, and the record is named.
#[track_caller]
fn found(site: &Site, server: &Server, seq: i64) {
    let ran = verify(site, server).expect_exit(1);
    assert!(ran.stderr.contains("H0412"), "{ran:?}");
    assert!(ran.stderr.contains(&format!("record {seq}")), "{ran:?}");
}

#[test]
fn a_changed_or_deleted_record_is_found_in_a_file() {
    for (how, named) in [(Tamper::Edit, 2), (Tamper::Delete, 2)] {
        let site = Site::with(SQLITE, "");
        let server = site.start();
        decide(&server);
        verify(&site, &server).expect_exit(0);
        server.signal("TERM");
        assert!(server.wait().success());
        tamper_with_file(&site.data().join("hapax.db"), 2, how);
        found(&site, &site.start(), named);
    }
}

#[test]
fn a_changed_or_deleted_record_is_found_in_a_database() {
    for how in [Tamper::Edit, Tamper::Delete] {
        with_database(move |database| async move {
            let url = database.url();
            let start = tokio::task::spawn_blocking(move || {
                let site = Site::with(&url, "");
                let server = site.start();
                decide(&server);
                verify(&site, &server).expect_exit(0);
                (site, server)
            });
            let (site, server) = start.await.expect("it starts");
            change(&database, how).await;
            let look = tokio::task::spawn_blocking(move || found(&site, &server, 2));
            look.await.expect("it is found");
        });
    }
}

async fn change(database: &Database, how: Tamper) {
    database.tamper(2, how).await;
}

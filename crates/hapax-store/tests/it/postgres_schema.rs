//! PostgreSQL: which databases are taken and which are refused.

use std::sync::Arc;

use hapax_store::conformance::sample::{Subject, accept, all, at};
use hapax_store::postgres::{Options, PostgresStore};
use hapax_store::{Store, StoreErrorKind};

use crate::database::{Database, with_database};

/// Any number of nodes may start at once, on an empty database too.
#[test]
fn nodes_that_start_at_once_make_one_schema() {
    with_database(|database| async move {
        let starting = (0..6).map(|_| {
            let database = database.clone();
            async move { database.open().await }
        });
        let nodes = all(starting).await;
        for node in &nodes {
            node.ready().await.expect("the store is ready");
        }
        let client = database.client().await;
        let row = client
            .query_one("SELECT count(*) FROM hapax.migration", &[])
            .await
            .expect("the server answers");
        assert_eq!(row.get::<_, i64>(0), 6);
    });
}

async fn refused(database: &Database) -> String {
    let refused = PostgresStore::open(database.options())
        .await
        .err()
        .expect("refused");
    assert_eq!(refused.kind(), StoreErrorKind::Incompatible, "{refused}");
    refused.to_string()
}

/// Rows were placed by a number of shards, text was made by a migration: neither is guessed at.
#[test]
fn databases_of_other_versions_are_refused() {
    let table = [
        ("UPDATE hapax.store SET shards = 63", "64 shards"),
        (
            "INSERT INTO hapax.migration VALUES (7, '0007-later', 'x')",
            "newer version",
        ),
        (
            "UPDATE hapax.migration SET checksum = 'x'",
            "0001-foundation",
        ),
    ];
    for (change, words) in table {
        with_database(move |database| async move {
            database.open().await.close().await;
            database
                .client()
                .await
                .batch_execute(change)
                .await
                .expect("the server obeys");
            let said = refused(&database).await;
            assert!(said.contains(words), "{said}");
        });
    }
}

/// A1: a server that acknowledges before it writes is not one to promise anything with.
#[test]
fn settings_that_would_make_an_ack_a_lie_are_refused() {
    let table = [
        "synchronous_commit = off",
        "default_transaction_isolation = 'serializable'",
    ];
    for setting in table {
        with_database(move |database| async move {
            let change = format!("ALTER DATABASE {} SET {setting}", database.name());
            database
                .server_client()
                .await
                .batch_execute(&change)
                .await
                .expect("the server obeys");
            refused(&database).await;
        });
    }
}

/// A node on a schema that is up to date needs no right to create anything.
#[test]
fn a_second_start_needs_no_rights_but_to_its_tables() {
    with_database(|database| async move {
        database.open().await.close().await;
        let role = format!("{}_role", database.name());
        let client = database.client().await;
        let grant = format!(
            "CREATE ROLE {role} LOGIN; GRANT USAGE ON SCHEMA hapax TO {role};
             GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA hapax TO {role}"
        );
        client
            .batch_execute(&grant)
            .await
            .expect("the server obeys");
        let mut options = database.options();
        options.url = options.url.replacen("postgres@", &format!("{role}@"), 1);
        let opened = PostgresStore::open(options).await;
        if let Ok(store) = &opened {
            let store: &dyn Store = store;
            store.ready().await.expect("the store is ready");
            store.close().await;
        }
        let revoke = format!("DROP OWNED BY {role}; DROP ROLE {role}");
        client
            .batch_execute(&revoke)
            .await
            .expect("the server obeys");
        opened.map(|_| ()).expect("the store opens");
    });
}

/// A restart forgets nothing.
#[test]
fn a_restarted_node_knows_its_keys() {
    with_database(|database| async move {
        let first: Subject = Arc::new(database.open().await);
        let event = accept(&first, at(0), "k", "A").await.event;
        first.close().await;
        let closed = first
            .accept(hapax_store::conformance::sample::arrival(
                "a",
                at(0),
                Vec::new(),
            ))
            .await;
        assert_eq!(
            closed.expect_err("closed").kind(),
            StoreErrorKind::Unavailable
        );
        let second: Subject = Arc::new(database.open().await);
        assert_eq!(accept(&second, at(1), "k", "A").await.event, event);
    });
}

/// J2: no error and no debug text shows a password.
#[test]
fn passwords_are_not_shown() {
    let urls = [
        "postgres://hapax:hunter2@127.0.0.1:1/hapax",
        "postgres://hapax:hunter2@[",
        "password=hunter2 port=x",
    ];
    for url in urls {
        let options = Options::new(url, [0; 16], Arc::new(|| 0));
        assert!(!format!("{options:?}").contains("hunter2"));
        let opening = PostgresStore::open(options);
        let error = crate::runtime().block_on(opening).err().expect("refused");
        assert!(!format!("{error} {error:?}").contains("hunter2"), "{error}");
    }
}

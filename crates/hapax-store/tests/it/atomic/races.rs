//! Many at once.

use std::time::Duration;

use hapax_store::atomic::{Claimed, blocking, claim, finish, install};
use hapax_store::conformance::sample::all;
use rusqlite::TransactionBehavior;

use crate::atomic::world::{insert_charge, run, sqlite_session, wants};
use crate::database::with_database;

/// H1: threads that begin at once and wait for their turn; each key is charged once and all get its answer.
#[test]
fn sqlite_charges_once() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("own.db");
    let mut connection = sqlite_session(&path);
    let mut tx = connection.transaction().expect("a transaction");
    blocking(install(&mut tx)).expect("the table is made");
    blocking(run(&mut tx, "CREATE TABLE charge (key TEXT NOT NULL)", &[]));
    tx.commit().expect("committed");
    let worker = || {
        let mut connection = sqlite_session(&path);
        let patience = Duration::from_secs(60);
        connection.busy_timeout(patience).expect("it waits");
        for key in ["a", "b", "c", "d"] {
            let begun = connection.transaction_with_behavior(TransactionBehavior::Immediate);
            let mut tx = begun.expect("its turn comes");
            match blocking(claim(&mut tx, &wants(key, "x"))).expect("an answer") {
                Claimed::Fresh(right) => {
                    blocking(insert_charge(&mut tx, key));
                    blocking(finish(&mut tx, right, Some(key.as_bytes()))).expect("finished");
                    tx.commit().expect("committed");
                }
                Claimed::Replay { answer, .. } => assert_eq!(answer, key.as_bytes()),
                other => panic!("fresh or a replay: {other:?}"),
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(worker);
        }
    });
    let count = "SELECT count(*), count(DISTINCT key) FROM charge";
    let counted = connection.query_row(count, [], |row| Ok((row.get(0)?, row.get(1)?)));
    assert_eq!(counted, Ok((4, 4)));
}

/// H1: sessions that ask at once and never wait; whoever hears that it is in progress asks again. Also makers of the table race.
#[test]
fn postgres_charges_once() {
    with_database(|database| async move {
        let made = (0..8).map(|_| {
            let database = database.clone();
            async move {
                let mut client = database.client().await;
                let mut tx = client.transaction().await.expect("a transaction");
                install(&mut tx).await.expect("the table is made");
                tx.commit().await.expect("committed");
            }
        });
        all(made).await;
        let own = "CREATE TABLE charge (key TEXT NOT NULL)";
        let client = database.client().await;
        client.batch_execute(own).await.expect("made");
        let workers = (0..16_usize).map(|n| {
            let database = database.clone();
            async move {
                let mut client = database.client().await;
                for key in 0..8 {
                    let key = format!("k{}", (key + n) % 8);
                    while !charged(&mut client, &key).await {}
                }
            }
        });
        all(workers).await;
        let count = "SELECT count(*), count(DISTINCT key) FROM charge";
        let counted = client.query_one(count, &[]).await.expect("counted");
        assert_eq!((counted.get(0), counted.get(1)), (8_i64, 8_i64));
    });
}

async fn charged(client: &mut tokio_postgres::Client, key: &str) -> bool {
    let mut tx = client.transaction().await.expect("a transaction");
    match claim(&mut tx, &wants(key, "x")).await.expect("an answer") {
        Claimed::Fresh(right) => {
            insert_charge(&mut tx, key).await;
            let answered = finish(&mut tx, right, Some(key.as_bytes())).await;
            answered.expect("finished");
            tx.commit().await.expect("committed");
            true
        }
        Claimed::Replay { answer, .. } => {
            assert_eq!(answer, key.as_bytes());
            true
        }
        Claimed::InProgress { .. } => false,
        other => panic!("fresh, a replay or in progress: {other:?}"),
    }
}

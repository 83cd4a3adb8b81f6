//! PostgreSQL that is slow, away, full of work, or acknowledges what it should not.

use std::sync::Arc;
use std::time::Duration;

use hapax_store::StoreErrorKind;
use hapax_store::conformance::sample::{Subject, accept, all, arrival, at, event};
use hapax_store::nouns::{Arrival, Receipted};
use hapax_store::postgres::{Options, PostgresStore};
use tokio::time::timeout;

use crate::database::{Database, with_database};

/// For commits that hang. A store has to open within it, too, on a machine that is busy.
const COMMIT_WAIT: Duration = Duration::from_secs(2);

/// Nothing here takes so long unless it is broken.
const TOO_LONG: Duration = Duration::from_secs(30);

fn one(key: &str) -> Arrival {
    arrival("a", at(0), vec![event("a", key, "A")])
}

fn two(key: &str) -> Arrival {
    arrival(
        "a",
        at(0),
        vec![event("a", key, "A"), event("a", "other", "A")],
    )
}

/// Accepts until it works, as a sender would.
async fn retry(store: &Subject, arrival: Arrival) -> Receipted {
    let trying = async {
        loop {
            if let Ok(receipts) = store.accept(arrival.clone()).await {
                return receipts[0].sighting;
            }
            tokio::task::yield_now().await;
        }
    };
    timeout(TOO_LONG, trying)
        .await
        .expect("intake comes back by itself")
}

/// Ends every session of the store's in this database, as a restart or a failover would.
async fn end_sessions(database: &Database) {
    let end = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = $1 AND application_name = 'hapax'";
    database
        .server_client()
        .await
        .query(end, &[&database.name()])
        .await
        .expect("the server obeys");
}

/// A1, A3: a commit that did not wait for its standby is not acknowledged, on either way of accepting. The server's own
/// warning cannot be had without a standby, so a trigger says the same words at the same moment.
#[test]
fn a_cancelled_wait_for_the_standby_is_no_ack() {
    with_database(|database| async move {
        let store: Subject = Arc::new(database.open().await);
        let client = database.client().await;
        let warn = "CREATE FUNCTION warn() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
                RAISE WARNING 'canceling wait for synchronous replication due to user request'; RETURN NULL; END $$;
            CREATE CONSTRAINT TRIGGER warn AFTER INSERT ON hapax.event DEFERRABLE INITIALLY DEFERRED
                FOR EACH ROW EXECUTE FUNCTION warn()";
        client.batch_execute(warn).await.expect("the server obeys");
        for arrival in [one("k1"), two("k2")] {
            let error = store.accept(arrival).await.expect_err("no ack");
            assert_eq!(error.kind(), StoreErrorKind::CommitUnknown);
        }
        client
            .batch_execute("DROP TRIGGER warn ON hapax.event")
            .await
            .expect("the server obeys");
        // The sender's retry is acknowledged, and there is one event: the row was there all along.
        assert_eq!(retry(&store, one("k1")).await, Receipted::Duplicate);
        assert_eq!(retry(&store, two("k2")).await, Receipted::Duplicate);
    });
}

/// A3: no answer in time is neither yes nor no, and the retry ends in one event.
#[test]
fn a_commit_that_takes_too_long_is_unknown() {
    with_database(|database| async move {
        let mut options = database.options();
        options.commit_wait = COMMIT_WAIT;
        let store: Subject = Arc::new(PostgresStore::open(options).await.expect("the store opens"));
        let client = database.client().await;
        client
            .batch_execute("BEGIN; LOCK TABLE hapax.identity IN SHARE MODE")
            .await
            .expect("the server obeys");
        let error = store.accept(one("k")).await.expect_err("no ack");
        assert_eq!(error.kind(), StoreErrorKind::CommitUnknown);
        client
            .batch_execute("ROLLBACK")
            .await
            .expect("the server obeys");
        retry(&store, one("k")).await;
        assert_eq!(store.stats().await.expect("the store counts").events, 1);
    });
}

/// Promise 6: a node does not leave more and more sessions behind while commits hang.
#[test]
fn hanging_commits_do_not_use_up_the_server() {
    with_database(|database| async move {
        let mut options = database.options();
        options.commit_wait = COMMIT_WAIT;
        let store: Subject = Arc::new(PostgresStore::open(options).await.expect("the store opens"));
        let client = database.client().await;
        client
            .batch_execute("BEGIN; LOCK TABLE hapax.identity IN SHARE MODE")
            .await
            .expect("the server obeys");
        let racing = (0..50).map(|n| {
            let store = store.clone();
            async move {
                store
                    .accept(one(&format!("k{n}")))
                    .await
                    .expect_err("no ack")
                    .kind()
            }
        });
        let kinds = all(racing).await;
        assert!(kinds.contains(&StoreErrorKind::CommitUnknown));
        let sessions = "SELECT count(*) FROM pg_stat_activity WHERE datname = $1 AND application_name = 'hapax'";
        let row = client
            .query_one(sessions, &[&database.name()])
            .await
            .expect("the server answers");
        assert!(
            row.get::<_, i64>(0) <= 7,
            "{} sessions",
            row.get::<_, i64>(0)
        );
        client
            .batch_execute("ROLLBACK")
            .await
            .expect("the server obeys");
        retry(&store, one("k")).await;
    });
}

/// Promise 6: lost connections are opened again, and no key gets in twice.
#[test]
fn lost_connections_are_opened_again() {
    with_database(|database| async move {
        let store: Subject = Arc::new(database.open().await);
        let first = accept(&store, at(0), "k", "A").await.event;
        for _ in 0..3 {
            end_sessions(&database).await;
            assert_eq!(retry(&store, one("k")).await, Receipted::Duplicate);
        }
        assert_eq!(
            store.sighted("a", "k", at(0)).await.ok().flatten(),
            Some(first)
        );
        assert_eq!(store.stats().await.expect("the store counts").events, 1);
    });
}

/// Promise 6: a database that is away gives errors that promise nothing, and intake comes back with it.
#[test]
fn a_database_that_is_away_is_unavailable_until_it_is_back() {
    with_database(|database| async move {
        let store: Subject = Arc::new(database.open().await);
        accept(&store, at(0), "k0", "A").await;
        let server = database.server_client().await;
        let allow =
            |yes: bool| format!("ALTER DATABASE {} ALLOW_CONNECTIONS {yes}", database.name());
        server
            .batch_execute(&allow(false))
            .await
            .expect("the server obeys");
        end_sessions(&database).await;
        let away = async {
            // The first ones may have been on their way when the connections went.
            while store.accept(one("k1")).await.expect_err("no ack").kind()
                != StoreErrorKind::Unavailable
            {}
            while store.ready().await.expect_err("not ready").kind() != StoreErrorKind::Unavailable
            {
            }
        };
        timeout(TOO_LONG, away).await.expect("it says so at once");
        server
            .batch_execute(&allow(true))
            .await
            .expect("the server obeys");
        retry(&store, one("k1")).await;
        store.ready().await.expect("the store is ready");
    });
}

/// Promise 6: nobody there is *unavailable*.
#[test]
fn a_server_that_does_not_exist_is_unavailable() {
    let options = Options::new(
        "postgres://hapax@127.0.0.1:1/hapax",
        [0; 16],
        Arc::new(|| 0),
    );
    let refused = crate::runtime()
        .block_on(PostgresStore::open(options))
        .err()
        .expect("refused");
    assert_eq!(refused.kind(), StoreErrorKind::Unavailable);
}

/// Every queue has an end, and what was taken is answered.
#[test]
fn more_than_can_wait_is_refused_and_the_rest_is_stored() {
    with_database(|database| async move {
        let store: Subject = Arc::new(database.open().await);
        let client = database.client().await;
        client
            .batch_execute("BEGIN; LOCK TABLE hapax.identity IN SHARE MODE")
            .await
            .expect("the server obeys");
        let mut racing = tokio::task::JoinSet::new();
        for n in 0..6_000 {
            let store = store.clone();
            racing.spawn(async move { store.accept(one(&format!("k{n}"))).await.map(|_| ()) });
        }
        // While nothing can be stored, only those are answered that found the queue full.
        let first = racing
            .join_next()
            .await
            .expect("there are some")
            .expect("the task ends well");
        assert_eq!(
            first.expect_err("refused").kind(),
            StoreErrorKind::Overloaded
        );
        client
            .batch_execute("ROLLBACK")
            .await
            .expect("the server obeys");
        let mut stored = 0;
        while let Some(answer) = racing.join_next().await {
            match answer.expect("the task ends well") {
                Ok(()) => stored += 1,
                Err(error) => assert_eq!(error.kind(), StoreErrorKind::Overloaded),
            }
        }
        assert!(stored >= 4_096, "{stored}");
        assert_eq!(
            store.stats().await.expect("the store counts").events,
            stored
        );
    });
}

//! Guarded keys in PostgreSQL with more than one node, and with commits that nobody can be sure of.

use std::sync::Arc;
use std::time::Duration;

use hapax_ledger::guard::{GuardState, LEASE_GRACE, Settlement};
use hapax_store::StoreErrorKind;
use hapax_store::conformance::keys::{answered, claim, ended, runs, said_again, settle, wants};
use hapax_store::conformance::sample::{Dial, Subject, all, at};
use hapax_store::nouns::{KeyClaimed, KeyFilter, Page, PageFrom};
use tokio::time::timeout;

use crate::database::{Database, with_database};
use crate::postgres::open_with;

/// Nothing here takes so long unless it is broken.
const TOO_LONG: Duration = Duration::from_secs(30);

/// H1: whichever node a request comes to, a key runs once; and nodes that claim and settle many keys at once do not block each other.
#[test]
fn nodes_that_race_run_a_key_once() {
    with_database(|database| async move {
        let dial = Dial::default();
        let nodes = [
            open_with(&database, &dial).await,
            open_with(&database, &dial).await,
        ];
        for _ in 0..3 {
            // Each node takes the keys from another end.
            let racing = (0..400_usize).map(|n| {
                let node = nodes[n % 2].clone();
                let key = if n % 2 == 0 { n / 8 } else { 49 - n / 8 };
                async move {
                    match claim(&node, wants(&format!("k{key}"), 1)).await {
                        KeyClaimed::Run { id, fence, .. } => {
                            // Free for the next round.
                            let released = ended(Settlement::Release, None);
                            settle(&node, (id, fence, false), released)
                                .await
                                .map(|()| 1)
                        }
                        _ => Ok(0),
                    }
                }
            });
            let ran: u32 = all(racing).await.into_iter().flatten().sum();
            assert!(ran >= 50, "each at least once, {ran}");
        }
        let stats = nodes[0].stats().await.expect("the store counts");
        assert_eq!((stats.keys, stats.keys_twice), (50, 0));
        let racing = (0..200_usize).map(|n| {
            let node = nodes[n % 2].clone();
            async move { claim(&node, wants("once", 1)).await }
        });
        let said = all(racing).await;
        let ran = said
            .iter()
            .filter(|said| matches!(said, KeyClaimed::Run { .. }));
        assert_eq!(ran.count(), 1);
    });
}

/// Raises what a server says when somebody cancels its wait for a standby, at the commit of whoever writes there.
fn warning_on(table: &str) -> String {
    format!(
        "CREATE FUNCTION warn() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
             RAISE WARNING 'canceling wait for synchronous replication due to user request'; RETURN NULL; END $$;
         CREATE CONSTRAINT TRIGGER warn AFTER INSERT OR UPDATE ON {table} DEFERRABLE INITIALLY DEFERRED
             FOR EACH ROW EXECUTE FUNCTION warn()"
    )
}

async fn obey(database: &Database, sql: &str) {
    let client = database.client().await;
    client.batch_execute(sql).await.expect("the server obeys");
}

/// A3, H1: a claim that may or may not be durable does not run, and a settlement is not acknowledged; both are found where they are.
#[test]
fn a_commit_that_is_not_sure_is_unknown() {
    with_database(|database| async move {
        let dial = Dial::default();
        let store = open_with(&database, &dial).await;
        obey(&database, &warning_on("hapax.guard_key")).await;
        let unsure = store.claim_key(wants("k", 1)).await.expect_err("no run");
        assert_eq!(unsure.kind(), StoreErrorKind::CommitUnknown);
        obey(
            &database,
            "DROP TRIGGER warn ON hapax.guard_key; DROP FUNCTION warn",
        )
        .await;
        let said = claim(&store, wants("k", 1)).await;
        assert!(matches!(said, KeyClaimed::InProgress { .. }), "{said:?}");
        let (id, fence, _) = runs(&store, wants("other", 1)).await;
        obey(&database, &warning_on("hapax.guard_key")).await;
        let unsure = store.settle_key(id, fence, answered(b"A")).await;
        let unsure = unsure.expect_err("no ack");
        assert_eq!(unsure.kind(), StoreErrorKind::CommitUnknown);
        let again = || store.settle_key(id, fence, said_again(answered(b"A")));
        // It can be read, which proves nothing: to say it again is a commit, which waits as the first one did.
        let still = again().await.expect_err("no ack");
        assert_eq!(still.kind(), StoreErrorKind::CommitUnknown);
        obey(&database, "DROP TRIGGER warn ON hapax.guard_key").await;
        again().await.expect("it is durable").expect("it was heard");
        let said = claim(&store, wants("other", 1)).await;
        assert!(matches!(said, KeyClaimed::Replay { answer, .. } if answer == "A"));
    });
}

/// Waits until somebody waits for a lock.
async fn until_locked(database: &Database) {
    let client = database.client().await;
    let waiting = "SELECT count(*) FROM pg_stat_activity
         WHERE datname = $1 AND application_name = 'hapax' AND wait_event_type = 'Lock'";
    let look = async {
        loop {
            let row = client.query_one(waiting, &[&database.name()]).await;
            if row.expect("the server answers").get::<_, i64>(0) > 0 {
                return;
            }
        }
    };
    timeout(TOO_LONG, look).await.expect("somebody waits");
}

/// A key that is forgotten while somebody waits for its lock is a new one to them.
#[test]
fn a_key_that_is_forgotten_meanwhile_is_new() {
    with_database(|database| async move {
        let dial = Dial::default();
        let store: Subject = open_with(&database, &dial).await;
        let old = runs(&store, wants("k", 1)).await;
        let released = ended(Settlement::Release, None);
        assert_eq!(settle(&store, old, released).await, Ok(()));
        let reaper = database.client().await;
        let begun = reaper
            .batch_execute("BEGIN; DELETE FROM hapax.guard_key")
            .await;
        begun.expect("the server obeys");
        let claiming = Arc::clone(&store);
        let waiting = tokio::spawn(async move { runs(&claiming, wants("k", 2)).await });
        until_locked(&database).await;
        reaper
            .batch_execute("COMMIT")
            .await
            .expect("the server obeys");
        let new = waiting.await.expect("the task ends well");
        assert_ne!(new.0, old.0);
    });
}

/// H4: what one process lost another finds, whatever was swept before; and one that begins anew looks no further back than it has to.
#[test]
fn a_run_that_was_lost_is_found_by_whoever_comes_next() {
    with_database(|database| async move {
        let dial = Dial::default();
        let gone = open_with(&database, &dial).await;
        let swept = |store: Subject| async move { store.lose_keys().await.expect("it sweeps") };
        dial.set(at(1000));
        assert_eq!(swept(gone.clone()).await, []);
        let lost = runs(&gone, wants("lost", 1)).await.0;
        let done = runs(&gone, wants("done", 1)).await;
        assert_eq!(settle(&gone, done, answered(b"A")).await, Ok(()));
        let running = KeyFilter {
            state: Some(GuardState::Running),
            ..KeyFilter::default()
        };
        let page = || Page {
            limit: 9,
            from: PageFrom::Newest,
        };
        let listed = gone.keys(running, page()).await.expect("it lists").rows;
        assert_eq!(listed.iter().map(|key| key.id).collect::<Vec<_>>(), [lost]);
        gone.close().await;
        dial.set(at(2000));
        let next = open_with(&database, &dial).await;
        assert_eq!(swept(next.clone()).await, [lost]);
        assert_eq!(swept(next.clone()).await, []);
        let client = database.client().await;
        let row = client
            .query_one("SELECT swept FROM hapax.store", &[])
            .await
            .expect("the server answers");
        let known = at(2000) - LEASE_GRACE;
        assert_eq!(row.get::<_, i64>(0), known.micros(), "it is written down");
        let unknown = KeyFilter {
            state: Some(GuardState::Unknown),
            ..KeyFilter::default()
        };
        let listed = next.keys(unknown, page()).await.expect("it lists").rows;
        assert_eq!(listed.iter().map(|key| key.id).collect::<Vec<_>>(), [lost]);
    });
}

/// What a run writes when it ends is in no index, so that the server need not touch any.
#[test]
fn no_index_knows_what_a_run_writes_when_it_ends() {
    with_database(|database| async move {
        let store: Subject = open_with(&database, &Dial::default()).await;
        store.ready().await.expect("the store is ready");
        let client = database.client().await;
        let written =
            "SELECT indexdef FROM pg_indexes WHERE schemaname = 'hapax' AND tablename = 'guard_key'
             AND indexdef ~ '\\y(state|ended_at|status|error|expires_at|answer)\\y'";
        let found = client.query(written, &[]).await;
        let found = found.expect("the server answers");
        let found: Vec<String> = found.iter().map(|row| row.get(0)).collect();
        assert!(found.is_empty(), "{found:?}");
    });
}

//! PostgreSQL behind a pooler that hands its sessions from one transaction to the next.

use std::sync::Arc;

use hapax_ledger::effect::Repeat;
use hapax_ledger::event::EventStatus;
use hapax_ledger::key::{KeyHash, KeyKind};
use hapax_store::conformance::keys::{answered, claim, settle, wants};
use hapax_store::conformance::operator::{carried, log};
use hapax_store::conformance::pooler::Pooler;
use hapax_store::conformance::sample::{
    KEEP, Subject, accept, accept_one, all, at, detail, reap_all,
};
use hapax_store::conformance::worker::{
    LEASE, SETTLED, START, calling_for, claim_as, done, planned,
};
use hapax_store::nouns::{Decision, KeyClaimed, OwnClaim, OwnClaimed, Receipted};
use hapax_store::postgres::{Options, PostgresStore};
use tempfile::TempDir;
use tokio_postgres::{Client, NoTls, SimpleQueryMessage};

use crate::database::{Database, with_database};

/// Sessions with the server, for all nodes together.
const SESSIONS: usize = 2;

/// A pooler in a folder that is gone with it; `None` if PgBouncer is not installed.
async fn start(database: &Database) -> Option<(Pooler, TempDir)> {
    let folder = tempfile::tempdir().expect("a folder");
    let pooler = Pooler::start(database, folder.path(), SESSIONS).await?;
    Some((pooler, folder))
}

async fn node(pooler: &Pooler, database: &Database) -> Subject {
    let options = Options {
        url: pooler.url(),
        ..database.options()
    };
    Arc::new(PostgresStore::open(options).await.expect("the store opens"))
}

/// A client that has one of the sessions to itself.
async fn inside(pooler: &Pooler) -> Client {
    let (client, connection) = tokio_postgres::connect(&pooler.url(), NoTls)
        .await
        .expect("the pooler answers");
    tokio::spawn(connection);
    client
        .batch_execute("BEGIN")
        .await
        .expect("the server obeys");
    client
}

/// How many statements are kept in the session that this client has.
async fn n_kept(client: &Client) -> String {
    let said = client
        .simple_query("SELECT count(*) FROM pg_prepared_statements")
        .await
        .expect("the server answers");
    let count = said.iter().find_map(|message| match message {
        SimpleQueryMessage::Row(row) => row.get(0),
        _ => None,
    });
    count.expect("a count").to_owned()
}

/// A4, B1: nodes that share sessions accept and repeat, and leave nothing behind in a session.
#[test]
fn nodes_behind_a_pooler_accept_and_repeat() {
    with_database(|database| async move {
        let Some((pooler, _folder)) = start(&database).await else {
            return;
        };
        let nodes = [
            node(&pooler, &database).await,
            node(&pooler, &database).await,
        ];
        for (round, expected_new) in [(0, 50), (1, 0), (2, 0)] {
            let racing = (0..200).map(|n| {
                let node = nodes[n % 2].clone();
                async move { accept(&node, at(round), &format!("k{}", n / 4), "A").await }
            });
            let receipts = all(racing).await;
            let new = receipts
                .iter()
                .filter(|receipt| receipt.sighting == Receipted::New);
            assert_eq!(new.count(), expected_new);
        }
        let stats = nodes[0].stats().await.expect("the store counts");
        assert_eq!((stats.events, stats.keys_twice), (50, 0));
        let ours = "SELECT count(*) FROM pg_stat_activity WHERE datname = $1 AND application_name = 'hapax'";
        let row = database
            .server_client()
            .await
            .query_one(ours, &[&database.name()])
            .await
            .expect("the server answers");
        assert_eq!(row.get::<_, i64>(0), SESSIONS as i64, "sessions are shared");
        // Both at once, so that each has another session.
        let (first, second) = tokio::join!(inside(&pooler), inside(&pooler));
        assert_eq!(
            (&*n_kept(&first).await, &*n_kept(&second).await),
            ("0", "0")
        );
    });
}

/// C1, C3, D7, I1: nodes that share sessions claim, settle and reap, and nobody gets what is another's.
#[test]
fn nodes_behind_a_pooler_claim_settle_and_reap() {
    with_database(|database| async move {
        let Some((pooler, _folder)) = start(&database).await else {
            return;
        };
        let nodes = [
            node(&pooler, &database).await,
            node(&pooler, &database).await,
        ];
        let mut events = Vec::new();
        for n in 0..4 {
            let effects = (0..20)
                .map(|key| planned("e", &format!("{n}.{key}"), Repeat::Keyed))
                .collect();
            let new = calling_for(&format!("k{n}"), effects);
            events.push(accept_one(&nodes[n % 2], "a", at(0), new).await.event);
        }
        let working = (0..6).map(|n| {
            let node = nodes[n % 2].clone();
            async move {
                let claimed = claim_as(&node, &n.to_string(), 20, LEASE).await;
                for effect in &claimed {
                    done(&node, effect, START).await;
                    done(&node, effect, SETTLED).await;
                }
                claimed.len()
            }
        });
        let claimed: usize = all(working).await.into_iter().sum();
        assert_eq!(claimed, 80, "each once");
        for event in events {
            let status = detail(&nodes[0], event).await.event.status;
            assert_eq!(status, EventStatus::Completed);
        }
        let reaped = reap_all(&nodes[1], at(1_000_000_000)).await;
        assert_eq!((reaped.payloads, reaped.identities), (4, 4));
    });
}

/// E1, J1: nodes that share sessions decide, claim for themselves and keep one log.
#[test]
fn nodes_behind_a_pooler_decide_and_write_it_down() {
    with_database(|database| async move {
        let Some((pooler, _folder)) = start(&database).await else {
            return;
        };
        let nodes = [
            node(&pooler, &database).await,
            node(&pooler, &database).await,
        ];
        let new = calling_for("k", vec![planned("e", "1", Repeat::Converges)]);
        let event = accept_one(&nodes[0], "a", at(0), new).await.event;
        let deciding = (0..20).map(|n| {
            let node = nodes[n % 2].clone();
            async move {
                carried(&node, event, Decision::Retry).await;
                let claim = OwnClaim {
                    event: Some(event),
                    name: "mine".into(),
                    key: n.to_string(),
                    key_hash: KeyHash::of(KeyKind::Effect, "mine", &n.to_string()),
                    repeat: Repeat::Keyed,
                    actor: "shop".into(),
                    lease: LEASE,
                    at: at(0),
                    keep: KEEP,
                };
                let claimed = node.claim_own(claim).await.expect("the store claims");
                assert!(matches!(claimed, OwnClaimed::Claimed { .. }));
            }
        });
        all(deciding).await;
        assert_eq!(log(&nodes[0]).await.len(), 20);
        let found = detail(&nodes[1], event).await;
        assert_eq!((found.runs.len(), found.effects.len()), (20, 21));
    });
}

/// H1, H3: nodes that share sessions run a key once, and answer it from what was kept.
#[test]
fn nodes_behind_a_pooler_run_a_key_once() {
    with_database(|database| async move {
        let Some((pooler, _folder)) = start(&database).await else {
            return;
        };
        let nodes = [
            node(&pooler, &database).await,
            node(&pooler, &database).await,
        ];
        let racing = (0..100).map(|n| {
            let node = nodes[n % 2].clone();
            async move {
                let wanted = wants(&format!("k{}", n / 4), 1);
                match claim(&node, wanted).await {
                    KeyClaimed::Run { id, fence, again } => {
                        let settled = settle(&node, (id, fence, again), answered(b"A")).await;
                        settled.map(|()| 1)
                    }
                    _ => Ok(0),
                }
            }
        });
        let ran: u32 = all(racing).await.into_iter().flatten().sum();
        assert_eq!(ran, 25);
        for n in 0..25 {
            let said = claim(&nodes[n % 2], wants(&format!("k{n}"), 1)).await;
            assert!(matches!(said, KeyClaimed::Replay { answer, .. } if answer == "A"));
        }
    });
}

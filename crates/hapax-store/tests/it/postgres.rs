//! PostgreSQL, through the suite, and with more than one node.

use std::sync::Arc;

use hapax_ledger::event::EventStatus;
use hapax_ledger::id::EventId;
use hapax_ledger::time::Time;
use hapax_store::Store;
use hapax_store::conformance::differential::agrees_with_the_model;
use hapax_store::conformance::sample::{
    Dial, KEEP, Subject, accept, all, arrival, at, detail, event, reap_all,
};
use hapax_store::nouns::{CONFLICT_BODIES_MAX, EventFilter, Page, PageFrom, Receipted};
use hapax_store::postgres::{Options, PostgresStore};

use crate::database::{Database, with_database};

fn run<F, Fut>(check: F)
where
    F: FnOnce(Arc<dyn Store>) -> Fut + Send + 'static,
    Fut: Future<Output = ()> + Send + 'static,
{
    with_database(|database| async move {
        let store: Subject = Arc::new(database.open().await);
        check(store.clone()).await;
        store.close().await;
    });
}

hapax_store::conformance_tests!(crate::postgres::run);

/// A node whose leases end by the dial.
pub(crate) async fn open_with(database: &Database, dial: &Dial) -> Subject {
    let options = Options {
        clock: Some(dial.clock()),
        ..database.options()
    };
    Arc::new(PostgresStore::open(options).await.expect("the store opens"))
}

fn run_effects<F, Fut>(check: F)
where
    F: FnOnce(Arc<dyn Store>, Dial) -> Fut + Send + 'static,
    Fut: Future<Output = ()> + Send + 'static,
{
    with_database(|database| async move {
        let dial = Dial::default();
        let store = open_with(&database, &dial).await;
        check(store.clone(), dial).await;
        store.close().await;
    });
}

hapax_store::conformance_tests!(effects crate::postgres::run_effects);

/// A4, B1-B5, C1-C3, D2-D7, I1, I2: whatever is done to it, PostgreSQL answers as the model does.
#[test]
fn postgres_agrees_with_the_model() {
    with_database(|database| async move {
        let work = tokio::task::spawn_blocking(move || {
            let runtime = crate::runtime();
            let dial = Dial::default();
            let (store, client) = runtime
                .block_on(async { (open_with(&database, &dial).await, database.client().await) });
            let fresh = || async {
                let empty = "TRUNCATE hapax.event, hapax.identity, hapax.payload, hapax.delivery, hapax.effect,
                    hapax.queue, hapax.effect_link, hapax.attempt, hapax.chain, hapax.snapshot, hapax.run, hapax.audit, hapax.token,
                    hapax.replay, hapax.guard_key, hapax.app, hapax.endpoint, hapax.event_type, hapax.message, hapax.number, hapax.fan_out,
                    hapax.fan_out_list, hapax.tally, hapax.turn, hapax.consumer, hapax.tiding;
                    UPDATE hapax.catalogue SET revision = 0;
                    UPDATE hapax.audit_head SET seq = 0, hash = decode(repeat('00', 32), 'hex')";
                client.batch_execute(empty).await.expect("the server obeys");
                // The time begins anew with every case: whoever looks for lost requests has to hear of it.
                dial.set(at(0));
                assert_eq!(store.lose_keys().await.expect("it sweeps"), []);
                store.clone()
            };
            agrees_with_the_model(&runtime, crate::differential_cases(32), &dial, fresh);
        });
        work.await.expect("store and model agree");
    });
}

/// B1: one event per key, also if every request comes in by another node.
#[test]
fn nodes_that_race_for_one_key_make_one_event() {
    with_database(|database| async move {
        let nodes: [Subject; 2] = [
            Arc::new(database.open().await),
            Arc::new(database.open().await),
        ];
        let racing = (0..200).map(|n| {
            let node = nodes[n % 2].clone();
            async move { accept(&node, at(0), "k", "A").await }
        });
        let receipts = all(racing).await;
        assert_eq!(
            receipts
                .iter()
                .filter(|receipt| receipt.sighting == Receipted::New)
                .count(),
            1
        );
        assert!(
            receipts
                .iter()
                .all(|receipt| receipt.event == receipts[0].event)
        );
        assert_eq!(
            detail(&nodes[0], receipts[0].event)
                .await
                .event
                .delivery_count,
            200
        );
    });
}

/// B1, I1: nodes that accept, repeat and reap the same keys at once neither deadlock nor miscount.
#[test]
fn nodes_that_accept_and_reap_at_once_do_not_get_in_each_others_way() {
    with_database(|database| async move {
        let nodes: [Subject; 2] = [
            Arc::new(database.open().await),
            Arc::new(database.open().await),
        ];
        // Sighted at its very end, a key is extended by one node while the other finds it due.
        let end = at(0) + KEEP.identity;
        for n in 0..40 {
            let events = (0..20)
                .map(|key| event("a", &format!("k{n}.{key}"), "A"))
                .collect();
            nodes[0]
                .accept(arrival("a", at(0), events))
                .await
                .expect("the store accepts");
        }
        let racing = (0..80).map(|n| {
            let node = nodes[n % 2].clone();
            async move {
                if n % 8 == 0 {
                    return reap_all(&node, end).await.identities as usize;
                }
                let moment = if n % 3 == 0 { end } else { at(1) };
                let events = (0..20)
                    .rev()
                    .map(|key| event("a", &format!("k{}.{key}", n % 40), "B"))
                    .collect();
                node.accept(arrival("a", moment, events))
                    .await
                    .expect("the store accepts");
                0
            }
        });
        let mut reaped: usize = all(racing).await.into_iter().sum();
        reaped += reap_all(&nodes[0], end).await.identities as usize;
        assert!(reaped >= 20, "each key whose event had expired was freed");
        let stats = nodes[1].stats().await.expect("the store counts");
        assert_eq!(stats.keys_twice, 0);
        let client = database.client().await;
        let unmatched = "SELECT (SELECT count(*) FROM hapax.event), (SELECT count(*) FROM hapax.identity),
            (SELECT count(*) FROM hapax.identity i WHERE NOT EXISTS (SELECT FROM hapax.event e WHERE e.id = i.event)),
            (SELECT count(*) FROM hapax.delivery d WHERE NOT EXISTS (SELECT FROM hapax.event e WHERE e.id = d.event)),
            (SELECT count(*) FROM hapax.payload p WHERE NOT EXISTS (SELECT FROM hapax.event e WHERE e.id = p.event))";
        let row = client
            .query_one(unmatched, &[])
            .await
            .expect("the server answers");
        let counts: Vec<i64> = (0..5).map(|column| row.get(column)).collect();
        assert_eq!(counts[0], counts[1], "every event left holds its key");
        assert_eq!(counts[2..], [0, 0, 0], "nothing is left without its event");
    });
}

/// B3: the bytes of conflicts are kept, up to the limit, and go with the payload.
#[test]
fn conflicting_bytes_are_kept_up_to_the_limit_and_reaped() {
    with_database(|database| async move {
        let store: Subject = Arc::new(database.open().await);
        accept(&store, at(0), "k", "A").await;
        for n in 0..CONFLICT_BODIES_MAX + 4 {
            accept(&store, at(1), "k", &format!("B{n}")).await;
        }
        let client = database.client().await;
        let kept = async || {
            let kept = "SELECT count(body) FROM hapax.delivery";
            client
                .query_one(kept, &[])
                .await
                .expect("the server answers")
                .get::<_, i64>(0)
        };
        assert_eq!(kept().await, i64::from(CONFLICT_BODIES_MAX));
        reap_all(&store, at(0) + KEEP.payload).await;
        assert_eq!(kept().await, 0);
    });
}

/// I1: a shard that takes several steps is gone through to its end, whatever is left standing on the way.
#[test]
fn a_shard_of_many_steps_is_reaped_to_its_end() {
    with_database(|database| async move {
        let store: Subject = Arc::new(database.open().await);
        let completed = i16::from(EventStatus::Completed.code());
        // Every third has expired, every second has lost its bytes already.
        let fill = format!(
            "INSERT INTO hapax.event (shard, id, at, expires_at, payload_until, ledger_until, retry_window, key_hash, status,
                 key_origin, outcome, body_hash, source, key, scheme)
             SELECT 3, lpad(to_hex(n), 32, '0')::uuid, 0, CASE n % 3 WHEN 0 THEN 10 ELSE 20 END, 5, 20, 0,
                 md5(n::text)::uuid, {completed}, 0, 0, decode(repeat('00', 32), 'hex'), 'a', n::text, ''
             FROM generate_series(1, 1800) AS n;
             INSERT INTO hapax.payload (shard, event, body) SELECT shard, id, '' FROM hapax.event WHERE key::int % 2 = 0;
             INSERT INTO hapax.identity (shard, source, key_hash, event)
             SELECT shard, source, key_hash, id FROM hapax.event"
        );
        let client = database.client().await;
        client.batch_execute(&fill).await.expect("the server obeys");
        let reaped = async |now| {
            let reaped = reap_all(&store, Time::from_micros(now)).await;
            (reaped.payloads, reaped.identities)
        };
        assert_eq!(reaped(4).await, (0, 0));
        assert_eq!(reaped(5).await, (900, 0));
        assert_eq!(reaped(10).await, (0, 600));
        assert_eq!(reaped(20).await, (0, 1200));
    });
}

/// Lists look at 50,000 rows at a time. One that is read towards newer rows and finds nothing among so many leads on, too.
#[test]
fn a_list_read_towards_newer_rows_goes_on_where_it_stopped_looking() {
    with_database(|database| async move {
        let store: Subject = Arc::new(database.open().await);
        accept(&store, at(0), "first", "A").await;
        // Ids that sort behind the first one's, 50,010 of them that nobody looks for.
        let fill = "INSERT INTO hapax.event (at, expires_at, payload_until, ledger_until, retry_window, id, key_hash, shard, status,
                 key_origin, outcome, body_hash, source, key, type, scheme)
             SELECT e.at, e.expires_at, e.payload_until, e.ledger_until, e.retry_window,
                 ('7fffffff-0000-7000-8000-' || lpad(to_hex(n), 12, '0'))::uuid,
                 e.key_hash, e.shard, e.status, e.key_origin, e.outcome, e.body_hash, e.source, 'hay-' || n,
                 CASE n WHEN 50010 THEN 'needle' ELSE 'hay' END, e.scheme
             FROM hapax.event e, generate_series(1, 50010) n";
        let client = database.client().await;
        client.batch_execute(fill).await.expect("the server obeys");
        let filter = EventFilter {
            event_type: Some("needle".into()),
            ..EventFilter::default()
        };
        let newer = |from| Page {
            limit: 5,
            from: PageFrom::NewerThan(from),
        };
        let first = store
            .events(filter.clone(), newer(EventId::from_bytes([0; 16])))
            .await;
        let first = first.expect("a page");
        assert!(first.rows.is_empty(), "{first:?}");
        let place = first.newer.expect("it says where it stopped");
        assert_eq!(first.next, Some(place), "and leads back");
        let second = store.events(filter, newer(place)).await.expect("a page");
        assert_eq!(second.rows.len(), 1, "{second:?}");
        assert_eq!(second.newer, None);
        store.close().await;
    });
}

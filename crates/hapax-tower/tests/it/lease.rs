//! Runs that take long, and runs that are lost.

use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};

use axum::Extension;
use axum::extract::Request;
use axum::response::{IntoResponse, Response};
use hapax_ledger::guard::{GuardPolicy, OnUnknown};
use hapax_ledger::time::Span;
use hapax_store::Keys;
use hapax_store::conformance::operator::ada;
use hapax_store::conformance::sample::at;
use hapax_store::nouns::{KeyFilter, KeyResolution, Page, PageFrom};
use hapax_tower::{Guard, Keep, RunLease};

use crate::server::{Door, Server, guard, status};
use crate::world::{World, on_every_store};

on_every_store!(
    a_long_run_keeps_its_lease,
    a_late_answer_counts_while_nobody_ran_again,
    a_run_that_was_replaced_is_told_so,
    a_claim_that_was_heard_of_late_is_extended_before_it_runs,
    a_claim_whose_lease_is_over_is_not_run,
    an_earlier_run_stays_unknown_when_the_next_one_did_not_happen,
    a_run_that_was_held_up_beyond_its_lease_sends_nothing,
);

/// A server whose handler stops at a door, and answers which run it was.
async fn server(world: &World, guard: Guard) -> (Server, Door) {
    let door = Door::new();
    let handler = door.clone();
    let run = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let server = Server::start(world, guard, move |_| {
        let (door, run) = (handler.clone(), run.clone());
        async move {
            let run = 1 + run.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
            door.pass().await;
            format!("run {run}")
        }
    })
    .await;
    (server, door)
}

async fn a_long_run_keeps_its_lease(world: World) {
    // Heartbeats follow the wall's clock and leases the dial: each beat finds the lease nearly over.
    let lease = Span::from_millis(60);
    let (server, door) = server(&world, guard().lease(lease)).await;
    let first = server.charge("k", "");
    let others = async {
        door.reached().await;
        let mut now = at(0);
        for _ in 0..3 {
            now = now + Span::from_millis(50);
            world.dial.set(now);
            let seen = world.keys.extensions();
            // One may have been under way when the dial was set; the one after it was not.
            world.keys.extended(seen + 2).await;
            let again = server.charge("k", "").await;
            assert_eq!(again.refusal(), (409, "in-progress".to_owned()));
        }
        door.open();
    };
    let (first, ()) = tokio::join!(first, others);
    assert_eq!(first.body, "run 1");
    assert!(server.charge("k", "").await.is_replay());
}

async fn a_late_answer_counts_while_nobody_ran_again(world: World) {
    let (server, door) = server(&world, guard()).await;
    let first = server.charge("k", "");
    let others = async {
        door.reached().await;
        // Its node was paused, say: no heartbeat for longer than the lease and its grace.
        world.dial.set(at(60));
        let again = server.charge("k", "").await;
        assert_eq!(again.refusal(), (409, "outcome-unknown".to_owned()));
        door.open();
    };
    let (first, ()) = tokio::join!(first, others);
    assert_eq!(first.body, "run 1");
    let again = server.charge("k", "").await;
    assert_eq!((&*again.body, again.is_replay()), (&b"run 1"[..], true));
    assert_eq!(server.runs(), 1);
}

async fn a_run_that_was_replaced_is_told_so(world: World) {
    let policy = GuardPolicy {
        on_unknown: OnUnknown::Keyed,
        ..GuardPolicy::default()
    };
    let (server, door) = server(&world, guard().policy(policy)).await;
    let first = server.charge("k", "");
    let second = async {
        door.reached().await;
        world.dial.set(at(60));
        server.charge("k", "").await
    };
    let opens = async {
        // The second run is at the door as well; which of the two goes on first makes no difference.
        server.heard(hapax_tower::Verdict::Run, 2).await;
        door.open();
        door.open();
    };
    let (first, second, ()) = tokio::join!(first, second, opens);
    assert_eq!(first.refusal(), (409, "outcome-unknown".to_owned()));
    assert_eq!(second.body, "run 2");
    let again = server.charge("k", "").await;
    assert_eq!((&*again.body, again.is_replay()), (&b"run 2"[..], true));
}

/// Lets another run's heartbeats say when so many leases are over: each has three.
async fn leases_pass(world: &World, leases: usize) {
    let seen = world.keys.extensions();
    world.keys.extended(seen + 3 * leases + 1).await;
}

/// C4: its process stood still between the claim and the run, say.
async fn heard_late(world: &World, while_late: impl FnOnce()) -> (Server, crate::client::Answer) {
    let (server, door) = server(world, guard().lease(Span::from_millis(60))).await;
    let claimed = Door::new();
    let other = server.charge("other", "");
    let late = async {
        door.reached().await;
        world.keys.stop_claimed_at(Some(claimed.clone()));
        let late = server.charge("late", "");
        let waits = async {
            claimed.reached().await;
            leases_pass(world, 1).await;
            while_late();
            world.keys.stop_claimed_at(None);
            claimed.open();
            door.open();
            door.open();
        };
        tokio::join!(late, waits).0
    };
    let (other, late) = tokio::join!(other, late);
    assert_eq!(other.body, "run 1");
    (server, late)
}

async fn a_claim_that_was_heard_of_late_is_extended_before_it_runs(world: World) {
    let (server, late) = heard_late(&world, || {}).await;
    assert_eq!(late.body, "run 2");
    assert!(server.charge("late", "").await.is_replay());
}

async fn a_claim_whose_lease_is_over_is_not_run(world: World) {
    let (server, late) = heard_late(&world, || world.dial.set(at(60))).await;
    assert_eq!(late.refusal(), (503, "store-unavailable".to_owned()));
    assert_eq!(server.runs(), 1);
    // Nothing happened, and the ledger knows it.
    assert_eq!(server.charge("late", "").await.body, "run 2");
}

/// D3, H2: that a second run did not happen says nothing about the first.
async fn an_earlier_run_stays_unknown_when_the_next_one_did_not_happen(world: World) {
    let policy = GuardPolicy {
        on_unknown: OnUnknown::Keyed,
        ..GuardPolicy::default()
    };
    let run = std::sync::atomic::AtomicUsize::new(0);
    let run = std::sync::Arc::new(run);
    let server = Server::start(&world, guard().policy(policy), move |_| {
        let run = run.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        // Nobody knows; then proof that nothing was done; then done.
        let status = [500, 429, 200][run];
        async move { crate::server::status(status, "as it is") }
    })
    .await;
    assert_eq!(server.charge("k", "").await.status, 500);
    assert_eq!(server.charge("k", "").await.status, 429);
    let reused = server.charge("k", "another body").await;
    assert_eq!(reused.refusal(), (409, "key-reused".to_owned()));
    assert_eq!(server.charge("k", "").await.status, 200);
    assert!(server.charge("k", "").await.is_replay());
}

/// C4, H1: its service was still on the way to where the work is done when its lease ended. Somebody found out by then that nothing was,
/// and another node has done it.
async fn a_run_that_was_held_up_beyond_its_lease_sends_nothing(world: World) {
    let connect = Door::new();
    let (sent, leases) = (Arc::new(AtomicUsize::new(0)), Leases::default());
    let node = async |guard, connect: Option<Door>| {
        let (sent, leases) = (sent.clone(), leases.clone());
        Server::start(&world, guard, move |request: Request| {
            let (connect, sent, leases) = (connect.clone(), sent.clone(), leases.clone());
            async move {
                let lease = request.extensions().get::<RunLease>().cloned();
                let lease = lease.expect("a lease");
                leases.lock().expect("whole").push(lease.clone());
                if let Some(connect) = connect {
                    connect.pass().await;
                }
                send(&lease, &sent)
            }
        })
        .await
    };
    let held_up = node(guard().lease(Span::from_millis(60)), Some(connect.clone())).await;
    let other = node(guard(), None).await;
    let first = held_up.charge("k", "");
    let others = async {
        connect.reached().await;
        world.dial.set(at(60));
        let lease = leases.lock().expect("whole")[0].clone();
        while lease.holds() {
            held_up.charge("k", "").await;
        }
        let held = other.charge("k", "").await;
        assert_eq!(held.refusal(), (409, "outcome-unknown".to_owned()));
        not_executed(&world).await;
        assert_eq!(other.charge("k", "").await.body, "sent 1");
        connect.open();
    };
    let (first, ()) = tokio::join!(first, others);
    let said = (first.status.as_u16(), &*first.body);
    assert_eq!(said, (503, &b"not sent"[..]));
    assert!(held_up.charge("k", "").await.is_replay());
    assert_eq!(sent.load(SeqCst), 1);
}

/// What runs were given.
type Leases = Arc<Mutex<Vec<RunLease>>>;

/// The first byte leaves, or nothing ever does.
fn send(lease: &RunLease, sent: &AtomicUsize) -> Response {
    match lease.holds() {
        true => status(201, format!("sent {}", 1 + sent.fetch_add(1, SeqCst))),
        false => (Extension(Keep::Release), status(503, "not sent")).into_response(),
    }
}

/// Somebody looked it up: the only key's work was not done.
async fn not_executed(world: &World) {
    let page = Page {
        limit: 1,
        from: PageFrom::Newest,
    };
    let keys = world.keys.keys(KeyFilter::default(), page).await;
    let key = keys.expect("the keys").rows.remove(0);
    let (how, by) = (KeyResolution::NotExecuted, ada());
    let resolved = world
        .keys
        .resolve_key(key.id, key.fence, how, by, String::from("{}"));
    resolved.await.expect("it is resolved");
}

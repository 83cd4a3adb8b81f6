//! Runs that take long, and runs that are lost.

use hapax_ledger::guard::{GuardPolicy, OnUnknown};
use hapax_ledger::time::Span;
use hapax_store::conformance::sample::at;
use hapax_tower::Guard;

use crate::server::{Door, Server, guard};
use crate::world::{World, on_every_store};

on_every_store!(
    a_long_run_keeps_its_lease,
    a_late_answer_counts_while_nobody_ran_again,
    a_run_that_was_replaced_is_told_so,
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

//! `Prefer: wait`: callers who would rather wait than ask again.

use hapax_ledger::time::Span;
use hapax_tower::{Keep, Verdict};

use crate::server::{Door, Server, guard, status};
use crate::world::{World, on_every_store};

on_every_store!(
    those_who_wait_get_the_answer,
    those_who_wait_hear_of_runs_on_other_nodes,
    nobody_waits_longer_than_the_guard_allows,
    those_who_wait_run_if_the_first_did_not,
);

const PATIENT: [(&str, &str); 1] = [("prefer", "respond-async, wait=30")];

/// A server whose handler stops at a door.
async fn server(world: &World) -> (Server, Door) {
    let door = Door::new();
    let handler = door.clone();
    let server = Server::start(world, guard(), move |_| {
        let door = handler.clone();
        async move {
            door.pass().await;
            "charged"
        }
    })
    .await;
    (server, door)
}

async fn those_who_wait_get_the_answer(world: World) {
    let (server, door) = server(&world).await;
    let first = server.charge("k", "");
    let waits = async {
        door.reached().await;
        let opens = async {
            // Somebody who does not wait was told to come back: the first one runs.
            let busy = server.charge("k", "").await;
            assert_eq!(busy.refusal(), (409, "in-progress".to_owned()));
            door.open();
        };
        tokio::join!(server.charge_with("k", &PATIENT, ""), opens).0
    };
    let (first, waited) = tokio::join!(first, waits);
    assert_eq!(first.body, waited.body);
    assert!(waited.is_replay());
    assert_eq!(server.runs(), 1);
}

async fn those_who_wait_hear_of_runs_on_other_nodes(world: World) {
    let (runs, door) = server(&world).await;
    let (asks, _) = server(&world).await;
    let first = runs.charge("k", "");
    let waits = async {
        door.reached().await;
        let opens = async {
            let busy = asks.charge("k", "").await;
            assert_eq!(busy.refusal(), (409, "in-progress".to_owned()));
            door.open();
        };
        tokio::join!(asks.charge_with("k", &PATIENT, ""), opens).0
    };
    let (first, waited) = tokio::join!(first, waits);
    assert_eq!(first.body, waited.body);
    assert!(waited.is_replay());
    assert_eq!((runs.runs(), asks.runs()), (1, 0));
}

async fn nobody_waits_longer_than_the_guard_allows(world: World) {
    let door = Door::new();
    let handler = door.clone();
    let guard = guard().wait_max(Span::from_millis(40));
    let server = Server::start(&world, guard, move |_| {
        let door = handler.clone();
        async move {
            door.pass().await;
            "charged"
        }
    })
    .await;
    let first = server.charge("k", "");
    let waits = async {
        door.reached().await;
        let waited = server.charge_with("k", &PATIENT, "").await;
        assert_eq!(waited.refusal(), (409, "in-progress".to_owned()));
        door.open();
    };
    tokio::join!(first, waits);
    assert_eq!(server.verdicts(), [Verdict::Run, Verdict::InProgress]);
}

async fn those_who_wait_run_if_the_first_did_not(world: World) {
    let door = Door::new();
    let handler = door.clone();
    let server = Server::start(&world, guard(), move |request: axum::extract::Request| {
        let door = handler.clone();
        async move {
            if request.headers().contains_key("prefer") {
                return status(200, "second");
            }
            door.pass().await;
            let mut answer = status(503, "not now");
            answer.extensions_mut().insert(Keep::Release);
            answer
        }
    })
    .await;
    let first = server.charge("k", "");
    let waits = async {
        door.reached().await;
        let opens = async { door.open() };
        tokio::join!(server.charge_with("k", &PATIENT, ""), opens).0
    };
    let (first, waited) = tokio::join!(first, waits);
    assert_eq!(
        (first.status.as_u16(), &*waited.body),
        (503, &b"second"[..])
    );
    assert_eq!(server.runs(), 2);
}

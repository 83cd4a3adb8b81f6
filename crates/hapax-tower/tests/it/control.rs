//! What handlers decide, and what becomes of those that fail.

use std::future::{Ready, ready};
use std::task::{Context, Poll};

use axum::Extension;
use axum::extract::Request;
use bytes::Bytes;
use hapax_ledger::guard::{GuardPolicy, OnUnknown};
use hapax_tower::{GuardBody, GuardedRun, IdempotencyLayer, Keep, Why};
use http_body_util::Full;
use tower_layer::Layer;
use tower_service::Service;

use crate::client::{connect, send};
use crate::server::{Door, Server, guard, status, text};
use crate::world::{World, on_every_store};

on_every_store!(
    the_handler_decides_what_is_kept,
    the_handler_says_why,
    statuses_that_prove_that_nothing_ran_free_the_key,
    a_handler_that_panics_has_an_unknown_outcome,
    a_service_that_fails_has_an_unknown_outcome,
    a_keyed_route_runs_again_and_is_told_so,
    a_caller_who_hangs_up_does_not_stop_the_work,
    a_caller_who_hangs_up_during_the_claim_leaves_no_key_behind,
    a_request_that_breaks_off_does_nothing,
);

async fn the_handler_decides_what_is_kept(world: World) {
    let server = Server::start(&world, guard(), async |request| {
        match &*text(request).await {
            "store" => (Extension(Keep::Store), status(503, "kept")),
            "release" => (Extension(Keep::Release), status(500, "free")),
            _ => (Extension(Keep::Unknown), status(200, "perhaps")),
        }
    })
    .await;
    let again = async |body: &'static str| {
        let first = server.charge(body, body).await;
        let again = server.charge(body, body).await;
        (first, again)
    };
    let (first, replay) = again("store").await;
    assert_eq!((first.status.as_u16(), &*first.body), (503, &b"kept"[..]));
    assert_eq!((replay.status, &replay.body), (first.status, &first.body));
    assert!(replay.is_replay());
    assert_eq!(server.runs(), 1);

    let (first, second) = again("release").await;
    assert_eq!((first.status.as_u16(), second.status.as_u16()), (500, 500));
    assert!(!second.is_replay());
    assert_eq!(server.runs(), 3);

    let (first, second) = again("unknown").await;
    assert_eq!(
        (first.status.as_u16(), &*first.body),
        (200, &b"perhaps"[..])
    );
    assert_eq!(second.refusal(), (409, "outcome-unknown".to_owned()));
    assert_eq!(server.runs(), 4);
}

async fn the_handler_says_why(world: World) {
    let server = Server::start(&world, guard(), async |_| {
        let why = Why("the bank hung up".to_owned());
        (Extension(Keep::Unknown), Extension(why), status(502, ""))
    })
    .await;
    assert_eq!(server.charge("k", "").await.status, 502);
    let known = crate::time::listed(&world).await.remove(0);
    assert_eq!(known.error.as_deref(), Some("the bank hung up"));
}

async fn statuses_that_prove_that_nothing_ran_free_the_key(world: World) {
    let server = Server::start(&world, guard(), async |request: Request| {
        match request.headers().contains_key("please") {
            true => status(200, "charged"),
            false => status(429, "slow down"),
        }
    })
    .await;
    for _ in 0..2 {
        let answer = server.charge("k", "").await;
        assert_eq!(
            (answer.status.as_u16(), &*answer.body),
            (429, &b"slow down"[..])
        );
    }
    let please = [("please", "1")];
    assert_eq!(server.charge_with("k", &please, "").await.status, 200);
    assert!(server.charge("k", "").await.is_replay());
    assert_eq!(server.runs(), 3);
}

/// H1.
async fn a_handler_that_panics_has_an_unknown_outcome(world: World) {
    let server = Server::start(&world, guard(), async |request: Request| {
        assert!(request.headers().contains_key("calm"), "planted by a test");
        "calm"
    })
    .await;
    let first = server.charge("k", "").await;
    assert_eq!(first.refusal(), (500, "outcome-unknown".to_owned()));
    for headers in [&[][..], &[("calm", "1")]] {
        let again = server.charge_with("k", headers, "").await;
        assert_eq!(again.refusal(), (409, "outcome-unknown".to_owned()));
    }
    assert_eq!(server.runs(), 1);
}

/// A service that answers nothing, as a client of another server may be.
#[derive(Clone)]
struct Broken;

impl Service<http::Request<GuardBody<Full<Bytes>>>> for Broken {
    type Response = http::Response<Full<Bytes>>;
    type Error = std::io::Error;
    type Future = Ready<Result<Self::Response, Self::Error>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: http::Request<GuardBody<Full<Bytes>>>) -> Self::Future {
        ready(Err(std::io::Error::other("connection reset")))
    }
}

/// H1. No server of ours has such a service, so this one goes without HTTP.
async fn a_service_that_fails_has_an_unknown_outcome(world: World) {
    let layer = IdempotencyLayer::new(world.keys.clone(), guard()).expect("a good guard");
    let mut service = layer.layer(Broken);
    let key = [("idempotency-key", "k")];
    for status in [500, 409] {
        let request = crate::client::request("POST", "/charges", &key, "");
        let answer = service.call(request).await.expect("an answer all the same");
        assert_eq!(answer.status(), status);
        assert_eq!(answer.headers()["content-type"], "application/problem+json");
    }
    let known = crate::time::listed(&world).await.remove(0);
    assert_eq!(known.error.as_deref(), Some("connection reset"));
    // What passes fails as it would without the layer.
    let unguarded = crate::client::request("POST", "/charges", &[], "");
    assert!(service.call(unguarded).await.is_err());
}

async fn a_keyed_route_runs_again_and_is_told_so(world: World) {
    let policy = GuardPolicy {
        on_unknown: OnUnknown::Keyed,
        ..GuardPolicy::default()
    };
    let server = Server::start(&world, guard().policy(policy), async |request: Request| {
        let run = request.extensions().get::<GuardedRun>();
        let run = run.expect("a guarded run").clone();
        let sent = request.headers()["idempotency-key"].clone();
        match run.again {
            false => status(502, "nobody knows"),
            true => status(200, format!("{} {}", run.key, sent.to_str().expect("text"))),
        }
    })
    .await;
    assert_eq!(server.charge("\"k\"", "").await.status, 502);
    let again = server.charge("\"k\"", "").await;
    // The service gets the header as it came, and the key as it is meant.
    assert_eq!(
        (again.status.as_u16(), &*again.body),
        (200, &b"k \"k\""[..])
    );
    assert!(server.charge("k", "").await.is_replay());
    assert_eq!(server.runs(), 2);
}

/// The caller of this request hangs up when the test is at the door.
const HASTY: &str =
    "POST /charges HTTP/1.1\r\nhost: t\r\nidempotency-key: k\r\ncontent-length: 2\r\n\r\n{}";

async fn a_caller_who_hangs_up_does_not_stop_the_work(world: World) {
    let door = Door::new();
    let handler = door.clone();
    let server = Server::start(&world, guard(), move |_| {
        let door = handler.clone();
        async move {
            door.pass().await;
            "charged"
        }
    })
    .await;
    hang_up_at(&server, &door).await;
    let answer = server.charge("k", "{}").await;
    assert_eq!((&*answer.body, answer.is_replay()), (&b"charged"[..], true));
    assert_eq!(server.runs(), 1);
}

async fn a_caller_who_hangs_up_during_the_claim_leaves_no_key_behind(world: World) {
    let server = Server::start(&world, guard(), async |_| "charged").await;
    let door = Door::new();
    world.keys.stop_claims_at(Some(door.clone()));
    hang_up_at(&server, &door).await;
    world.keys.stop_claims_at(None);
    let answer = server.charge("k", "{}").await;
    assert_eq!((&*answer.body, answer.is_replay()), (&b"charged"[..], true));
    assert_eq!(server.runs(), 1);
}

/// A caller hangs up when its request has reached the door, and only then does the request go on.
async fn hang_up_at(server: &Server, door: &Door) {
    let caller = connect(server.address).await;
    say(&caller, HASTY).await;
    door.reached().await;
    assert_eq!(server.layer.running(), 1);
    drop(caller);
    server.ended(1).await;
    door.open();
    server.layer.drain().await;
    assert_eq!(server.layer.running(), 0);
}

async fn a_request_that_breaks_off_does_nothing(world: World) {
    let server = Server::start(&world, guard(), text).await;
    let caller = connect(server.address).await;
    say(
        &caller,
        "POST /charges HTTP/1.1\r\nhost: t\r\nidempotency-key: k\r\ncontent-length: 9\r\n\r\nhalf",
    )
    .await;
    drop(caller);
    server.heard(hapax_tower::Verdict::Incomplete, 1).await;
    assert_eq!(server.runs(), 0);
    let request = crate::client::request("POST", "/charges", &[("idempotency-key", "k")], "whole");
    assert_eq!(send(server.address, request).await.body, "whole");
}

/// Writes to a connection.
async fn say(stream: &tokio::net::TcpStream, mut text: &str) {
    while !text.is_empty() {
        stream.writable().await.expect("open");
        match stream.try_write(text.as_bytes()) {
            Ok(written) => text = &text[written..],
            Err(error) => assert_eq!(error.kind(), std::io::ErrorKind::WouldBlock),
        }
    }
}

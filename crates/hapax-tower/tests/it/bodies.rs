//! Answers that are too large, or have no end.

use axum::body::Body;
use bytes::Bytes;
use http_body_util::{BodyExt, Channel};

use crate::client::{begin, request};
use crate::server::{Server, guard, status};
use crate::world::{World, on_every_store};

on_every_store!(
    a_large_answer_reaches_its_caller_and_is_not_run_again,
    a_large_answer_with_a_location_is_found_there,
    a_stream_reaches_its_caller_while_it_is_open,
    an_answer_that_breaks_off_is_an_unknown_outcome,
    trailers_reach_every_caller,
);

const LIMIT: u64 = 1000;

async fn a_large_answer_reaches_its_caller_and_is_not_run_again(world: World) {
    let guard = guard().answer_bytes_max(LIMIT);
    let server = Server::start(&world, guard, async |request: axum::extract::Request| {
        let large = "x".repeat(5000);
        match request.headers()["how"].to_str().expect("text") {
            "whole" => Body::from(large),
            // Nobody knows how long it is before it has been read.
            _ => {
                let (mut sender, body) = Channel::<Bytes, std::io::Error>::new(1);
                tokio::spawn(async move {
                    for part in large.as_bytes().chunks(300) {
                        let part = Bytes::copy_from_slice(part);
                        sender.send_data(part).await.expect("somebody reads");
                    }
                });
                Body::new(body)
            }
        }
    })
    .await;
    for how in ["whole", "parts"] {
        let first = server.charge_with(how, &[("how", how)], "").await;
        assert_eq!((first.status.as_u16(), first.body.len()), (200, 5000));
        assert!(first.body.iter().all(|byte| *byte == b'x'));
        let again = server.charge_with(how, &[("how", how)], "").await;
        assert_eq!(again.refusal(), (409, "response-not-kept".to_owned()));
        assert!(!again.is_replay());
    }
    assert_eq!(server.runs(), 2);
}

async fn a_large_answer_with_a_location_is_found_there(world: World) {
    let guard = guard().answer_bytes_max(LIMIT);
    let server = Server::start(&world, guard, async |_| {
        let mut answer = status(201, "x".repeat(5000));
        let location = "/charges/7".parse().expect("a value");
        answer.headers_mut().insert("location", location);
        answer
    })
    .await;
    assert_eq!(server.charge("k", "").await.body.len(), 5000);
    let again = server.charge("k", "").await;
    assert_eq!(again.status, 303);
    assert_eq!(again.header("location"), "/charges/7");
    assert_eq!(server.runs(), 1);
}

async fn a_stream_reaches_its_caller_while_it_is_open(world: World) {
    let (feed, fed) = tokio::sync::mpsc::channel::<Channel<Bytes, std::io::Error>>(1);
    let fed = std::sync::Arc::new(tokio::sync::Mutex::new(fed));
    let server = Server::start(&world, guard(), move |_| {
        let fed = fed.clone();
        async move {
            let body = fed.lock().await.recv().await.expect("a stream");
            let mut answer = status(200, Body::new(body));
            let media_type = "text/event-stream; charset=utf-8".parse().expect("a value");
            answer.headers_mut().insert("content-type", media_type);
            answer
        }
    })
    .await;
    let (mut sender, body) = Channel::new(1);
    feed.send(body).await.expect("the handler takes it");
    let post = request("POST", "/charges", &[("idempotency-key", "k")], "");
    let mut first = begin(server.address, post).await;
    sender.send_data("one".into()).await.expect("it is open");
    let part = first
        .body_mut()
        .frame()
        .await
        .expect("open")
        .expect("whole");
    assert_eq!(part.into_data().expect("data"), "one");

    // It is not over, and a retry is answered all the same.
    let again = server.charge("k", "").await;
    assert_eq!(again.refusal(), (409, "response-not-kept".to_owned()));
    drop(sender);
    let rest = first.into_body().collect().await.expect("whole").to_bytes();
    assert!(rest.is_empty());
    assert_eq!(server.runs(), 1);
}

async fn an_answer_that_breaks_off_is_an_unknown_outcome(world: World) {
    let server = Server::start(&world, guard(), async |_| {
        let (mut sender, body) = Channel::<Bytes, std::io::Error>::new(2);
        sender.send_data("half an".into()).await.expect("room");
        sender.abort(std::io::Error::other("the disk is gone"));
        Body::new(body)
    })
    .await;
    let first = server.charge("k", "").await;
    assert_eq!(first.refusal(), (500, "outcome-unknown".to_owned()));
    let again = server.charge("k", "").await;
    assert_eq!(again.refusal(), (409, "outcome-unknown".to_owned()));
    assert_eq!(server.runs(), 1);
    let key = crate::time::listed(&world).await.remove(0);
    assert_eq!(
        key.error.as_deref(),
        Some("the answer broke off: the disk is gone")
    );
}

/// H3: also from memory, and from the store. What must not be kept is not.
async fn trailers_reach_every_caller(world: World) {
    let server = Server::start(&world, guard(), async |_| {
        let (mut sender, body) = Channel::<Bytes, std::io::Error>::new(2);
        sender.send_data("data".into()).await.expect("room");
        let mut trailers = http::HeaderMap::new();
        trailers.insert("x-sum", "9".parse().expect("a value"));
        trailers.insert("set-cookie", "hush".parse().expect("a value"));
        sender.send_trailers(trailers).await.expect("room");
        let mut answer = status(200, Body::new(body));
        let announced = "x-sum".parse().expect("a value");
        answer.headers_mut().insert("trailer", announced);
        answer
    })
    .await;
    let forgetful = guard().recent_bytes_max(0);
    let other = Server::start(&world, forgetful, async |_| "other").await;
    let headers = [("idempotency-key", "k"), ("te", "trailers")];
    for (server, again) in [(&server, false), (&server, true), (&other, true)] {
        let answer = begin(server.address, request("POST", "/charges", &headers, "")).await;
        let replayed = answer.headers().contains_key("idempotent-replayed");
        assert_eq!(replayed, again);
        let answer = answer.into_body().collect().await.expect("whole");
        let trailers = answer.trailers().expect("something behind the body");
        assert_eq!(trailers["x-sum"], "9");
        assert!(!again || !trailers.contains_key("set-cookie"));
        assert_eq!(answer.to_bytes(), "data");
    }
}

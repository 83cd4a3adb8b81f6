//! What the guard has no business with.

use axum::body::Body;
use axum::extract::Request;
use bytes::Bytes;
use hapax_tower::Verdict;
use http_body_util::{BodyExt, Channel};

use crate::client::{begin, post, request, send};
use crate::server::{Server, guard, text};
use crate::world::{World, on_every_store};

on_every_store!(
    what_is_not_guarded_passes,
    what_passes_is_not_held,
    a_key_that_is_required_or_cannot_be_read_is_a_problem,
);

async fn what_is_not_guarded_passes(world: World) {
    let server = Server::start(&world, guard(), async |request: Request| {
        request.method().to_string()
    })
    .await;
    let key = [("idempotency-key", "k")];
    for (method, headers) in [
        ("GET", &key[..]),
        ("PUT", &key),
        ("DELETE", &key),
        ("POST", &[]),
        ("PATCH", &[]),
    ] {
        for _ in 0..2 {
            let answer = send(server.address, request(method, "/x", headers, "")).await;
            assert_eq!(
                (&*answer.body, answer.is_replay()),
                (method.as_bytes(), false)
            );
        }
    }
    assert_eq!(server.runs(), 10);
    assert_eq!(server.verdicts(), [Verdict::Passed; 10]);
    assert!(crate::time::listed(&world).await.is_empty());
}

async fn what_passes_is_not_held(world: World) {
    // The handler answers each part of the request with the same part of its answer.
    let server = Server::start(&world, guard(), async |request: Request| {
        Body::new(request.into_body())
    })
    .await;
    let (mut sender, body) = Channel::<Bytes, std::io::Error>::new(1);
    let post = request("POST", "/echo", &[], "").map(|_| body);
    sender.send_data("one".into()).await.expect("room");
    let mut answer = begin(server.address, post).await;
    for next in ["two", "three"] {
        let part = answer
            .body_mut()
            .frame()
            .await
            .expect("open")
            .expect("whole");
        assert!(part.is_data());
        sender.send_data(next.into()).await.expect("it is open");
    }
    drop(sender);
    let rest = answer.into_body().collect().await.expect("whole");
    assert_eq!(rest.to_bytes(), "three");
}

async fn a_key_that_is_required_or_cannot_be_read_is_a_problem(world: World) {
    let server = Server::start(&world, guard().required(), text).await;
    let refused = async |headers: &[(&str, &str)]| {
        post(server.address, "/charges", headers, "")
            .await
            .refusal()
    };
    assert_eq!(refused(&[]).await, (400, "key-missing".to_owned()));
    let long = "x".repeat(256);
    for key in ["", "\"open", &long] {
        let malformed = refused(&[("idempotency-key", key)]).await;
        assert_eq!(malformed, (400, "key-malformed".to_owned()), "{key:.10}");
    }
    let two = [("idempotency-key", "a"), ("idempotency-key", "b")];
    assert_eq!(refused(&two).await, (400, "key-malformed".to_owned()));
    assert_eq!(server.runs(), 0);
    let get = send(server.address, request("GET", "/charges", &[], "")).await;
    assert_eq!(get.status, 200);
}

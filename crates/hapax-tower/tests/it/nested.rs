//! Routers of axum within each other.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::Router;
use axum::routing::post;
use hapax_tower::IdempotencyLayer;
use tokio::net::TcpListener;

use crate::client::post as send;
use crate::server::guard;
use crate::world::{World, on_every_store};

on_every_store!(
    nested_routers_do_not_share_keys,
    a_layer_within_knows_the_whole_path,
);

/// A server with two routers that look alike from within, each behind this layer.
async fn nested(layer: &IdempotencyLayer) -> std::net::SocketAddr {
    let runs = Arc::new(AtomicUsize::new(0));
    let run = move || {
        let run = 1 + runs.fetch_add(1, Ordering::SeqCst);
        async move { format!("run {run}") }
    };
    let charges = Router::new()
        .route("/charges", post(run))
        .layer(layer.clone());
    let app = Router::new()
        .nest("/a", charges.clone())
        .nest("/b", Router::new().nest("/c", charges));
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    // Ends with the runtime.
    tokio::spawn(async move { axum::serve(listener, app).await });
    address
}

/// H2: the path has lost its beginning there, and a key has not.
async fn nested_routers_do_not_share_keys(world: World) {
    let layer = IdempotencyLayer::new(world.keys.clone(), guard()).expect("a good guard");
    let address = nested(&layer).await;
    for again in [false, true] {
        for (path, body) in [("/a/charges", "run 1"), ("/b/c/charges", "run 2")] {
            let answer = send(address, path, &[("idempotency-key", "k")], "").await;
            let found = (&*answer.body, answer.is_replay());
            assert_eq!(found, (body.as_bytes(), again), "{path}");
        }
    }
}

/// One route for all: then the path is part of what a request asks for, the whole of it.
async fn a_layer_within_knows_the_whole_path(world: World) {
    let guard = guard().route(|_| "all".into());
    let layer = IdempotencyLayer::new(world.keys.clone(), guard).expect("a good guard");
    let address = nested(&layer).await;
    let key = [("idempotency-key", "k")];
    assert_eq!(send(address, "/a/charges", &key, "").await.body, "run 1");
    let other = send(address, "/b/c/charges", &key, "").await;
    assert_eq!(other.refusal(), (409, "key-reused".to_owned()));
}

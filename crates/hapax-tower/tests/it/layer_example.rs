//! The example `guarded-layer` as its page tells it, on stores that outlive it.

use std::net::SocketAddr;

use bytes::Bytes;
use hapax_store::conformance::database::with_database;

use crate::client::{Answer, request};
use crate::example::{Example, ask};

#[test]
fn the_layer_keeps_its_promises_on_sqlite() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let store = format!("sqlite:{}", folder.path().join("keys.db").display());
    let runtime = tokio::runtime::Runtime::new().expect("a runtime starts");
    runtime.block_on(walk(store));
}

#[test]
fn the_layer_keeps_its_promises_on_postgres() {
    with_database(|database| async move { walk(database.url()).await });
}

/// H1, H2, H3.
async fn walk(store: String) {
    let service = Example::start("guarded-layer", &store, None).await;
    let address = service.address;
    let first = charge(address, "k1", 990).await;
    assert_eq!((first.status.as_u16(), first.is_replay()), (201, false));
    replays(&charge(address, "k1", 990).await, &first);
    let other = charge(address, "k1", 991).await;
    assert_eq!(other.refusal(), (422, "key-reused".to_owned()));
    let bare = said(address, "POST", "/charges", &[], "{}").await;
    assert_eq!(bare.status, 400);

    // A refusal of the handler's own is an answer like any other.
    let nothing = charge(address, "k2", 0).await;
    assert_eq!(nothing.status, 422);
    replays(&charge(address, "k2", 0).await, &nothing);

    the_handler_decides(address).await;
    assert_eq!(charged(address).await, r#"["k1","silent","closed"]"#);

    service.kill().await;
    let service = Example::start("guarded-layer", &store, None).await;
    replays(&charge(service.address, "k1", 990).await, &first);
    let unknown = charge(service.address, "silent", 990).await;
    assert_eq!(unknown.refusal(), (409, "outcome-unknown".to_owned()));
    assert_eq!(charged(service.address).await, "[]", "nothing ran again");
    service.kill().await;
}

/// `Keep::Release`, `Keep::Store` and `Keep::Unknown`.
async fn the_handler_decides(address: SocketAddr) {
    mood(address, "closed").await;
    for _ in 0..2 {
        let closed = charge(address, "closed", 990).await;
        assert_eq!((closed.status.as_u16(), closed.is_replay()), (503, false));
    }
    mood(address, "declining").await;
    let declined = charge(address, "declining", 990).await;
    assert_eq!(declined.status, 403);
    mood(address, "silent").await;
    assert_eq!(charge(address, "silent", 990).await.status, 502);

    mood(address, "open").await;
    let opened = charge(address, "closed", 990).await;
    assert_eq!((opened.status.as_u16(), opened.is_replay()), (201, false));
    replays(&charge(address, "closed", 990).await, &opened);
    replays(&charge(address, "declining", 990).await, &declined);
    let unknown = charge(address, "silent", 990).await;
    assert_eq!(unknown.refusal(), (409, "outcome-unknown".to_owned()));
}

#[track_caller]
fn replays(again: &Answer, first: &Answer) {
    assert!(again.is_replay(), "{again:?}");
    assert_eq!((again.status, &again.body), (first.status, &first.body));
}

async fn charge(address: SocketAddr, key: &str, amount: i64) -> Answer {
    let body = format!(r#"{{"order":"{key}","amount":{amount}}}"#);
    let headers = [
        ("idempotency-key", key),
        ("x-account", "anna"),
        ("content-type", "application/json"),
    ];
    said(address, "POST", "/charges", &headers, body).await
}

async fn mood(address: SocketAddr, mood: &str) {
    let told = said(address, "PUT", "/bank", &[], mood.to_owned()).await;
    assert_eq!(told.status, 200);
}

async fn charged(address: SocketAddr) -> Bytes {
    said(address, "GET", "/charges", &[], "").await.body
}

async fn said(
    address: SocketAddr,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: impl Into<Bytes>,
) -> Answer {
    let answer = ask(address, request(method, path, headers, body)).await;
    answer.expect("the service lives")
}

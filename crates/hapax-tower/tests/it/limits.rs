//! Requests that are large.

use bytes::Bytes;
use hapax_tower::Verdict;
use http_body_util::Channel;

use crate::client::{request, send};
use crate::server::{Server, guard, text};
use crate::world::{World, on_every_store};

on_every_store!(
    a_large_request_waits_on_disk,
    a_large_request_is_not_run_if_the_disk_does_not_take_it,
    a_request_beyond_the_limit_is_refused,
);

async fn a_large_request_waits_on_disk(world: World) {
    let folder = tempfile::tempdir().expect("a folder");
    let guard = guard()
        .request_bytes_max(1000, 1_000_000)
        .spool_folder(folder.path());
    let server = Server::start(&world, guard, async |request| {
        let text = text(request).await;
        let differs = text.bytes().any(|byte| byte != b'x');
        format!("{} {differs}", text.len())
    })
    .await;
    for bytes in [999, 1000, 1001, 70_000, 1_000_000] {
        let (key, body) = (bytes.to_string(), "x".repeat(bytes));
        let first = server.charge(&key, &body).await;
        assert_eq!(first.body, format!("{bytes} false"));
        assert!(server.charge(&key, &body).await.is_replay());
        // One byte makes another request, wherever it is.
        let other = body[1..].to_owned() + "y";
        let other = server.charge(&key, &other).await;
        assert_eq!(other.refusal(), (409, "key-reused".to_owned()));
    }
    let left = std::fs::read_dir(folder.path()).expect("a folder").count();
    assert_eq!(left, 0, "files that wait have no name");
}

async fn a_large_request_is_not_run_if_the_disk_does_not_take_it(world: World) {
    // Below a file there is no place for another one.
    let file = tempfile::NamedTempFile::new().expect("a file");
    let guard = guard()
        .request_bytes_max(1000, 1_000_000)
        .spool_folder(file.path().join("spool"));
    let server = Server::start(&world, guard, text).await;
    let whole = server.charge("k", &"x".repeat(1001)).await;

    // Half of it is in memory when the other half comes.
    let (mut sender, body) = Channel::<Bytes, std::io::Error>::new(2);
    for _ in 0..2 {
        let part = Bytes::from("x".repeat(600));
        sender.send_data(part).await.expect("room");
    }
    drop(sender);
    let headers = [("idempotency-key", "k")];
    let chunked = request("POST", "/charges", &headers, "").map(|_| body);
    let chunked = send(server.address, chunked).await;
    for refused in [whole, chunked] {
        assert_eq!(refused.refusal(), (503, "spool-unavailable".to_owned()));
        assert_eq!(refused.header("retry-after"), "1");
    }
    assert_eq!(server.runs(), 0);
    assert_eq!(server.verdicts(), [Verdict::StoreDown, Verdict::StoreDown]);
    assert!(crate::time::listed(&world).await.is_empty());

    // What fits into memory needs no disk, and the key is as free as before.
    let small = "x".repeat(1000);
    assert_eq!(server.charge("k", &small).await.body, small);
    assert!(server.charge("k", &small).await.is_replay());
    assert_eq!(server.runs(), 1);
}

async fn a_request_beyond_the_limit_is_refused(world: World) {
    let server = Server::start(&world, guard().request_bytes_max(10, 20), text).await;
    let declared = server.charge("k", &"x".repeat(21)).await;
    assert_eq!(declared.refusal(), (413, "request-too-large".to_owned()));

    // Nobody says beforehand how long this one is.
    let (mut sender, body) = Channel::<Bytes, std::io::Error>::new(3);
    for _ in 0..3 {
        let part = Bytes::from_static(b"0123456789");
        sender.send_data(part).await.expect("room");
    }
    drop(sender);
    let headers = [("idempotency-key", "k")];
    let chunked = request("POST", "/charges", &headers, "").map(|_| body);
    let chunked = send(server.address, chunked).await;
    assert_eq!(chunked.refusal(), (413, "request-too-large".to_owned()));
    assert_eq!(server.runs(), 0);
    assert_eq!(server.verdicts(), [Verdict::TooLarge, Verdict::TooLarge]);
    assert_eq!(server.charge("k", "small").await.body, "small");
}

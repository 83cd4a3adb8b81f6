//! What callers hear of handlers that join the key's transaction.

use std::sync::{Arc, Mutex};

use hapax_ledger::guard::Preset;
use hapax_ledger::time::Span;
use hapax_store::vault::Vault;
use hapax_tower::principal::ByHeader;
use hapax_tower::{Guard, Verdict};
use http::header::HeaderName;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::shop::{Base, Shop, on_both_bases};
use crate::client::{connect, post, request, send};

on_both_bases!(
    a_retry_gets_the_first_answer,
    another_request_is_refused,
    a_duplicate_hears_that_it_is_in_progress,
    work_that_failed_left_nothing,
    a_lost_run_goes_on_behind_its_last_phase,
    a_success_that_is_not_stored_is_not_given_out,
    keys_are_asked_for_and_read,
    a_refusal_is_heard_by_a_client_that_is_still_writing,
    callers_do_not_share_keys,
    sealed_answers_open_with_their_key_only,
    an_answer_that_is_too_large_is_given_once,
    an_expired_key_is_said_to_have_expired,
    a_database_without_the_table_is_an_error,
);

fn guard() -> Guard {
    let account = ByHeader::new(HeaderName::from_static("x-account"));
    Guard::new("charges", account)
}

async fn a_retry_gets_the_first_answer(base: Base) {
    let heard = Arc::new(Mutex::new(Vec::new()));
    let hears = heard.clone();
    let guard = guard().observer(Arc::new(move |_: &str, verdict: Verdict| {
        hears.lock().expect("whole").push(verdict);
    }));
    let shop = Shop::open(&base, guard).await;
    let first = shop.charge("k1", "10 EUR").await;
    assert_eq!(first.status, 201);
    assert_eq!(first.body, "charge 1 for anna (k1)");
    assert_eq!(first.header("set-cookie"), "session=secret");
    assert!(!first.is_replay());
    // The quoted form is the same key.
    for key in ["k1", "\"k1\""] {
        let again = shop.charge(key, "10 EUR").await;
        assert_eq!((again.status, &again.body), (first.status, &first.body));
        assert_eq!(again.header("location"), "/charges/1");
        assert_eq!(again.header("set-cookie"), "", "never stored");
        assert!(again.is_replay() && !again.header("idempotency-expires").is_empty());
    }
    assert_eq!(shop.runs(), 1);
    let heard = heard.lock().expect("whole").clone();
    assert_eq!(heard, [Verdict::Run, Verdict::Replay, Verdict::Replay]);
}

/// H2.
async fn another_request_is_refused(base: Base) {
    let shop = Shop::open(&base, guard()).await;
    shop.charge("k1", "10 EUR").await;
    let other = shop.charge("k1", "11 EUR").await;
    assert_eq!(other.refusal(), (409, "key-reused".to_owned()));
    let ietf = Shop::open(&base, guard().preset(Preset::Ietf)).await;
    let other = ietf.charge("k1", "11 EUR").await;
    assert_eq!(other.refusal(), (422, "key-reused".to_owned()));
    let first = ietf.charge("k2", "11 EUR").await;
    assert!(!first.header("idempotency-expires").is_empty());
    assert_eq!((shop.runs(), ietf.runs()), (1, 1));
}

/// H1: nobody waits for it, and nothing runs twice.
async fn a_duplicate_hears_that_it_is_in_progress(base: Base) {
    let shop = Shop::open(&base, guard()).await;
    let first = tokio::spawn({
        let shop = shop.clone();
        async move { shop.charge("k1", "wait").await }
    });
    shop.door.reached().await;
    for _ in 0..3 {
        let second = shop.charge("k1", "wait").await;
        assert_eq!(second.refusal(), (409, "in-progress".to_owned()));
        assert_eq!(second.header("retry-after"), "1");
    }
    shop.door.open();
    let first = first.await.expect("it ends");
    assert_eq!(first.status, 201);
    let second = shop.charge("k1", "wait").await;
    assert!(second.is_replay() && second.body == first.body);
    assert_eq!(shop.runs(), 1);
}

/// The transaction was rolled back, so the key is free.
async fn work_that_failed_left_nothing(base: Base) {
    let shop = Shop::open(&base, guard()).await;
    for runs in 1..=3 {
        let failed = shop.charge("k1", "fail").await;
        assert_eq!(failed.status, 503);
        assert_eq!(shop.runs(), runs);
    }
    assert_eq!(shop.charge("k1", "10 EUR").await.status, 201);
}

/// Its lease says for how long it may still be at work; then the next request takes it up.
async fn a_lost_run_goes_on_behind_its_last_phase(base: Base) {
    let shop = Shop::open(&base, guard()).await;
    assert_eq!(shop.charge("k1", "phases").await.status, 503);
    let early = shop.charge("k1", "phases").await;
    assert_eq!(early.refusal(), (409, "in-progress".to_owned()));
    assert_eq!(early.header("retry-after"), "5");
    let other = shop.charge("k1", "another").await;
    assert_eq!(other.refusal(), (409, "key-reused".to_owned()));
    shop.lose().await;
    let resumed = shop.charge("k1", "phases").await;
    assert_eq!(resumed.status, 201);
    assert_eq!(resumed.body, "resumed behind charged with b\"ch_1\"");
    let again = shop.charge("k1", "phases").await;
    assert!(again.is_replay() && again.body == resumed.body);
}

/// H3: a handler that takes no notice of the key is found out at its first request.
async fn a_success_that_is_not_stored_is_not_given_out(base: Base) {
    let shop = Shop::open(&base, guard()).await;
    let forgot = shop.charge("k1", "forget").await;
    assert_eq!(forgot.refusal(), (500, "outcome-unknown".to_owned()));
}

async fn keys_are_asked_for_and_read(base: Base) {
    let shop = Shop::open(&base, guard().required()).await;
    let account = ("x-account", "anna");
    let missing = post(shop.address, "/charges", &[account], "x").await;
    assert_eq!(missing.refusal(), (400, "key-missing".to_owned()));
    let malformed = shop.charge("\"k1", "x").await;
    assert_eq!(malformed.refusal(), (400, "key-malformed".to_owned()));
    let nobody = [("idempotency-key", "k1")];
    let nobody = post(shop.address, "/charges", &nobody, "x").await;
    assert_eq!(nobody.refusal(), (401, "caller-unknown".to_owned()));
    let read = send(shop.address, request("GET", "/charges", &[], "")).await;
    assert_eq!((read.status.as_u16(), &*read.body), (200, &b"none"[..]));
    let lenient = Shop::open(&base, guard().request_bytes_max(4, 8)).await;
    let passed = post(lenient.address, "/charges", &[account], "x").await;
    assert_eq!(
        (passed.status.as_u16(), &*passed.body),
        (200, &b"no key"[..])
    );
    let large = lenient.charge("k1", "nine bytes").await;
    assert_eq!(large.refusal(), (413, "request-too-large".to_owned()));
    assert_eq!((shop.runs(), lenient.runs()), (0, 0));
}

/// It writes everything before it listens.
async fn a_refusal_is_heard_by_a_client_that_is_still_writing(base: Base) {
    let shop = Shop::open(&base, guard().required()).await;
    let body = "x".repeat(12 * 1024 * 1024);
    for (keys, name) in [
        ("", "key-missing"),
        (
            "idempotency-key: a\r\nidempotency-key: b\r\n",
            "key-malformed",
        ),
    ] {
        let length = body.len();
        let head = format!(
            "POST /charges HTTP/1.1\r\nhost: test\r\nconnection: close\r\ncontent-length: {length}\r\n{keys}\r\n"
        );
        let mut stream = connect(shop.address).await;
        for part in [&head, &body] {
            let written = stream.write_all(part.as_bytes()).await;
            written.expect("all of it is read");
        }
        let mut answer = String::new();
        let read = stream.read_to_string(&mut answer).await;
        read.expect("the connection is not reset");
        assert!(answer.starts_with("HTTP/1.1 400 "), "{answer}");
        assert!(answer.contains(name), "{answer}");
    }
}

/// H3: nobody gets an answer that was given to somebody else.
async fn callers_do_not_share_keys(base: Base) {
    let shop = Shop::open(&base, guard()).await;
    let anna = shop.charge_as("anna", "k1", "10 EUR").await;
    let bert = shop.charge_as("bert", "k1", "10 EUR").await;
    assert_eq!(anna.body, "charge 1 for anna (k1)");
    assert_eq!(bert.body, "charge 2 for bert (k1)");
    assert!(!bert.is_replay());
}

async fn sealed_answers_open_with_their_key_only(base: Base) {
    let vault = |key| Arc::new(Vault::new(&[[key; 32]]).expect("a key"));
    let shop = Shop::open(&base, guard().vault(vault(1))).await;
    let first = shop.charge("k1", "10 EUR").await;
    let again = shop.charge("k1", "10 EUR").await;
    assert!(again.is_replay() && again.body == first.body);
    for guard in [guard(), guard().vault(vault(2))] {
        let other = Shop::open(&base, guard).await;
        let unread = other.charge("k1", "10 EUR").await;
        assert_eq!(unread.refusal(), (500, "answer-unreadable".to_owned()));
        assert_eq!(other.runs(), 0);
    }
}

async fn an_answer_that_is_too_large_is_given_once(base: Base) {
    let shop = Shop::open(&base, guard().answer_bytes_max(50)).await;
    let first = shop.charge("k1", "large").await;
    assert_eq!((first.status.as_u16(), first.body.len()), (201, 100));
    let second = shop.charge("k1", "large").await;
    assert_eq!(second.refusal(), (409, "response-not-kept".to_owned()));
    assert_eq!(shop.runs(), 1);
}

async fn an_expired_key_is_said_to_have_expired(base: Base) {
    let shop = Shop::open(&base, guard().short_ttl(Span::ZERO)).await;
    assert_eq!(shop.charge("k1", "10 EUR").await.status, 201);
    let late = shop.charge("k1", "10 EUR").await;
    assert_eq!(late.refusal(), (409, "key-expired".to_owned()));
    let free = guard().short_ttl(Span::ZERO).grace(Span::ZERO);
    let shop = Shop::open(&base, free).await;
    for runs in 1..=2 {
        assert_eq!(shop.charge("k2", "10 EUR").await.status, 201);
        assert_eq!(shop.runs(), runs);
    }
}

async fn a_database_without_the_table_is_an_error(base: Base) {
    let nowhere = match base {
        Base::Sqlite(path) => Base::Sqlite(path.with_extension("other")),
        Base::Postgres(url) => {
            let (server, settings) = url.split_once('?').expect("settings");
            let url = format!("{server}?options=-csearch_path%3Dpg_catalog&{settings}");
            Base::Postgres(url.trim_end_matches('&').to_owned())
        }
    };
    let shop = Shop::open(&nowhere, guard()).await;
    let failed = shop.charge("k1", "10 EUR").await;
    assert_eq!(failed.status, 503);
    let body = String::from_utf8_lossy(&failed.body);
    assert!(body.contains("hapax_key"), "{body}");
    assert_eq!(shop.runs(), 0);
}

#[cfg(feature = "axum")]
mod nested {
    use super::*;

    on_both_bases!(nested_routers_do_not_share_keys);

    /// H2: inside of a nested router the path has lost its beginning, and a key has not.
    async fn nested_routers_do_not_share_keys(base: Base) {
        let shop = Shop::open(&base, guard()).await;
        let headers = [("idempotency-key", "k1"), ("x-account", "anna")];
        for again in [false, true] {
            for (nth, path) in ["/a/charges", "/b/charges", "/charges"].iter().enumerate() {
                let answer = post(shop.address, path, &headers, "10 EUR").await;
                let want = format!("charge {} for anna (k1)", nth + 1);
                assert_eq!(
                    (&*answer.body, answer.is_replay()),
                    (want.as_bytes(), again)
                );
            }
        }
        assert_eq!(shop.runs(), 3);
    }
}

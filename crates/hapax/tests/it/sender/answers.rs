//! What is made of answers, and how much of them is kept.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use hapax::dispatch::answer::{Cut, EXCERPT_BYTES_MAX};
use hapax::dispatch::ask::{self, ProbeAnswer};
use hapax_ledger::time::Span;
use hapax_verify::Secret;
use http::HeaderMap;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpListener;

use super::receiver::{answer, canned, read_request, receiver};
use super::*;

#[tokio::test]
async fn a_status_is_taken_as_it_is() {
    let date = "date: Tue, 10 Nov 2026 10:00:00 GMT\r\n";
    let until = "retry-after: Tue, 10 Nov 2026 10:02:00 GMT\r\n";
    let dated = format!("{date}{until}");
    let table = [
        ("200 OK", "", None),
        ("204 No Content", "", None),
        ("301 Moved", "location: http://127.0.0.1:1/\r\n", None),
        ("400 Bad Request", "", None),
        ("404 Not Found", "", None),
        ("410 Gone", "", None),
        ("429 Slow Down", "retry-after: 7\r\n", Some(7)),
        ("503 Busy", dated.as_str(), Some(120)),
        ("503 Busy", "retry-after: later\r\n", None),
        ("500 Oops", "", None),
        ("502 Bad Gateway", "", None),
        ("299 Odd", "", None),
    ];
    let sender = sender();
    for (line, headers, seconds) in table {
        let body = if line.starts_with("204") { "" } else { "said" };
        let address = canned(answer(line, headers, body)).await;
        let sent = sender.send(post(&url(address), LONG)).await;
        let status = line[..3].parse().expect("a status");
        let retry_after = seconds.map(Span::from_secs);
        let expected = Outcome::Answered {
            status,
            retry_after,
        };
        assert_eq!(sent.outcome, expected, "{line}");
        let excerpt = sent.excerpt.expect("it answered");
        assert_eq!(
            (&excerpt.bytes[..], excerpt.cut),
            (body.as_bytes(), Cut::Whole)
        );
        assert_eq!(excerpt.size_bytes, Some(body.len() as u64));
        assert_eq!(sent.error, None);
    }
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    let elsewhere = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let target = elsewhere.local_addr().expect("it is bound");
    for line in ["301 Moved", "302 Found", "307 Temporary", "308 Permanent"] {
        let location = format!("location: http://{target}/\r\n");
        let address = canned(answer(line, &location, "")).await;
        let sent = sender().send(post(&url(address), LONG)).await;
        assert_eq!(sent.outcome, answered(line[..3].parse().expect("a status")));
    }
    let visit = tokio::time::timeout(Duration::ZERO, elsewhere.accept()).await;
    assert!(visit.is_err(), "nobody came");
}

#[tokio::test]
async fn an_interim_answer_is_skipped() {
    let interim = "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n";
    let address = canned(format!("{interim}{}", answer("200 OK", "", "done"))).await;
    let sent = sender().send(post(&url(address), LONG)).await;
    assert_eq!(sent.outcome, answered(200));
}

#[tokio::test]
async fn a_large_body_is_cut() {
    let body = "x".repeat(1024 * 1024);
    let length = Some(body.len() as u64);
    let chunked = format!(
        "HTTP/1.1 500 Oops\r\ntransfer-encoding: chunked\r\n\r\n100000\r\n{body}\r\n0\r\n\r\n"
    );
    for (bytes, size_bytes) in [(answer("500 Oops", "", &body), length), (chunked, None)] {
        let address = canned(bytes).await;
        let sent = sender().send(post(&url(address), LONG)).await;
        assert_eq!(sent.outcome, answered(500));
        let excerpt = sent.excerpt.expect("it answered");
        assert_eq!(excerpt.bytes.len(), EXCERPT_BYTES_MAX);
        assert_eq!((excerpt.cut, excerpt.size_bytes), (Cut::Limit, size_bytes));
    }
}

#[tokio::test]
async fn a_body_that_is_exactly_as_long_as_allowed_is_whole() {
    let address = canned(answer("200 OK", "", &"x".repeat(EXCERPT_BYTES_MAX))).await;
    let sent = sender().send(post(&url(address), LONG)).await;
    assert_eq!(sent.excerpt.expect("it answered").cut, Cut::Whole);
}

#[tokio::test]
async fn a_status_counts_even_if_its_body_never_ends() {
    // A drop every few milliseconds, for ever.
    let dripping = receiver(|mut stream| async move {
        read_request(&mut stream).await;
        let head = b"HTTP/1.1 200 OK\r\ncontent-length: 5000\r\n\r\n";
        stream.write_all(head).await.expect("it listens");
        let mut drops = tokio::time::interval(Duration::from_millis(5));
        while stream.write_all(b"x").await.is_ok() {
            drops.tick().await;
        }
    })
    .await;
    let broken = receiver(|mut stream| async move {
        read_request(&mut stream).await;
        let half = b"HTTP/1.1 200 OK\r\ncontent-length: 5000\r\n\r\nxx";
        stream.write_all(half).await.expect("it listens");
    })
    .await;
    for (address, cut) in [(dripping, Cut::Deadline), (broken, Cut::Broken)] {
        let sent = sender().send(post(&url(address), SHORT)).await;
        assert_eq!(sent.outcome, answered(200));
        let excerpt = sent.excerpt.expect("it answered");
        assert_eq!((excerpt.cut, excerpt.size_bytes), (cut, Some(5000)));
        assert!(excerpt.bytes.starts_with(b"xx"));
    }
}

#[tokio::test]
async fn an_echoed_secret_is_not_kept() {
    let body = "you sent authorization: Bearer tok-1234 and x-key: my-own-key";
    let address = canned(answer("400 Bad Request", "", body)).await;
    let request = Outgoing {
        secrets_to_redact: [Secret::from("my-own-key")].into(),
        ..post(&url(address), LONG)
    };
    let excerpt = sender().send(request).await.excerpt.expect("it answered");
    let expected = "you sent authorization: Bearer [redacted] and x-key: [redacted]";
    assert_eq!(String::from_utf8_lossy(&excerpt.bytes), expected);
    assert_eq!(excerpt.size_bytes, Some(body.len() as u64));

    // A host name is part of the error's text.
    let request = Outgoing {
        secrets_to_redact: [Secret::from("my-own-key")].into(),
        ..post("http://my-own-key.invalid/", LONG)
    };
    let error = sender().send(request).await.error.expect("no such name");
    assert_eq!(error, "[redacted].invalid cannot be resolved");
}

#[tokio::test]
async fn a_packed_answer_stays_packed() {
    let packed = b"\x1f\x8b\x08not really";
    let mut bytes =
        b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: 13\r\n\r\n".to_vec();
    bytes.extend_from_slice(packed);
    let address = canned(bytes).await;
    let sent = sender().send(post(&url(address), LONG)).await;
    assert_eq!(sent.excerpt.expect("it answered").bytes, &packed[..]);
}

#[tokio::test]
async fn questions_are_asked_with_the_same_sender() {
    let seen = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&seen);
    let address = receiver(move |mut stream| {
        let seen = Arc::clone(&counted);
        async move {
            while let Some(request) = read_request(&mut stream).await {
                assert!(request.starts_with("GET /hook HTTP/1.1\r\n"), "{request}");
                seen.fetch_add(1, Ordering::Relaxed);
                let body = answer("200 OK", "", r#"{"applied": false}"#);
                stream.write_all(body.as_bytes()).await.expect("it listens");
            }
        }
    })
    .await;
    let question = ask::get(url(address).parse().expect("a URL"), HeaderMap::new(), LONG);
    let sent = sender().send(question).await;
    assert_eq!(ask::probe_answer(&sent), ProbeAnswer::NotApplied);
    assert_eq!(
        ask::snapshot(&sent).as_deref(),
        Ok(&br#"{"applied": false}"#[..])
    );
    assert_eq!(seen.load(Ordering::Relaxed), 1);

    let large = canned(answer(
        "200 OK",
        "",
        &"x".repeat(ask::SNAPSHOT_BYTES_MAX + 1),
    ))
    .await;
    let question = ask::get(url(large).parse().expect("a URL"), HeaderMap::new(), LONG);
    let refused = ask::snapshot(&sender().send(question).await);
    assert_eq!(refused, Err("the answer is larger than 256 KiB".to_owned()));
}

//! Connections that fail: what is said to be not sent was not sent, and everything else that got no answer is lost.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;

use super::receiver::{answer, canned, drain, read_request, receiver};
use super::*;

/// How often a race is run.
const ROUNDS: usize = 300;

async fn refused() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    listener.local_addr().expect("it is bound")
}

#[tokio::test]
async fn without_a_connection_nothing_was_sent() {
    let silent = receiver(|mut stream| async move {
        drain(&mut stream).await;
    })
    .await;
    let refused = refused().await;
    let table = [
        (url(refused), NotSent::Refused, "connection refused"),
        (
            "http://nothing.invalid/".to_owned(),
            NotSent::Dns,
            "nothing.invalid cannot be resolved",
        ),
        (
            format!("https://{silent}/"),
            NotSent::ConnectTimeout,
            "no connection within 200 ms",
        ),
        (
            "ftp://127.0.0.1/".to_owned(),
            NotSent::Blocked,
            "the URL is not one of http or https",
        ),
        (
            "/hook".to_owned(),
            NotSent::Blocked,
            "the URL is not one of http or https",
        ),
    ];
    for (url, why, error) in table {
        // A resolver may take its time to find nothing.
        let time = if why == NotSent::Dns { LONG } else { SHORT };
        let sent = sender().send(post(&url, time)).await;
        assert_eq!(sent.outcome, not_sent(why), "{url}");
        assert_eq!(sent.error.as_deref(), Some(error), "{url}");
        assert_eq!(sent.excerpt, None);
    }
}

#[tokio::test]
async fn tls_to_a_port_without_it_sends_nothing() {
    let chatty = receiver(|mut stream| async move {
        stream
            .write_all(b"220 mail.example ESMTP\r\n")
            .await
            .expect("it listens");
        drain(&mut stream).await;
    })
    .await;
    // It takes the handshake for the beginning of a request, and gives up.
    let web = receiver(|mut stream| async move {
        stream.peek(&mut [0]).await.expect("a handshake comes");
        let refusal = answer("400 Bad Request", "connection: close\r\n", "");
        stream
            .write_all(refusal.as_bytes())
            .await
            .expect("it listens");
        drain(&mut stream).await;
    })
    .await;
    for address in [chatty, web] {
        let sent = sender()
            .send(post(&format!("https://{address}/"), LONG))
            .await;
        assert_eq!(sent.outcome, not_sent(NotSent::Tls));
        let error = sent.error.expect("it failed");
        assert_eq!(error, "TLS failed; does this port speak plain http?");
    }
}

/// A listener whose queue is full lets nobody in, and says nothing.
#[tokio::test]
#[expect(
    clippy::disallowed_methods,
    reason = "the test is the crowd at the door"
)]
async fn a_full_door_is_a_connect_timeout() {
    let socket = TcpSocket::new_v4().expect("a socket");
    socket
        .bind("127.0.0.1:0".parse().expect("an address"))
        .expect("a free port");
    let listener = socket.listen(1).expect("it is bound");
    let address = listener.local_addr().expect("it is bound");
    let mut crowd = Vec::new();
    while let Ok(Ok(stream)) = timeout(SHORT, TcpStream::connect(address)).await {
        crowd.push(stream);
        assert!(crowd.len() < 64, "the queue has an end");
    }
    let by_deadline = sender().send(post(&url(address), SHORT)).await;
    let hasty = Settings {
        connect_timeout: SHORT,
        ..Settings::default()
    };
    let hasty = Sender::new(hasty).expect("no additional roots");
    let by_limit = hasty.send(post(&url(address), LONG)).await;
    for sent in [by_deadline, by_limit] {
        assert_eq!(sent.outcome, not_sent(NotSent::ConnectTimeout));
        assert_eq!(sent.error.as_deref(), Some("no connection within 200 ms"));
    }
}

#[tokio::test]
async fn after_the_first_byte_silence_is_a_loss() {
    let silent = receiver(|mut stream| async move {
        drain(&mut stream).await;
    })
    .await;
    let hangs_up = receiver(|mut stream| async move {
        read_request(&mut stream).await;
    })
    .await;
    let unread = receiver(|stream| async move {
        // A socket may call itself readable for no reason; a byte seen is a byte sent.
        let first = stream.peek(&mut [0]).await.expect("a request comes");
        assert_eq!(first, 1);
    })
    .await;
    let half = receiver(|mut stream| async move {
        read_request(&mut stream).await;
        stream.write_all(b"HTTP/1.1 200").await.expect("it listens");
    })
    .await;
    let large = format!(
        "HTTP/1.1 200 OK\r\nx-large: {}\r\n\r\n",
        "x".repeat(1_000_000)
    );
    let many = format!("HTTP/1.1 200 OK\r\n{}\r\n", "x: y\r\n".repeat(500));
    let table = [
        (silent, Lost::Timeout, Some("no answer within 200 ms")),
        (
            hangs_up,
            Lost::Reset,
            Some("connection closed without an answer"),
        ),
        // A close with unread bytes is a reset, but the sender may see either.
        (unread, Lost::Reset, None),
        (
            half,
            Lost::Reset,
            Some("connection closed without an answer"),
        ),
        (
            canned("SMTP ready\r\n\r\n").await,
            Lost::Reset,
            Some("the answer is not HTTP"),
        ),
        (
            canned(large).await,
            Lost::Reset,
            Some("the head of the answer is too large"),
        ),
        (
            canned(many).await,
            Lost::Reset,
            Some("the head of the answer is too large"),
        ),
    ];
    for (address, why, error) in table {
        let time = if why == Lost::Timeout { SHORT } else { LONG };
        let sent = sender().send(post(&url(address), time)).await;
        assert_eq!(sent.outcome, lost(why), "{error:?} is {:?}", sent.error);
        if error.is_some() {
            assert_eq!(sent.error.as_deref(), error);
        }
        assert!(sent.error.is_some());
    }
}

#[tokio::test]
async fn a_receiver_that_closes_at_once_never_counts_as_an_answer() {
    let address = receiver(|stream| async move { drop(stream) }).await;
    let sender = sender();
    for _ in 0..ROUNDS {
        let outcome = sender.send(post(&url(address), LONG)).await.outcome;
        let fits = [not_sent(NotSent::Refused), lost(Lost::Reset)].contains(&outcome);
        assert!(fits, "{outcome:?}");
    }
}

/// A receiver that closes each connection after one answer. Once the sender's runtime has had a chance to notice, the
/// next request takes a new connection and nothing is lost.
#[tokio::test]
async fn a_connection_that_was_closed_while_idle_costs_nothing() {
    let (closed, mut is_closed) = mpsc::unbounded_channel();
    let address = receiver(move |mut stream| {
        let closed = closed.clone();
        async move {
            read_request(&mut stream).await;
            let ok = answer("200 OK", "", "ok");
            stream.write_all(ok.as_bytes()).await.expect("it listens");
            drop(stream);
            closed.send(()).expect("the test waits for it");
        }
    })
    .await;
    let sender = sender();
    for round in 0..ROUNDS {
        let sent = sender.send(post(&url(address), LONG)).await;
        assert_eq!(
            sent.outcome,
            answered(200),
            "round {round}: {:?}",
            sent.error
        );
        is_closed.recv().await.expect("it closes");
        // Each gives the runtime one look at its sockets.
        for _ in 0..4 {
            tokio::task::yield_now().await;
        }
    }
}

/// The same without waiting: now a request can meet a closing connection. Whatever is said of it must be true.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_said_to_be_not_sent_was_not_seen_and_nothing_is_seen_twice() {
    let seen = Arc::new(Mutex::new(String::new()));
    let record = Arc::clone(&seen);
    let (opened, closed) = (Arc::new(AtomicUsize::new(0)), mpsc::unbounded_channel());
    let (count, (close, mut closings)) = (Arc::clone(&opened), closed);
    let address = receiver(move |mut stream| {
        let (record, close) = (Arc::clone(&record), close.clone());
        count.fetch_add(1, Ordering::Relaxed);
        async move {
            let first = read_request(&mut stream).await.unwrap_or_default();
            record.lock().expect("no panic").push_str(&first);
            let ok = answer("200 OK", "", "ok");
            // The sender may have gone first.
            let _ = stream.write_all(ok.as_bytes()).await;
            let _ = stream.shutdown().await;
            // What comes after the close is recorded too, though it is never answered.
            while let Some(late) = read_request(&mut stream).await {
                record.lock().expect("no panic").push_str(&late);
            }
            close.send(()).expect("the test waits");
        }
    })
    .await;
    let sender = sender();
    let mut outcomes = Vec::new();
    for round in 0..ROUNDS {
        let request = Outgoing {
            body: format!("<{round}>").into(),
            ..post(&url(address), LONG)
        };
        outcomes.push(sender.send(request).await.outcome);
    }
    drop(sender);
    // Every connection ends when the sender's pool does; then the record is complete.
    for _ in 0..opened.load(Ordering::Relaxed) {
        closings.recv().await.expect("it closes");
    }
    let seen = seen.lock().expect("no panic").clone();
    for (round, outcome) in outcomes.into_iter().enumerate() {
        let times = seen.matches(&format!("<{round}>")).count();
        match outcome {
            Outcome::Answered { status: 200, .. } => assert_eq!(times, 1, "round {round}"),
            Outcome::NotSent { .. } => assert_eq!(times, 0, "round {round}"),
            Outcome::Lost { why: Lost::Reset } => assert!(times <= 1, "round {round}"),
            other => panic!("round {round}: {other:?}"),
        }
    }
}

#[tokio::test]
async fn connections_are_used_again() {
    let (opened, mut openings) = mpsc::unbounded_channel();
    let address = receiver(move |mut stream| {
        opened.send(()).expect("the test looks");
        async move {
            while read_request(&mut stream).await.is_some() {
                let ok = answer("200 OK", "", "ok");
                stream.write_all(ok.as_bytes()).await.expect("it listens");
            }
        }
    })
    .await;
    let sender = sender();
    for _ in 0..20 {
        let sent = sender.send(post(&url(address), LONG)).await;
        assert_eq!(sent.outcome, answered(200));
        tokio::task::yield_now().await;
    }
    assert_eq!(openings.recv().await, Some(()));
    assert!(openings.try_recv().is_err(), "one connection is enough");
}

#[tokio::test]
async fn dropping_the_future_aborts_the_request() {
    let (got, has_got) = oneshot::channel();
    let (left, has_left) = oneshot::channel();
    let ends = Mutex::new(Some((got, left)));
    let address = receiver(move |mut stream| {
        let ends = ends.lock().expect("no panic").take();
        async move {
            let (got, left) = ends.expect("one connection");
            read_request(&mut stream).await.expect("a request");
            got.send(()).expect("the test waits");
            drain(&mut stream).await;
            left.send(()).expect("the test waits");
        }
    })
    .await;
    let sending = tokio::spawn(async move { sender().send(post(&url(address), LONG)).await });
    has_got.await.expect("it arrives");
    sending.abort();
    let closed = timeout(LONG, has_left).await;
    closed
        .expect("the connection is closed")
        .expect("it is said");
}

//! Requests, answers, streams and trailers on their way through to an upstream of HTTP/2.

use std::sync::{Arc, Mutex};
use std::thread;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Request, Response, Version};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full};
use hyper::body::{Frame, Incoming};
use hyper::client::conn::http2::SendRequest;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::runtime::Runtime;
use tokio::sync::{Semaphore, mpsc};
use tokio::time::timeout;

use super::TWO;
use super::upstream::{Answering, Settings, Upstream, piped, whole};
use crate::effects::scene::{SQLITE, on_each_store};
use crate::guard::scene::{Scene, answered, charge, problem, request};
use crate::support::client::Connection;
use crate::support::clock::{TOO_LONG, until};

const MIB: usize = 1 << 20;

type Sent = UnsyncBoxBody<Bytes, std::convert::Infallible>;

/// What an upstream was asked.
type Asked = Arc<Mutex<Vec<(http::request::Parts, Bytes)>>>;

/// An upstream that carries out what it is asked, and says how often it has done so.
fn counting() -> (Upstream, Asked) {
    let asked = Asked::default();
    let seen = asked.clone();
    let upstream = Upstream::new(Settings::default(), move |request: Request<Incoming>| {
        let seen = seen.clone();
        async move {
            let (head, body) = request.into_parts();
            let body = body.collect().await.expect("a body").to_bytes();
            let mut seen = seen.lock().expect("a lock");
            seen.push((head, body));
            whole(201, format!("{{\"execution\":{}}}", seen.len()))
        }
    });
    (upstream, asked)
}

/// A connection of HTTP/2 to the guard.
async fn connect(scene: &Scene) -> SendRequest<Sent> {
    #[expect(
        clippy::disallowed_methods,
        reason = "tests speak to the program they started, on loopback"
    )]
    let stream = tokio::net::TcpStream::connect(scene.guard).await;
    #[expect(
        clippy::disallowed_methods,
        reason = "tests speak to the program they started, on loopback"
    )]
    let shaking = hyper::client::conn::http2::handshake(
        TokioExecutor::new(),
        TokioIo::new(stream.expect("a connection")),
    );
    let (sender, connection) = shaking.await.expect("HTTP/2");
    tokio::spawn(connection);
    sender
}

#[test]
fn a_retried_request_gets_the_first_one_s_answer() {
    on_each_store(|store| {
        let (upstream, asked) = counting();
        let scene = Scene::new(store, &upstream.url(), TWO);
        answered(&scene.charge("k1"), 1, false);
        answered(&scene.charge("k1"), 1, true);
        let asked = asked.lock().expect("a lock");
        let (head, body) = &asked[0];
        assert_eq!((asked.len(), &body[..]), (1, &b"{\"amount\":1}"[..]));
        assert_eq!(head.version, Version::HTTP_2);
    });
}

/// H1: 200 racing calls, one execution.
#[test]
fn of_racing_requests_one_is_carried_out() {
    on_each_store(|store| {
        let (upstream, asked) = counting();
        let scene = Scene::new(store, &upstream.url(), TWO);
        let address = scene.guard;
        let race = move || {
            let mut connection = Connection::open(address).expect("a connection");
            connection.ask(&charge("k1")).expect("an answer")
        };
        let racing: Vec<_> = (0..200).map(|_| thread::spawn(race)).collect();
        let mut fresh = 0;
        for one in racing {
            let answer = one.join().expect("whole");
            match answer.status {
                201 => fresh += usize::from(answer.header("idempotent-replayed").is_none()),
                _ => assert_eq!(problem(&answer), "in-progress"),
            }
        }
        assert_eq!((fresh, asked.lock().expect("a lock").len()), (1, 1));
    });
}

#[test]
fn many_requests_at_a_time_share_one_connection() {
    let (upstream, asked) = counting();
    let scene = Scene::new(SQLITE, &upstream.url(), TWO);
    let address = scene.guard;
    let charged = |nth: usize| {
        let mut connection = Connection::open(address).expect("a connection");
        let answer = connection.ask(&charge(&format!("k{nth}")));
        assert_eq!(answer.expect("an answer").status, 201);
    };
    thread::scope(|scope| {
        for nth in 0..100 {
            scope.spawn(move || charged(nth));
        }
    });
    assert_eq!(asked.lock().expect("a lock").len(), 100);
    assert_eq!(upstream.connections(), 1);
}

#[test]
fn the_head_is_the_caller_s_without_what_is_about_a_connection() {
    let (upstream, asked) = counting();
    let scene = Scene::new(SQLITE, &upstream.url(), TWO);
    let head = "x-user: ada\r\nidempotency-key: k1\r\nconnection: keep-alive, x-private\r\nkeep-alive: timeout=5\r\nx-private: 1\r\nte: trailers, deflate\r\ncookie: a=1\r\n";
    scene.ask(&request("POST", "/charges?x=%20", head, "{}"));
    let scene = Scene::new(
        SQLITE,
        &upstream.url(),
        &format!("{TWO}\nhost = \"upstream\""),
    );
    scene.ask(&request("GET", "/", "", ""));
    let asked = asked.lock().expect("a lock");
    let (head, _) = &asked[0];
    assert_eq!(head.uri, "http://api.test/charges?x=%20");
    let told = |name: &str| head.headers.get(name).and_then(|value| value.to_str().ok());
    assert_eq!(told("te"), Some("trailers"));
    assert_eq!(told("content-length"), Some("2"));
    assert_eq!(told("x-forwarded-host"), Some("api.test"));
    assert_eq!(told("idempotency-key"), Some("k1"));
    for gone in ["host", "connection", "keep-alive", "x-private"] {
        assert_eq!(told(gone), None, "{head:?}");
    }
    let own = asked[1].0.uri.authority().expect("an authority");
    assert_eq!(*own, upstream.address.to_string());
}

/// Answers every part of a request with the same part, as it comes, and its trailers with `grpc-status`.
async fn echo(request: Request<Incoming>) -> Response<Answering> {
    let (sender, body) = piped();
    let te = request.headers().get("te").cloned();
    let mut asked = request.into_body();
    tokio::spawn(async move {
        let mut trailers = HeaderMap::new();
        while let Some(Ok(frame)) = asked.frame().await {
            match frame.into_data() {
                Ok(data) => drop(sender.send(Frame::data(data))),
                Err(frame) => trailers = frame.into_trailers().expect("trailers"),
            }
        }
        trailers.insert("grpc-status", HeaderValue::from_static("0"));
        trailers.insert("x-te", te.expect("the caller's `te`"));
        drop(sender.send(Frame::trailers(trailers)));
    });
    let mut answer = Response::new(body.boxed_unsync());
    let kind = HeaderValue::from_static("application/grpc");
    answer.headers_mut().insert("content-type", kind);
    answer
}

/// A call as gRPC makes it: both sides speak in turns on one stream, and the outcome is in the trailers.
#[test]
fn a_grpc_call_passes_from_end_to_end() {
    let upstream = Upstream::new(Settings::default(), echo);
    let scene = Scene::new(SQLITE, &upstream.url(), TWO);
    Runtime::new().expect("a runtime").block_on(async {
        let mut guard = connect(&scene).await;
        let (sender, body) = piped();
        let call = Request::post("http://api.test/hapax.Charges/Watch")
            .header("content-type", "application/grpc")
            .header("te", "trailers")
            .body(body.boxed_unsync())
            .expect("a request");
        let answer = timeout(TOO_LONG, guard.send_request(call)).await;
        // The head is there before anything was sent.
        let answer = answer.expect("in time").expect("an answer");
        assert_eq!(answer.headers()["content-type"], "application/grpc");
        let mut heard = answer.into_body();
        for word in ["first", "second"] {
            let part = Frame::data(Bytes::from_static(word.as_bytes()));
            sender.send(part).expect("sent");
            let part = timeout(TOO_LONG, heard.frame()).await.expect("in time");
            let part = part.expect("a part").expect("whole").into_data();
            assert_eq!(part.ok(), Some(Bytes::from_static(word.as_bytes())));
        }
        let mut trailers = HeaderMap::new();
        trailers.insert("x-sum", HeaderValue::from_static("7"));
        sender.send(Frame::trailers(trailers)).expect("sent");
        drop(sender);
        let last = timeout(TOO_LONG, heard.frame()).await.expect("in time");
        let last = last.expect("trailers").expect("whole").into_trailers();
        let last = last.expect("trailers");
        for (name, value) in [("grpc-status", "0"), ("x-sum", "7"), ("x-te", "trailers")] {
            assert_eq!(last[name], value);
        }
        assert!(heard.frame().await.is_none());
    });
}

/// H1: a call under a key is a stream like any other: its caller gets it whole, and nobody gets it made again.
#[test]
fn a_grpc_call_under_a_key_is_carried_out_once() {
    let upstream = Upstream::new(Settings::default(), echo);
    let scene = Scene::new(SQLITE, &upstream.url(), TWO);
    Runtime::new().expect("a runtime").block_on(async {
        let mut guard = connect(&scene).await;
        for again in [false, true] {
            let body = Full::new(Bytes::from_static(b"charge"));
            let call = Request::post("http://api.test/hapax.Charges/Charge")
                .header("content-type", "application/grpc")
                .header("te", "trailers")
                .header("x-user", "ada")
                .header("idempotency-key", "k1")
                .body(body.boxed_unsync())
                .expect("a request");
            let answer = guard.send_request(call).await.expect("an answer");
            let status = answer.status();
            let body = answer.into_body().collect().await.expect("whole");
            if again {
                let said = String::from_utf8_lossy(&body.to_bytes()).into_owned();
                assert_eq!(status, 409, "{said}");
                assert!(said.contains("response-not-kept"), "{said}");
                return;
            }
            let trailers = body.trailers().expect("trailers");
            assert_eq!(trailers["grpc-status"], "0");
            assert_eq!(body.to_bytes(), "charge");
        }
    });
}

#[test]
fn large_bodies_pass_whole_in_both_directions() {
    let upstream = Upstream::new(Settings::default(), |request: Request<Incoming>| async {
        let body = request.into_body().collect().await.expect("a body");
        whole(200, body.to_bytes())
    });
    let scene = Scene::new(SQLITE, &upstream.url(), TWO);
    let large: Bytes = (0..32 * MIB)
        .map(|nth| (nth / 7 % 251) as u8)
        .collect::<Vec<u8>>()
        .into();
    Runtime::new().expect("a runtime").block_on(async {
        let mut guard = connect(&scene).await;
        let body = Full::new(large.clone()).boxed_unsync();
        let put = Request::put("http://api.test/large")
            .body(body)
            .expect("a request");
        let answer = guard.send_request(put).await.expect("an answer");
        let body = answer.into_body().collect().await.expect("a body");
        assert!(body.to_bytes() == large, "some bytes are others");
    });
}

/// An answer that nobody reads fills its own stream, and nobody else's.
#[test]
fn readers_that_stand_still_hold_up_nobody() {
    let upstream = Upstream::new(
        Settings::default(),
        |request: Request<Incoming>| async move {
            match request.uri().path() {
                "/large" => whole(200, vec![7; 8 * MIB]),
                _ => whole(200, "here"),
            }
        },
    );
    let scene = Scene::new(SQLITE, &upstream.url(), TWO);
    let still: Vec<Connection> = (0..16)
        .map(|_| {
            let mut connection = scene.connect();
            connection
                .send(&request("GET", "/large", "", ""))
                .expect("sent");
            connection.read_until("\r\n\r\n").expect("a head");
            connection
        })
        .collect();
    assert_eq!(scene.ask(&request("GET", "/", "", "")).body(), b"here");
    assert_eq!(upstream.connections(), 1);
    drop(still);
}

/// An upstream whose answers are events that the test sends, and that says when one is not wanted any more.
fn events() -> (
    Upstream,
    mpsc::UnboundedReceiver<mpsc::UnboundedSender<Frame<Bytes>>>,
) {
    let (told, streams) = mpsc::unbounded_channel();
    let upstream = Upstream::new(Settings::default(), move |_| {
        let (sender, body) = piped();
        told.send(sender).expect("the test waits");
        let mut answer = Response::new(body.boxed_unsync());
        let kind = HeaderValue::from_static("text/event-stream");
        answer.headers_mut().insert("content-type", kind);
        async { answer }
    });
    (upstream, streams)
}

#[test]
fn events_are_passed_on_as_they_come_until_nobody_reads_them() {
    let (upstream, mut streams) = events();
    let scene = Scene::new(SQLITE, &upstream.url(), TWO);
    let mut reader = scene.connect();
    reader
        .send(&request("GET", "/events", "", ""))
        .expect("sent");
    let sender = streams.blocking_recv().expect("the request");
    reader.read_until("text/event-stream").expect("a head");
    for event in ["data: 1\n\n", "data: 2\n\n"] {
        let part = Frame::data(Bytes::from_static(event.as_bytes()));
        sender.send(part).expect("sent");
        reader.read_until(event.trim()).expect("an event");
    }
    drop(reader);
    until(TOO_LONG, "the stream is reset", || {
        sender.is_closed().then_some(())
    });
    // And the connection has gone on.
    let mut reader = scene.connect();
    reader
        .send(&request("GET", "/events", "", ""))
        .expect("sent");
    streams.blocking_recv().expect("the request");
    assert_eq!(upstream.connections(), 1);
}

/// An upstream that holds what it is asked until the test lets it go, and says when somebody does not want it any more.
fn holding() -> (
    Upstream,
    Arc<Semaphore>,
    mpsc::UnboundedReceiver<&'static str>,
) {
    let (tell, told) = mpsc::unbounded_channel();
    let gate = Arc::new(Semaphore::new(0));
    let held = gate.clone();
    let upstream = Upstream::new(Settings::default(), move |_| {
        let (tell, held) = (tell.clone(), held.clone());
        async move {
            struct Gone(mpsc::UnboundedSender<&'static str>);
            impl Drop for Gone {
                fn drop(&mut self) {
                    let _ = self.0.send("gone");
                }
            }
            let _ = tell.send("here");
            let gone = Gone(tell);
            held.acquire().await.expect("it is open").forget();
            std::mem::forget(gone);
            whole(201, "{\"execution\":1}")
        }
    });
    (upstream, gate, told)
}

/// H1: work under a key goes on without its caller; other work is called off.
#[test]
fn a_caller_that_goes_away_calls_off_what_has_no_key() {
    let (upstream, gate, mut told) = holding();
    let scene = Scene::new(SQLITE, &upstream.url(), TWO);
    let mut leaving = scene.connect();
    leaving.send(&charge("k1")).expect("sent");
    assert_eq!(told.blocking_recv(), Some("here"));
    drop(leaving);
    let mut leaving = scene.connect();
    leaving.send(&request("GET", "/", "", "")).expect("sent");
    assert_eq!(told.blocking_recv(), Some("here"));
    drop(leaving);
    // It is the second: the first is held, and nobody calls it off.
    assert_eq!(told.blocking_recv(), Some("gone"));
    gate.add_permits(1);
    let answer = until(TOO_LONG, "the work has settled", || {
        Some(scene.charge("k1")).filter(|answer| answer.status != 409)
    });
    answered(&answer, 1, true);
}

#[test]
fn an_upstream_that_is_silent_leaves_it_unknown_and_is_told_to_stop() {
    let (upstream, _gate, mut told) = holding();
    let lines = format!("{TWO}\ntimeout = \"500ms\"");
    let scene = Scene::new(SQLITE, &upstream.url(), &lines);
    let answer = scene.charge("k1");
    assert_eq!(
        (answer.status, problem(&answer)),
        (504, "upstream-lost".to_owned())
    );
    assert_eq!(told.blocking_recv(), Some("here"));
    assert_eq!(told.blocking_recv(), Some("gone"));
    assert_eq!(problem(&scene.charge("k1")), "outcome-unknown");
}

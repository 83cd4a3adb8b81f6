//! What is passed through: streams, changes of protocol, heads.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper_util::rt::{TokioExecutor, TokioIo};

use super::scene::{Scene, answered, counting, refused, request};
use crate::effects::scene::SQLITE;
use crate::support::clock::TOO_LONG;

/// An upstream of one connection in the test's hands.
fn upstream(serve: impl FnOnce(TcpStream) + Send + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    thread::spawn(move || {
        let (stream, _) = listener.accept().expect("a connection");
        stream.set_read_timeout(Some(TOO_LONG)).expect("a time");
        serve(stream);
    });
    address
}

/// Reads up to a text.
pub(super) fn read_until(stream: &mut TcpStream, wanted: &str) -> String {
    let mut read = Vec::new();
    let mut byte = [0];
    while !read.ends_with(wanted.as_bytes()) {
        stream.read_exact(&mut byte).expect("a byte");
        read.push(byte[0]);
    }
    String::from_utf8(read).expect("text")
}

fn gates() -> (Sender<()>, Receiver<()>) {
    channel()
}

#[test]
fn events_are_passed_on_as_they_come() {
    let (go, waits) = gates();
    let address = upstream(move |mut stream| {
        read_until(&mut stream, "\r\n\r\n");
        let head = b"HTTP/1.1 200 ok\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
        stream.write_all(head).expect("sent");
        stream.write_all(b"9\r\ndata: 1\n\n\r\n").expect("sent");
        waits.recv_timeout(TOO_LONG).expect("the test has read it");
        stream
            .write_all(b"9\r\ndata: 2\n\n\r\n0\r\n\r\n")
            .expect("sent");
    });
    let scene = Scene::new(SQLITE, &format!("http://{address}"), "");
    let mut connection = scene.connect();
    connection
        .send(&request("GET", "/events", "", ""))
        .expect("sent");
    let head = connection.read_until("\r\n\r\n").expect("a head");
    assert!(head.contains("text/event-stream"), "{head}");
    // Only then is the second one sent.
    connection.read_until("data: 1").expect("the first event");
    go.send(()).expect("the upstream waits");
    connection.read_until("data: 2").expect("the second event");
}

#[test]
fn a_request_is_passed_on_as_it_comes_with_its_trailers() {
    let (heard, hears) = channel();
    let address = upstream(move |mut stream| {
        let head = read_until(&mut stream, "\r\n\r\n");
        heard.send(head).expect("heard");
        heard.send(read_until(&mut stream, "first")).expect("heard");
        heard
            .send(read_until(&mut stream, "x-sum: 7\r\n\r\n"))
            .expect("heard");
        stream
            .write_all(b"HTTP/1.1 200 ok\r\ncontent-length: 0\r\n\r\n")
            .expect("sent");
    });
    let scene = Scene::new(SQLITE, &format!("http://{address}"), "");
    let mut connection = scene.connect();
    let head = "PUT /up HTTP/1.1\r\nhost: api.test\r\ntransfer-encoding: chunked\r\ntrailer: x-sum\r\nexpect: 100-continue\r\n\r\n";
    connection.send(head.as_bytes()).expect("sent");
    let told = connection.read_until("\r\n\r\n").expect("a head");
    assert!(told.starts_with("HTTP/1.1 100"), "{told}");
    connection.send(b"5\r\nfirst\r\n").expect("sent");
    let head = hears.recv_timeout(TOO_LONG).expect("a head");
    assert!(!head.to_lowercase().contains("expect"), "{head}");
    // The first part is there before the second is sent.
    hears.recv_timeout(TOO_LONG).expect("the first part");
    connection
        .send(b"6\r\nsecond\r\n0\r\nx-sum: 7\r\n\r\n")
        .expect("sent");
    let rest = hears.recv_timeout(TOO_LONG).expect("the rest");
    assert!(rest.contains("second"), "{rest}");
    assert_eq!(connection.answer().expect("an answer").status, 200);
}

#[test]
fn a_body_of_unknown_length_arrives_whole_whatever_the_method() {
    for method in ["GET", "DELETE", "PUT"] {
        let (heard, hears) = channel();
        let address = upstream(move |mut stream| {
            read_until(&mut stream, "\r\n\r\n");
            let body = read_until(&mut stream, "0\r\n\r\n");
            heard.send(body).expect("heard");
            stream
                .write_all(b"HTTP/1.1 200 ok\r\ncontent-length: 0\r\n\r\n")
                .expect("sent");
        });
        let scene = Scene::new(SQLITE, &format!("http://{address}"), "");
        let request = format!(
            "{method} /search HTTP/1.1\r\nhost: api.test\r\ntransfer-encoding: chunked\r\n\r\n5\r\nwhole\r\n0\r\n\r\n"
        );
        let answer = scene.ask(request.as_bytes());
        assert_eq!(answer.status, 200, "{method}: {answer:?}");
        let body = hears.recv_timeout(TOO_LONG).expect("a body");
        assert!(body.contains("whole"), "{method}: {body}");
    }
}

#[test]
fn trailers_that_are_not_passed_on_are_not_announced() {
    let world = counting();
    let scene = Scene::new(SQLITE, &world.url(""), "");
    let request = "POST /charges HTTP/1.1\r\nhost: api.test\r\nx-user: ada\r\nidempotency-key: k1\r\n\
                   transfer-encoding: chunked\r\ntrailer: x-sum\r\n\r\n2\r\n{}\r\n0\r\nx-sum: 7\r\n\r\n";
    answered(&scene.ask(request.as_bytes()), 1, false);
    let seen = world.seen().remove(0);
    assert_eq!(seen.body, b"{}");
    assert!(!seen.headers.contains_key("trailer"), "{seen:?}");
}

#[test]
fn a_connection_may_change_its_protocol() {
    let address = upstream(|mut stream| {
        let head = read_until(&mut stream, "\r\n\r\n").to_lowercase();
        assert!(
            head.contains("upgrade: websocket") && head.contains("connection: upgrade"),
            "{head}"
        );
        let head = b"HTTP/1.1 101 go\r\nconnection: upgrade\r\nupgrade: websocket\r\nsec-websocket-accept: x\r\n\r\nhello";
        stream.write_all(head).expect("sent");
        let said = read_until(&mut stream, "ping");
        stream
            .write_all(said.to_uppercase().as_bytes())
            .expect("sent");
    });
    let scene = Scene::new(SQLITE, &format!("http://{address}"), "");
    let mut connection = scene.connect();
    let ask = "connection: Upgrade\r\nupgrade: websocket\r\nsec-websocket-key: x\r\n";
    let head = format!("GET /live HTTP/1.1\r\nhost: api.test\r\n{ask}\r\n");
    connection.send(head.as_bytes()).expect("sent");
    let head = connection
        .read_until("\r\n\r\n")
        .expect("a head")
        .to_lowercase();
    assert!(
        head.starts_with("http/1.1 101") && head.contains("upgrade: websocket"),
        "{head}"
    );
    connection
        .read_until("hello")
        .expect("what came with the head");
    connection.send(b"a ping").expect("sent");
    connection.read_until("A PING").expect("an echo");
    assert!(connection.rest().is_empty(), "it ends with the upstream");
}

#[test]
fn an_open_tunnel_does_not_keep_a_server_from_stopping() {
    let (_stays, waits) = gates();
    let address = upstream(move |mut stream| {
        read_until(&mut stream, "\r\n\r\n");
        let head = b"HTTP/1.1 101 go\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n";
        stream.write_all(head).expect("sent");
        let _ = waits.recv();
    });
    let scene = Scene::new(SQLITE, &format!("http://{address}"), "");
    let mut connection = scene.connect();
    let head = "GET / HTTP/1.1\r\nhost: a\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n";
    connection.send(head.as_bytes()).expect("sent");
    connection.read_until("\r\n\r\n").expect("a head");
    scene.server.signal("TERM");
    assert_eq!(scene.server.wait().code(), Some(0));
}

#[test]
fn the_upstream_is_told_who_calls_and_nothing_about_the_connection() {
    let world = counting();
    let scene = Scene::new(SQLITE, &world.url("/base/"), "");
    let more = "connection: keep-alive, x-private, idempotency-key, x-user\r\nx-private: 1\r\nkeep-alive: timeout=5\r\n\
                te: trailers\r\nx-user: ada\r\nidempotency-key: k1\r\nx-forwarded-for: 10.0.0.1\r\n";
    answered(
        &scene.ask(&request("POST", "/charges?a=b%20c", more, "{}")),
        1,
        false,
    );
    let seen = world.seen().remove(0);
    assert_eq!(seen.target, "/base/charges?a=b%20c");
    let told = |name: &str| seen.headers.get(name).map(String::as_str);
    assert_eq!(told("host"), Some("api.test"));
    assert_eq!(told("x-forwarded-for"), Some("10.0.0.1, 127.0.0.1"));
    assert_eq!(told("x-forwarded-proto"), Some("http"));
    assert_eq!(told("x-forwarded-host"), Some("api.test"));
    let forwarded = told("forwarded");
    assert_eq!(
        forwarded,
        Some("for=127.0.0.1;proto=http;host=\"api.test\"")
    );
    assert_eq!(told("idempotency-key"), Some("k1"));
    assert_eq!(told("x-user"), Some("ada"), "the guard's own word for it");
    assert_eq!(told("te"), Some("trailers"));
    for gone in ["connection", "keep-alive", "x-private"] {
        assert_eq!(told(gone), None, "{seen:?}");
    }
    let scene = Scene::new(SQLITE, &world.url(""), "host = \"upstream\"");
    scene.ask(&request("GET", "/", "", ""));
    let host = &world.seen()[1].headers["host"];
    assert!(world.url("").ends_with(host), "{host}");
}

#[test]
fn callers_may_speak_http2() {
    let world = counting();
    let scene = Scene::new(SQLITE, &world.url(""), "");
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(async {
        #[expect(
            clippy::disallowed_methods,
            reason = "tests speak to the program they started, on loopback"
        )]
        let stream = tokio::net::TcpStream::connect(scene.guard)
            .await
            .expect("a connection");
        #[expect(
            clippy::disallowed_methods,
            reason = "tests speak to the program they started, on loopback"
        )]
        let shaking =
            hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream));
        let (mut sender, connection) = shaking.await.expect("HTTP/2");
        tokio::spawn(connection);
        for again in [false, true] {
            let request = http::Request::post("http://api.test/charges")
                .header("x-user", "ada")
                .header("idempotency-key", "k1")
                .body(Full::new(Bytes::from_static(b"{}")))
                .expect("a request");
            let answer = sender.send_request(request).await.expect("an answer");
            assert_eq!(answer.status(), 201);
            let marked = answer.headers().contains_key("idempotent-replayed");
            assert_eq!(marked, again);
            let body = answer.into_body().collect().await.expect("a body");
            assert_eq!(body.to_bytes(), "{\"execution\":1}");
        }
    });
    assert_eq!(world.seen()[0].headers["host"], "api.test");
}

#[test]
fn what_is_not_a_request_to_the_api_is_refused() {
    let world = counting();
    let scene = Scene::new(SQLITE, &world.url(""), "");
    let connect = b"CONNECT other.test:443 HTTP/1.1\r\nhost: other.test\r\n\r\n";
    let answer = scene.ask(connect);
    refused(&answer, 405, "not-a-request");
    assert!(world.seen().is_empty());
}

#[test]
fn an_answer_that_breaks_off_leaves_an_unknown_outcome() {
    let address = upstream(|mut stream| {
        read_until(&mut stream, "{\"amount\":1}");
        let half = b"HTTP/1.1 201 ok\r\ncontent-length: 100\r\n\r\nhalf of it";
        stream.write_all(half).expect("sent");
    });
    let scene = Scene::new(SQLITE, &format!("http://{address}"), "");
    let first = scene.charge("k1");
    assert!(first.status >= 500, "{first:?}");
    refused(&scene.charge("k1"), 409, "outcome-unknown");
    let keys = scene.keys("?state=unknown");
    let why = keys[0]["error"].as_str().expect("a reason");
    assert!(why.contains("broke off"), "{keys:?}");
}

/// The work may have been done: what the guard says itself in place of the answer is not the answer, whatever answers are called.
#[test]
fn an_upstream_that_changes_the_protocol_by_itself_leaves_an_unknown_outcome() {
    for more in ["not_executed = [401, 502]", "preset = \"stripe\""] {
        let address = upstream(|mut stream| {
            read_until(&mut stream, "{\"amount\":1}");
            let head = b"HTTP/1.1 101 go\r\nconnection: upgrade\r\nupgrade: other\r\n\r\n";
            stream.write_all(head).expect("sent");
        });
        let scene = Scene::new(SQLITE, &format!("http://{address}"), more);
        refused(&scene.charge("k1"), 502, "upstream-lost");
        let again = scene.charge("k1");
        refused(&again, 409, "outcome-unknown");
        assert_eq!(again.header("idempotent-replayed"), None, "{again:?}");
    }
}

#[test]
fn a_body_that_is_coded_for_its_way_is_not_passed_on() {
    let world = counting();
    let scene = Scene::new(SQLITE, &world.url(""), "");
    let request = "POST /charges HTTP/1.1\r\nhost: api.test\r\nx-user: ada\r\nidempotency-key: k1\r\n\
                   transfer-encoding: gzip, chunked\r\n\r\n";
    // As long as this, somebody who writes everything before they listen hears it only if it is read.
    for length in [2, 12 * 1024 * 1024] {
        let body = "x".repeat(length);
        let request = format!("{request}{length:x}\r\n{body}\r\n0\r\n\r\n");
        refused(&scene.ask(request.as_bytes()), 501, "transfer-coding");
    }
    assert!(world.seen().is_empty());
}

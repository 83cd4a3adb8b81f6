//! Slow, large, broken or too many requests: each gets its answer or its end, and the server lives.

use std::time::Duration;

use crate::support::client::{Answer, Connection};
use crate::support::clock::{tick, until};
use crate::support::sender::Sender;
use crate::support::server::Server;
use crate::support::site::Site;

/// Short times and small sizes, so that every limit is in reach.
const LIMITS: &str = "[limits]\nbody_size = \"8KiB\"\ninflight = \"12KiB\"\nheader_timeout = \"1s\"\nbody_timeout = \"1s\"\n";
/// The 1 s of the limits, with room for a slow machine.
const SOON: Duration = Duration::from_secs(10);
/// Long enough for an answer that is not held back by anything.
const HELD_BACK: Duration = Duration::from_millis(300);

fn start() -> (Site, Server) {
    let site = Site::with("sqlite:data/hapax.db", LIMITS);
    let server = site.start();
    (site, server)
}

/// The server still does what it is for.
#[track_caller]
fn expect_well(server: &Server, name: &str) {
    assert_eq!(server.ask(&Sender::to("billing").request(name)).status, 200);
}

/// A head for a body that announces so many bytes.
fn head(bytes: usize) -> Vec<u8> {
    Sender::to("billing").head(b"", &[("content-length", &bytes.to_string())])
}

/// Sends one byte after the other as long as the server listens. Each byte waits for a moment in which the server says nothing,
/// so that the whole would take minutes. Returns what the server said at last.
fn dribble(connection: &mut Connection, bytes: &[u8]) {
    for byte in bytes {
        if connection.send(&[*byte]).is_err()
            || !connection.is_silent_for(Duration::from_millis(50))
        {
            return;
        }
    }
    panic!(
        "{} bytes dribbled in and the server still listens",
        bytes.len()
    );
}

/// Slowloris: a head that comes byte by byte is cut off when its time is up.
#[test]
fn a_dribbled_head_is_cut_off() {
    let (_site, server) = start();
    let mut connection = server.connect();
    let start = tick();
    dribble(
        &mut connection,
        &Sender::to("billing").request(&"evt_slow".repeat(100)),
    );
    assert!(tick() - start < SOON);
    let said = connection.rest();
    assert!(
        !said.starts_with(b"HTTP/1.1 2"),
        "{}",
        String::from_utf8_lossy(&said)
    );
    expect_well(&server, "evt_1");
}

/// A connection that says nothing at all is not kept either.
#[test]
fn a_silent_connection_is_closed() {
    let (_site, server) = start();
    let start = tick();
    server.connect().rest();
    assert!(tick() - start < SOON);
    expect_well(&server, "evt_1");
}

/// A body that comes byte by byte is answered 408 when its time is up, and is not stored.
#[test]
fn a_dribbled_body_is_answered_408() {
    let (_site, server) = start();
    let mut connection = server.connect();
    connection.send(&head(4096)).expect("sent");
    let start = tick();
    dribble(&mut connection, &[b' '; 4096]);
    let answer = connection.answer().expect("an answer");
    assert_eq!((answer.status, answer.code().as_str()), (408, "H0203"));
    assert!(tick() - start < SOON);
    expect_well(&server, "evt_1");
}

/// Too large is 413, whether the size is announced or shows as it comes, and whether or not the sender waits for the answer.
#[test]
fn a_body_that_is_too_large_is_answered_413() {
    let (_site, server) = start();
    let expect_413 =
        |answer: Answer| assert_eq!((answer.status, answer.code().as_str()), (413, "H0202"));
    expect_413(server.ask(&head(9 * 1024)));
    expect_413(server.ask(&head(1 << 40)));

    let mut connection = server.connect();
    let _ = connection.send(&[head(9 * 1024), vec![b' '; 9 * 1024]].concat());
    expect_413(connection.answer().expect("an answer"));

    let mut connection = server.connect();
    let chunk = [b"400\r\n".as_slice(), &[b' '; 1024], b"\r\n"].concat();
    connection
        .send(&Sender::to("billing").head(b"", &[("transfer-encoding", "chunked")]))
        .expect("sent");
    for _ in 0..9 {
        let _ = connection.send(&chunk);
    }
    expect_413(connection.answer().expect("an answer"));
    expect_well(&server, "evt_1");
}

/// What is not HTTP, or breaks off, is answered 400 or not at all; the next one is served.
#[test]
fn garbage_is_refused_and_the_server_lives() {
    let (_site, server) = start();
    let garbage: [&[u8]; 6] = [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"GET\r\n\r\n",
        b"\0\0\0\0\0\0\0\0\r\n\r\n",
        b"POST /in/billing HTTP/1.1\r\ncontent-length: many\r\n\r\n",
        b"POST /in/billing HTTP/1.1\r\ntransfer-encoding: chunked\r\ncontent-length: 3\r\n\r\nzz\r\n",
        b"POST /in/billing HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\nnot a size\r\n",
    ];
    for (n, bytes) in garbage.into_iter().enumerate() {
        let mut connection = server.connect();
        let _ = connection.send(bytes);
        connection.finish();
        let said = String::from_utf8_lossy(&connection.rest()).into_owned();
        assert!(said.starts_with("HTTP/1.1 400 "), "{n}: {said}");
        expect_well(&server, &format!("evt_{n}"));
    }
    let mut connection = server.connect();
    let endless = [b"GET / HTTP/1.1\r\nx: ".as_slice(), &[b'x'; 100 * 1024]].concat();
    let _ = connection.send(&endless);
    let said = String::from_utf8_lossy(&connection.rest()).into_owned();
    assert!(said.starts_with("HTTP/1.1 4"), "{said}");

    let mut connection = server.connect();
    connection
        .send(&[head(4096), vec![b' '; 100]].concat())
        .expect("sent");
    connection.finish();
    let said = String::from_utf8_lossy(&connection.rest()).into_owned();
    assert!(
        said.is_empty() || said.starts_with("HTTP/1.1 400 "),
        "{said}"
    );
    expect_well(&server, "evt_last");
}

/// Beyond the limit on connections the next one waits, and is served as soon as one of the others goes.
#[test]
fn connections_beyond_the_limit_wait_for_their_turn() {
    let site = Site::with("sqlite:data/hapax.db", "[limits]\nconnections = 2\n");
    let server = site.start();
    let sender = Sender::to("billing");
    let [mut first, mut second] = [server.connect(), server.connect()];
    assert_eq!(
        first
            .ask(&sender.request("evt_1"))
            .expect("an answer")
            .status,
        200
    );
    assert_eq!(
        second
            .ask(&sender.request("evt_2"))
            .expect("an answer")
            .status,
        200
    );
    let mut third = server.connect();
    third.send(&sender.request("evt_3")).expect("sent");
    assert!(
        third.is_silent_for(HELD_BACK),
        "there were two connections, and yet a third was served"
    );
    assert_eq!(
        second
            .ask(&sender.request("evt_4"))
            .expect("an answer")
            .status,
        200
    );
    drop(first);
    assert_eq!(third.answer().expect("an answer").status, 200);
}

/// Bodies under way have a limit in sum; beyond it the answer is 503, and below it again all is well.
#[test]
fn too_many_bytes_under_way_are_answered_503() {
    let site = Site::with(
        "sqlite:data/hapax.db",
        "[limits]\nbody_size = \"8KiB\"\ninflight = \"12KiB\"\n",
    );
    let server = site.start();
    // What is only announced costs nothing, and keeps nobody out.
    let announced = head(8192);
    let mut idle = server.connect();
    idle.send(&announced).expect("sent");
    assert_eq!(server.ask(&large()).status, 200);
    // What has come counts, whether or not the rest follows. A slow sender that meets the large request on its way may be the
    // one that is refused; then it comes again.
    let come = || {
        let mut slow = server.connect();
        slow.send(&announced).expect("sent");
        slow.send(&[b' '; 8191]).expect("sent");
        slow
    };
    let mut slow = come();
    until(SOON, "the bytes of a slow sender count", || {
        if !slow.is_silent_for(Duration::from_millis(50)) {
            slow = come();
        }
        let answer = server.ask(&large());
        (answer.status == 503).then(|| answer.expect_try_again("H0206"))
    });
    let mut connection = server.connect();
    let chunk = [b"400\r\n".as_slice(), &[b' '; 1024], b"\r\n"].concat();
    connection
        .send(&Sender::to("billing").head(b"", &[("transfer-encoding", "chunked")]))
        .expect("sent");
    for _ in 0..5 {
        let _ = connection.send(&chunk);
    }
    connection
        .answer()
        .expect("an answer")
        .expect_try_again("H0206");
    // There is still room for a small one.
    expect_well(&server, "evt_1");
    drop(slow);
    until(
        SOON,
        "the bytes of a sender that left count no more",
        || (server.ask(&large()).status == 200).then_some(()),
    );
}

/// A good request with a body of nearly 8 KiB.
fn large() -> Vec<u8> {
    let name = "evt_large";
    let mut body = Sender::body(name);
    body.resize(8000, b' ');
    let mut request = Sender::to("billing").head(&body, &[("content-length", "8000")]);
    request.extend_from_slice(&body);
    request
}

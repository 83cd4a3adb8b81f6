//! Answers under a key that have no end, or none that can be told from a break, or are too large to keep: their caller gets them as they come, and nobody gets them made again.

use std::io::Write;
use std::net::{Shutdown, TcpListener};
use std::thread;

use super::scene::{Scene, answered, charge, refused};
use crate::effects::scene::on_each_store;
use crate::support::world::{Act, World};

/// A large answer has so many pieces: 8 MiB. A guard keeps 1 MiB unless it is told otherwise.
const PIECES: usize = 128;

/// 64 KiB, and each piece has bytes of its own.
fn piece(nth: usize) -> String {
    format!("{nth:08x}").repeat(8 * 1024)
}

/// H1, H3.
#[test]
fn events_under_a_key_are_passed_on_as_they_come_and_not_made_again() {
    on_each_store(|store| {
        let world = World::new(|_| {
            let events = ["data: 1\n\n", "data: 2\n\n"].map(str::to_owned);
            Act::InPieces("content-type: text/event-stream\r\n", events.to_vec())
        });
        let scene = Scene::new(store, &world.url(""), "");
        let mut first = scene.connect();
        first.send(&charge("k1")).expect("sent");
        let head = first.read_until("\r\n\r\n").expect("a head");
        assert!(head.starts_with("HTTP/1.1 200"), "{head}");
        assert!(head.contains("text/event-stream"), "{head}");
        // Only then is the second one sent.
        first.read_until("data: 1").expect("the first event");
        // The stream is open, and a retry is answered all the same.
        refused(&scene.charge("k1"), 409, "response-not-kept");
        world.release(1);
        first.read_until("data: 2").expect("the second event");
        refused(&scene.charge("k1"), 409, "response-not-kept");
        assert_eq!(world.seen().len(), 1);
    });
}

/// H1, H3.
#[test]
fn a_large_answer_in_chunks_reaches_its_caller_whole_and_is_not_made_again() {
    on_each_store(|store| {
        let world = World::new(|_| Act::InPieces("", (0..PIECES).map(piece).collect()));
        // No piece waits for the test.
        world.release(PIECES);
        let scene = Scene::new(store, &world.url(""), "");
        let mut first = scene.connect();
        first.send(&charge("k1")).expect("sent");
        let head = first.read_until("\r\n\r\n").expect("a head");
        assert!(head.starts_with("HTTP/1.1 200"), "{head}");
        let body = first.chunks().expect("a whole answer");
        let whole: String = (0..PIECES).map(piece).collect();
        assert_eq!((body.len(), whole.len()), (8 << 20, 8 << 20));
        assert!(body == whole.as_bytes(), "some bytes are others");
        refused(&scene.charge("k1"), 409, "response-not-kept");
        assert_eq!(world.seen().len(), 1);
    });
}

/// H3: an answer that ends with its connection may be half of one, and nobody can tell. Its status says that the work was done.
#[test]
fn an_answer_that_only_the_connection_ends_is_not_made_again() {
    on_each_store(|store| {
        for (nth, (head, kept)) in [
            ("HTTP/1.1 201 Created\r\n", false),
            ("HTTP/1.0 201 Created\r\nconnection: close\r\n", false),
            (
                "HTTP/1.1 201 Created\r\nconnection: close\r\ncontent-length: 15\r\n",
                true,
            ),
        ]
        .into_iter()
        .enumerate()
        {
            let upstream = ending(head, "{\"execution\":1}");
            let scene = Scene::new(store, &upstream, &format!("tenant = \"t{nth}\""));
            if kept {
                answered(&scene.charge("k1"), 1, false);
                answered(&scene.charge("k1"), 1, true);
                continue;
            }
            let mut first = scene.connect();
            first.send(&charge("k1")).expect("sent");
            let told = first.read_until("\r\n\r\n").expect("a head");
            assert!(told.starts_with("HTTP/1.1 201"), "{told}");
            assert_eq!(first.chunks().expect("a body"), b"{\"execution\":1}");
            refused(&scene.charge("k1"), 409, "response-not-kept");
        }
    });
}

/// An upstream that answers one request with this, and ends the connection.
fn ending(head: &'static str, body: &'static str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("a connection");
        super::passing::read_until(&mut stream, "{\"amount\":1}");
        let answer = format!("{head}\r\n{body}");
        stream.write_all(answer.as_bytes()).expect("sent");
        stream.shutdown(Shutdown::Both).expect("ended");
    });
    format!("http://{address}")
}

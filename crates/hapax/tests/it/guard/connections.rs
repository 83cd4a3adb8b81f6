//! Connections of HTTP/1.1 to the upstream: they are kept for the next request.

use std::io::Write;
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use super::passing::read_until;
use super::scene::{Scene, answered, charge, request};
use crate::effects::scene::SQLITE;

/// More than a guard would open by accident.
const REQUESTS: usize = 20;

/// An upstream that answers whatever comes over a connection, and counts connections.
fn upstream() -> (String, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    let connections = Arc::new(AtomicUsize::new(0));
    let (counts, executions) = (connections.clone(), Arc::new(AtomicUsize::new(0)));
    thread::spawn(move || {
        while let Ok((mut stream, _)) = listener.accept() {
            counts.fetch_add(1, Ordering::SeqCst);
            let executions = executions.clone();
            thread::spawn(move || {
                loop {
                    read_until(&mut stream, "{\"amount\":1}");
                    let execution = 1 + executions.fetch_add(1, Ordering::SeqCst);
                    let body = format!("{{\"execution\":{execution}}}");
                    let length = body.len();
                    let answer =
                        format!("HTTP/1.1 201 Created\r\ncontent-length: {length}\r\n\r\n{body}");
                    stream.write_all(answer.as_bytes()).expect("sent");
                }
            });
        }
    });
    (format!("http://{address}"), connections)
}

#[test]
fn requests_one_after_the_other_go_over_one_connection() {
    let (url, connections) = upstream();
    let scene = Scene::new(SQLITE, &url, "");
    let mut caller = scene.connect();
    for nth in 1..=REQUESTS {
        // With a key and without.
        let asked = match nth % 2 {
            0 => charge(&format!("k{nth}")),
            _ => request("POST", "/charges", "x-user: ada\r\n", "{\"amount\":1}"),
        };
        answered(&caller.ask(&asked).expect("an answer"), nth, false);
    }
    // A machine that stands still for seconds would let a connection end of disuse; it does not do so for every request.
    let connections = connections.load(Ordering::SeqCst);
    assert!(connections < REQUESTS / 4, "{connections} connections");
}

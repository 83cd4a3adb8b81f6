//! `hapax events list` against a server that answers page by page.

use std::io::{Read, Write};
use std::net::TcpListener;

use serde_json::{Value, json};

use crate::program::{Ran, folder, hapax};

/// Serves these pages one after the other, each on a connection of its own; returns the request lines.
fn serve(listener: &TcpListener, pages: &[Value]) -> Vec<String> {
    let mut asked = Vec::new();
    for page in pages {
        let (mut stream, _) = listener.accept().expect("a connection");
        let mut request = Vec::new();
        let mut piece = [0; 4096];
        while !request.ends_with(b"\r\n\r\n") {
            let read = stream.read(&mut piece).expect("a request");
            assert!(read > 0, "the client hung up");
            request.extend_from_slice(&piece[..read]);
        }
        let request = String::from_utf8(request).expect("text");
        asked.push(request.lines().next().expect("a line").to_owned());
        let body = page.to_string();
        let answer = format!(
            "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        );
        stream.write_all(answer.as_bytes()).expect("sent");
    }
    asked
}

/// The server looks at so many rows at a time: a page without rows is not the end of the list.
#[test]
fn a_page_without_rows_is_not_the_end() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    let pages = [
        json!({"data": [], "iterator": "evt_a", "prevIterator": null, "done": false}),
        json!({"data": [{"id": "evt_b"}], "iterator": "evt_b", "prevIterator": "-evt_b", "done": true}),
    ];
    let server = std::thread::spawn(move || serve(&listener, &pages));
    let dir = folder(&[]);
    let mut command = hapax(dir.path());
    command
        .args(["events", "list", "--key", "k", "--json"])
        .env("HAPAX_URL", format!("http://{address}"))
        .env("HAPAX_TOKEN", "a token");
    let listed = Ran::of(&mut command).expect_exit(0).json();
    assert_eq!(listed["data"], json!([{"id": "evt_b"}]));
    let asked = server.join().expect("it ends");
    assert!(asked[1].contains("iterator=evt_a"), "{asked:?}");
}

/// A list that does not move is not asked for ever.
#[test]
fn a_list_that_does_not_move_ends() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    let page = json!({"data": [], "iterator": "evt_a", "prevIterator": null, "done": false});
    let pages = [page.clone(), page];
    let server = std::thread::spawn(move || serve(&listener, &pages));
    let dir = folder(&[]);
    let mut command = hapax(dir.path());
    command
        .args(["events", "list", "--json"])
        .env("HAPAX_URL", format!("http://{address}"))
        .env("HAPAX_TOKEN", "a token");
    let listed = Ran::of(&mut command).expect_exit(0).json();
    assert_eq!(listed["data"], json!([]));
    server.join().expect("it ends");
}

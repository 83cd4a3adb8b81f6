//! The last question before the first byte: is the run's lease still its own?

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread::JoinHandle;

use http::header::CONTENT_LENGTH;
use http::{HeaderValue, Method};
use http_body_util::{BodyExt, Full};

use super::*;

const PATIENCE: Duration = Duration::from_secs(30);
const ANSWER: &str = "HTTP/1.0 200 OK\r\nconnection: keep-alive\r\ncontent-length: 2\r\n\r\n{}";

fn over() -> Option<RunLease> {
    Some(RunLease::lasting(Duration::ZERO))
}

fn held() -> Option<RunLease> {
    Some(RunLease::lasting(PATIENCE))
}

/// An upstream that answers so many requests without bodies on one connection, and gives back all that came over it.
fn listening(answers: usize) -> (Uri, JoinHandle<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    let upstream = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("a connection");
        stream.set_read_timeout(Some(PATIENCE)).expect("set");
        let mut all = String::new();
        for _ in 0..answers {
            head(&mut stream, &mut all);
            stream.write_all(ANSWER.as_bytes()).expect("written");
        }
        stream.read_to_string(&mut all).expect("read to its end");
        all
    });
    let uri = format!("http://{address}/charges");
    (uri.parse().expect("a URI"), upstream)
}

fn head(stream: &mut TcpStream, all: &mut String) {
    let from = all.len();
    let mut byte = [0];
    while !all[from..].ends_with("\r\n\r\n") {
        stream.read_exact(&mut byte).expect("a head");
        all.push(char::from(byte[0]));
    }
}

fn request(uri: &Uri, length: Option<&'static str>, body: &'static str) -> Request<Outgoing> {
    let body = Full::new(Bytes::from_static(body.as_bytes()));
    let mut request = Request::new(body.map_err(|never| match never {}).boxed_unsync());
    *request.method_mut() = Method::POST;
    *request.uri_mut() = uri.clone();
    let length = length.map(HeaderValue::from_static);
    request
        .headers_mut()
        .extend(length.map(|length| (CONTENT_LENGTH, length)));
    request
}

async fn send(
    upstreams: &Upstreams,
    request: Request<Outgoing>,
    lease: Option<RunLease>,
) -> Result<Bytes, NoAnswer> {
    let answer = upstreams.send(&Line::ONE, request, PATIENCE, lease).await?;
    Ok(whole(answer.into_body(), 1_024)
        .await
        .expect("a whole body"))
}

/// C4, H1.
#[tokio::test]
async fn nothing_of_a_request_whose_lease_is_over_leaves() {
    for (length, body) in [(Some("2"), "{}"), (None, "{}"), (Some("0"), ""), (None, "")] {
        let (uri, upstream) = listening(0);
        let upstreams = Upstreams::new(Vec::new()).expect("TLS");
        let sent = send(&upstreams, request(&uri, length, body), over()).await;
        assert_eq!(sent, Err(withheld()), "{length:?} {body:?}");
        assert_eq!(upstream.join().expect("whole"), "", "{length:?} {body:?}");
    }
}

#[tokio::test]
async fn nor_over_a_connection_that_was_used_before() {
    for (length, body) in [(Some("2"), "{}"), (Some("0"), ""), (None, "")] {
        let (uri, upstream) = listening(1);
        let upstreams = Upstreams::new(Vec::new()).expect("TLS");
        let first = send(&upstreams, request(&uri, Some("0"), ""), held()).await;
        assert_eq!(first.as_deref(), Ok(&b"{}"[..]));
        let sent = send(&upstreams, request(&uri, length, body), over()).await;
        assert_eq!(sent, Err(withheld()), "{length:?} {body:?}");
        let all = upstream.join().expect("whole");
        assert_eq!(all.matches("POST").count(), 1, "{all}");
        assert_eq!(all.matches("content-length: 0\r\n").count(), 1, "{all}");
    }
}

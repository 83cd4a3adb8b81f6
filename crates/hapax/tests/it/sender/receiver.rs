//! Receivers: a listener on loopback and what it does with each connection.

use std::net::SocketAddr;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// Does the same with every connection, until the test's runtime ends.
pub(super) async fn receiver<W>(work: impl Fn(TcpStream) -> W + Send + 'static) -> SocketAddr
where
    W: Future<Output = ()> + Send + 'static,
{
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("it is bound");
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(work(stream));
        }
    });
    address
}

/// Answers every request with these bytes.
pub(super) async fn canned(answer: impl Into<Vec<u8>>) -> SocketAddr {
    let answer: Vec<u8> = answer.into();
    receiver(move |mut stream| {
        let answer = answer.clone();
        async move {
            while read_request(&mut stream).await.is_some() {
                if stream.write_all(&answer).await.is_err() {
                    return;
                }
            }
        }
    })
    .await
}

/// Reads a whole request with its body; `None` if the sender is gone.
pub(super) async fn read_request(stream: &mut TcpStream) -> Option<String> {
    let mut bytes = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head
                .lines()
                .find_map(|line| line.strip_prefix("content-length: "))
                .map_or(0, |length| length.parse().expect("a number"));
            if body.len() >= length {
                return Some(text);
            }
        }
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    }
}

/// Reads until the sender closes; how many bytes that were.
pub(super) async fn drain(stream: &mut TcpStream) -> usize {
    let mut bytes = Vec::new();
    // A reset ends it as well as a close.
    let _ = stream.read_to_end(&mut bytes).await;
    bytes.len()
}

/// An answer with this status line's end, these header lines and this body.
pub(super) fn answer(status: &str, headers: &str, body: &str) -> String {
    let length = body.len();
    format!("HTTP/1.1 {status}\r\n{headers}content-length: {length}\r\n\r\n{body}")
}

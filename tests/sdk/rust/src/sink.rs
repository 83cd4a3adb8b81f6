//! A sink that keeps what arrives, and answers as it is told.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;

/// Longer than anything here takes, so that what never comes fails the run instead of hanging it.
pub const TOO_LONG: Duration = Duration::from_secs(60);

/// One request.
#[derive(Clone, Debug)]
pub struct Seen {
    pub path: String,
    pub headers: HeaderMap,
    pub body: Vec<u8>,
}

/// What has arrived.
#[derive(Clone)]
pub struct Sink {
    address: SocketAddr,
    seen: Arc<Mutex<Vec<Seen>>>,
    /// What is answered at a path; 200 elsewhere.
    statuses: Arc<Mutex<HashMap<String, u16>>>,
    arrived: Arc<Notify>,
}

impl Sink {
    pub async fn start() -> Sink {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let sink = Sink {
            address: listener.local_addr().expect("an address"),
            seen: Arc::default(),
            statuses: Arc::default(),
            arrived: Arc::default(),
        };
        let taking = sink.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(taking.clone().serve(stream));
            }
        });
        sink
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// Answers with this status from now on.
    pub fn answer(&self, path: &str, status: u16) {
        let mut statuses = self.statuses.lock().expect("nobody panics with it");
        statuses.insert(path.to_owned(), status);
    }

    fn status(&self, path: &str) -> u16 {
        let statuses = self.statuses.lock().expect("nobody panics with it");
        statuses.get(path).copied().unwrap_or(200)
    }

    pub fn at(&self, path: &str) -> Vec<Seen> {
        let seen = self.seen.lock().expect("nobody panics with it");
        seen.iter()
            .filter(|one| one.path == path)
            .cloned()
            .collect()
    }

    /// Waits for so many to arrive at a path.
    pub async fn wait(&self, path: &str, count: usize) -> Vec<Seen> {
        let waiting = async {
            loop {
                let arrived = self.arrived.notified();
                let seen = self.at(path);
                if seen.len() >= count {
                    return seen;
                }
                arrived.await;
            }
        };
        let waited = tokio::time::timeout(TOO_LONG, waiting).await;
        waited.unwrap_or_else(|_| panic!("{count} at {path}"))
    }

    async fn serve(self, mut stream: TcpStream) {
        let mut bytes = Vec::new();
        loop {
            while let Some((seen, length)) = whole(&bytes) {
                bytes.drain(..length);
                let status = self.status(&seen.path);
                self.seen.lock().expect("nobody panics with it").push(seen);
                self.arrived.notify_waiters();
                let answer = format!("HTTP/1.1 {status} Told\r\ncontent-length: 2\r\n\r\nok");
                if stream.write_all(answer.as_bytes()).await.is_err() {
                    return;
                }
            }
            let mut part = [0; 4096];
            match stream.read(&mut part).await {
                Ok(0) | Err(_) => return,
                Ok(read) => bytes.extend_from_slice(&part[..read]),
            }
        }
    }
}

/// A request that is there as a whole, and its length.
fn whole(bytes: &[u8]) -> Option<(Seen, usize)> {
    let end = bytes.windows(4).position(|four| four == b"\r\n\r\n")?;
    let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
    let mut lines = head.lines();
    let path = lines.next()?.split(' ').nth(1)?.to_owned();
    let mut headers = HeaderMap::new();
    for (name, value) in lines.filter_map(|line| line.split_once(": ")) {
        let name: HeaderName = name.parse().ok()?;
        headers.insert(name, HeaderValue::from_str(value).ok()?);
    }
    let length: usize = headers.get("content-length")?.to_str().ok()?.parse().ok()?;
    let body = bytes.get(end + 4..end + 4 + length)?.to_vec();
    let seen = Seen {
        path,
        headers,
        body,
    };
    Some((seen, end + 4 + length))
}

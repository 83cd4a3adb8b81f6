//! Requests over real connections, one each.

use std::net::SocketAddr;

use bytes::Bytes;
use http::{HeaderMap, Request, StatusCode};
use http_body::Body;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

/// A whole answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Answer {
    /// The header's value; empty if there is none.
    pub(crate) fn header(&self, name: &str) -> &str {
        let value = self.headers.get(name);
        value.map_or("", |value| value.to_str().expect("text"))
    }

    /// Was it given before?
    pub(crate) fn is_replay(&self) -> bool {
        self.header("idempotent-replayed") == "true"
    }

    /// The end of the problem's type.
    pub(crate) fn problem(&self) -> String {
        assert_eq!(self.header("content-type"), "application/problem+json");
        let body: serde_json::Value = serde_json::from_slice(&self.body).expect("JSON");
        assert_eq!(body["status"], self.status.as_u16());
        assert!(body["detail"].as_str().is_some_and(|text| !text.is_empty()));
        let kind = body["type"].as_str().expect("a type");
        kind.rsplit(':').next().expect("a name").to_owned()
    }

    /// Its status and its problem.
    pub(crate) fn refusal(&self) -> (u16, String) {
        (self.status.as_u16(), self.problem())
    }
}

/// A connection.
#[expect(
    clippy::disallowed_methods,
    reason = "a test talks to its own server on the loopback"
)]
pub(crate) async fn connect(address: SocketAddr) -> TcpStream {
    TcpStream::connect(address)
        .await
        .expect("the server listens")
}

/// Sends a request, and comes back with the head of its answer.
#[expect(
    clippy::disallowed_methods,
    reason = "a test talks to its own server on the loopback"
)]
pub(crate) async fn begin<B>(address: SocketAddr, request: Request<B>) -> http::Response<Incoming>
where
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let stream = TokioIo::new(connect(address).await);
    let shaken = hyper::client::conn::http1::handshake(stream).await;
    let (mut sender, connection) = shaken.expect("HTTP/1.1");
    tokio::spawn(connection);
    sender.send_request(request).await.expect("an answer")
}

/// Sends a request, and waits for its whole answer.
pub(crate) async fn send<B>(address: SocketAddr, request: Request<B>) -> Answer
where
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let (head, body) = begin(address, request).await.into_parts();
    let body = body.collect().await.expect("a whole answer").to_bytes();
    Answer {
        status: head.status,
        headers: head.headers,
        body,
    }
}

/// A request with this method, path, headers and body.
pub(crate) fn request(
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: impl Into<Bytes>,
) -> Request<Full<Bytes>> {
    let mut request = Request::builder()
        .method(method)
        .uri(path)
        .header("host", "test");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    request
        .body(Full::new(body.into()))
        .expect("a good request")
}

/// A POST.
pub(crate) async fn post(
    address: SocketAddr,
    path: &str,
    headers: &[(&str, &str)],
    body: &str,
) -> Answer {
    send(address, request("POST", path, headers, body.to_owned())).await
}

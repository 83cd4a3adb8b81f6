//! The example `guarded-axum`, as a process that can be killed.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Stdio;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::net::TcpStream;
use tokio::process::{Child, ChildStdout, Command};

use crate::client::{Answer, request};

/// The points between its steps, in order.
pub(crate) const STEPS: [&str; 6] = [
    "received",
    "begun",
    "claimed",
    "charged",
    "finished",
    "committed",
];

/// A running service.
pub(crate) struct Service {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
    pub(crate) address: SocketAddr,
}

impl Service {
    /// Starts it on this database; it halts where it is told to.
    pub(crate) async fn start(url: &str, halt_at: Option<(&str, usize)>) -> Service {
        let mut command = Command::new(program());
        command
            .args(["127.0.0.1:0", url])
            .env_remove("HALT_AT")
            .stdout(Stdio::piped())
            .kill_on_drop(true);
        if let Some((step, passage)) = halt_at {
            command.env("HALT_AT", format!("{step}:{passage}"));
        }
        let mut child = command.spawn().expect("the example starts");
        let stdout = child.stdout.take().expect("a pipe");
        let mut lines = BufReader::new(stdout).lines();
        let line = lines.next_line().await.expect("text");
        let line = line.expect("it says where it listens");
        let address = line.strip_prefix("listening on ").expect("an address");
        Service {
            child,
            lines,
            address: address.parse().expect("an address"),
        }
    }

    /// Waits until it has halted.
    pub(crate) async fn halted(&mut self) {
        let line = self.lines.next_line().await.expect("text");
        assert!(line.is_some_and(|line| line.starts_with("halted at ")));
    }

    /// `kill -9`.
    pub(crate) async fn kill(mut self) {
        self.child.kill().await.expect("killed");
    }
}

/// A charge of this order, under a key of the same name; `None` if there was no whole answer.
pub(crate) async fn charge(address: SocketAddr, order: &str) -> Option<Answer> {
    let headers = [
        ("idempotency-key", order),
        ("x-account", "anna"),
        ("content-type", "application/json"),
    ];
    let body = format!(r#"{{"order":"{order}","amount":990}}"#);
    ask(address, request("POST", "/charges", &headers, body)).await
}

/// The orders of all charges.
pub(crate) async fn charged_orders(address: SocketAddr) -> Vec<String> {
    let answer = ask(address, request("GET", "/charges", &[], "")).await;
    let answer = answer.expect("the service lives");
    let charges: Vec<serde_json::Value> = serde_json::from_slice(&answer.body).expect("JSON");
    let orders = charges.iter().map(|charge| charge["order"].as_str());
    orders
        .map(|order| order.expect("text").to_owned())
        .collect()
}

/// A request to a service that may die at any moment.
#[expect(
    clippy::disallowed_methods,
    reason = "a test talks to its own server on the loopback"
)]
async fn ask(address: SocketAddr, request: http::Request<Full<Bytes>>) -> Option<Answer> {
    let stream = TokioIo::new(TcpStream::connect(address).await.ok()?);
    let (mut sender, connection) = hyper::client::conn::http1::handshake(stream).await.ok()?;
    tokio::spawn(connection);
    let (head, body) = sender.send_request(request).await.ok()?.into_parts();
    let body = body.collect().await.ok()?.to_bytes();
    Some(Answer {
        status: head.status,
        headers: head.headers,
        body,
    })
}

/// `cargo test` and nextest build it with the tests; if only one test was built, it is built now.
fn program() -> PathBuf {
    let test = std::env::current_exe().expect("this test");
    let folder = test.ancestors().nth(2).expect("the build's folder");
    let program = folder.join("examples").join("guarded-axum");
    if !program.exists() {
        let built = std::process::Command::new(env!("CARGO"))
            .args(["build", "--quiet", "--package", "hapax-tower"])
            .args(["--example", "guarded-axum"])
            .status();
        assert!(built.expect("cargo runs").success(), "the example builds");
    }
    program
}

//! An example of this crate, as a process that can be killed.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Stdio;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::net::TcpStream;
use tokio::process::{Child, ChildStdout, Command};

use crate::client::Answer;

/// A running example.
pub(crate) struct Example {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
    pub(crate) address: SocketAddr,
}

impl Example {
    /// Starts it on this store or database; it halts where it is told to.
    pub(crate) async fn start(name: &str, store: &str, halt_at: Option<(&str, usize)>) -> Example {
        let mut command = Command::new(program(name));
        command
            .args(["127.0.0.1:0", store])
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
        Example {
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

/// A request to an example that may die at any moment; `None` if there was no whole answer.
#[expect(
    clippy::disallowed_methods,
    reason = "a test talks to its own server on the loopback"
)]
pub(crate) async fn ask(
    address: SocketAddr,
    request: http::Request<Full<Bytes>>,
) -> Option<Answer> {
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
fn program(name: &str) -> PathBuf {
    let test = std::env::current_exe().expect("this test");
    let folder = test.ancestors().nth(2).expect("the build's folder");
    let program = folder.join("examples").join(name);
    if !program.exists() {
        let built = std::process::Command::new(env!("CARGO"))
            .args(["build", "--quiet", "--package", "hapax-tower"])
            .args(["--example", name])
            .status();
        assert!(built.expect("cargo runs").success(), "the example builds");
    }
    program
}

//! The program as a child process. It ends with the value, by its process id.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};

use super::client::{Answer, Connection};
use super::clock::TOO_LONG;

/// The admin token of every server here.
pub(crate) const TOKEN: &str = "0123456789abcdef0123456789abcdef";

/// A request to the API for a change, with the token, for those who do not wait for its answer.
#[cfg(target_os = "linux")]
pub(crate) fn posting(path: &str, body: &serde_json::Value) -> Vec<u8> {
    let body = body.to_string();
    let length = body.len();
    let request = format!(
        "POST {path} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {TOKEN}\r\n\
         content-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
    );
    request.into_bytes()
}

/// A server that listens.
#[derive(Debug)]
pub(crate) struct Server {
    child: Child,
    address: SocketAddr,
    log: Receiver<String>,
    said: Arc<Mutex<String>>,
}

impl Server {
    /// Starts `command` and waits for it to say where it listens.
    pub(crate) fn start(command: &mut Command) -> Server {
        let (child, log, said) = spawn(command);
        let unknown = SocketAddr::from(([127, 0, 0, 1], 0));
        let mut server = Server {
            child,
            address: unknown,
            log,
            said,
        };
        let line = server.wait_for_log("listening");
        let address = line["address"].as_str().expect("an address");
        server.address = address.parse().expect("an address");
        let health = server
            .connect()
            .ask(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n");
        assert_eq!(health.expect("an answer").status, 200);
        server
    }

    /// All that it has said until now, kept beyond its end.
    pub(crate) fn said(&self) -> Arc<Mutex<String>> {
        self.said.clone()
    }

    /// Waits for a log line with this message.
    #[track_caller]
    pub(crate) fn wait_for_log(&self, message: &str) -> serde_json::Value {
        let mut before = Vec::new();
        loop {
            let Ok(line) = self.log.recv_timeout(TOO_LONG) else {
                panic!("the server never said `{message}`; it said {before:#?}");
            };
            let parsed: serde_json::Value = serde_json::from_str(&line).unwrap_or_default();
            if parsed["message"] == message {
                return parsed;
            }
            before.push(line);
        }
    }

    /// A new connection to it.
    #[track_caller]
    pub(crate) fn connect(&self) -> Connection {
        Connection::open(self.address).expect("the server takes connections")
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// One request on a connection of its own.
    #[track_caller]
    pub(crate) fn ask(&self, request: &[u8]) -> Answer {
        self.connect().ask(request).expect("an answer")
    }

    /// Asks the API, with the token.
    #[track_caller]
    pub(crate) fn get(&self, path: &str) -> Answer {
        let request = format!(
            "GET {path} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {TOKEN}\r\n\r\n"
        );
        self.ask(request.as_bytes())
    }

    /// Asks the API for a change, with the token.
    #[track_caller]
    pub(crate) fn post(&self, path: &str, body: &serde_json::Value) -> Answer {
        self.ask_as(TOKEN, "POST", path, &body.to_string(), "")
    }

    /// Asks the API with any token, method, body and more lines of the head.
    #[track_caller]
    pub(crate) fn ask_as(
        &self,
        token: &str,
        method: &str,
        path: &str,
        body: &str,
        more: &str,
    ) -> Answer {
        let length = body.len();
        let request = format!(
            "{method} {path} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {token}\r\n\
             content-type: application/json\r\ncontent-length: {length}\r\n{more}\r\n{body}"
        );
        self.ask(request.as_bytes())
    }

    /// Sends a signal by name: TERM, HUP.
    pub(crate) fn signal(&self, name: &str) {
        let pid = self.child.id().to_string();
        let sent = Command::new("sh")
            .args(["-c", "kill -s \"$1\" \"$2\"", "sh", name, &pid])
            .status();
        assert!(
            sent.expect("a shell").success(),
            "the server has gone before SIG{name}"
        );
    }

    /// `kill -9`, in the middle of whatever it does.
    pub(crate) fn kill(mut self) {
        self.child.kill().expect("it can be killed");
        let ended = self.child.wait().expect("it ends");
        assert_eq!(
            ended.signal(),
            Some(9),
            "it ended by itself before it was killed: {ended}"
        );
    }

    /// Waits for it to end by itself.
    pub(crate) fn wait(mut self) -> ExitStatus {
        // Its log ends with it; waiting there is bounded, waiting for a process is not.
        let mut before = Vec::new();
        loop {
            match self.log.recv_timeout(TOO_LONG) {
                Ok(line) => before.push(line),
                Err(std::sync::mpsc::RecvTimeoutError::Disconnected) => break,
                Err(std::sync::mpsc::RecvTimeoutError::Timeout) => {
                    panic!("the server does not end; it said {before:#?}")
                }
            }
        }
        self.child.wait().expect("it ends")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Starts `command`, lets `meanwhile` pass, and kills it wherever it is.
pub(crate) fn start_and_kill(command: &mut Command, meanwhile: impl FnOnce()) {
    let (mut child, _log, _said) = spawn(command);
    meanwhile();
    let _ = child.kill();
    let ended = child.wait().expect("it ends");
    assert_eq!(
        ended.signal(),
        Some(9),
        "it ended by itself before it was killed: {ended}"
    );
}

/// Starts `command` and reads its log on a thread of its own: without a reader it would stop at a full pipe.
fn spawn(command: &mut Command) -> (Child, Receiver<String>, Arc<Mutex<String>>) {
    let mut child = command.stderr(Stdio::piped()).spawn().expect("it starts");
    let lines = BufReader::new(child.stderr.take().expect("piped")).lines();
    let (heard, log) = channel();
    let said = Arc::new(Mutex::new(String::new()));
    let kept = said.clone();
    std::thread::spawn(move || {
        for line in lines.map_while(Result::ok) {
            let mut said = kept.lock().expect("nobody panics with it");
            said.push_str(&line);
            said.push('\n');
            drop(said);
            let _ = heard.send(line);
        }
    });
    (child, log, said)
}

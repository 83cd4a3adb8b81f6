//! The world outside: a target that does what a test says and keeps its own log. What it received is the truth that the ledger is
//! compared with; it lives in the test's process, so that it survives whatever happens to the server.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Instant;

use super::clock::{TOO_LONG, tick};

/// One request as the world received it.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    /// Its path and query.
    pub(crate) target: String,
    /// Its headers, names in lower case.
    pub(crate) headers: HashMap<String, String>,
    /// Its body.
    pub(crate) body: Vec<u8>,
    /// How many requests with the same key came before it.
    pub(crate) before: usize,
    /// How many requests came before it.
    pub(crate) nth: usize,
    /// How many requests were with the world then, this one included.
    pub(crate) at_once: usize,
    /// When all of it was there.
    pub(crate) at: Instant,
}

impl Seen {
    pub(crate) fn key(&self) -> &str {
        self.headers.get("idempotency-key").map_or("", |key| key)
    }
}

/// What the world does with a request.
#[derive(Clone, Debug)]
pub(crate) enum Act {
    /// Answers with a status.
    Answer(u16),
    /// Answers with a status, more headers and a body.
    AnswerWith(u16, &'static str, String),
    /// Reads it and closes without a word.
    HangUp,
    /// Reads it and says nothing until the world ends.
    Hang,
    /// Answers 200 once the test says so.
    Held,
    /// Answers with a status once the test says so.
    HeldThen(u16),
    /// Answers with a status, more headers and a body once the test says so.
    HeldThenWith(u16, &'static str, String),
    /// Closes without a word once the test says so.
    HeldThenHangUp,
    /// Answers 200 with more headers and a body in pieces, each but the first once the test says so.
    InPieces(&'static str, Vec<String>),
}

type Manners = dyn Fn(&Seen) -> Act + Send + Sync;

/// A target with a log of its own.
pub(crate) struct World {
    address: SocketAddr,
    shared: Arc<Shared>,
}

struct Shared {
    manners: Box<Manners>,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    seen: Vec<Seen>,
    at_once: usize,
    at_once_max: usize,
    released: usize,
    ended: bool,
}

impl World {
    /// A world that treats each request as `manners` says.
    pub(crate) fn new(manners: impl Fn(&Seen) -> Act + Send + Sync + 'static) -> World {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let shared = Arc::new(Shared {
            manners: Box::new(manners),
            state: Mutex::default(),
            changed: Condvar::new(),
        });
        let served = shared.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let Ok(stream) = stream else { continue };
                if served.state.lock().expect("whole").ended {
                    return;
                }
                let shared = served.clone();
                std::thread::spawn(move || shared.serve(stream));
            }
        });
        World { address, shared }
    }

    /// A world that is always well.
    pub(crate) fn well() -> World {
        World::new(|_| Act::Answer(200))
    }

    /// Where it is.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Where it is, for a config.
    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// Everything it received so far.
    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.shared.state.lock().expect("whole").seen.clone()
    }

    /// How many requests it received for each key.
    pub(crate) fn by_key(&self) -> HashMap<String, usize> {
        let mut counts = HashMap::new();
        for seen in self.seen() {
            *counts.entry(seen.key().to_owned()).or_default() += 1;
        }
        counts
    }

    /// The most requests that were with it at the same time.
    pub(crate) fn at_once_max(&self) -> usize {
        self.shared.state.lock().expect("whole").at_once_max
    }

    /// Waits until it has received so much that `enough` says so.
    #[track_caller]
    pub(crate) fn wait_for(&self, what: &str, enough: impl Fn(&[Seen]) -> bool) -> Vec<Seen> {
        let state = self.shared.state.lock().expect("whole");
        let (state, waited) = self
            .shared
            .changed
            .wait_timeout_while(state, TOO_LONG, |state| !enough(&state.seen))
            .expect("whole");
        let seen = state.seen.clone();
        drop(state);
        let keys: Vec<&str> = seen.iter().map(Seen::key).collect();
        let timed_out = waited.timed_out();
        assert!(!timed_out, "the world never saw {what}; it saw {keys:?}");
        seen
    }

    /// Lets so many more held requests be answered.
    pub(crate) fn release(&self, requests: usize) {
        self.shared.state.lock().expect("whole").released += requests;
        self.shared.changed.notify_all();
    }
}

impl Drop for World {
    #[expect(
        clippy::disallowed_methods,
        reason = "tests speak to what they started, on loopback"
    )]
    fn drop(&mut self) {
        self.shared.state.lock().expect("whole").ended = true;
        self.shared.changed.notify_all();
        // Wakes the listener, so that its thread ends.
        let _ = TcpStream::connect(self.address);
    }
}

impl Shared {
    fn serve(&self, stream: TcpStream) {
        let mut reader = BufReader::new(stream.try_clone().expect("a second handle"));
        let mut stream = stream;
        while let Some(mut seen) = read(&mut reader) {
            self.arrive(&mut seen);
            let act = (self.manners)(&seen);
            let answer = self.answer(act);
            // Before the answer leaves: whoever hears it may send the next at once.
            self.state.lock().expect("whole").at_once -= 1;
            match answer {
                Some(parts) if self.send(&mut stream, &parts) => {}
                Some(_) | None => return,
            }
        }
    }

    /// Writes it down before anything is done with it.
    fn arrive(&self, seen: &mut Seen) {
        let mut state = self.state.lock().expect("whole");
        seen.before = state
            .seen
            .iter()
            .filter(|other| other.key() == seen.key())
            .count();
        state.at_once += 1;
        (seen.nth, seen.at_once) = (state.seen.len(), state.at_once);
        state.seen.push(seen.clone());
        state.at_once_max = state.at_once_max.max(state.at_once);
        self.changed.notify_all();
    }

    /// Sends the parts of an answer, each but the first once the test says so. Have all of them left?
    fn send(&self, stream: &mut TcpStream, parts: &[String]) -> bool {
        parts.iter().enumerate().all(|(nth, part)| {
            if nth > 0 {
                self.wait_for_release();
            }
            stream.write_all(part.as_bytes()).is_ok()
        })
    }

    /// Waits as long as it wants to. The parts of its answer, mostly one; nothing if it hangs up.
    fn answer(&self, act: Act) -> Option<Vec<String>> {
        let (status, headers, body) = match act {
            Act::Answer(status) => (status, "", String::new()),
            Act::AnswerWith(status, headers, body) => (status, headers, body),
            Act::HangUp => return None,
            Act::Hang => {
                self.wait_until(|state| state.ended);
                return None;
            }
            Act::Held => {
                self.wait_for_release();
                (200, "", String::new())
            }
            Act::HeldThen(status) => {
                self.wait_for_release();
                (status, "", String::new())
            }
            Act::HeldThenWith(status, headers, body) => {
                self.wait_for_release();
                (status, headers, body)
            }
            Act::HeldThenHangUp => {
                self.wait_for_release();
                return None;
            }
            Act::InPieces(headers, pieces) => return Some(chunked(headers, &pieces)),
        };
        let length = body.len();
        let whole = format!(
            "HTTP/1.1 {status} as it is\r\ncontent-length: {length}\r\n{headers}\r\n{body}"
        );
        Some(vec![whole])
    }

    fn wait_for_release(&self) {
        self.wait_until(|state| {
            let free = state.ended || state.released > 0;
            state.released = state.released.saturating_sub(usize::from(free));
            free
        });
    }

    fn wait_until(&self, mut over: impl FnMut(&mut State) -> bool) {
        let state = self.state.lock().expect("whole");
        drop(self.changed.wait_while(state, |state| !over(state)));
    }
}

/// An answer in chunks: the head leaves with the first of them, the end with the last.
fn chunked(headers: &str, pieces: &[String]) -> Vec<String> {
    let chunk = |piece: &String| format!("{:x}\r\n{piece}\r\n", piece.len());
    let mut parts: Vec<String> = pieces.iter().map(chunk).collect();
    let head = format!("HTTP/1.1 200 as it is\r\ntransfer-encoding: chunked\r\n{headers}\r\n");
    if let Some(first) = parts.first_mut() {
        first.insert_str(0, &head);
    }
    if let Some(last) = parts.last_mut() {
        last.push_str("0\r\n\r\n");
    }
    parts
}

fn read(reader: &mut impl BufRead) -> Option<Seen> {
    let mut line = String::new();
    reader.read_line(&mut line).ok().filter(|read| *read > 0)?;
    let target = line.split(' ').nth(1)?.to_owned();
    let mut headers = HashMap::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok().filter(|read| *read > 0)?;
        let Some((name, value)) = line.trim_end().split_once(':') else {
            break;
        };
        headers.insert(name.to_lowercase(), value.trim().to_owned());
    }
    let length = headers.get("content-length");
    let length = length.map_or(0, |length| length.parse().expect("a length"));
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some(Seen {
        target,
        headers,
        body,
        before: 0,
        nth: 0,
        at_once: 0,
        at: tick(),
    })
}

//! An upstream of HTTP/2 whose every frame is in the test's hands.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;

use crate::support::clock::TOO_LONG;

const PREFACE: usize = 24;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;
const ACK: u8 = 1;
const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const GOAWAY: u8 = 7;

/// Codes of errors (RFC 9113, 7).
pub(super) const NO_ERROR: u32 = 0;
pub(super) const INTERNAL_ERROR: u32 = 2;
pub(super) const REFUSED_STREAM: u32 = 7;
pub(super) const CANCEL: u32 = 8;
pub(super) const ENHANCE_YOUR_CALM: u32 = 11;

/// The last stream of a connection that closes without saying which.
pub(super) const ANY_STREAM: u32 = (1 << 31) - 1;

/// What the upstream does when it has read a request.
#[derive(Clone, Debug)]
pub(super) enum Do {
    /// Answers with 201 and a body; the whole of it, or a part.
    Answer,
    HalfAnswer,
    Reset(u32),
    /// Closes with the last stream that it looks at, counted from the request's own, and an error.
    GoAway(Last, u32),
    /// Ends the connection.
    Close,
    /// Waits for the test.
    Wait,
    /// First of all: the others come as soon as the head is here, and the body is not read.
    Early,
}

/// The last stream that is looked at.
#[derive(Clone, Copy, Debug)]
pub(super) enum Last {
    /// The one before the request's.
    Before,
    /// The request's.
    Own,
    /// Any that is under way.
    Any,
}

/// When an upstream shows that it speaks HTTP/2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Greets {
    AtOnce,
    /// When the test says so.
    WhenTold,
}

/// The upstream.
pub(crate) struct Frames {
    address: SocketAddr,
    /// Requests whose body was read to its end.
    carried_out: Arc<AtomicUsize>,
    connections: Arc<AtomicUsize>,
    /// Connections that were told that this is HTTP/2.
    greeted: Arc<AtomicUsize>,
    go: mpsc::Sender<()>,
}

impl Frames {
    /// Does with each request what the script says for it, counted over all connections; answers when that is over.
    pub(super) fn new(script: Vec<Vec<Do>>) -> Frames {
        Frames::greeting(Greets::AtOnce, script)
    }

    /// Answers what it is asked, and greets each connection only when the test lets it go on.
    pub(crate) fn reserved() -> Frames {
        Frames::greeting(Greets::WhenTold, Vec::new())
    }

    fn greeting(greets: Greets, script: Vec<Vec<Do>>) -> Frames {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let (go, waits) = mpsc::channel();
        let frames = Frames {
            address,
            carried_out: Arc::default(),
            connections: Arc::default(),
            greeted: Arc::default(),
            go,
        };
        let (carried_out, connections) = (frames.carried_out.clone(), frames.connections.clone());
        let greeted = frames.greeted.clone();
        let (script, waits) = (Arc::new(script), Arc::new(Mutex::new(waits)));
        thread::spawn(move || {
            while let Ok((stream, _)) = listener.accept() {
                connections.fetch_add(1, Ordering::SeqCst);
                let (script, carried_out) = (script.clone(), carried_out.clone());
                let (waits, greeted) = (waits.clone(), greeted.clone());
                // However it ends, others may come.
                thread::spawn(move || {
                    if greets == Greets::WhenTold {
                        wait(&waits);
                    }
                    serve(stream, &script, &carried_out, &greeted, &waits)
                });
            }
        });
        frames
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub(crate) fn carried_out(&self) -> usize {
        self.carried_out.load(Ordering::SeqCst)
    }

    pub(crate) fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }

    pub(crate) fn greeted(&self) -> usize {
        self.greeted.load(Ordering::SeqCst)
    }

    /// Whoever waits goes on.
    pub(crate) fn go_on(&self) {
        self.go.send(()).expect("it waits");
    }
}

struct Frame {
    kind: u8,
    flags: u8,
    stream: u32,
    payload: Vec<u8>,
}

fn read(stream: &mut TcpStream) -> io::Result<Frame> {
    let mut head = [0; 9];
    stream.read_exact(&mut head)?;
    let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
    let mut payload = vec![0; length as usize];
    stream.read_exact(&mut payload)?;
    Ok(Frame {
        kind: head[3],
        flags: head[4],
        stream: u32::from_be_bytes([head[5], head[6], head[7], head[8]]),
        payload,
    })
}

fn write(stream: &mut TcpStream, kind: u8, flags: u8, id: u32, payload: &[u8]) -> io::Result<()> {
    let length = u32::try_from(payload.len()).expect("a short frame");
    let mut frame = length.to_be_bytes()[1..].to_vec();
    frame.extend([kind, flags]);
    frame.extend(id.to_be_bytes());
    frame.extend(payload);
    stream.write_all(&frame)
}

fn wait(waits: &Mutex<mpsc::Receiver<()>>) {
    let waits = waits.lock().expect("a lock");
    // A test that is over lets nobody go on.
    let _ = waits.recv_timeout(TOO_LONG);
}

fn serve(
    mut stream: TcpStream,
    script: &[Vec<Do>],
    carried_out: &AtomicUsize,
    greeted: &AtomicUsize,
    waits: &Mutex<mpsc::Receiver<()>>,
) -> io::Result<()> {
    stream.set_read_timeout(Some(TOO_LONG))?;
    stream.read_exact(&mut [0; PREFACE])?;
    write(&mut stream, SETTINGS, 0, 0, &[])?;
    let is_early = |frame: &Frame| {
        let acts = script.get(carried_out.load(Ordering::SeqCst));
        let early = acts.is_some_and(|acts| matches!(acts.first(), Some(Do::Early)));
        early && frame.kind == HEADERS
    };
    loop {
        let frame = read(&mut stream)?;
        match frame.kind {
            SETTINGS if frame.flags & ACK == 0 => write(&mut stream, SETTINGS, ACK, 0, &[])?,
            PING if frame.flags & ACK == 0 => {
                write(&mut stream, PING, ACK, 0, &frame.payload)?;
                greeted.fetch_add(1, Ordering::SeqCst);
            }
            HEADERS | DATA if frame.flags & END_STREAM != 0 || is_early(&frame) => {
                let nth = carried_out.fetch_add(1, Ordering::SeqCst);
                let answer = vec![Do::Answer];
                for act in script.get(nth).unwrap_or(&answer) {
                    match act {
                        Do::Close => return Ok(()),
                        Do::Wait => wait(waits),
                        Do::Early => {}
                        act => act.write(&mut stream, frame.stream, nth + 1)?,
                    }
                }
            }
            _ => {}
        }
    }
}

impl Do {
    fn write(&self, stream: &mut TcpStream, id: u32, execution: usize) -> io::Result<()> {
        let body = format!("{{\"execution\":{execution}}}").into_bytes();
        // `:status` with its value as it stands (RFC 7541, 6.2.2).
        let head = b"\x08\x03201";
        match *self {
            Do::Answer => {
                write(stream, HEADERS, END_HEADERS, id, head)?;
                write(stream, DATA, END_STREAM, id, &body)
            }
            Do::HalfAnswer => {
                write(stream, HEADERS, END_HEADERS, id, head)?;
                write(stream, DATA, 0, id, &body[..4])
            }
            Do::Reset(code) => write(stream, RST_STREAM, 0, id, &code.to_be_bytes()),
            Do::GoAway(last, code) => {
                let last = match last {
                    Last::Before => id.saturating_sub(2),
                    Last::Own => id,
                    Last::Any => ANY_STREAM,
                };
                let told = [last.to_be_bytes(), code.to_be_bytes()].concat();
                write(stream, GOAWAY, 0, 0, &told)
            }
            Do::Close | Do::Wait | Do::Early => Ok(()),
        }
    }
}
